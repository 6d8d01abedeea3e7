//! What one process leaves to the next: states of servers and counters, in files (configuration manual,
//! "server-state-file", "load-server-state-from-file", "stats-file"), or in shared memory ("shm-stats-file").

/// Where the files are, for all proxies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeptSpec {
    /// `server-state-base`: the folder of files whose names are not absolute.
    pub state_base: Option<String>,
    /// `server-state-file`.
    pub state_file: Option<String>,
    /// `stats-file`.
    pub stats_file: Option<String>,
    /// `shm-stats-file`: the name of shared memory, with or without a slash in front.
    pub shared_file: Option<String>,
    /// `shm-stats-file-max-objects`.
    pub shared_objects: Option<u32>,
}

/// `load-server-state-from-file`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StateSource {
    /// `none`, and what holds where nothing is written.
    #[default]
    None,
    /// `global`: the file of all backends.
    Global,
    /// `local`: one of its own.
    Local,
}

/// What a backend's servers are told of their saved states.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StateFileSpec {
    /// `load-server-state-from-file`.
    pub source: StateSource,
    /// `server-state-file-name`; `None`: the backend's name.
    pub file: Option<String>,
}
