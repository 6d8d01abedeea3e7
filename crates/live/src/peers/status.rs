//! The status of a section and its peers (`show peers`). Must never decide anything.

use base::moment::Moment;

/// The result of the last connection attempt, with HAProxy's words of `show peers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LastStatus {
    /// No attempt.
    #[default]
    None,
    /// The hello was sent and not answered yet, or the peer could not be reached.
    Handshake,
    /// It is or was connected.
    Established,
    /// It responded 300: try again later.
    TryAgain,
    /// It responded 501: protocol error.
    Protocol,
    /// It responded 502: unsupported version.
    Version,
    /// It responded 503: it has another name.
    Name,
    /// It responded 504: this instance is not one of its peers.
    Unknown,
}

impl LastStatus {
    pub const fn word(self) -> &'static str {
        match self {
            Self::None => "NONE",
            Self::Handshake => "HSHK",
            Self::Established => "ESTA",
            Self::TryAgain => "RETR",
            Self::Protocol => "PROT",
            Self::Version => "VERS",
            Self::Name => "NAME",
            Self::Unknown => "UNKN",
        }
    }
}

/// The extent of learning from a peer, with HAProxy's words of `show peers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LearnState {
    /// Only new updates.
    #[default]
    NotAssigned,
    /// All its entries.
    Processing,
}

impl LearnState {
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotAssigned => "NOTASSIGNED",
            Self::Processing => "PROCESSING",
        }
    }
}

/// The values of a peer in a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OriginStatus {
    /// The peer has not connected yet.
    Unknown,
    /// All values were requested.
    Asked,
    /// All values are known.
    Known,
}

impl OriginStatus {
    pub const fn word(self) -> &'static str {
        match self {
            Self::Unknown => "UNKNOWN",
            Self::Asked => "ASKED",
            Self::Known => "KNOWN",
        }
    }
}

/// The status of a table shared with a peer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableStatus {
    /// Its name in the configuration.
    pub name: Box<str>,
    /// Its id in messages sent.
    pub local_id: u64,
    /// Its id in messages received; 0: none yet.
    pub remote_id: u64,
    /// The kinds of data that the peer sends, as bits.
    pub remote_data: u64,
    /// The last update received that was acknowledged.
    pub last_acked: u32,
    /// The last update sent.
    pub last_pushed: u32,
    /// The last update received.
    pub last_get: u32,
    /// The last update when the full resynchronization began; 0: it did not.
    pub teaching_origin: u32,
    /// The last update of the table.
    pub update: u32,
    /// The peer's values in the sum of the table; `None`: it is not summed.
    pub sum: Option<OriginStatus>,
}

/// The status of a peer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PeerStatus {
    pub name: Box<str>,
    /// It is this instance: an older or a newer process of it.
    pub local: bool,
    /// It is connected, or connecting.
    pub active: bool,
    /// The session is established: `app_state` is RUNNING, else STOPPED.
    pub running: bool,
    pub learn_state: LearnState,
    pub last_status: LastStatus,
    /// When the last hello was sent or received.
    pub last_handshake: Option<Moment>,
    /// When the next connection attempt is due.
    pub reconnect: Option<Moment>,
    /// When the next heartbeat is due.
    pub heartbeat: Option<Moment>,
    /// Number of confirmations of the end of teaching to be sent.
    pub confirm: u32,
    /// Heartbeats sent.
    pub tx_heartbeats: u32,
    /// Heartbeats received.
    pub rx_heartbeats: u32,
    /// Number of timeouts without a heartbeat.
    pub no_heartbeat: u32,
    /// Connection attempts.
    pub new_connections: u32,
    /// Invalid messages received.
    pub protocol_errors: u32,
    /// Connections closed because there was another one.
    pub collisions: u32,
    /// The table of the last message received, by its index in [`PeerStatus::tables`].
    pub remote_table: Option<usize>,
    /// The table of the last message sent, by its index in [`PeerStatus::tables`].
    pub last_local_table: Option<usize>,
    pub tables: Vec<TableStatus>,
    /// Names of servers sent, by id.
    pub names_sent: Vec<(u64, Box<[u8]>)>,
    /// Names of servers received, by id.
    pub names_learned: Vec<(u64, Box<[u8]>)>,
}

/// The status of a section.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SectionStatus {
    pub name: Box<str>,
    /// Whether the resynchronization is complete.
    pub complete: bool,
    /// Until when it waits for a peer to learn from.
    pub resync_timeout: Option<Moment>,
    /// The remote peers, then the local one.
    pub peers: Vec<PeerStatus>,
}
