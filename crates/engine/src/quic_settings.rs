//! Settings of QUIC that the connections of clients and those to servers have in common.

use config::spec::QuicCongestion;
use quic::congestion::Algorithm;

/// Bytes of a batch that may be written besides those in flight.
pub(crate) const QUEUED: u64 = 64 * 1024;

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
