//! Servers of `udp-lb` sections: their options and addresses. Must never read a line.

use crate::keyword::place::Section;
use crate::keyword::proxy::ProxyContext;
use crate::spec::{AddressSpec, SocketKind};

/// Options of servers.
pub(super) const OPTIONS: &[&str] = &[
    "addr",
    "agent-addr",
    "agent-check",
    "agent-inter",
    "agent-port",
    "agent-send",
    "backup",
    "check",
    "disabled",
    "downinter",
    "enabled",
    "error-limit",
    "fall",
    "fastinter",
    "for-added",
    "guid",
    "hash-key",
    "id",
    "init-addr",
    "init-state",
    "inter",
    "maxconn",
    "namespace",
    "no-agent-check",
    "no-backup",
    "no-check",
    "no-send-proxy-v2",
    "observe",
    "on-error",
    "on-marked-down",
    "on-marked-up",
    "port",
    "resolve-net",
    "resolve-opts",
    "resolve-prefer",
    "resolvers",
    "rise",
    "send-proxy-v2",
    "slowstart",
    "source",
    "srv-port",
    "track",
    "weight",
];

/// The error about a server's address that is none of UDP.
pub(crate) const NO_DATAGRAMS: &str = "datagrams cannot be sent to this address.";

/// Returns a hint about a server's address that datagrams cannot be sent to; `None`: they can.
pub(crate) fn advice(address: &AddressSpec) -> Option<&'static str> {
    match address {
        AddressSpec::Inet { kind: SocketKind::Stream | SocketKind::Datagram, .. } => None,
        AddressSpec::Inet { kind: SocketKind::Quic, .. } => {
            Some("QUIC is passed on as datagrams: write <address>:<port> alone")
        }
        _ => Some("write an address of UDP: <address>:<port>"),
    }
}

/// Returns the options that servers of the open section may have; `None`: all of them.
pub(super) fn accepted(context: &ProxyContext<'_>) -> Option<&'static [&'static str]> {
    (context.holder.section == Section::UdpLb).then_some(OPTIONS)
}
