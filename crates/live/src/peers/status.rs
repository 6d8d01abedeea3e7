//! What is told of a section and its peers (`show peers`). Must never decide anything.

use base::moment::Moment;

/// How the last attempt to speak with a peer went: the words of HAProxy's `show peers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LastStatus {
    /// There was none.
    #[default]
    None,
    /// It was greeted, and has not answered yet, or could not be reached.
    Handshake,
    /// It is connected, or was.
    Established,
    /// It said to try again later (300).
    TryAgain,
    /// It did not understand (501).
    Protocol,
    /// It does not speak this version (502).
    Version,
    /// It is not who it was taken for (503).
    Name,
    /// It does not know this instance (504).
    Unknown,
}

impl LastStatus {
    /// The word.
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

/// What this instance learns from a peer: the words of HAProxy's `show peers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LearnState {
    /// Nothing but what happens there.
    #[default]
    NotAssigned,
    /// All that it knows.
    Processing,
}

impl LearnState {
    /// The word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::NotAssigned => "NOTASSIGNED",
            Self::Processing => "PROCESSING",
        }
    }
}

/// What is told of a table that is shared with a peer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TableStatus {
    /// Its name in the configuration.
    pub name: Box<str>,
    /// The number that it is told by.
    pub local_id: u64,
    /// The number that the peer tells it by; 0: it has not.
    pub remote_id: u64,
    /// The kinds of data that the peer tells, by their bits.
    pub remote_data: u64,
    /// The last update of the peer's that it was told to have been heard.
    pub last_acked: u32,
    /// The last one that it was told.
    pub last_pushed: u32,
    /// The last one that it told.
    pub last_get: u32,
    /// The last one when everything began to be told; 0: it did not.
    pub teaching_origin: u32,
    /// The last one of the table.
    pub update: u32,
}

/// What is told of a peer.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PeerStatus {
    /// Its name.
    pub name: Box<str>,
    /// It is this instance: an older process of it, or a newer one.
    pub local: bool,
    /// There is a connection, or an attempt to make one.
    pub active: bool,
    /// They speak: `app_state` is RUNNING, else STOPPED.
    pub running: bool,
    /// What is learned from it.
    pub learn_state: LearnState,
    /// How the last attempt went.
    pub last_status: LastStatus,
    /// When the last hello was said or heard.
    pub last_handshake: Option<Moment>,
    /// When it will be tried again.
    pub reconnect: Option<Moment>,
    /// When it is told that this instance is still here.
    pub heartbeat: Option<Moment>,
    /// Ends of teaching that are to be confirmed.
    pub confirm: u32,
    /// Heartbeats that were sent.
    pub tx_heartbeats: u32,
    /// Heartbeats that came.
    pub rx_heartbeats: u32,
    /// How often it was silent for too long.
    pub no_heartbeat: u32,
    /// Connections that were tried.
    pub new_connections: u32,
    /// Messages that were none.
    pub protocol_errors: u32,
    /// Connections that were ended because there was another one.
    pub collisions: u32,
    /// It told of this table last, by its place in [`PeerStatus::tables`].
    pub remote_table: Option<usize>,
    /// It was told of this table last, by its place in [`PeerStatus::tables`].
    pub last_local_table: Option<usize>,
    /// What is shared with it.
    pub tables: Vec<TableStatus>,
    /// Names of servers that it was told, by their numbers.
    pub names_sent: Vec<(u64, Box<[u8]>)>,
    /// Names of servers that it told, by their numbers.
    pub names_learned: Vec<(u64, Box<[u8]>)>,
}

/// What is told of a section.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SectionStatus {
    /// Its name.
    pub name: Box<str>,
    /// Whether it has learned what there was to learn when it began.
    pub complete: bool,
    /// Until when it waits for a peer to learn from.
    pub resync_timeout: Option<Moment>,
    /// The others, then the local one.
    pub peers: Vec<PeerStatus>,
}
