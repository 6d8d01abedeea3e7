//! Connections to the server (section 5.2).

use super::{ServerOption, no_op, not_yet, removed, supported};
use crate::keyword::argument::Arity;

/// Every keyword of the family.
pub(super) const TABLE: &[ServerOption] = &[
    not_yet(Arity::One, "cc", "<algorithm>", "Congestion control."),
    not_yet(Arity::One, "idle-ping", "<delay>", "Tests idle connections."),
    not_yet(Arity::One, "proto", "<name>", "Protocol to speak, instead of negotiating it."),
    not_yet(Arity::One, "proxy-v2-options", "<option>[,<option>...]", "What a PROXY v2 header tells."),
    not_yet(Arity::None, "send-proxy", "", "Sends a PROXY header."),
    not_yet(Arity::None, "send-proxy-v2", "", "Sends a PROXY v2 header."),
    not_yet(Arity::None, "send-proxy-v2-ssl", "", "Sends a PROXY v2 header with TLS details."),
    not_yet(
        Arity::None,
        "send-proxy-v2-ssl-cn",
        "",
        "Sends a PROXY v2 header with TLS details and the client's common name.",
    ),
    not_yet(Arity::One, "set-proxy-v2-tlv-fmt", "(<type>) <format>", "Adds a field to the PROXY v2 header."),
    supported(Arity::None, "no-send-proxy", "", "Undoes an inherited \"send-proxy\".", no_op),
    supported(Arity::None, "no-send-proxy-v2", "", "Undoes an inherited \"send-proxy-v2\".", no_op),
    supported(Arity::None, "no-send-proxy-v2-ssl", "", "Undoes an inherited \"send-proxy-v2-ssl\".", no_op),
    supported(Arity::None, "no-send-proxy-v2-ssl-cn", "", "Undoes an inherited \"send-proxy-v2-ssl-cn\".", no_op),
    not_yet(Arity::One, "socks4", "<address>:<port>", "Connects through a SOCKS4 proxy."),
    not_yet(
        Arity::Source,
        "source",
        "<address>[:<port>[-<port>]] [usesrc <address>] [interface <name>]",
        "Address to connect from.",
    ),
    removed(
        Arity::One,
        "usesrc",
        "<address>",
        "Part of \"source\".",
        "'usesrc' only allowed after a 'source' statement.",
    ),
    not_yet(Arity::One, "tcp-md5sig", "<password>", "Signs TCP segments with MD5."),
    not_yet(Arity::One, "tcp-ut", "<delay>", "How long sent bytes may stay unacknowledged."),
    not_yet(Arity::None, "tfo", "", "TCP fast open."),
    supported(Arity::None, "no-tfo", "", "Undoes an inherited \"tfo\".", no_op),
];
