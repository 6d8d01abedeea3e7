//! Counters of the datagrams of a `udp-lb` section that were not passed on, and of its flows that had to end. Must never be counted
//! in by two threads.

use std::sync::OnceLock;

use super::cell::Count;

/// One worker's counters of a section.
#[derive(Debug, Default)]
pub struct DatagramCounters {
    /// Flows that ended because another one needed their slot.
    pub evicted: Count,
    /// Datagrams that would have begun a flow: no slot was free, or a rate was exceeded.
    pub refused: Count,
    /// Datagrams above `accepted-payload-size`, of clients or servers.
    pub oversized: Count,
    /// Datagrams that the system did not take.
    pub unsent: Count,
    /// Flows whose server has rejected a datagram.
    pub rejected: Count,
    /// First datagrams of QUIC connections that were held until a ClientHello is complete.
    pub held: Count,
    /// QUIC connections that were passed on without a complete ClientHello.
    pub nameless: Count,
}

impl DatagramCounters {
    /// The names of the counters, in the order of [`DatagramCounters::all`].
    pub const NAMES: [&'static str; 7] = ["evicted", "refused", "oversized", "unsent", "rejected", "held", "nameless"];

    /// Returns all counters.
    pub fn all(&self) -> [&Count; 7] {
        let Self { evicted, refused, oversized, unsent, rejected, held, nameless } = self;
        [evicted, refused, oversized, unsent, rejected, held, nameless]
    }
}

/// Counters that only sections for datagrams allocate.
#[derive(Debug, Default)]
pub struct LazyDatagramCounters(OnceLock<Box<DatagramCounters>>);

impl LazyDatagramCounters {
    /// Returns the counters to count in.
    pub fn used(&self) -> &DatagramCounters {
        self.0.get_or_init(Box::default)
    }

    /// Returns the counters to read; `None`: nothing was counted.
    pub fn known(&self) -> Option<&DatagramCounters> {
        self.0.get().map(|counters| &**counters)
    }
}
