//! Checks that require the whole configuration: targets of switching rules, modes, timeouts, logs. Warns where
//! HAProxy warns and nowhere else, since `-dW` makes a warning fatal.

mod logs;
mod peers;
mod sums;
mod udp;

pub(super) use logs::{log_forwards, targets as log_targets};
pub(super) use peers::peers;
pub(super) use sums::sums;

use super::ReadContext;
use super::place::{Side, noun};
use super::proxy::{Pages, ProxyDraft};
use super::report::Report;
use super::{rule, upgrade};
use crate::diagnostic::{Diagnostic, Form, ReportOrder, Severity};
use crate::span::Spanned;
use crate::spec::{
    AddressSpec, CheckMethod, GlobalSpec, HealthcheckSpec, HttpErrorsSpec, LogFormatSpec, Mode, ProxyKind, ProxySpec,
    RetryOn, SocketKind,
};
use base::NameIndex;
use std::collections::HashMap;

/// Checks all proxies.
pub(super) fn proxies(drafts: &[ProxyDraft], global: &GlobalSpec, around: ReadContext<'_>, report: &mut Report<'_>) {
    let mut backends = HashMap::new();
    for draft in drafts.iter().filter(|draft| draft.spec.kind != ProxyKind::Frontend) {
        backends.entry(draft.spec.name.value.as_str()).or_insert(draft);
    }
    for draft in drafts.iter().filter(|draft| !draft.spec.disabled && !draft.gaps.base) {
        let mut proxy = Proxy { draft, backends: &backends, around, report: report.reborrow() };
        proxy.listens();
        proxy.uses_servers();
        proxy.takes_log_lines();
        proxy.targets();
        proxy.transports();
        proxy.log_format();
        proxy.warn_of_cookie();
        proxy.timeouts();
        proxy.log_targets(global);
        proxy.needs_http();
        proxy.check_statistics_page();
    }
}

/// Looks up the sections that proxies take pages from.
pub(super) fn error_pages(
    drafts: &[ProxyDraft],
    sections: &[HttpErrorsSpec],
    around: ReadContext<'_>,
    report: &mut Report<'_>,
) {
    let names = NameIndex::default();
    for draft in drafts.iter().filter(|draft| !draft.spec.disabled) {
        let proxy = &draft.spec.name.value;
        for pages in &draft.pages {
            let Pages::Section { name, statuses } = pages else { continue };
            let place = around.place(name.span);
            let found = names.find(sections, &name.value, |section| Some(&section.name));
            let Some(section) = found.map(|place| &sections[place]) else {
                let message = format!("proxy '{proxy}': unknown http-errors section '{}' (at {place}).", name.value);
                report.push(Diagnostic::alert(name.span, message).with_form(Form::Bare));
                continue;
            };
            for status in statuses.iter().filter(|status| section.files.iter().all(|file| file.status != **status)) {
                let message = format!(
                    "config: proxy '{proxy}' : status '{status}' not declared in http-errors section '{}' (at {place}).",
                    name.value
                );
                report.push(Diagnostic::warning(name.span, message).with_form(Form::Bare));
            }
        }
    }
}

/// Reports rules of a `healthcheck` section that its type does not use.
pub(super) fn healthchecks(sections: &[HealthcheckSpec], report: &mut Report<'_>) {
    for section in sections {
        let check = &section.check;
        for (kind, lines, is_used) in [
            ("http-check", &check.http, matches!(check.method, CheckMethod::Http(_))),
            ("tcp-check", &check.tcp, check.method == CheckMethod::Tcp),
        ] {
            if lines.is_empty() || is_used {
                continue;
            }
            let message = format!(
                "healthcheck section '*healthcheck-{}' : {kind} rules without 'type {kind}', so the rules are ignored.",
                section.name.value
            );
            // HAProxy labels it an alert, and continues.
            report.push(Diagnostic::new(Severity::Notice, section.name.span, message));
        }
    }
}

