//! `do-log`: writes an additional log line. Must never write one.

use super::{Action, Row, row};
use crate::rule::parse::{Parsing, RuleError, Words};
use config::keyword::rule::{
    HTTP_AFTER_RESPONSE, HTTP_REQUEST, HTTP_RESPONSE, QUIC_INITIAL, TCP_REQUEST_CONNECTION, TCP_REQUEST_CONTENT,
    TCP_REQUEST_SESSION,
};
use config::spec::LogStep;

/// The actions of this family.
pub(super) const TABLE: &[Row] = &[row("do-log", do_log)];

fn do_log(words: &mut Words<'_>, parsing: &Parsing<'_>) -> Result<Action, RuleError> {
    let step = match parsing.set {
        HTTP_REQUEST => LogStep::HttpRequest,
        HTTP_RESPONSE => LogStep::HttpResponse,
        HTTP_AFTER_RESPONSE => LogStep::HttpAfterResponse,
        QUIC_INITIAL => LogStep::QuicInitial,
        TCP_REQUEST_CONNECTION => LogStep::TcpRequestConnection,
        TCP_REQUEST_SESSION => LogStep::TcpRequestSession,
        TCP_REQUEST_CONTENT => LogStep::TcpRequestContent,
        _ => LogStep::TcpResponseContent,
    };
    let mut profile = None;
    if words.peek_text() == "profile" {
        words.take();
        let word = words.expect("action 'do-log': 'profile' expects argument.")?;
        let unknown = || RuleError::at(Some(word), format!("action 'do-log': profile '{}' is invalid", word.text));
        profile = Some(parsing.names.log_profile(&word.text).ok_or_else(unknown)?);
    }
    Ok(Action::Log { step, profile })
}
