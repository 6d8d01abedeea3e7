//! Which of the two messages a fetch looks at: the same functions serve both. Must never know what is looked for.

use crate::sample::{Context, Direction};
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
    let head = match SIDE {
        REQUEST if context.direction == Direction::Response => return None,
        REQUEST => context.request,
        RESPONSE => context.response,
        _ if context.direction == Direction::Response => context.response,
        _ => context.request,
    };
    head.or_else(|| context.missing())
}
