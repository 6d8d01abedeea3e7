//! `peer` and `server` lines of a `peers` section (configuration manual, section 11.2). They accept the options of a
//! server; those about connections apply, and those of peers. Must never parse an address.

use super::{ServerContext, ServerDraft, read_options, report_problems};
use crate::document::Line;
use crate::environment::Environment;
use crate::keyword::report::{Report, quoted_list};
use crate::spec::{AddressSpec, ConnectingSpec, PortSpec, ProxyHeaderSpec, ServerTlsSpec, SourceSpec};

/// Settings of such a line.
pub(crate) struct PeerOptions {
    /// `shard`.
    pub(crate) shard: u32,
    /// Settings of connections.
    pub(crate) connecting: ConnectingSpec,
    /// Settings of TLS.
    pub(crate) tls: ServerTlsSpec,
    /// The line requests health checks or resolution at run time, which peers do not have.
    pub(crate) follows_or_checks: bool,
}

/// Reads the options from a word on, optionally preceded by an address. Messages begin with `head`.
pub(crate) fn read(
    line: &Line,
    first: usize,
    has_address: bool,
    head: &str,
    base: &ServerDraft,
    environment: &Environment,
    report: &mut Report<'_>,
) -> PeerOptions {
    let mut draft = base.clone();
    let mut server = ServerContext::new(&mut draft, Some(line.text(1)), environment);
    let mut unread = read_options(&mut server, line, first);
    unread.without_address = !has_address;
    let problems = server.problems;
    report_problems(report, head, "", problems, &unread);
    let written = &draft.connecting;
    if written.proxy_header != ProxyHeaderSpec::default() {
        report.warning(line.span(1), "'send-proxy*' server option is unsupported there, ignoring it");
    }
    refuse(line, head, written, report);
    let check = &draft.check;
    PeerOptions {
        shard: draft.shard,
        connecting: ConnectingSpec {
            source: written.source.clone(),
            user_timeout: written.user_timeout,
            md5_password: written.md5_password.clone(),
            congestion_control: written.congestion_control.clone(),
            ..ConnectingSpec::default()
        },
        tls: draft.tls.clone(),
        follows_or_checks: check.enabled
            || check.agent.enabled
            || written.resolving.section.is_some()
            || !written.initial_address.is_empty(),
    }
}

/// Reads a `default-server` line.
pub(crate) fn read_defaults(line: &Line, draft: &mut ServerDraft, environment: &Environment, report: &mut Report<'_>) {
    let mut server = ServerContext::new(draft, None, environment);
    let unread = read_options(&mut server, line, 1);
    let problems = server.problems;
    report_problems(report, "", "section 'peers'", problems, &unread);
    if let Some(span) = draft.for_added.take() {
        report.alert(span, "'for-added' is for proxies: no peer is added at run time.");
    }
    draft.id = None;
}

/// Rejects connection options that are not supported for peers.
fn refuse(line: &Line, head: &str, written: &ConnectingSpec, report: &mut Report<'_>) {
    let found: Vec<&str> = [
        (written.source.as_ref().is_some_and(|source| source.presented.is_some()), "usesrc"),
        (written.source.as_ref().is_some_and(has_ports), "source with a range of ports"),
        (written.socks4.is_some(), "socks4"),
        (written.namespace.is_some(), "namespace"),
        (written.fast_open, "tfo"),
    ]
    .into_iter()
    .filter_map(|(is_written, name)| is_written.then_some(name))
    .collect();
    if !found.is_empty() {
        let verb = if found.len() == 1 { "is" } else { "are" };
        report
            .alert(line.span(1), format!("{head}{} {verb} not supported yet by Weir for peers.", quoted_list(&found)));
    }
}

/// Whether the address has a range of ports.
fn has_ports(source: &SourceSpec) -> bool {
    matches!(source.address, AddressSpec::Inet { port: PortSpec::Range(..), .. })
}
