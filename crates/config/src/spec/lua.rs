//! Lua as `global` describes it (configuration manual, sections 3.1 and 3.2). Must never run a script.

use crate::span::Span;

/// `lua-*` and `tune.lua.*`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LuaSpec {
    /// The scripts, in their order.
    pub scripts: Vec<LuaScriptSpec>,
    /// `lua-prepend-path`, in their order.
    pub paths: Vec<LuaPathSpec>,
    /// `tune.lua.bool-sample-conversion normal`: booleans reach a script as booleans; else as 0 and 1.
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
    /// `tune.lua.forced-yield`: instructions between two pauses; 0: none.
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

/// A script that is loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LuaScriptSpec {
    /// The file.
    pub file: String,
    /// The arguments of its main function.
    pub arguments: Vec<String>,
    /// `lua-load-per-thread`: each thread has its own copy.
    pub per_thread: bool,
    /// The folder that a relative name starts from, slash included; `None`: the working directory.
    pub folder: Option<String>,
    /// Where it is written.
    pub span: Span,
}

/// `lua-prepend-path`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LuaPathSpec {
    /// The pattern.
    pub pattern: String,
    /// It is one of `package.cpath`.
    pub of_libraries: bool,
}

/// Whether messages of scripts go to standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LuaStderr {
    /// Where no log takes them.
    #[default]
    Auto,
    /// Always.
    On,
    /// Never.
    Off,
}

/// The standard libraries that scripts may use beside `base` and `coroutine`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum LuaLibraries {
    /// All of them.
    #[default]
    All,
    /// These.
    Some(Vec<String>),
}
