//! The client's connection after a request: it goes on, or how it is to end. Must never close one.

use conn::exchange::RequestBody;
use conn::h1::BodyEnd;

use crate::stream::client::Client;
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::SharedStreamState;

/// How the connection of a client ends whose request failed. Closing it with unread bytes is a reset, and that
/// would take from the client what it has not received yet of an earlier answer.
pub fn leave(client: &mut Client, outcome: Outcome, uploaded: bool) {
    let by_client = matches!(outcome.cause, Cause::Client | Cause::ClientTimeout);
    let quiet = uploaded && client.conn.is_surely_settled();
    if uploaded && outcome.cause == Cause::ClientTimeout {
        client.drop_connection();
    } else if outcome.phase == Phase::Last || !(by_client || quiet) {
        client.linger();
    }
}

/// The client's connection goes on after the end of a request. Without one, it ends as [`end_after`] has said.
pub fn depart(client: &mut Client, end: Option<BodyEnd>) {
    if let Some(end) = end {
        client.keep(end);
    }
}

/// The connection of a client ends after the answer that the state describes.
#[cold]
pub fn end_after(client: &mut Client, state: &SharedStreamState, up: &RequestBody) -> Option<BodyEnd> {
    client.end_after(state.borrow().bytes.bytes_out, up.source_ended());
    None
}
