//! Life cycle settings of the `global` section (configuration manual, section 3.1).

/// Time at which a soft stop closes connections that could be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CloseSpread {
    /// Immediately.
    #[default]
    AtOnce,
    /// Spread over this number of milliseconds.
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
    /// `reload in-place`, a keyword of Weir only: the worker switches to the new configuration if possible.
    pub reload_in_place: bool,
}
