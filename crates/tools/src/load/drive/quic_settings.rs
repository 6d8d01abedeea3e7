//! Settings and memory that all QUIC connections of a worker share. Must never open a connection.

use std::cell::RefCell;
use std::time::Duration;

use quic::{Clock, Secrets, Transport, transport};

/// Receive windows, similar to those of browsers.
const WINDOW: u32 = 15 << 20;
const STREAM_WINDOW: u32 = 6 << 20;
/// Unidirectional streams of the server at a time: three of HTTP/3, and some of reserved types.
const UNIDIRECTIONAL: u32 = 8;
/// Time without a packet after which a connection has ended, unless the server's limit is shorter.
const IDLE: Duration = Duration::from_secs(600);

/// Settings and memory that all QUIC connections of a worker share.
pub(super) struct QuicSettings {
    pub(super) clock: Clock,
    pub(super) secrets: Secrets,
    pub(super) transport: Transport,
    /// Datagrams that are being sent.
    pub(super) out: RefCell<Vec<u8>>,
}

/// Returns random bytes of the worker.
pub(super) fn random_bytes() -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.chunks_exact_mut(8).for_each(|chunk| chunk.copy_from_slice(&rt::random().to_be_bytes()));
    bytes
}

impl QuicSettings {
    pub(super) fn new() -> Self {
        let settings = transport::Settings {
            idle_timeout: IDLE,
            max_bidirectional: 0,
            max_unidirectional: UNIDIRECTIONAL,
            window: WINDOW,
            stream_window: STREAM_WINDOW,
            ..transport::Settings::default()
        };
        Self {
            clock: Clock::new(rt::clock::origin()),
            secrets: Secrets::random(random_bytes()),
            transport: Transport::new(&settings),
            out: RefCell::default(),
        }
    }
}
