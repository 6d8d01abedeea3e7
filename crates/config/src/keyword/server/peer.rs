//! `peer` and `server` lines of a `peers` section (configuration manual, section 11.2). They take the options of a server;
//! those that are about the way to it count, and a peer's own. Must never read an address.

use super::{ServerContext, ServerDraft, read_options, tell};
use crate::document::Line;
use crate::environment::Environment;
use crate::keyword::report::{Report, quoted_list};
use crate::spec::{AddressSpec, ConnectingSpec, PortSpec, ProxyHeaderSpec, ServerTlsSpec, SourceSpec};

/// What such a line says.
pub(crate) struct PeerOptions {
    /// `shard`.
    pub(crate) shard: u32,
    /// The way to it.
    pub(crate) connecting: ConnectingSpec,
    /// TLS towards it.
    pub(crate) tls: ServerTlsSpec,
    /// It asks for checks, or for following a name: peers have neither.
    pub(crate) follows_or_checks: bool,
}

/// Reads the options from a word on, which an address may stand in front of. `head` begins what is said about them.
pub(crate) fn read(
    line: &Line,
    (first, has_address): (usize, bool),
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
    tell(report, head, "", problems, &unread);
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
    tell(report, "", "section 'peers'", problems, &unread);
    draft.id = None;
}

/// Ways to a server that do not lead to a peer yet.
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

/// It names more than one port.
fn has_ports(source: &SourceSpec) -> bool {
    matches!(source.address, AddressSpec::Inet { port: PortSpec::Range(..), .. })
}