struct Proxy<'a> {
    draft: &'a ProxyDraft,
    backends: &'a HashMap<&'a str, &'a ProxyDraft>,
    around: ReadContext<'a>,
    report: Report<'a>,
}

impl Proxy<'_> {
    fn noun(&self) -> &'static str {
        noun(self.draft.spec.kind)
    }

    fn name(&self) -> &str {
        &self.draft.spec.name.value
    }

    fn warn(&mut self, message: String) {
        self.warn_in(ReportOrder::Usual, message);
    }

    fn warn_in(&mut self, turn: ReportOrder, message: String) {
        let place = self.draft.spec.name.span;
        let found = Diagnostic::warning(place, message).with_form(Form::Bare);
        self.report.push(found.in_turn(turn, place));
    }

    fn faces_clients(&self) -> bool {
        self.draft.spec.kind != ProxyKind::Backend
    }

    fn listens(&mut self) {
        let draft = self.draft;
        if self.faces_clients() && draft.spec.binds.is_empty() && !draft.gaps.bind {
            let message = format!(
                "{} '{}' has no 'bind' directive. Please declare it as a backend if this was intended.",
                self.noun(),
                self.name()
            );
            self.warn_in(ReportOrder::Early(0), message);
        }
    }

    /// Reports servers of a `listen` section whose `default_backend` makes them unused.
    fn uses_servers(&mut self) {
        let spec = &self.draft.spec;
        if spec.kind == ProxyKind::Listen && spec.default_backend.is_some() && !spec.servers.is_empty() {
            let message = format!(
                "In proxy '{}', the 'default_backend' rule always has precedence over the servers, which will never be used.",
                self.name()
            );
            self.warn_in(ReportOrder::Early(0), message);
        }
    }

    /// Looks up the targets, even in backends, where HAProxy ignores the rules but checks their targets.
    fn targets(&mut self) {
        let draft = self.draft;
        if let Some(target) = &draft.spec.default_backend {
            self.target(target, "default_backend", "as its default backend");
        }
        for target in &draft.targets {
            self.target(target, "use_backend", "in a 'use_backend' rule");
        }
    }

    fn target(&mut self, target: &Spanned<String>, keyword: &str, role: &str) {
        let own = self.name().to_owned();
        let name = &target.value;
        let Some(backend) = self.backends.get(name.as_str()) else {
            let message = format!("Proxy '{own}': unable to find required {keyword}: '{name}'.");
            // Sorted, so that the hint is deterministic.
            let mut names: Vec<&str> = self.backends.keys().copied().collect();
            names.sort_unstable();
            let known = crate::suggest::nearest(name, names);
            let mut diagnostic = Diagnostic::alert(target.span, message).with_form(Form::Bare);
            diagnostic.hint = known.map(|known| format!("there is a backend '{known}'"));
            self.report.push(diagnostic);
            return;
        };
        if *name == own {
            let message = format!("Proxy '{own}': loop detected for {keyword}: '{name}'.");
            self.report.late(Severity::Alert, target.span, message);
            return;
        }
        if self.draft.gaps.mode || backend.gaps.mode {
            return;
        }
        match (self.draft.spec.mode, backend.spec.mode) {
            (Mode::Http, Mode::Tcp)
            | (Mode::Http | Mode::Tcp, Mode::Log | Mode::Spop)
            | (_, Mode::Udp)
            | (Mode::Spop, Mode::Http | Mode::Tcp | Mode::Log) => {
                let message = format!(
                    "{} {} '{own}' ({}) tries to use incompatible {} {} '{name}' ({}) {role} (see 'mode').",
                    mode_name(self.draft.spec.mode),
                    self.noun(),
                    self.around.place(self.draft.spec.span),
                    mode_name(backend.spec.mode),
                    noun(backend.spec.kind),
                    self.around.place(backend.spec.span)
                );
                self.report.late(Severity::Alert, target.span, message);
            }
            _ => {}
        }
    }

    fn transports(&mut self) {
        if self.draft.gaps.mode {
            return;
        }
        if self.draft.spec.mode == Mode::Log {
            return self.log_servers();
        }
        if self.draft.spec.mode == Mode::Udp {
            udp::servers(self.draft, &mut self.report);
            return udp::quic(self.draft, &mut self.report);
        }
        let mode = mode_name(self.draft.spec.mode);
        for server in &self.draft.spec.servers {
            if let AddressSpec::Inet { kind: SocketKind::Datagram, .. }
            | AddressSpec::Unix { kind: SocketKind::Datagram, .. }
            | AddressSpec::Abstract { kind: SocketKind::Datagram, .. } = server.address.value
            {
                let message = format!("unsupported transport for server address in '{mode}' backend.");
                let found = Diagnostic::alert(server.address.span, message);
                self.report.push(found.with_form(Form::LatePlaced));
            }
            let failures = [RetryOn::CONN_FAILURE, RetryOn::EMPTY_RESPONSE, RetryOn::RESPONSE_TIMEOUT];
            let retries = failures.iter().all(|failure| self.draft.spec.limits.retry_on.contains(*failure));
            if server.connecting.fast_open && !retries {
                let message = format!(
                    "'server {}/{}' : server has tfo activated, the backend should be configured with at least \
                     'conn-failure', 'empty-response' and 'response-timeout' or we wouldn't be able to retry the \
                     connection on failure.",
                    self.draft.spec.name.value, server.name.value
                );
                let found = Diagnostic::warning(server.span, message);
                self.report.push(found.with_form(Form::LatePlaced));
            }
        }
    }

    fn log_format(&mut self) {
        let draft = self.draft;
        let Some(chosen) = draft.format.as_ref().filter(|_| self.faces_clients() && !draft.gaps.mode) else { return };
        let fallback = match chosen.format {
            LogFormatSpec::Http | LogFormatSpec::Https => "tcplog",
            LogFormatSpec::HttpClf => "tcplog clf",
            _ => return,
        };
        if draft.spec.mode == Mode::Http {
            return;
        }
        let message = format!(
            "'option {}' not usable with {} '{}' (needs 'mode http'). Falling back to 'option {fallback}'.",
            chosen.option,
            self.noun(),
            self.name()
        );
        let found = Diagnostic::warning(chosen.span, message).with_form(Form::Unfit);
        self.report.push(found.in_turn(ReportOrder::Early(3), draft.spec.name.span));
    }

    fn timeouts(&mut self) {
        let spec = &self.draft.spec;
        if matches!(spec.mode, Mode::Log | Mode::Udp) {
            return;
        }
        let faces_servers = spec.kind != ProxyKind::Frontend && !spec.servers.is_empty();
        let missing_client = self.faces_clients() && spec.timeouts.client.is_none();
        let missing_server = faces_servers && (spec.timeouts.connect.is_none() || spec.timeouts.server.is_none());
        if missing_client || missing_server {
            let message = format!(
                "missing timeouts for {} '{}'.\n   | While not properly invalid, you will certainly encounter various \
                 problems\n   | with such a configuration. To fix this, please ensure that all following\n   | \
                 timeouts are set to a non-zero value: 'client', 'connect', 'server'.",
                self.noun(),
                self.name()
            );
            self.warn_in(ReportOrder::Early(8), message);
        }
    }

    fn log_targets(&mut self, global: &GlobalSpec) {
        let has_format = self.draft.format.is_some() || self.draft.spec.log_lines.structured_data.is_some();
        if self.faces_clients() && has_format && !self.draft.has_logs(global) {
            let message =
                format!("log format ignored for {} '{}' since it has no log address.", self.noun(), self.name());
            self.warn(message);
        }
    }

    /// Warns about `cookie` without HTTP.
    fn warn_of_cookie(&mut self) {
        let spec = &self.draft.spec;
        let is_ignored =
            spec.kind != ProxyKind::Frontend && spec.mode != Mode::Http && !spec.upgrades && !self.draft.gaps.mode;
        if is_ignored && spec.persistence.cookie.is_some() {
            let message = format!("cookie will be ignored for {} '{}' (needs 'mode http').", self.noun(), self.name());
            self.warn_in(ReportOrder::Early(1), message);
        }
    }

    /// Warns about cookies of servers without HTTP.
    fn warn_of_cookies(&mut self) {
        let draft = self.draft;
        let (noun, name) = (self.noun(), self.name().to_owned());
        for server in draft.spec.servers.iter().filter(|server| server.persistence.cookie.is_some()) {
            let message = format!(
                "{noun} '{name}' : ignoring cookie for server '{}' as HTTP mode is disabled.",
                server.name.value
            );
            self.report.late(Severity::Warning, server.span, message);
        }
    }

    /// Reports a statistics page that authenticates both by its own rules and by its accounts.
    fn check_statistics_page(&mut self) {
        let Some(page) = &self.draft.spec.stats else { return };
        if let (Some(span), false) = (page.identifies, page.rules.is_empty()) {
            let message = format!(
                "{} '{}': stats 'auth'/'realm' and 'http-request' can't be used at the same time.",
                self.noun(),
                self.name()
            );
            self.report.push(Diagnostic::alert(span, message).with_form(Form::Bare));
        }
    }

    fn needs_http(&mut self) {
        let draft = self.draft;
        if draft.spec.mode == Mode::Http || draft.gaps.mode {
            return;
        }
        if draft.spec.upgrades {
            return self.needs_http_backend();
        }
        let (noun, name) = (self.noun(), self.name().to_owned());
        for server in draft.spec.servers.iter().filter(|server| server.connecting.redirect.is_some()) {
            let message = format!("{noun} '{name}' : server cannot have cookie or redirect prefix in non-HTTP mode.");
            self.report.push(Diagnostic::alert(server.span, message).with_form(Form::Bare));
        }
        if draft.spec.stats.is_some() {
            self.warn(format!("'stats' statement ignored for {noun} '{name}' as it requires HTTP mode."));
        }
        if draft.spec.monitor_uri.is_some() && self.faces_clients() {
            self.warn(format!("'monitor-uri' statement ignored for {noun} '{name}' as it requires HTTP mode."));
        }
        if draft.spec.kind != ProxyKind::Frontend && draft.spec.balance.needs_http() {
            let message = format!(
                "Layer 7 hash not possible for {noun} '{name}' (needs 'mode http'). Falling back to round robin."
            );
            self.warn_in(ReportOrder::Early(2), message);
        }
        if draft.spec.kind != ProxyKind::Frontend {
            if draft.spec.limits.hedge.is_some() {
                self.warn(format!("'hedge-requests' ignored for {noun} '{name}' as it requires HTTP mode."));
            }
            self.warn_of_cookies();
        }
        let rules = &draft.spec.rules;
        let has = |set| rules.rules.iter().any(|rule| rule.set == set);
        for (ignored, what) in [
            (has(rule::HTTP_REQUEST), "http-request"),
            (has(rule::HTTP_RESPONSE), "http-response"),
            (has(rule::HTTP_AFTER_RESPONSE), "http-after-response"),
            (!rules.redirects.is_empty(), "redirect"),
        ] {
            if ignored {
                self.warn(format!("'{what}' rules ignored for {noun} '{name}' as they require HTTP mode."));
            }
        }
        for (option, side, is_on) in HTTP_OPTIONS {
            let concerned = match side {
                Side::Both => true,
                Side::Front => self.faces_clients(),
                Side::Back => draft.spec.kind != ProxyKind::Frontend,
            };
            if concerned && is_on(&draft.spec) {
                let turn = if ADDRESSES.contains(option) { ReportOrder::Addresses } else { ReportOrder::Usual };
                self.warn_in(turn, format!("'option {option}' ignored for {noun} '{name}' as it requires HTTP mode."));
            }
        }
    }
}

