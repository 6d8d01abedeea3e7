//! Compiles health checks: the rules of a backend become a script, and the parameters of each server are computed from
//! its line. Must never open a connection.

use super::Compiler;
use super::names::SpecNames;
use super::rules::owner;
use crate::check::{self, AgentCheck, Check, CheckStep, External, Port, ServerCheck};
use crate::program::{Connecting, MuxProtocol, ServerAddress, ServerPort};
use crate::rule::{Parsing, RuleError, Words};
use config::diagnostic::{Diagnostic, Form, ReportOrder};
use config::spec::{
    CheckMethod, CheckSpec, GlobalSpec, HealthcheckSpec, Mode, Observe, ProtocolCheck, ProxySpec, RuleLineSpec,
    ServerSpec, Spec,
};
use config::text;
use expression::sample::EvalPlace;
use live::ObservePlan;
use live::health::Pace;
use std::cell::RefCell;
use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

/// A parser of one rule.
type ReadRule = fn(&mut Words<'_>, &Parsing<'_>) -> Result<CheckStep, RuleError>;

/// The rules of a check that have the same keyword.
struct CheckRules<'a> {
    /// `tcp-check` or `http-check`.
    keyword: &'a str,
    lines: &'a [RuleLineSpec],
    read: ReadRule,
    /// Number of lines at the start whose order is not validated.
    unjudged: usize,
}

