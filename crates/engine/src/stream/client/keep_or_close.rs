//! The client's connection after a request: whether it continues, or how it is to end. Must never close one.

use conn::h1::BodyEnd;

use crate::stream::client::Client;
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::SharedStreamState;

/// Sets how the connection of a client ends after a failed request. Closing it with unread input sends a reset, which
/// would discard the part of an earlier answer that the client has not received yet.
pub fn leave(client: &mut Client, outcome: Outcome, uploaded: bool) {
    let by_client = matches!(outcome.cause, Cause::Client | Cause::ClientTimeout);
    let quiet = uploaded && client.conn.is_surely_settled();
    if uploaded && outcome.cause == Cause::ClientTimeout {
        client.drop_connection();
    } else if outcome.phase == Phase::Last || !(by_client || quiet) {
        client.linger();
    }
}

/// Continues the client's connection after the end of a request. Without an end, the connection ends as set by
/// [`end_after`].
pub fn continue_or_end(client: &mut Client, end: Option<BodyEnd>) {
    if let Some(end) = end {
        client.keep(end);
    }
}

/// Ends the connection of a client after the answer described by the state. `is_read`: the request was read to its end.
#[cold]
pub fn end_after(client: &mut Client, state: &SharedStreamState, is_read: bool) -> Option<BodyEnd> {
    client.end_after(state.borrow().accounting.bytes.bytes_out, is_read);
    None
}
