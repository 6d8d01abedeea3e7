//! FastCGI towards a server: connections for one request at a time, and multiplexed ones, whose records become the
//! bytes of an answer and its body. Must never choose a parameter.

mod connection;
mod control;
mod request;
mod server;
mod state;

pub use connection::{Connection, Options};
pub use control::Requests;
pub use request::Request;
pub use server::ServerConnection;
pub use state::Terms;

/// The most bytes of standard error held for one request until they are logged; the rest is dropped.
const MAX_ERRORS: usize = 16_384;

/// Appends a part of a message of standard error.
fn note_error(message: &mut Vec<u8>, messages: &mut Vec<Vec<u8>>, keeps: bool, data: &[u8], whole: bool) {
    if !keeps {
        return;
    }
    let held = message.len() + messages.iter().map(Vec::len).sum::<usize>();
    message.extend_from_slice(&data[..data.len().min(MAX_ERRORS.saturating_sub(held))]);
    if whole && !message.is_empty() {
        messages.push(std::mem::take(message));
    }
}
