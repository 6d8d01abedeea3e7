//! Settings of QUIC that the connections of clients and those to servers have in common.

use config::spec::QuicCongestion;
use quic::congestion::Algorithm;
use quic::transport;

/// Bytes of a batch that may be written besides those in flight.
pub(crate) const QUEUED: u64 = 64 * 1024;

/// Maximum number of streams of WebTransport sessions that a peer may open at a time: unidirectional ones, and those of servers.
pub(crate) const SESSION_STREAMS: u32 = 100;

/// Maximum number of bytes of datagrams that wait in each direction of a connection.
const MESSAGES: usize = 64 * 1024;

/// Permits the streams and datagrams of WebTransport sessions.
pub(crate) fn with_sessions(settings: transport::Settings) -> transport::Settings {
    transport::Settings {
        max_unidirectional: settings.max_unidirectional + SESSION_STREAMS,
        messages: Some(MESSAGES),
        ..settings
    }
}

/// Returns an algorithm of congestion control.
pub(crate) fn algorithm(congestion: QuicCongestion) -> Algorithm {
    match congestion {
        QuicCongestion::Cubic => Algorithm::Cubic,
        QuicCongestion::NewReno => Algorithm::NewReno,
        QuicCongestion::Bbr => Algorithm::Bbr,
        QuicCongestion::Unlimited => Algorithm::Fixed,
    }
}

/// Returns random bytes of the worker.
pub(crate) fn random_bytes() -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&rt::random().to_be_bytes()));
    bytes
}