impl Compiler<'_> {
    /// Compiles the check of a backend's servers.
    pub(super) fn check(&mut self, spec: &Spec, index: usize, written: &ProxySpec) -> Check {
        let names = self.names(spec, Some(index));
        let bufsize = buffer_size(&spec.global);
        let program = self.check_program(&spec.global, written).map(Box::new);
        let check = self.check_of(written, &written.check, &names, true, bufsize);
        Check { program, ..check }
    }

    /// Compiles the program of `option external-check`, if all its required keywords are present.
    fn check_program(&mut self, global: &GlobalSpec, written: &ProxySpec) -> Option<External> {
        let rules = &written.check;
        if rules.method != CheckMethod::Program {
            self.can_be_found(written);
            return None;
        }
        let head = format!("Proxy '{}' : ", written.name.value);
        let missing = |what: &str| format!("{head}'option external-check' unable to find required '{what}'.");
        let span = written.name.span;
        if !global.checks.programs {
            self.alert(span, Form::Bare, missing("global.external-check"));
        }
        if rules.command.is_none() {
            self.alert(span, Form::Bare, missing("external-check command"));
        }
        if !global.rights.fork_wanted {
            let text = format!(
                "{head}'insecure-fork-wanted' not enabled in the global section, 'option external-check' will likely \
                 fail."
            );
            self.warn(Diagnostic::warning(span, text).with_form(Form::Bare));
        }
        self.can_be_found(written);
        Some(External {
            command: rules.command.as_deref()?.into(),
            path: rules.path.as_deref().unwrap_or_default().into(),
            preserve_environment: global.checks.preserve_environment,
            allowed: global.rights.fork_wanted,
        })
    }

    /// Reports errors about a program, whether it is used or not.
    fn can_be_found(&mut self, written: &ProxySpec) {
        let (rules, name, span) = (&written.check, &written.name.value, written.name.span);
        for (what, value) in [("command", &rules.command), ("path", &rules.path)] {
            if value.is_some() && rules.method != CheckMethod::Program {
                let text = format!(
                    "'external-check {what}' will be ignored for {} (requires 'option external-check').",
                    owner(written)
                );
                self.warn(Diagnostic::warning(span, text).with_form(Form::Bare));
            }
        }
        if rules.path.is_none() && rules.command.as_ref().is_some_and(|command| !command.starts_with('/')) {
            let text = format!(
                "Proxy '{name}': 'external-check command' does not have a leading '/' and 'external-check path' is not \
                 set."
            );
            self.alert(span, Form::Bare, text);
        }
    }

    /// Compiles the rules of a backend or of a `healthcheck` section, with the names visible in the backend's
    /// expressions. `of_proxy`: the rules are the backend's.
    fn check_of(
        &mut self,
        written: &ProxySpec,
        rules: &CheckSpec,
        names: &SpecNames<'_>,
        of_proxy: bool,
        bufsize: usize,
    ) -> Check {
        let is_httpchk = matches!(rules.method, CheckMethod::Http(_));
        let is_grpc = matches!(rules.method, CheckMethod::Protocol(ProtocolCheck::Grpc { .. }));
        let is_tcp = rules.method == CheckMethod::Tcp;
        let tcp = CheckRules { keyword: "tcp-check", lines: &rules.tcp, read: check::tcp_rule, unjudged: 0 };
        let http = CheckRules {
            keyword: "http-check",
            lines: &rules.http,
            read: check::http_rule,
            unjudged: rules.http_unjudged,
        };
        let tcp = self.script(tcp, written, names);
        let http = self.script(http, written, names);
        for (lines, is_used, kind, option) in
            [(&rules.tcp, is_tcp, "tcp-check", "tcp-check"), (&rules.http, is_httpchk, "http-check", "httpchk")]
        {
            if let (Some(line), true) = (lines.iter().find(|line| !line.inherited && !is_used), of_proxy) {
                let owner = owner(written);
                let text = format!("{owner} uses {kind} rules without 'option {option}', so the rules are ignored.");
                // HAProxy looks at the rules of HTTP first.
                let turn = ReportOrder::Early(if kind == "http-check" { 4 } else { 9 });
                self.warn(Diagnostic::warning(line.span, text).with_form(Form::Bare).in_turn(turn, written.name.span));
            }
        }
        let duration = |millis: Option<u64>| millis.filter(|millis| *millis > 0).map(Duration::from_millis);
        let timeout = duration(written.timeouts.check);
        let steps = match &rules.method {
            CheckMethod::Connect | CheckMethod::Program | CheckMethod::Udp(_) => Vec::new(),
            CheckMethod::Tcp => tcp,
            CheckMethod::Protocol(check) => check::script(check, &written.name.value, bufsize),
            CheckMethod::Http(line) => {
                let line = self.request_line(line, written, names);
                let sends = rules.http.iter().filter(|rule| rule.words.first().is_some_and(|word| word.text == "send"));
                let own: Vec<_> = sends.map(|rule| check::WrittenRequest::of(&rule.words)).collect();
                check::implicit_steps(http, line, own.first().copied())
            }
        };
        Check {
            steps: steps.into(),
            is_http: is_httpchk || is_grpc,
            is_tcp,
            disable_on_404: rules.disable_on_404,
            send_state: rules.send_state,
            log: written.check.log,
            timeout,
            connect: timeout.and(duration(written.timeouts.connect)),
            program: None,
            datagram: match &rules.method {
                CheckMethod::Udp(contents) => Some(contents.as_slice().into()),
                _ => None,
            },
        }
    }

    /// Parses the request of `option httpchk`.
    fn request_line(&mut self, line: &RuleLineSpec, written: &ProxySpec, names: &SpecNames<'_>) -> check::Request {
        names.begin(line);
        let parsing = Parsing { names, place: EvalPlace::Check, set: 0, proxy: written, warnings: RefCell::default() };
        check::http_line(&line.words, &parsing).unwrap_or_else(|RuleError { message, hint, span, .. }| {
            let message = format!("'option httpchk' : {message}.");
            self.alert_with_hint(span.unwrap_or(line.span), Form::Parsing, message, hint);
            check::Request::default()
        })
    }

    fn script(&mut self, rules: CheckRules<'_>, written: &ProxySpec, names: &SpecNames<'_>) -> Vec<CheckStep> {
        let CheckRules { keyword, lines, read, unjudged } = rules;
        let mut steps: Vec<CheckStep> = Vec::new();
        let mut broken = false;
        for (at, line) in lines.iter().enumerate() {
            names.begin(line);
            let mut words = Words::new(&line.words);
            let parsing =
                Parsing { names, place: EvalPlace::Check, set: 0, proxy: written, warnings: RefCell::default() };
            let what = format!("'{keyword} {}'", words.action());
            // After an invalid step, the order of the following ones is not checked.
            match read(&mut words, &parsing)
                .and_then(|step| if broken { Ok(step) } else { in_order(&steps, step, keyword, at >= unjudged) })
            {
                Ok(step) => steps.push(step),
                Err(RuleError { message, hint, span, .. }) => {
                    broken = true;
                    let message = format!("{what} : {message}.");
                    self.alert_with_hint(span.unwrap_or(line.span), Form::Parsing, message, hint);
                }
            }
        }
        steps
    }

    /// Validates the `healthcheck` sections that no server uses.
    pub(super) fn unused_checks(&mut self, spec: &Spec) {
        let Some(any) = spec.proxies.first() else { return };
        let names = self.names(spec, Some(0));
        let servers = spec.proxies.iter().flat_map(|proxy| &proxy.servers);
        let named = servers.filter_map(|server| server.check.healthcheck.as_ref());
        let named: HashSet<&str> = named.map(|name| name.value.as_str()).collect();
        let unused = |section: &&HealthcheckSpec| !named.contains(section.name.value.as_str());
        for section in spec.sections.healthchecks.iter().filter(unused) {
            let _ = self.check_of(any, &section.check, &names, false, buffer_size(&spec.global));
        }
    }

    /// Compiles the check of a server; `None` if it is not checked. `check` is that of its backend.
    pub(super) fn server_check(
        &mut self,
        names: &SpecNames<'_>,
        proxy: &ProxySpec,
        check: &Check,
        server: &ServerSpec,
        address: &ServerAddress,
        connecting: &Connecting,
    ) -> Option<ServerCheck> {
        let written = &server.check;
        let section = self.healthcheck_section(names, proxy, server);
        if !written.enabled {
            return None;
        }
        let script = section.map(|section| {
            if !section.typed {
                let head = format!("'server {}/{}' : ", proxy.name.value, server.name.value);
                let span = written.healthcheck.as_ref().map_or(server.span, |name| name.span);
                self.alert(
                    span,
                    Form::Parsing,
                    format!("{head}healthcheck section '{}' has no type.", section.name.value),
                );
            }
            let bufsize = buffer_size(&names.spec.global);
            Arc::new(self.check_of(proxy, &section.check, names, false, bufsize))
        });
        self.check_protocol(proxy, server, script.as_deref().unwrap_or(check));
        let own = match &written.address {
            Some(own) => self.server_address(&own.value).ok(),
            None => None,
        };
        let port = written.port.filter(|port| *port > 0);
        if port.is_none() && !has_port(address, own.as_ref(), script.as_deref().unwrap_or(check)) {
            let (backend, name) = (&proxy.name.value, &server.name.value);
            let message =
                format!("config: backend '{backend}': server '{name}' has neither service port nor check port.");
            self.alert(server.span, Form::Bare, message);
        }
        let elsewhere = own.is_some() || port.is_some();
        let special = elsewhere || written.send_proxy || written.via_socks4 || written.protocol.is_some();
        let name = written.pool_conn_name.as_deref().map(|name| [b"n", name.as_bytes()].concat());
        let interval = Duration::from_millis(written.interval);
        let or_steady = |written: Option<u64>| written.map_or(interval, Duration::from_millis);
        Some(ServerCheck {
            address: own,
            port,
            send_proxy: written.send_proxy || (connecting.header.is_some() && !elsewhere),
            via_socks4: written.via_socks4,
            protocol: match written.protocol.as_ref().map(|protocol| protocol.value.as_str()) {
                Some("h2") => Some(MuxProtocol::Http2),
                Some("fcgi") => Some(MuxProtocol::Fcgi),
                Some("quic") => Some(MuxProtocol::Quic),
                Some("qmux") => Some(MuxProtocol::Qmux),
                Some(_) => Some(MuxProtocol::Http1),
                None => connecting.protocol.filter(|_| !elsewhere),
            },
            reuse: (written.reuse_pool && !special).then(|| name.unwrap_or_default().into()),
            pace: Pace {
                steady: interval,
                fast: or_steady(written.fast_interval),
                down: or_steady(written.down_interval),
            },
            rise: written.rise,
            fall: written.fall,
            initial: written.initial,
            script,
            observed: self.observed(proxy, server),
        })
    }

    /// Rejects checks of FastCGI servers in backends without an application, whose section defines the parameters.
    fn check_application(&mut self, proxy: &ProxySpec, server: &ServerSpec, used: &Check) {
        let own = server.check.protocol.as_ref().filter(|protocol| protocol.value == "fcgi").map(|found| found.span);
        let speaks = |step: &CheckStep| match step {
            CheckStep::Connect(connect) => connect.protocol == Some(MuxProtocol::Fcgi),
            _ => false,
        };
        let ruled = used.steps.iter().any(speaks).then_some(server.span);
        let Some(span) = own.or(ruled) else { return };
        if used.is_http && proxy.fcgi_app.is_none() {
            let (backend, name) = (&proxy.name.value, &server.name.value);
            let message = format!("proxy '{backend}': FCGI server '{name}' has no FCGI app configured.");
            let hint = "write 'use-fcgi-app <name>' and a section 'fcgi-app <name>'".to_owned();
            self.alert_with_hint(span, Form::Bare, message, Some(hint));
        }
    }

    /// Whether a rule of a server's check connects with TLS (`tcp-check connect ssl`).
    pub(super) fn is_checked_by_tls(&self, names: &SpecNames<'_>, proxy: &ProxySpec, server: &ServerSpec) -> bool {
        let named = server.check.healthcheck.as_ref();
        let section = named.and_then(|name| self.shared.indexes.healthcheck(names.spec, &name.value));
        let check = section.map_or(&*proxy.check, |section| &names.spec.sections.healthchecks[section].check);
        let rules = match check.method {
            CheckMethod::Tcp => &check.tcp,
            CheckMethod::Http(_) => &check.http,
            _ => return false,
        };
        let by_tls = |line: &RuleLineSpec| {
            let has = |text: &str| line.words.iter().any(|word| word.text == text);
            has("connect") && has("ssl")
        };
        server.check.enabled && rules.iter().any(by_tls)
    }

    /// Returns the `healthcheck` section of a server, whether it is checked or not.
    fn healthcheck_section<'s>(
        &mut self,
        names: &SpecNames<'s>,
        proxy: &ProxySpec,
        server: &ServerSpec,
    ) -> Option<&'s HealthcheckSpec> {
        let name = server.check.healthcheck.as_ref()?;
        let found = self.shared.indexes.healthcheck(names.spec, &name.value);
        let found = found.map(|place| &names.spec.sections.healthchecks[place]);
        if found.is_none() {
            let head = server_head(proxy, server);
            let message = format!(
                "{head}parsing [{}]: healthcheck section '*healthcheck-{}' not found for server '{}'.",
                self.place(server.span),
                name.value,
                server.name.value
            );
            // The name may come from `default-server` on another line.
            let span = Some(name.span).filter(|span| (span.file, span.line) == (server.span.file, server.span.line));
            self.alert(span.unwrap_or(server.span), Form::LatePlaced, message);
        }
        found
    }

    /// Validates that `check-proto` fits the type of the check.
    fn check_protocol(&mut self, proxy: &ProxySpec, server: &ServerSpec, used: &Check) {
        self.check_application(proxy, server, used);
        let Some(protocol) = &server.check.protocol else { return };
        let is_quic = server.address.value.is_quic();
        let fits = match protocol.value.as_str() {
            "quic" => is_quic,
            "qmux" => !is_quic,
            _ => true,
        };
        if (protocol.value != "none") != used.is_http || !fits {
            let (backend, name) = (&proxy.name.value, &server.name.value);
            let message = format!(
                "config: backend '{backend}': server '{name}' uses an incompatible MUX protocol for the selected check \
                 type"
            );
            self.alert(protocol.span, Form::Bare, message);
        }
    }

    fn observed(&mut self, proxy: &ProxySpec, server: &ServerSpec) -> Option<ObservePlan> {
        let written = &server.check;
        if written.observe == Observe::Layer7 && proxy.mode != Mode::Http {
            let head = format!("'server {}/{}' : ", proxy.name.value, server.name.value);
            self.alert(server.span, Form::Parsing, format!("{head}'layer7' can only be used in http proxies."));
        }
        (written.observe != Observe::None).then_some(ObservePlan {
            answers: written.observe == Observe::Layer7,
            limit: written.error_limit,
            on_error: written.on_error,
        })
    }

    /// Compiles the agent check of a server; `None` if it has none.
    pub(super) fn agent_check(&mut self, server: &ServerSpec) -> Option<AgentCheck> {
        let written = &server.check.agent;
        let address = match written.address.as_ref().map(|own| (self.server_address(&own.value), own)) {
            None => None,
            Some((Ok(ServerAddress::Inet { ip, .. }), _)) => Some(ip),
            Some((_, own)) => {
                self.alert(
                    own.span,
                    Form::Parsing,
                    "parsing agent-addr failed. Check if it is a correct address.".into(),
                );
                None
            }
        };
        written.enabled.then(|| AgentCheck {
            address,
            port: written.port,
            interval: Duration::from_millis(written.interval),
            send: text::to_bytes(&written.send).into(),
            uri: written.uri.as_deref().map(Into::into),
        })
    }
}