impl Proxy<'_> {
    /// Reports a `listen` section whose connections switch to HTTP without a backend for them: its own servers are not
    /// used.
    fn needs_http_backend(&mut self) {
        let spec = &self.draft.spec;
        let leads_nowhere = spec.default_backend.is_none() && spec.rules.switching.is_empty();
        if spec.kind == ProxyKind::Listen && upgrade::switches(spec) && leads_nowhere {
            let message = format!(
                "Proxy '{}' : 'switch-mode http' configured for a tcp proxy with no backend. Incoming connections \
                 upgraded to HTTP cannot be routed to TCP servers",
                self.name()
            );
            self.warn(message);
        }
    }
}

/// Options that require HTTP mode, in the order of HAProxy's warnings: name, side, and whether a proxy has it.
type HttpOption = (&'static str, Side, fn(&ProxySpec) -> bool);

const HTTP_OPTIONS: &[HttpOption] = &[
    ("checkcache", Side::Back, |proxy| proxy.http.check_cache),
    ("http-buffer-request", Side::Both, |proxy| proxy.http.buffer_request),
    ("http-drop-request-trailers", Side::Back, |proxy| proxy.http.drop_request_trailers),
    ("http-drop-response-trailers", Side::Front, |proxy| proxy.http.drop_response_trailers),
    ("http-ignore-probes", Side::Front, |proxy| proxy.http.ignore_probes),
    ("idle-close-on-response", Side::Front, |proxy| proxy.options.idle_close_on_response),
    ("prefer-last-server", Side::Back, |proxy| proxy.limits.prefer_last_server),
    ("accept-unsafe-violations-in-http-request", Side::Front, |proxy| proxy.http.accept_unsafe_request),
    ("accept-unsafe-violations-in-http-response", Side::Back, |proxy| proxy.http.accept_unsafe_response),
    ("http-use-proxy-header", Side::Front, |proxy| proxy.http.use_proxy_header),
    ("http-pretend-keepalive", Side::Back, |proxy| proxy.http.pretend_keepalive),
    ("http-no-delay", Side::Both, |proxy| proxy.http.no_delay),
    ("disable-h2-upgrade", Side::Front, |proxy| proxy.http.disable_h2_upgrade),
    ("forwarded", Side::Back, |proxy| proxy.http.forwarded.is_some()),
    ("forwardfor", Side::Both, |proxy| proxy.forwardfor.is_some()),
    ("originalto", Side::Both, |proxy| proxy.http.originalto.is_some()),
];

/// Those of them that HAProxy comes to when it is through with the proxies.
const ADDRESSES: [&str; 3] = ["forwarded", "forwardfor", "originalto"];

/// Every `guid` is there once.
pub(super) fn guids(drafts: &[ProxyDraft], report: &mut Report<'_>) {
    let mut holders: HashMap<&str, String> = HashMap::new();
    for draft in drafts {
        let proxy = &draft.spec.name.value;
        if let Some(guid) = &draft.spec.guid {
            let holder = format!("{} {proxy}", noun(draft.spec.kind));
            if let Some(other) = holders.insert(&guid.value, holder) {
                report.alert(guid.span, format!("'guid': duplicate entry with {other}"));
            }
        }
        for server in &draft.spec.servers {
            let Some(guid) = &server.balance.guid else { continue };
            let name = &server.name.value;
            if let Some(other) = holders.insert(guid, format!("server {proxy}/{name}")) {
                let message = format!("'server {proxy}/{name}' : 'guid': duplicate entry with {other}.");
                report.alert(server.name.span, message);
            }
        }
    }
}

/// Returns HAProxy's name of a mode in its messages.
const fn mode_name(mode: Mode) -> &'static str {
    match mode {
        Mode::Tcp => "tcp",
        Mode::Http => "http",
        Mode::Log => "syslog",
        Mode::Spop => "spop",
        Mode::Udp => "udp",
    }
}
