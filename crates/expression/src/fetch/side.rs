//! Which of the two messages a fetch looks at: the same functions serve both. Must never know what is looked for.

use crate::sample::{Awaited, Context, Direction};
use wire::http::Head;

/// The request.
pub const REQUEST: u8 = 0;
/// The answer.
pub const RESPONSE: u8 = 1;
/// The one that is on its way where the expression stands.
pub const EITHER: u8 = 2;

/// The head that is looked at; without it the fetch has to wait or fails. While an answer is looked at, what its request
/// was is no longer asked for here.
pub fn head<'a, const SIDE: u8>(context: &Context<'a>) -> Option<&'a Head> {
    match SIDE {
        REQUEST if context.direction == Direction::Response => None,
        REQUEST => context.request_head(),
        EITHER if context.direction == Direction::Request => context.request_head(),
        _ => context.response.or_else(|| context.missing(Awaited::Response)),
    }
}
