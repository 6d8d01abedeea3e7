//! A `bind` line (configuration manual, section 5.1).

use super::{AddressSpec, BindTlsSpec, ListeningSpec, RuntimeAccess, ShardsSpec};
use crate::span::Span;

/// One address of a `bind` line; a line with several addresses or a port range becomes several of these, all with the
/// same `span`.
#[derive(Debug, Clone, PartialEq)]
pub struct BindSpec {
    pub span: Span,
    /// The address, with an exact port.
    pub address: AddressSpec,
    /// The text of the address as written, for messages.
    pub text: String,
    /// `name`.
    pub name: Option<String>,
    /// `maxconn`.
    pub maxconn: Option<u32>,
    /// `backlog`.
    pub backlog: Option<u32>,
    /// `defer-accept`.
    pub defer_accept: bool,
    /// `v6only`.
    pub v6only: bool,
    /// `v4v6`.
    pub v4v6: bool,
    /// `shards`: number of listening sockets.
    pub shards: Option<ShardsSpec>,
    /// `id`.
    pub id: Option<u32>,
    /// `mode`, for UNIX sockets: permission bits.
    pub unix_mode: Option<u32>,
    /// Options of the runtime API.
    pub access: RuntimeAccess,
    /// Options of the socket, and of its connections.
    pub listening: ListeningSpec,
    /// Options of TLS; `None`: none written.
    pub tls: Option<Box<BindTlsSpec>>,
}
