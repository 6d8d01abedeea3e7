//! Options that a `bind` line of reverse HTTP (`rhttp@<backend>/<server>`) must not have. Must never look up the
//! server.

use super::BindDraft;
use crate::diagnostic::{Diagnostic, Form};
use crate::keyword::report::Report;
use crate::span::Span;

/// Rejects options of listening sockets: these connections are opened actively, with the settings of the server's line.
pub(super) fn refuse_options(draft: &BindDraft, span: Span, report: &mut Report<'_>) {
    let written = [
        ("ssl", draft.tls.ssl),
        ("accept-proxy", draft.listening.accept_proxy),
        ("proto", draft.listening.protocol.is_some()),
        ("shards", draft.shards.is_some()),
        ("maxconn", draft.maxconn.is_some()),
    ];
    if let Some((name, _)) = written.iter().find(|(_, is_written)| *is_written) {
        let message = format!("config : '{name}' option is not accepted for reverse HTTP");
        report.push(Diagnostic::alert(span, message).with_form(Form::Bare));
    }
}
