//! QUIC connections to servers, for requests and for health checks: their parameters, and their beginning. Must never wait.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, OnceLock};

use conn::glitches::GlitchLimits;
use conn::h2;
use conn::h3;
use conn::qmux;
use conn::quic::Link;
use policy::program::{Global, Namespace, QuicConnecting, QuicServerLimits, Server};
use quic::cid::Place;
use quic::endpoint::{ConnectFailure, Settings, Target};
use quic::{Clock, Secrets, Transport, congestion, transport};
use rt::net::{Address, BindOptions, ConnectOptions, DatagramSocket};
use tls::ServerIdentity;

use crate::protocol::UNIDIRECTIONAL;
use crate::quic_settings::{QUEUED, SESSION_STREAMS, algorithm, random_bytes, with_sessions};
use crate::stream::request::head_limits::head_limits;
use crate::worker::Worker;

/// Maximum number of requests at a time on a connection; the server's limit may be smaller.
const REQUESTS: usize = 100;

/// Keys of stateless resets, which all connections to servers have in common.
#[derive(Default)]
struct OutgoingSecrets(OnceLock<Secrets>);

/// Returns the namespace that a server's line names.
pub fn namespace(server: &Server) -> Option<&str> {
    match &server.connecting.namespace {
        Some(Namespace::Named(name)) => Some(name),
        Some(Namespace::Told) | None => None,
    }
}

/// Opens a UDP socket for a connection to `peer`. `namespace` is the name of the network namespace.
///
/// # Errors
/// The socket's.
pub fn open(peer: SocketAddr, options: &ConnectOptions, namespace: Option<&str>) -> io::Result<DatagramSocket> {
    let any = if peer.is_ipv6() { IpAddr::V6(Ipv6Addr::UNSPECIFIED) } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) };
    let local = options.source.as_ref().and_then(Address::inet).unwrap_or(SocketAddr::new(any, 0));
    let options = BindOptions {
        transparent: options.transparent,
        interface: options.interface.clone(),
        send_buffer: options.send_buffer,
        receive_buffer: options.receive_buffer,
        namespace: namespace.map(str::to_owned),
        ..BindOptions::default()
    };
    DatagramSocket::bind(local, &options)
}

/// Begins a connection to a server over a socket that carries nothing else.
///
/// # Errors
/// The address or the TLS settings do not permit it.
pub fn connect(
    worker: &Worker,
    server: &Server,
    socket: DatagramSocket,
    peer: SocketAddr,
    tls: Arc<tls::Client>,
    identity: ServerIdentity,
) -> Result<Link, ConnectFailure> {
    let generation = worker.generation();
    let parameters = server.connecting.quic.as_ref().ok_or(ConnectFailure::Address)?;
    let limits = &generation.program.global.quic.servers;
    let secrets = worker.process.service::<OutgoingSecrets>();
    let settings = Settings {
        place: Place { worker: u8::try_from(worker.id).unwrap_or(u8::MAX), process: 0 },
        secrets: secrets.0.get_or_init(|| Secrets::random(random_bytes())).clone(),
        seed: random_bytes(),
        clock: Clock::new(rt::clock::origin()),
        may_discover_mtu: true,
    };
    let target = Target { peer, tls, identity, alpn: None };
    conn::quic::connect(socket, settings, target, &Transport::new(&transport_settings(limits, parameters)))
}

/// Returns the parameters of connections to a server.
fn transport_settings(limits: &QuicServerLimits, parameters: &QuicConnecting) -> transport::Settings {
    let max_window = parameters.max_window;
    let settings = transport::Settings {
        idle_timeout: limits.idle_timeout.unwrap_or_default(),
        // A server opens no request streams (RFC 9114, section 6.1).
        max_bidirectional: 0,
        window: limits.connection_window,
        stream_window: limits.stream_window,
        send_window: max_window.saturating_add(QUEUED),
        congestion: congestion::Settings { algorithm: algorithm(parameters.congestion), max_window },
        batches: limits.segments,
        ..transport::Settings::default()
    };
    if parameters.webtransport {
        with_sessions(transport::Settings { max_bidirectional: SESSION_STREAMS, ..settings })
    } else {
        settings
    }
}

/// Returns what a connection of HTTP/3 to a server grants.
pub fn http3_terms(global: &Global, server: &Server) -> h3::Terms {
    let (threshold, head) = (global.quic.servers.glitches, head_limits(global));
    h3::Terms {
        max_streams: REQUESTS,
        max_total: server.max_reuse.map_or(0, |most| most.saturating_add(1)),
        max_head: head.max_head,
        max_fields: head.max_fields,
        extends: false,
        webtransport: server.connecting.quic.is_some_and(|quic| quic.webtransport),
        accept_unsafe: false,
        glitches: GlitchLimits { threshold, usage: global.glitches.usage },
        budget: if threshold == 0 { h2::BUDGET } else { 0 },
    }
}

/// Returns the settings of connections of QMux to servers: those of QUIC.
pub fn qmux_settings(limits: &QuicServerLimits) -> qmux::Settings {
    qmux::Settings {
        idle_timeout: limits.idle_timeout.unwrap_or_default(),
        // A server opens no request streams (RFC 9114, section 6.1).
        max_bidirectional: 0,
        max_unidirectional: UNIDIRECTIONAL,
        window: limits.connection_window,
        stream_window: limits.stream_window,
    }
}
