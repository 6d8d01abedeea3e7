//! Checks of `udp-lb` sections. Must never read a line.

use crate::diagnostic::Diagnostic;
use crate::keyword::proxy::ProxyDraft;
use crate::keyword::report::Report;
use crate::keyword::server::datagrams;

/// Reports servers that datagrams cannot be sent to.
pub(super) fn servers(draft: &ProxyDraft, report: &mut Report<'_>) {
    for server in &draft.spec.servers {
        let Some(hint) = datagrams::advice(&server.address.value) else { continue };
        let (proxy, name) = (&draft.spec.name.value, &server.name.value);
        let message = format!("'server {proxy}/{name}' : {}", datagrams::NO_DATAGRAMS);
        report.push(Diagnostic::alert(server.address.span, message).with_hint(hint.to_owned()));
    }
}
