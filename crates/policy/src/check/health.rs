//! The health of one server: what its checks add up to (configuration manual, section 5.2, `rise`, `fall`, `inter` and
//! `init-state`). Plain data that is told of results; it must never run a check or know a clock.

use super::{CheckStatus, Verdict};
use config::spec::InitialState;
use std::time::Duration;

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    /// How it ended.
    pub status: CheckStatus,
    /// The application's code, where it gave one.
    pub code: Option<i64>,
    /// How long it took.
    pub took: Duration,
    /// More about it, for people; empty where there is nothing to say.
    pub info: String,
}

/// Times between two checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// `inter`: while the server is well.
    pub steady: Duration,
    /// `fastinter`: while its state is changing, or not known.
    pub fast: Duration,
    /// `downinter`: while it is down.
    pub down: Duration,
}

/// What a result changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Turn {
    /// Nothing that requests would notice.
    None,
    /// The server came up.
    Up,
    /// It went down.
    Down,
    /// It wants no new clients from now on (`http-check disable-on-404`).
    Stopping,
    /// It wants new clients again.
    Resumed,
}

/// The health of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    rise: u32,
    fall: u32,
    /// From 0, down, to `rise + fall - 1`, up; up from `rise` on.
    level: u32,
    stopping: bool,
    /// A check is under way.
    running: bool,
    last: Report,
    /// Checks that failed while the server was up.
    failed: u64,
    /// How often it went down.
    downs: u64,
}

impl Health {
    /// Of a server that was not checked yet. Both numbers are at least 1.
    pub fn new(rise: u32, fall: u32, initial: InitialState) -> Self {
        let (rise, fall) = (rise.max(1), fall.max(1));
        let level = match initial {
            InitialState::None | InitialState::Up => rise,
            InitialState::FullyUp => rise + fall - 1,
            InitialState::Down => rise - 1,
            InitialState::FullyDown => 0,
        };
        let last = Report { status: CheckStatus::Initializing, ..Report::default() };
        Self { rise, fall, level, stopping: false, running: false, last, failed: 0, downs: 0 }
    }

    /// Whether the server counts as up.
    pub fn is_up(&self) -> bool {
        self.level >= self.rise
    }

    /// Whether it is up and wants no new clients.
    pub fn is_stopping(&self) -> bool {
        self.stopping && self.is_up()
    }

    /// A check begins.
    pub fn begin(&mut self) {
        self.running = true;
    }

    /// A check ended. What it changed, and whether it differs from the one before in a way that
    /// `option log-health-checks` tells.
    pub fn end(&mut self, report: Report) -> (Turn, bool) {
        self.running = false;
        let before = (self.last.status, self.level);
        let turn = match report.status.verdict() {
            None => Turn::None,
            Some(Verdict::Failed) => self.fail(),
            Some(Verdict::Passed) => self.pass(),
            Some(Verdict::Conditional) if !self.is_up() => Turn::None,
            Some(Verdict::Conditional) => {
                self.level = self.full();
                if std::mem::replace(&mut self.stopping, true) { Turn::None } else { Turn::Stopping }
            }
        };
        self.last = report;
        (turn, before != (self.last.status, self.level))
    }

    fn fail(&mut self) -> Turn {
        if !self.is_up() {
            self.level = 0;
            return Turn::None;
        }
        self.failed += 1;
        self.level -= 1;
        if self.is_up() {
            return Turn::None;
        }
        self.level = 0;
        self.downs += 1;
        Turn::Down
    }

    fn pass(&mut self) -> Turn {
        let was_up = self.is_up();
        self.level = (self.level + 1).min(self.full());
        if !self.is_up() {
            return Turn::None;
        }
        self.level = self.full();
        match (was_up, std::mem::take(&mut self.stopping)) {
            (false, _) => Turn::Up,
            (true, true) => Turn::Resumed,
            (true, false) => Turn::None,
        }
    }

    fn full(&self) -> u32 {
        self.rise + self.fall - 1
    }

    /// Back to the state of a server that was not checked yet: it comes out of maintenance.
    pub fn restart(&mut self, initial: InitialState) {
        *self = Self { failed: self.failed, downs: self.downs, ..Self::new(self.rise, self.fall, initial) };
    }

    /// The time to the next check.
    pub fn interval(&self, pace: &Pace) -> Duration {
        match self.level {
            _ if self.last.status == CheckStatus::Initializing => pace.fast,
            0 => pace.down,
            level if level == self.full() => pace.steady,
            _ => pace.fast,
        }
    }

