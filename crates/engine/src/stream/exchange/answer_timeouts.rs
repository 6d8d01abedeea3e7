//! The timeouts of an exchange from the head of its answer on: those that rules have set, and `timeout stream`. Must never end an
//! exchange.

use policy::program::Features;
use wire::http::{Framing, Head};

use super::Terms;
use crate::session::Session;
use crate::stream_state::StreamState;

/// Sets the timeouts for the body of an answer. `came`: its framing as it was received; `served_here`: a service has made it, which
/// has no timeout. A timeout that a rule has set has priority over `timeout stream`.
pub(super) fn apply(session: &Session, terms: &mut Terms, state: &StreamState, came: Framing, served_here: bool) {
    let own = state.rules.orders.get().timeouts;
    if terms.features.have(Features::STREAM_TIMEOUT) && is_stream(&state.response, came) {
        let backend = session.proxy_at(terms.backend).timeouts.stream;
        let limit = backend.or(session.proxy().timeouts.stream);
        // Another backend than that of this exchange may have set the feature.
        terms.upload = limit.or(terms.upload);
        if !served_here {
            terms.server = limit.or(terms.server);
        }
    }
    terms.client = own.client.or(terms.client);
    terms.upload = own.client.or(terms.upload);
    terms.server = own.server.or(terms.server);
}

/// Whether an answer is a stream: of events, or without a known length.
fn is_stream(response: &Head, came: Framing) -> bool {
    matches!(came, Framing::Chunked | Framing::UntilClose)
        || response.first(b"content-type").is_some_and(|value| {
            let media_type = value.split(|byte| *byte == b';').next().unwrap_or_default();
            media_type.trim_ascii().eq_ignore_ascii_case(b"text/event-stream")
        })
}
