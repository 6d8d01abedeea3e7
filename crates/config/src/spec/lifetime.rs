//! What `global` says about the life of processes (configuration manual, section 3.1).

/// When a soft stop closes connections that could go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CloseSpread {
    /// At once.
    #[default]
    AtOnce,
    /// Over so many milliseconds.
    Over(u64),
    /// Not at all: they end by their own timeouts.
    Never,
}

/// Masters, workers and stops.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct LifetimeSpec {
    /// `close-spread-time`.
    pub close_spread: CloseSpread,
    /// `master-worker no-exit-on-failure`.
    pub no_exit_on_failure: bool,
    /// `mworker-max-reloads`; default 50.
    pub max_reloads: Option<u32>,
    /// `reload in-place`, a keyword of Weir's own: a worker goes over to a new configuration where that is possible.
    pub reload_in_place: bool,
}
