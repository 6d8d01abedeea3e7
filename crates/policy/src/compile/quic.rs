//! Compiles QUIC: the limits of `tune.quic.*`, and what `bind` lines say about it. Must never open a socket.

use super::Compiler;
use crate::program::{
    BindAddress, Proxy, QlogLimits, QuicConnecting, QuicLimits, QuicListening, QuicServerLimits, QuicStreamLimits,
};
use config::diagnostic::Form;
use config::span::Span;
use config::spec::{BindSpec, ConnectingSpec, GlobalSpec, ServerSpec, Spec};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;

/// Default of `tune.quic.fe.cc.max-win-size` in bytes.
const MAX_WINDOW: u64 = 480 << 10;

/// Default of `tune.quic.fe.max-idle-timeout`.
const IDLE_TIMEOUT: Duration = Duration::from_secs(30);

/// Default of `tune.quic.fe.sec.retry-threshold`.
const RETRY_THRESHOLD: u32 = 100;

/// Default of `tune.quic.fe.stream.max-concurrent`.
const STREAMS: u32 = 100;

/// Default of `tune.quic.fe.stream.data-ratio` in percent.
const DATA_RATIO: u32 = 90;

/// Default of `files` of `tune.quic.qlog-dir`.
const QLOG_FILES: u32 = 100;

/// Default of `size` of `tune.quic.qlog-dir` in bytes.
const QLOG_SIZE: u64 = 10 << 20;

/// An address with its network device and its namespace.
type Seat<'a> = (SocketAddr, Option<&'a str>, Option<&'a str>);

/// Compiles the limits, including default values. `bufsize` is the size of a buffer in bytes.
pub(super) fn limits(global: &GlobalSpec, bufsize: usize) -> QuicLimits {
    let written = &global.tune.quic;
    let cluster_secret: Option<Box<[u8]>> = global.cluster_secret.as_ref().map(|secret| secret.as_bytes().into());
    let concurrent = written.streams.unwrap_or(STREAMS);
    let windows = Windows::of(concurrent, written.receive_buffer, written.data_ratio, bufsize);
    QuicLimits {
        listens: written.listen.unwrap_or(true),
        retry_threshold: cluster_secret.is_some().then(|| written.retry_threshold.unwrap_or(RETRY_THRESHOLD)),
        cluster_secret,
        refuses_privileged_ports: written.reject_privileged_ports.unwrap_or(true),
        idle_timeout: idle_timeout(written.idle_timeout),
        glitches: written.glitches.unwrap_or(0),
        transmit_memory: written.transmit_memory,
        segments: written.segmentation.unwrap_or(true),
        send_buffer: global.tune.sndbuf_frontend,
        streams: QuicStreamLimits {
            concurrent,
            total: written.total_streams.unwrap_or(0),
            connection_window: windows.connection,
            stream_window: windows.stream,
        },
        servers: server_limits(global, bufsize),
        qlog: global.tune.qlog.as_ref().map(|written| QlogLimits {
            directory: written.directory.value.as_str().into(),
            files: written.files.unwrap_or(QLOG_FILES),
            size: written.size.unwrap_or(QLOG_SIZE),
        }),
    }
}

/// Compiles the limits of connections to servers.
fn server_limits(global: &GlobalSpec, bufsize: usize) -> QuicServerLimits {
    let written = &global.tune.quic.servers;
    let streams = written.streams.unwrap_or(STREAMS);
    let windows = Windows::of(streams, written.receive_buffer, written.data_ratio, bufsize);
    QuicServerLimits {
        idle_timeout: idle_timeout(written.idle_timeout),
        glitches: written.glitches.unwrap_or(0),
        segments: written.segmentation.unwrap_or(true),
        connection_window: windows.connection,
        stream_window: windows.stream,
    }
}

/// Returns the idle timeout, written in milliseconds; 0: none.
fn idle_timeout(written: Option<u64>) -> Option<Duration> {
    match written {
        None => Some(IDLE_TIMEOUT),
        Some(0) => None,
        Some(millis) => Some(Duration::from_millis(millis)),
    }
}

/// Bytes that a connection and a stream of it may receive before they are read.
struct Windows {
    connection: u32,
    stream: u32,
}

