//! Congestion control (`quic-cc-algo`): an algorithm, and the largest window that it may open.

mod fixed;
mod limited;

use std::str::FromStr;
use std::sync::Arc;

use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};

/// The default of `tune.quic.fe.cc.max-win-size` in bytes.
pub const MAX_WINDOW: u64 = 480 * 1024;

/// An algorithm of congestion control.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Algorithm {
    /// CUBIC (RFC 9438).
    #[default]
    Cubic,
    /// NewReno (RFC 9002, section 7).
    NewReno,
    /// BBR.
    Bbr,
    /// A window that is always the largest, for tests.
    Fixed,
}

impl Algorithm {
    /// Returns the name in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cubic => "cubic",
            Self::NewReno => "newreno",
            Self::Bbr => "bbr",
            Self::Fixed => "nocc",
        }
    }
}

impl FromStr for Algorithm {
    type Err = ();

    fn from_str(name: &str) -> Result<Self, ()> {
        let all = [Self::Cubic, Self::NewReno, Self::Bbr, Self::Fixed];
        all.into_iter().find(|algorithm| algorithm.name() == name).ok_or(())
    }
}

/// The settings of congestion control.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    pub algorithm: Algorithm,
    /// The largest window in bytes.
    pub max_window: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { algorithm: Algorithm::default(), max_window: MAX_WINDOW }
    }
}

/// Returns what makes the controllers of connections.
pub(crate) fn factory(settings: Settings) -> Arc<dyn ControllerFactory + Send + Sync> {
    let max = settings.max_window;
    match settings.algorithm {
        Algorithm::Cubic => Arc::new(limited::Factory::new(Arc::new(CubicConfig::default()), max)),
        Algorithm::NewReno => Arc::new(limited::Factory::new(Arc::new(NewRenoConfig::default()), max)),
        Algorithm::Bbr => Arc::new(limited::Factory::new(Arc::new(BbrConfig::default()), max)),
        Algorithm::Fixed => Arc::new(fixed::Factory(max)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    #[test]
    fn algorithms_are_found_by_name() {
        for (name, expected) in [
            ("cubic", Ok(Algorithm::Cubic)),
            ("newreno", Ok(Algorithm::NewReno)),
            ("bbr", Ok(Algorithm::Bbr)),
            ("nocc", Ok(Algorithm::Fixed)),
            ("reno", Err(())),
            ("Cubic", Err(())),
        ] {
            assert_eq!(name.parse::<Algorithm>(), expected, "{name}");
        }
    }

    #[test]
    fn no_window_exceeds_the_largest() {
        for algorithm in [Algorithm::Cubic, Algorithm::NewReno, Algorithm::Bbr, Algorithm::Fixed] {
            let now = Instant::now();
            let window = |max_window| factory(Settings { algorithm, max_window }).build(now, 1_200).window();
            assert_eq!(window(10_240), 10_240, "{algorithm:?}");
            let initial = if algorithm == Algorithm::Fixed { 1 << 20 } else { window(1 << 30) };
            assert_eq!(window(1 << 20), initial, "{algorithm:?}");
        }
    }
}