/// Validates the order of steps: if there are `connect` steps, the first step must be one. `in_pairs`: `send` and
/// `expect` have to alternate as well.
fn in_order(before: &[CheckStep], step: CheckStep, kind: &str, in_pairs: bool) -> Result<CheckStep, RuleError> {
    let acts = |step: &&CheckStep| !matches!(step, CheckStep::Comment(_) | CheckStep::Variable(_));
    let first = before.iter().find(acts);
    let opens = matches!(first, Some(CheckStep::Connect(_)));
    if matches!(step, CheckStep::Connect(_)) && first.is_some() && !opens {
        return Err(RuleError::new(
            "first step MUST also be a 'connect', optionally preceded by a 'set-var', an 'unset-var' or a 'comment', \
             when there is a 'connect' step in the tcp-check ruleset",
        ));
    }
    let lacks = match (before.iter().rev().find(acts), &step) {
        (Some(CheckStep::Request(_) | CheckStep::Expect(_)), CheckStep::Request(_)) => ("send", "connect"),
        (Some(CheckStep::Connect(_)), CheckStep::Expect(_)) => ("expect", "send"),
        (Some(CheckStep::Connect(_) | CheckStep::Request(_)), CheckStep::Connect(_)) => ("connect", "expect"),
        _ => return Ok(step),
    };
    if kind == "http-check" && in_pairs {
        // HAProxy counts a `connect` and the request after it as one step.
        let pairs =
            before.windows(2).filter(|pair| matches!(pair, [CheckStep::Connect(_), CheckStep::Request(_)])).count();
        let ((wanted, missing), at) = (lacks, before.len() + 1 - pairs);
        let message = format!("unable to add http-check {wanted} rule at step {at} (missing {missing} rule).");
        return Err(RuleError::new(message));
    }
    Ok(step)
}

