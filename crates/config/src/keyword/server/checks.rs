//! Health checks (section 5.2).

use super::{ServerOption, no_op, not_yet, supported};
use crate::keyword::argument::Arity;

/// Every keyword of the family.
pub(super) const TABLE: &[ServerOption] = &[
    not_yet(Arity::None, "check", "", "Checks the server's health."),
    supported(Arity::None, "no-check", "", "Undoes an inherited \"check\".", no_op),
    not_yet(Arity::One, "check-alpn", "<protocols>", "Protocols that checks offer by ALPN."),
    not_yet(Arity::One, "check-pool-conn-name", "<name>", "Name that checks find idle connections by."),
    not_yet(Arity::One, "check-proto", "<name>", "Protocol of checks."),
    not_yet(Arity::None, "check-reuse-pool", "", "Checks may use idle connections."),
    supported(Arity::None, "no-check-reuse-pool", "", "Undoes an inherited \"check-reuse-pool\".", no_op),
    not_yet(Arity::None, "check-send-proxy", "", "Checks send a PROXY header."),
    supported(Arity::None, "no-check-send-proxy", "", "Undoes an inherited \"check-send-proxy\".", no_op),
    not_yet(Arity::One, "check-sni", "<name>", "Name that checks ask for."),
    not_yet(Arity::None, "check-sni-auto", "", "Checks take that name from the request they send."),
    not_yet(Arity::None, "no-check-sni-auto", "", "Checks do not."),
    not_yet(Arity::None, "check-ssl", "", "Checks speak TLS."),
    supported(Arity::None, "no-check-ssl", "", "Undoes an inherited \"check-ssl\".", no_op),
    not_yet(Arity::None, "check-via-socks4", "", "Checks go through the SOCKS4 proxy."),
    not_yet(Arity::One, "healthcheck", "<name>", "Healthcheck section to check with."),
    not_yet(Arity::One, "addr", "<address>", "Address of checks."),
    not_yet(Arity::One, "port", "<port>", "Port of checks."),
    not_yet(Arity::One, "inter", "<time>", "Time between two checks."),
    not_yet(Arity::One, "fastinter", "<time>", "Time between two checks while the state is changing."),
    not_yet(Arity::One, "downinter", "<time>", "Time between two checks while the server is down."),
    not_yet(Arity::One, "rise", "<number>", "Good checks in a row until the server is up."),
    not_yet(Arity::One, "fall", "<number>", "Bad checks in a row until the server is down."),
    not_yet(Arity::One, "observe", "{ layer4 | layer7 }", "Watches traffic as well."),
    not_yet(Arity::One, "error-limit", "<number>", "Observed errors in a row until \"on-error\" happens."),
    not_yet(Arity::None, "agent-check", "", "Asks an agent about the server's load."),
    supported(Arity::None, "no-agent-check", "", "Undoes an inherited \"agent-check\".", no_op),
    not_yet(Arity::One, "agent-addr", "<address>", "Address of the agent."),
    not_yet(Arity::One, "agent-inter", "<time>", "Time between two questions."),
    not_yet(Arity::One, "agent-port", "<port>", "Port of the agent."),
    not_yet(Arity::One, "agent-send", "<text>", "What to send to the agent."),
];
