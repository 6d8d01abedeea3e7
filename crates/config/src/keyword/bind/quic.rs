//! QUIC on listening sockets (section 5.1).

use super::{BindOption, not_yet};
use crate::keyword::argument::Arity;

/// Every keyword of the family.
pub(super) const TABLE: &[BindOption] = &[
    not_yet(Arity::One, "quic-cc-algo", "{ cubic | newreno | bbr | nocc }[(<argument>...)]", "Congestion control."),
    not_yet(Arity::None, "quic-force-retry", "", "Forces address validation by Retry packets."),
    not_yet(
        Arity::One,
        "quic-socket",
        "{ connection | listener }",
        "Whether every connection gets a socket of its own.",
    ),
];
