//! How connections to servers are made: the part of `server` and `default-server` lines, and the `source` and
//! `srvtcpka-*` lines of a backend, that says it (configuration manual, sections 4.2 and 5.2).

use super::{AddressSpec, KeepAliveSpec, MuxProtocol, ResolvingSpec};
use crate::span::Spanned;

/// What a `server` line says about connections to its server.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConnectingSpec {
    /// `source`.
    pub source: Option<SourceSpec>,
    /// `send-proxy` and its kin.
    pub proxy_header: ProxyHeaderSpec,
    /// `socks4`: the address of the proxy.
    pub socks4: Option<Spanned<AddressSpec>>,
    /// `namespace`; `*` stands for the one that a PROXY header tells.
    pub namespace: Option<Spanned<String>>,
    /// `tcp-ut` in milliseconds; 0 and `None` leave it to the system.
    pub user_timeout: Option<u32>,
    /// `tcp-md5sig`.
    pub md5_password: Option<String>,
    /// `cc`.
    pub congestion_control: Option<String>,
    /// `tfo`.
    pub fast_open: bool,
    /// `pool-low-conn`: idle connections up to which threads leave each other's alone.
    pub pool_low_conn: u32,
    /// `pool-conn-name`.
    pub pool_conn_name: Option<Spanned<String>>,
    /// `proto`.
    pub protocol: Option<MuxProtocol>,
    /// `ws`; `None`: `auto`.
    pub websockets: Option<MuxProtocol>,
    /// `idle-ping` in milliseconds.
    pub idle_ping: Option<u64>,
    /// `max-reuse`: requests on a connection beyond the first; `None` means no limit.
    pub max_reuse: Option<u32>,
    /// `redir`: what stands in front of the request's target.
    pub redirect: Option<String>,
    /// `init-addr`; empty where none was written.
    pub initial_address: Vec<InitialAddress>,
    /// How its name is resolved while it serves.
    pub resolving: ResolvingSpec,
}

/// `source <address>[:<port>[-<port>]] [usesrc …] [interface …]`.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceSpec {
    /// The address to connect from; a wildcard leaves the choice to the system.
    pub address: AddressSpec,
    /// `usesrc`.
    pub presented: Option<PresentedSource>,
    /// `interface`.
    pub interface: Option<String>,
}

/// The address that `usesrc` shows to the server, which need not be this machine's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PresentedSource {
    /// `client`: the client's address and port.
    Client,
    /// `clientip`: the client's address.
    ClientIp,
    /// An address that is written.
    Address(AddressSpec),
    /// `hdr_ip(<name>[,<occurrence>])`: an address in a field of the request.
    Header {
        /// The field's name.
        name: String,
        /// Which of its values: 1 is the first one, -1 the last one.
        occurrence: i32,
    },
}

/// What a PROXY header tells besides the addresses, and in which version it is sent.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProxyHeaderSpec {
    /// `send-proxy`.
    pub v1: bool,
    /// `send-proxy-v2`: it is sent instead of version 1.
    pub v2: bool,
    /// `proxy-v2-options crc32c`.
    pub checksum: bool,
    /// `proxy-v2-options unique-id`.
    pub unique_id: bool,
    /// `proxy-v2-options authority`.
    pub authority: bool,
    /// `send-proxy-v2-ssl`, `proxy-v2-options ssl` and what implies it: what is known of the client's TLS.
    pub ssl: bool,
    /// `send-proxy-v2-ssl-cn`, `proxy-v2-options cert-cn`.
    pub client_name: bool,
    /// `proxy-v2-options ssl-cipher`.
    pub cipher: bool,
    /// `proxy-v2-options cert-sig`.
    pub signature: bool,
    /// `proxy-v2-options cert-key`.
    pub key: bool,
    /// `set-proxy-v2-tlv-fmt(<type>) <format>`, in file order.
    pub fields: Vec<ProxyFieldSpec>,
}

/// One `set-proxy-v2-tlv-fmt`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyFieldSpec {
    /// The type.
    pub kind: u8,
    /// The log format of the value.
    pub format: Spanned<String>,
}

/// One method of `init-addr`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InitialAddress {
    /// `last`: from the server state file.
    Last,
    /// `libc`: from the system's resolver.
    Libc,
    /// `none`: no address, and the server is down.
    None,
    /// This one.
    Address(std::net::IpAddr),
}

/// What a proxy says about the connections to all its servers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConnectingDefaultsSpec {
    /// `source`.
    pub source: Option<SourceSpec>,
    /// `srvtcpka-*`.
    pub keepalive: KeepAliveSpec,
    /// `option tcp-smart-connect`.
    pub smart_connect: bool,
}
