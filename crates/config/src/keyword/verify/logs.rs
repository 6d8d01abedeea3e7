//! Checks of logs that require the whole configuration: the rings and backends that `log` lines name, and backends in
//! `mode log`. Must never check the words of a `log` line.

use super::Proxy;
use crate::diagnostic::{Diagnostic, Form, Severity};
use crate::keyword::ReadContext;
use crate::keyword::log_line::Entry;
use crate::keyword::proxy::ProxyDraft;
use crate::keyword::report::Report;
use crate::keyword::rule::{TCP_REQUEST_CONTENT, TCP_RESPONSE_CONTENT};
use crate::keyword::section::{EVENTS, PROVISIONING};
use crate::span::Spanned;
use crate::spec::{
    AddressSpec, BalanceSpec, GlobalSpec, HashMethod, LogForwardSpec, LogTargetSpec, Mode, ProxyKind, RingSpec,
    SectionsSpec, SocketKind,
};
use base::NameIndex;

/// Checks that every ring and every backend named by a `log` line exists.
pub(in crate::keyword) fn targets(
    proxies: &[ProxyDraft],
    global: &GlobalSpec,
    sections: &SectionsSpec,
    around: ReadContext<'_>,
    report: &mut Report<'_>,
) {
    let of_global = global.logs.iter().map(|log| (None, log));
    let of_forwards = sections
        .log_forwards
        .iter()
        .flat_map(|forward| forward.logs.iter().map(|log| (Some(forward.name.value.as_str()), log)));
    let of_proxies = proxies.iter().flat_map(|draft| {
        draft.logs.iter().filter_map(|entry| match entry {
            Entry::Own(log) => Some((Some(draft.spec.name.value.as_str()), &**log)),
            Entry::Global(_) | Entry::Clear => None,
        })
    });
    let of_peers = sections.peers.iter().flat_map(|peers| {
        let name = peers.name.value.as_str();
        peers.logs.iter().map(move |log| (Some(name), log))
    });
    let of_apps = sections.fcgi_apps.iter().flat_map(|app| {
        let name = app.name.value.as_str();
        app.logs.iter().map(move |log| (Some(name), log))
    });
    let (ring_names, backend_names) = (NameIndex::default(), NameIndex::default());
    for (proxy, log) in of_global.chain(of_proxies).chain(of_forwards).chain(of_peers).chain(of_apps) {
        let (name, wrong) = match &log.target {
            LogTargetSpec::Ring(name) => (name, wrong_ring(name, &sections.rings, &ring_names)),
            LogTargetSpec::Backend(name) => (name, wrong_backend(name, proxies, &backend_names)),
            _ => continue,
        };
        let Some((what, hint)) = wrong else { continue };
        let (file, line) = (around.sources.file(name.span).map_or("", |file| file.name.as_str()), name.span.line);
        let message = match proxy {
            Some(proxy) => format!(
                "log directive declared in proxy section '{proxy}' in file '{file}' at line {line} uses {what} '{}'.",
                name.value
            ),
            None => {
                format!("global log directive declared in file {file} at line '{line}' uses {what} '{}'.", name.value)
            }
        };
        // HAProxy checks it at startup, but not with `-c`.
        let severity = if around.options.check_only { Severity::Notice } else { Severity::Alert };
        report.push(Diagnostic::new(severity, name.span, message).with_form(Form::Bare).with_hint(hint));
    }
}

/// Checks that relays of log lines have addresses, and names that differ from those of frontends.
pub(in crate::keyword) fn log_forwards(
    proxies: &[ProxyDraft],
    forwards: &[LogForwardSpec],
    around: ReadContext<'_>,
    report: &mut Report<'_>,
) {
    for forward in forwards {
        let name = &forward.name.value;
        if forward.binds.is_empty() && forward.datagrams.is_empty() {
            let message = format!(
                "frontend '{name}' has no 'bind' directive. Please declare it as a backend if this was intended."
            );
            report.late(Severity::Warning, forward.name.span, message);
        }
        let same = |draft: &&ProxyDraft| draft.spec.kind != ProxyKind::Backend && draft.spec.name.value == *name;
        if let Some(draft) = proxies.iter().find(same) {
            let message = format!(
                "frontend '{name}' has the same name as log forward section '{name}' declared at {}.",
                around.place(forward.span)
            );
            report.push(Diagnostic::alert(draft.spec.name.span, message).with_form(Form::LateParsing));
        }
    }
}

