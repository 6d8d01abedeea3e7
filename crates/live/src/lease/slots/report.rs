//! The data that nodes and the store exchange about the slots of a server. Must never decide anything.

use base::moment::Moment;
use std::time::Duration;

/// The load of a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SlotReading {
    /// `maxconn`, as configured or set by a command; `u32::MAX`: none.
    pub most: u32,
    /// The limit of this process without a lease: less than `most` during `slowstart`, or with `minconn`.
    pub local: u32,
    /// Requests that the server has.
    pub served: u32,
    /// Requests that wait for it.
    pub waiting: u32,
}

/// Whether a store can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreState {
    /// No connection was tried yet.
    Untried,
    Ready,
    Lost,
}

/// The report of a node about a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// Increases with each claim of the node about the server.
    pub sequence: u64,
    /// `maxconn`.
    pub most: u32,
    /// Slots that the node may use until it gets an answer, and those in use.
    pub held: u32,
    /// Slots that it needs: requests in progress and waiting.
    pub demand: u32,
    /// Number of nodes that it knew last; 0: the store has never answered.
    pub nodes: u32,
    /// The process ends: it needs no slots for requests to come.
    pub is_leaving: bool,
    /// Time after which the store forgets the claim.
    pub lifetime: Duration,
    /// When it was made.
    pub(super) made: Moment,
}

/// The answer of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SlotGrant {
    Slots {
        /// Slots that the node may use from now on.
        count: u32,
        /// Number of nodes that use the server.
        nodes: u32,
        /// A node needs slots that others hold.
        is_contested: bool,
    },
    /// A later claim has been answered.
    Outdated,
    /// The store has other data in place of the leases.
    Foreign,
}

/// The state of a lease, for statistics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SlotReport {
    /// `NEW`, `LEASED`, `LOST` or `REMOVED`.
    pub state: &'static str,
    /// Slots that the node may use; `u32::MAX`: the server has no limit.
    pub leased: u32,
    /// Number of nodes that use the server; 0: unknown.
    pub nodes: u32,
    /// The last load.
    pub reading: SlotReading,
}