    /// How many checks in a row say so, of how many that are needed, and the state: `2/3 UP`.
    pub fn progress(&self) -> (u32, u32, &'static str) {
        match self.is_up() {
            true => (self.level - self.rise + 1, self.fall, "UP"),
            false => (self.level, self.rise, "DOWN"),
        }
    }

    /// The last check that ended.
    pub fn last(&self) -> &Report {
        &self.last
    }

    /// Whether a check is under way.
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// From 0 to `rise + fall - 1`.
    pub fn level(&self) -> u32 {
        self.level
    }

    /// `rise` and `fall`.
    pub fn thresholds(&self) -> (u32, u32) {
        (self.rise, self.fall)
    }

    /// Checks that failed while the server was up, and how often it went down.
    pub fn counts(&self) -> (u64, u64) {
        (self.failed, self.downs)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(status: CheckStatus) -> Report {
        Report { status, ..Report::default() }
    }

    /// What a row of letters does to a server: `.` passes, `x` fails, `c` passes conditionally.
    fn course(initial: InitialState, rise: u32, fall: u32, results: &str) -> String {
        let mut health = Health::new(rise, fall, initial);
        let mut course = String::new();
        for result in results.chars() {
            let status = match result {
                '.' => CheckStatus::L7Ok,
                'c' => CheckStatus::L7Conditional,
                _ => CheckStatus::L7Status,
            };
            let (turn, _) = health.end(report(status));
            let (now, of, state) = health.progress();
            let sign = match turn {
                Turn::None => "",
                Turn::Up => "^",
                Turn::Down => "v",
                Turn::Stopping => "s",
                Turn::Resumed => "r",
            };
            course.push_str(&format!("{sign}{now}/{of}{} ", &state[..1]));
        }
        course.trim_end().to_owned()
    }

    #[test]
    fn results_add_up_as_haproxy_shows_them() {
        use InitialState::{Down, FullyDown, FullyUp, None, Up};
        let rows = [
            (None, 2, 3, ".", "3/3U"),
            (None, 2, 3, "x", "v0/2D"),
            (Up, 2, 3, "x", "v0/2D"),
            (FullyUp, 2, 3, "xxx", "2/3U 1/3U v0/2D"),
            (FullyUp, 2, 3, "xx.xxx", "2/3U 1/3U 3/3U 2/3U 1/3U v0/2D"),
            (Down, 2, 3, ".", "^3/3U"),
            (Down, 2, 3, "x..", "0/2D 1/2D ^3/3U"),
            (FullyDown, 3, 1, "...", "1/3D 2/3D ^1/1U"),
            (FullyDown, 3, 1, "..x...", "1/3D 2/3D 0/3D 1/3D 2/3D ^1/1U"),
            (None, 2, 2, ".cc.", "2/2U s2/2U 2/2U r2/2U"),
            (None, 2, 2, ".cxx", "2/2U s2/2U 1/2U v0/2D"),
            (None, 2, 2, "xc..", "v0/2D 0/2D 1/2D ^2/2U"),
        ];
        for (initial, rise, fall, results, expected) in rows {
            assert_eq!(course(initial, rise, fall, results), expected, "{initial:?} {results}");
        }
    }

    #[test]
    fn failures_count_while_the_server_is_up() {
        let mut health = Health::new(2, 2, InitialState::FullyUp);
        for status in [CheckStatus::L4Connection; 4] {
            health.end(report(status));
        }
        assert_eq!(health.counts(), (2, 1));
    }

    #[test]
    fn what_is_the_same_again_is_not_worth_a_line() {
        let mut health = Health::new(1, 2, InitialState::None);
        let mut told = Vec::new();
        for status in [CheckStatus::L7Ok, CheckStatus::L7Ok, CheckStatus::L7Status, CheckStatus::L4Timeout] {
            told.push(health.end(report(status)).1);
        }
        assert_eq!(told, [true, false, true, true]);
    }

    #[test]
    fn checks_come_faster_while_the_state_changes() {
        let pace = Pace { steady: Duration::from_secs(1), fast: Duration::from_secs(2), down: Duration::from_secs(3) };
        let mut health = Health::new(2, 2, InitialState::None);
        let mut intervals = vec![health.interval(&pace).as_secs()];
        for status in "..xx..".chars().map(|sign| if sign == '.' { CheckStatus::L7Ok } else { CheckStatus::L7Status }) {
            health.end(report(status));
            intervals.push(health.interval(&pace).as_secs());
        }
        assert_eq!(intervals, [2, 1, 1, 2, 3, 2, 1]);
    }
}
