//! The settings of connections (RFC 9000, section 18.2, and those of this side alone), compiled once.

use std::sync::Arc;
use std::time::Duration;

use quinn_proto::{IdleTimeout, MtuDiscoveryConfig, TransportConfig, VarInt};

use crate::congestion;

/// The default of `tune.quic.fe.max-idle-timeout`.
const IDLE: Duration = Duration::from_secs(30);
/// The default of `tune.quic.fe.stream.max-concurrent`.
const STREAMS: u32 = 100;
/// The unidirectional streams that HTTP/3 needs: control, and both of QPACK (RFC 9114, section 6.2).
const UNIDIRECTIONAL: u32 = 3;
/// The default of `tune.bufsize` in bytes.
const BUFFER: u32 = 16_384;
/// The default of `tune.quic.fe.stream.data-ratio` in percent.
const RATIO: u32 = 90;
/// Bytes that may wait besides those in flight.
const QUEUED: u64 = 64 * 1024;
/// The largest datagram that is tried, in bytes: Ethernet's, with an IPv6 header.
const LARGEST: u16 = 1_452;
/// Maximum number of bytes of CRYPTO frames that wait for a gap to be filled.
const CRYPTO: usize = 16 * 1024;

/// The settings of connections.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Zero: connections never time out.
    pub idle_timeout: Duration,
    /// Maximum number of requests of the peer at a time.
    pub max_bidirectional: u32,
    /// Maximum number of unidirectional streams of the peer at a time.
    pub max_unidirectional: u32,
    /// Maximum number of unread bytes of a connection; the peer is informed of it.
    pub window: u32,
    /// Maximum number of unread bytes of a stream.
    pub stream_window: u32,
    /// Maximum number of written bytes of a connection that are not acknowledged yet.
    pub send_window: u64,
    pub congestion: congestion::Settings,
    /// The round-trip time that is assumed until one was measured.
    pub initial_rtt: Duration,
    /// Packets are sent at least this often, so that the connection does not time out; `None`: never.
    pub keep_alive: Option<Duration>,
    /// Whether larger datagrams than the smallest permitted ones are tried.
    pub discovers_mtu: bool,
    /// Bytes of messages of the datagram extension (RFC 9221) that may wait in each direction; `None`: there are none.
    pub messages: Option<usize>,
    /// Whether several datagrams may be passed to the kernel at once (`tune.quic.fe.tx.udp-gso`).
    pub batches: bool,
}

impl Default for Settings {
    /// HAProxy's defaults.
    fn default() -> Self {
        let congestion = congestion::Settings::default();
        Self {
            idle_timeout: IDLE,
            max_bidirectional: STREAMS,
            max_unidirectional: UNIDIRECTIONAL,
            window: STREAMS * BUFFER,
            stream_window: stream_window(STREAMS * BUFFER, RATIO, BUFFER),
            send_window: congestion.max_window + QUEUED,
            congestion,
            initial_rtt: Duration::from_millis(333),
            keep_alive: None,
            discovers_mtu: true,
            messages: None,
            batches: true,
        }
    }
}

/// Returns the window of a stream: a ratio of the connection's in percent, rounded up to whole buffers.
pub fn stream_window(window: u32, ratio: u32, buffer: u32) -> u32 {
    let part = u64::from(window) * u64::from(ratio.min(100)) / 100;
    let rounded = part.div_ceil(u64::from(buffer.max(1))) * u64::from(buffer.max(1));
    u32::try_from(rounded).unwrap_or(u32::MAX)
}

/// Compiled settings.
#[derive(Debug, Clone)]
pub struct Transport(pub(crate) Arc<TransportConfig>);

impl Transport {
    /// Compiles settings. Values beyond what the protocol can express are the largest that it can.
    pub fn new(settings: &Settings) -> Self {
        let mut config = TransportConfig::default();
        let idle = IdleTimeout::try_from(settings.idle_timeout).ok();
        let mtu = settings.discovers_mtu.then(|| {
            let mut mtu = MtuDiscoveryConfig::default();
            mtu.upper_bound(LARGEST);
            mtu
        });
        config
            .max_idle_timeout(idle.filter(|_| !settings.idle_timeout.is_zero()))
            .max_concurrent_bidi_streams(settings.max_bidirectional.into())
            .max_concurrent_uni_streams(settings.max_unidirectional.into())
            .receive_window(VarInt::from_u32(settings.window))
            .stream_receive_window(VarInt::from_u32(settings.stream_window))
            .send_window(settings.send_window)
            .congestion_controller_factory(congestion::factory(settings.congestion))
            .initial_rtt(settings.initial_rtt)
            .keep_alive_interval(settings.keep_alive)
            .mtu_discovery_config(mtu)
            .enable_segmentation_offload(settings.batches)
            .crypto_buffer_size(CRYPTO)
            .allow_spin(false)
            .datagram_receive_buffer_size(settings.messages)
            .datagram_send_buffer_size(settings.messages.unwrap_or(0));
        Self(Arc::new(config))
    }
}

impl Default for Transport {
    fn default() -> Self {
        Self::new(&Settings::default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_get_whole_buffers() {
        for ((window, ratio, buffer), expected) in [
            ((1_638_400, 90, 16_384), 1_474_560),
            ((100_000, 90, 16_384), 98_304),
            ((16_384, 1, 16_384), 16_384),
            ((1_000, 0, 100), 0),
            ((1_000, 200, 100), 1_000),
            ((u32::MAX, 100, 16_384), u32::MAX),
            ((1_000, 50, 0), 500),
        ] {
            assert_eq!(stream_window(window, ratio, buffer), expected, "{window} {ratio} {buffer}");
        }
    }
}
