//! Scripts of health checks.

use super::{ProxyKeyword, not_yet};
use crate::keyword::place::places::{ANY, BACK};

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    not_yet(BACK, "http-check comment", "<text>", "Text logged if the next step fails."),
    not_yet(BACK, "http-check connect", "[<option>...]", "Opens a connection."),
    not_yet(BACK, "http-check disable-on-404", "", "A 404 drains the server."),
    not_yet(BACK, "http-check expect", "[<option>...] [!] <match> <pattern>", "What the answer must be."),
    not_yet(BACK, "http-check send", "[<option> <value>]...", "Request to send."),
    not_yet(BACK, "http-check send-state", "", "Tells the server its state."),
    not_yet(BACK, "http-check set-var", "<expression>", "Sets a variable."),
    not_yet(BACK, "http-check set-var-fmt", "<format>", "Sets a variable from a log format."),
    not_yet(BACK, "http-check unset-var", "", "Removes a variable."),
    not_yet(BACK, "tcp-check comment", "<text>", "Text logged if the next step fails."),
    not_yet(BACK, "tcp-check connect", "[<option>...]", "Opens a connection."),
    not_yet(BACK, "tcp-check expect", "[<option>...] [!] <match> <pattern>", "What must be received."),
    not_yet(BACK, "tcp-check send", "<text>", "Text to send."),
    not_yet(BACK, "tcp-check send-lf", "<format>", "Text to send, from a log format."),
    not_yet(BACK, "tcp-check send-binary", "<hexadecimal>", "Bytes to send."),
    not_yet(BACK, "tcp-check send-binary-lf", "<format>", "Bytes to send, from a log format."),
    not_yet(BACK, "tcp-check set-var", "<expression>", "Sets a variable."),
    not_yet(BACK, "tcp-check set-var-fmt", "<format>", "Sets a variable from a log format."),
    not_yet(BACK, "tcp-check unset-var", "", "Removes a variable."),
    not_yet(ANY, "external-check command", "<command>", "Program that checks servers."),
    not_yet(ANY, "external-check path", "<path>", "PATH of that program."),
];
