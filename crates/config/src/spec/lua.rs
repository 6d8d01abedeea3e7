//! Lua settings of the `global` section (configuration manual, sections 3.1 and 3.2). Must never run a script.

use crate::span::Span;

/// `lua-*` and `tune.lua.*`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LuaSpec {
    /// The scripts, in file order.
    pub scripts: Vec<LuaScriptSpec>,
    /// `lua-prepend-path`, in file order.
    pub paths: Vec<LuaPathSpec>,
    /// `tune.lua.bool-sample-conversion normal`: booleans are passed to a script as booleans; otherwise as 0 and 1.
    pub keeps_booleans: bool,
    /// `tune.lua.bool-sample-conversion` was given before the first script.
    pub conversion_is_set: bool,
    /// `tune.lua.burst-timeout`, milliseconds; default 1000; 0: none.
    pub burst_timeout: Option<u64>,
    /// `tune.lua.session-timeout`, milliseconds; default 4000; 0: none.
    pub session_timeout: Option<u64>,
    /// `tune.lua.service-timeout`, milliseconds; default 4000; 0: none.
    pub service_timeout: Option<u64>,
    /// `tune.lua.task-timeout`, milliseconds; default none.
    pub task_timeout: Option<u64>,
    /// `tune.lua.forced-yield`: number of instructions between two yields; 0: none.
    pub forced_yield: Option<u32>,
    /// `tune.lua.maxmem`, megabytes; 0: no limit.
    pub maxmem: u32,
    /// `tune.lua.log.loggers off`.
    pub no_loggers: bool,
    /// `tune.lua.log.stderr`.
    pub stderr: LuaStderr,
    /// `tune.lua.openlibs`.
    pub libraries: LuaLibraries,
}

/// A script to load.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LuaScriptSpec {
    pub file: String,
    /// The arguments of its main function.
    pub arguments: Vec<String>,
    /// `lua-load-per-thread`: each thread has its own copy.
    pub per_thread: bool,
    /// The base directory of a relative name, with a trailing slash; `None`: the working directory.
    pub folder: Option<String>,
    pub span: Span,
}

/// `lua-prepend-path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LuaPathSpec {
    pub pattern: String,
    /// The pattern is added to `package.cpath`.
    pub of_libraries: bool,
}

/// Whether messages of scripts are written to standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LuaStderr {
    /// If no log target receives them.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// The standard libraries available to scripts in addition to `base` and `coroutine`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LuaLibraries {
    /// All of them.
    #[default]
    All,
    /// These.
    Some(Vec<String>),
}
