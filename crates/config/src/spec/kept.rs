//! State passed on from a process to its successor: states of servers and counters, in files (configuration manual,
//! "server-state-file", "load-server-state-from-file", "stats-file"), or in shared memory ("shm-stats-file").

/// Locations of the files, for all proxies.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct KeptSpec {
    /// `server-state-base`: the base directory of relative file names.
    pub state_base: Option<String>,
    /// `server-state-file`.
    pub state_file: Option<String>,
    /// `stats-file`.
    pub stats_file: Option<String>,
    /// `shm-stats-file`: the name of a shared memory object, with or without a slash in front.
    pub shared_file: Option<String>,
    /// `shm-stats-file-max-objects`.
    pub shared_objects: Option<u32>,
}

/// `load-server-state-from-file`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum StateSource {
    /// `none`, the default.
    #[default]
    None,
    /// `global`: the file of all backends.
    Global,
    /// `local`: a file for this backend.
    Local,
}

/// Source of the saved states of a backend's servers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct StateFileSpec {
    /// `load-server-state-from-file`.
    pub source: StateSource,
    /// `server-state-file-name`; `None`: the backend's name.
    pub file: Option<String>,
}
