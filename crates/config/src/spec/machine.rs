//! Interaction of the running process with the machine (configuration manual, sections 3.1 to 3.3).

/// Settings of the `global` section. `None` always means "not written".
#[derive(Debug, Clone, PartialEq, Default)]
pub struct MachineSpec {
    /// `warn-blocked-traffic-after`, milliseconds; default 100.
    pub warn_blocked_after: Option<u64>,
    /// `tune.renice.runtime`.
    pub nice: Option<i32>,
    /// `tune.runqueue-depth`.
    pub run_queue_depth: Option<u32>,
    /// `tune.notsent-lowat.client`, bytes; 0: no limit.
    pub unsent_client: Option<u32>,
    /// `tune.notsent-lowat.server`, bytes; 0: no limit.
    pub unsent_server: Option<u32>,
    /// `prealloc-fd`.
    pub prealloc_fd: bool,
    /// `profiling.tasks on`.
    pub measure_tasks: bool,
    /// `profiling.rules on`.
    pub measure_rules: bool,
    /// `busy-polling`.
    pub busy_polling: bool,
    /// `harden.reject-privileged-ports.tcp`.
    pub reject_privileged_ports: bool,
    /// `noreuseport`.
    pub no_reuse_port: bool,
    /// `tune.driver`.
    pub driver: DriverSpec,
}

/// `tune.driver`: how the kernel is called for sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DriverSpec {
    /// `posix` if a preloaded library replaces the functions, otherwise `epoll`.
    #[default]
    Auto,
    /// By system calls.
    Epoll,
    /// By the functions of the C library.
    Posix,
}
