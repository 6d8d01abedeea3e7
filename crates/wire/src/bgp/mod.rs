//! BGP-4 (RFC 4271) as a speaker needs it that announces addresses and learns none: OPEN with capabilities (RFC 5492), UPDATE for
//! both address families (RFC 4760), AS numbers of four octets (RFC 6793), communities (RFC 1997), ROUTE-REFRESH (RFC 2918),
//! NOTIFICATION with a shutdown communication (RFC 9003). Must never keep a route or know a session's state.

mod announcement;
mod error_code;
mod frame;
mod header;
mod notification;
mod open;
mod prefix;
mod refresh;
mod update;

pub use announcement::{PathAttributes, announce, withdraw};
pub use error_code::ErrorCode;
pub use frame::{Frame, decode};
pub use header::{HEADER, Kind, LONGEST, keepalive};
pub use notification::Notification;
pub use open::{Capabilities, Open};
pub use prefix::{Family, Prefix};
pub use refresh::refreshed_family;
pub use update::UpdateContent;

/// The AS number that represents one of four octets where only two fit (RFC 6793).
pub const AS_TRANS: u16 = 23_456;

/// Returns an AS number as a field of two octets carries it.
fn two_octets(number: u32) -> u16 {
    u16::try_from(number).unwrap_or(AS_TRANS)
}
