//! Fetches that have a sample in HAProxy but never in Weir: an expression with one of them is accepted with a notice.
//! Must never contain a fetch that a decision about access could depend on.

use super::{Fetch, plain};
use crate::sample::{Places, Type};

/// Every fetch of the family.
#[rustfmt::skip]
pub const TABLE: &[Fetch] = &[
    plain("spoe.engine-id", Type::Str, Places::EVERYWHERE, "No sample: agents have no stream of their own.", |_, _| None),
    plain("ssl_bc_unique_id", Type::Bin, Places::SERVER_LAYER5, "No sample: see `ssl_fc_unique_id`.", |_, _| None),
    plain("ssl_fc_unique_id", Type::Bin, Places::CLIENT_LAYER5, "No sample: the TLS library does not expose Finished messages.", |_, _| None),
];

/// Returns why a fetch never has a sample; `None`: it may have one.
pub(crate) fn reason(name: &str) -> Option<&'static str> {
    match name {
        "spoe.engine-id" => Some("Weir asks agents without streams of their own"),
        "ssl_bc_unique_id" | "ssl_fc_unique_id" => Some(
            "the Finished message that it consists of stays inside of the handshake (RFC 5929); RFC 9266 has replaced it",
        ),
        _ => None,
    }
}
