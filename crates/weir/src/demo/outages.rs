//! The outages of one of the demonstration's servers: when it fails. Must never read a clock.

use base::Moment;
use std::time::Duration;

/// Time from the start to the first outage.
const FIRST: Duration = Duration::from_secs(10);

/// Duration of an outage.
const LENGTH: Duration = Duration::from_secs(10);

/// Time from the start of an outage to the start of the next one.
const PERIOD: Duration = Duration::from_secs(40);

/// The outages of a server.
#[derive(Debug, Clone, Copy)]
pub enum Outages {
    /// It never fails.
    Never,
    /// It fails periodically, counted from that time.
    Since(Moment),
}

impl Outages {
    /// Whether the server fails at that time.
    pub fn is_failing(self, now: Moment) -> bool {
        let Self::Since(start) = self else { return false };
        let elapsed = now.saturating_since(start);
        elapsed >= FIRST && (elapsed - FIRST).as_secs() % PERIOD.as_secs() < LENGTH.as_secs()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outage_returns_after_each_period() {
        let start = Moment::from_nanos(7);
        let outages = Outages::Since(start);
        for (seconds, expected) in [
            (0, false),
            (9, false),
            (10, true),
            (19, true),
            (20, false),
            (49, false),
            (50, true),
            (59, true),
            (60, false),
        ] {
            let now = start.saturating_add(Duration::from_secs(seconds));
            assert_eq!(outages.is_failing(now), expected, "{seconds} s");
            assert!(!Outages::Never.is_failing(now));
        }
    }
}