/// Returns the effective `tune.bufsize`.
fn buffer_size(global: &GlobalSpec) -> usize {
    (global.tune.bufsize.unwrap_or(16_384) as usize).next_multiple_of(16)
}

/// Whether the port of a check is known: from the address of the server, from the check's own address, or from the rules.
fn has_port(address: &ServerAddress, own: Option<&ServerAddress>, used: &Check) -> bool {
    let has_service = |address: &ServerAddress| match address {
        // HAProxy requires no port if the server's address is the client's destination.
        ServerAddress::Inet { ip, .. } if ip.is_unspecified() && own.is_none() => true,
        ServerAddress::Inet { port: ServerPort::Exact(port), .. } => *port > 0,
        ServerAddress::Inet { .. } => false,
        _ => true,
    };
    let connects = |step: &CheckStep| match step {
        CheckStep::Connect(connect) => Some(matches!(&connect.port, Some(Port::Fixed(_) | Port::Evaluated(_)))),
        _ => None,
    };
    let is_named = used.program.is_some() || used.steps.iter().find_map(connects).unwrap_or(false);
    has_service(address) || own.is_some_and(has_service) || is_named
}

/// Returns HAProxy's prefix for messages about a server; the first server of a template is named by the template's
/// prefix.
pub(super) fn server_head(proxy: &ProxySpec, server: &ServerSpec) -> String {
    let (backend, name) = (&proxy.name.value, &server.name.value);
    let is_first =
        proxy.servers.iter().find(|other| other.span == server.span).is_none_or(|first| first.name == server.name);
    match name.get(..(server.name.span.end - server.name.span.start) as usize) {
        Some(prefix) if is_first && prefix != name => format!("'server-template {backend}/{prefix}' : "),
        _ => format!("'server {backend}/{name}' : "),
    }
}