impl Windows {
    fn of(streams: u32, written: Option<u64>, ratio: Option<u32>, bufsize: usize) -> Self {
        let buffer = u64::try_from(bufsize).unwrap_or(u64::MAX).max(1);
        let connection = match written.unwrap_or(0) {
            0 => buffer.saturating_mul(streams.into()),
            bytes => bytes,
        };
        let ratio = u64::from(ratio.unwrap_or(DATA_RATIO));
        // A stream has one buffer at least.
        let stream = (connection.saturating_mul(ratio) / 100).div_ceil(buffer).max(1).saturating_mul(buffer);
        let window = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        Self { connection: window(connection), stream: window(stream) }
    }
}

impl Compiler<'_> {
    /// Compiles the QUIC parameters of an address; `None` for other addresses.
    pub(super) fn quic_listening(&mut self, bind: &BindSpec, global: &GlobalSpec) -> Option<QuicListening> {
        if !bind.address.is_quic() {
            return None;
        }
        let written = &bind.listening.quic;
        let max_window = written.max_window.or(global.tune.quic.max_window).unwrap_or(MAX_WINDOW);
        Some(QuicListening {
            congestion: written.congestion.unwrap_or_default(),
            max_window,
            forces_retry: written.force_retry.is_some(),
            webtransport: written.webtransport.is_some(),
        })
    }

    /// Compiles the QUIC parameters of a server; `None` for servers over TCP.
    pub(super) fn quic_connecting(
        &mut self,
        server: &ServerSpec,
        global: &GlobalSpec,
        head: &str,
    ) -> Option<QuicConnecting> {
        if !server.address.value.is_quic() {
            if let Some(span) = server.connecting.quic.webtransport {
                let message = format!("{head}'webtransport' needs a QUIC address.");
                let hint = "write 'server <name> quic4@<address>:<port> ssl webtransport'".to_owned();
                self.alert_with_hint(span, Form::Placed, message, Some(hint));
            }
            return None;
        }
        if !server.tls.as_ref().is_some_and(|tls| tls.ssl) {
            let message = format!("{head}QUIC needs TLS, but 'ssl' is missing.");
            self.alert(server.span, Form::Placed, message);
        }
        if let Some(name) = impossible_option(&server.connecting) {
            self.alert(server.span, Form::Placed, format!("{head}'{name}' is not possible over QUIC."));
        }
        let written = &server.connecting.quic;
        let max_window = written.max_window.or(global.tune.quic.servers.max_window).unwrap_or(MAX_WINDOW);
        Some(QuicConnecting {
            congestion: written.congestion.unwrap_or_default(),
            max_window,
            webtransport: written.webtransport.is_some(),
        })
    }

    /// Refuses an address of QUIC or of datagrams that two lines name: what belongs together would reach the sockets of either.
    pub(super) fn datagram_addresses_are_separate(&mut self, spec: &Spec, proxies: &[Proxy]) {
        let mut first: HashMap<Seat<'_>, Span> = HashMap::new();
        let served = spec.proxies.iter().zip(proxies).filter(|(written, _)| !written.disabled);
        let binds = served.flat_map(|(written, proxy)| {
            let binds = proxy.frontend.iter().flat_map(|frontend| &frontend.binds);
            binds.filter_map(|bind| Some((bind, written.binds.get(bind.index)?.span)))
        });
        for (bind, span) in binds {
            let (BindAddress::Quic(address) | BindAddress::Udp(address)) = bind.address else { continue };
            let socket = &bind.listening.socket;
            let seat = (address, socket.interface.as_deref(), socket.namespace.as_deref());
            let Some(other) = first.insert(seat, span) else { continue };
            let other = self.place(other);
            let (keyword, kind) = match bind.address {
                BindAddress::Quic(_) => ("bind", "QUIC"),
                _ => ("dgram-bind", "UDP"),
            };
            let message = format!("'{keyword} {}' : the line at [{other}] has this {kind} address already.", bind.text);
            self.alert(span, Form::Parsing, message);
        }
    }
}

/// Returns the name of an option that connections over QUIC cannot have.
fn impossible_option(written: &ConnectingSpec) -> Option<&'static str> {
    if written.proxy_header.v1 {
        return Some("send-proxy");
    }
    if written.proxy_header.v2 {
        return Some("send-proxy-v2");
    }
    written.socks4.as_ref().map(|_| "socks4")
}

#[cfg(test)]
mod tests;
