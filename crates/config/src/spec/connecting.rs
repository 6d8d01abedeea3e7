//! Connections to servers: the related options of `server` and `default-server` lines, and the `source` and
//! `srvtcpka-*` lines of a backend (configuration manual, sections 4.2 and 5.2).

use super::{AddressSpec, KeepAliveSpec, MuxProtocol, QuicConnectingSpec, ResolvingSpec};
use crate::span::{Span, Spanned};

/// Connection settings of a server.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConnectingSpec {
    /// `source`.
    pub source: Option<SourceSpec>,
    /// `send-proxy` and related options.
    pub proxy_header: ProxyHeaderSpec,
    /// `quic-cc-algo`.
    pub quic: QuicConnectingSpec,
    /// `socks4`: the address of the proxy.
    pub socks4: Option<Spanned<AddressSpec>>,
    /// `namespace`; `*` means the one contained in a PROXY header.
    pub namespace: Option<Spanned<String>>,
    /// `tcp-ut` in milliseconds; 0 and `None` select the system's default.
    pub user_timeout: Option<u32>,
    /// `tcp-md5sig`.
    pub md5_password: Option<String>,
    /// `cc`.
    pub congestion_control: Option<String>,
    /// `tfo`.
    pub fast_open: bool,
    /// `pool-low-conn`: up to this number of idle connections, threads do not take them from each other.
    pub pool_low_conn: u32,
    /// `pool-conn-name`.
    pub pool_conn_name: Option<Spanned<String>>,
    /// `proto`.
    pub protocol: Option<MuxProtocol>,
    /// `ws`; `None`: `auto`.
    pub websockets: Option<MuxProtocol>,
    /// `idle-ping` in milliseconds.
    pub idle_ping: Option<u64>,
    /// `max-reuse`: maximum number of further requests on a connection after the first; `None` means no limit.
    pub max_reuse: Option<u32>,
    /// `redir`: prefix of the request's target.
    pub redirect: Option<String>,
    /// `init-addr`; empty if not written.
    pub initial_address: Vec<InitialAddress>,
    /// Resolution of the name at run time.
    pub resolving: ResolvingSpec,
}

/// `source <address>[:<port>[-<port>]] [usesrc …] [interface …]`.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceSpec {
    /// The address to connect from; a wildcard selects the system's choice.
    pub address: AddressSpec,
    /// `usesrc`.
    pub presented: Option<PresentedSource>,
    /// `interface`.
    pub interface: Option<String>,
}

/// The source address presented to the server by `usesrc`, which need not be local.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PresentedSource {
    /// `client`: the client's address and port.
    Client,
    /// `clientip`: the client's address.
    ClientIp,
    /// A literal address.
    Address(AddressSpec),
    /// `hdr_ip(<name>[,<occurrence>])`: an address in a field of the request.
    Header {
        /// The field's name.
        name: String,
        /// Index of the value: 1 is the first one, -1 the last one.
        occurrence: i32,
    },
}

/// Version of a PROXY header, and its content besides the addresses.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ProxyHeaderSpec {
    /// `send-proxy`.
    pub v1: bool,
    /// `send-proxy-v2`: replaces version 1.
    pub v2: bool,
    /// `proxy-v2-options crc32c`.
    pub checksum: bool,
    /// `proxy-v2-options unique-id`.
    pub unique_id: bool,
    /// `proxy-v2-options authority`.
    pub authority: bool,
    /// `proxy-v2-options pass-tlv`, Weir's own: the TLVs of the client's header are sent as well.
    pub pass_tlvs: Option<Span>,
    /// `send-proxy-v2-ssl`, `proxy-v2-options ssl` and options that imply it: TLS details of the client's connection.
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
    /// A literal address.
    Address(std::net::IpAddr),
}

/// Connection settings of a proxy for all its servers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ConnectingDefaultsSpec {
    /// `source`.
    pub source: Option<SourceSpec>,
    /// `srvtcpka-*`.
    pub keepalive: KeepAliveSpec,
    /// `option tcp-smart-connect`.
    pub smart_connect: bool,
}
