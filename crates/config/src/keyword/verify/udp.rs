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

/// Size in bytes of the datagrams that QUIC needs (RFC 9000, section 14).
const LEAST_FOR_QUIC: u32 = 1_200;

/// Reports settings of flows that QUIC connections do not survive.
pub(super) fn quic(draft: &ProxyDraft, report: &mut Report<'_>) {
    let Some(settings) = draft.spec.udp.as_deref() else { return };
    let Some(quic) = &settings.quic else { return };
    if settings.requests.is_some() || settings.responses.is_some() {
        let message = "'option quic-passthrough' does not go together with 'proxy-requests' and 'proxy-responses'";
        let hint =
            "a connection has any number of datagrams, and a server sees another client in each flow: remove them";
        report.push(Diagnostic::alert(quic.span, message).with_hint(hint.to_owned()));
    }
    if settings.payload < LEAST_FOR_QUIC {
        let message =
            format!("'option quic-passthrough' needs an 'accepted-payload-size' of at least {LEAST_FOR_QUIC} bytes");
        report.push(Diagnostic::alert(quic.span, message));
    }
}
