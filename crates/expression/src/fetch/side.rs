//! Selects the message that a fetch reads: the same functions serve requests and responses. Must never depend on the
//! sample.

use crate::sample::{Context, Direction, MissingInput};
use wire::http::Head;

/// The request.
pub const REQUEST: u8 = 0;
/// The response.
pub const RESPONSE: u8 = 1;
/// The message being processed at the expression's place.
pub const EITHER: u8 = 2;

/// Returns the selected head; without it the fetch is incomplete or has no sample. At a response's place the request
/// head is not available through [`REQUEST`].
pub fn head<'a, const SIDE: u8>(context: &Context<'a>) -> Option<&'a Head> {
    match SIDE {
        REQUEST if context.direction == Direction::Response => None,
        REQUEST => context.request_head(),
        EITHER if context.direction == Direction::Request => context.request_head(),
        _ => context.response.or_else(|| context.missing(MissingInput::Response)),
    }
}