/// An error about a target, and a replacement.
type Wrong = Option<(&'static str, String)>;

fn wrong_ring(name: &Spanned<String>, rings: &[RingSpec], names: &NameIndex) -> Wrong {
    let is_written = |name: &str| names.find(rings, name, |ring| Some(&ring.name)).is_some();
    if [EVENTS, PROVISIONING].contains(&name.value.as_str()) || is_written(&name.value) {
        return None;
    }
    let hint = crate::suggest::nearest(&name.value, rings.iter().map(|ring| ring.name.as_str()))
        .map_or_else(|| format!("add a section 'ring {}'", name.value), |known| format!("write 'ring@{known}'"));
    Some(("unknown ring named", hint))
}

fn wrong_backend(name: &Spanned<String>, proxies: &[ProxyDraft], names: &NameIndex) -> Wrong {
    let found = names.find(proxies, &name.value, |draft| {
        (draft.spec.kind != ProxyKind::Frontend).then_some(&*draft.spec.name.value)
    });
    match found.map(|place| &proxies[place]) {
        Some(draft) if draft.spec.mode == Mode::Log || draft.gaps.mode => None,
        Some(_) => Some(("incompatible log backend", format!("write 'mode log' in backend '{}'", name.value))),
        None => {
            let known = proxies.iter().filter(|draft| draft.spec.mode == Mode::Log);
            let known = crate::suggest::nearest(&name.value, known.map(|draft| draft.spec.name.value.as_str()));
            let hint = known.map_or_else(
                || format!("add a section 'backend {}' with 'mode log'", name.value),
                |known| format!("write 'backend@{known}'"),
            );
            Some(("unknown log backend", hint))
        }
    }
}

impl Proxy<'_> {
    /// Checks the settings of a proxy in `mode log`, and `balance log-hash` in other modes.
    pub(super) fn takes_log_lines(&mut self) {
        let draft = self.draft;
        let (spec, name) = (&draft.spec, self.name().to_owned());
        if draft.gaps.mode || spec.kind == ProxyKind::Frontend && spec.mode != Mode::Log {
            return;
        }
        if spec.mode != Mode::Log {
            if matches!(spec.balance, BalanceSpec::LogHash(_)) {
                let noun = self.noun();
                self.warn(format!(
                    "Unusable balance algorithm for {noun} '{name}' (needs 'mode log'). Falling back to round robin."
                ));
            }
            return;
        }
        if self.faces_clients() && (spec.kind == ProxyKind::Frontend || !spec.binds.is_empty()) {
            let message = "mode syslog is only applicable on proxies with backend capability.";
            let hint = "log lines are received by a section 'log-forward'".to_owned();
            self.report.push(Diagnostic::alert(spec.name.span, message).with_hint(hint));
            return;
        }
        if !spec.balance.takes_log_lines() && !spec.balance.needs_http() {
            let message = format!(
                "in backend '{name}': \"balance\" only supports 'roundrobin', 'random', 'sticky' and 'log-hash'."
            );
            self.report.push(Diagnostic::alert(spec.name.span, message).with_form(Form::Bare));
        }
        if matches!(spec.balance, BalanceSpec::LogHash(_)) && spec.hash.method != HashMethod::MapBased {
            let message =
                format!("log backend '{name}': failed to initialize: unsupported hash method (from \"hash-type\").");
            self.report.push(Diagnostic::alert(spec.name.span, message).with_form(Form::Bare));
        }
        self.ignored_rules(&name);
    }

    /// Warns about rules, which do not apply to log lines.
    fn ignored_rules(&mut self, name: &str) {
        let rules = &self.draft.spec.rules.rules;
        for (what, set) in [("tcp-request", TCP_REQUEST_CONTENT), ("tcp-response", TCP_RESPONSE_CONTENT)] {
            if rules.iter().all(|rule| rule.set != set) {
                continue;
            }
            self.warn(format!("Cannot use {what} rules with 'mode log' in backend '{name}'. They will be ignored."));
        }
    }

    /// Checks that the servers of a log backend all use UDP, or all use TCP.
    pub(super) fn log_servers(&mut self) {
        let draft = self.draft;
        let mut first = None;
        for server in &draft.spec.servers {
            let AddressSpec::Inet { kind, .. } = server.address.value else {
                let message = "log server address family not supported for log backend server.";
                self.report.late(Severity::Alert, server.address.span, message);
                return;
            };
            if *first.get_or_insert(kind) != kind {
                let message = format!(
                    "log backend '{}': failed to initialize: cannot mix server types within a log backend, '{}' srv's \
                     network type differs from previous server.",
                    self.name(),
                    server.name.value
                );
                self.report.push(Diagnostic::alert(server.span, message).with_form(Form::Bare));
                return;
            }
            if server.connecting.proxy_header.v1 || server.connecting.proxy_header.v2 {
                let message = "'send-proxy*' server option is unsupported there, ignoring it";
                self.report.late(Severity::Warning, server.span, message);
            }
            if kind == SocketKind::Datagram && server.log.bufsize.is_some() {
                let message = "'log-bufsize' means nothing to a server over UDP.";
                self.report.diag(server.span, message);
            }
        }
    }
}
