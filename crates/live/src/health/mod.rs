//! The health of one server: the accumulated results of its checks (configuration manual, section 5.2, `rise`, `fall`,
//! `inter` and `init-state`). Plain data updated with results; it must never run a check or read a clock.

mod status;
mod symptom;

pub use status::{CheckStatus, Verdict};
pub use symptom::Symptom;

use config::spec::{InitialState, OnError};
use std::time::Duration;

/// The result of one check.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Report {
    pub status: CheckStatus,
    /// The application's status code, if it returned one.
    pub code: Option<i64>,
    /// The duration of the check.
    pub took: Duration,
    /// A message for humans; may be empty.
    pub info: String,
}

/// Intervals between checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    /// `inter`: while the server is up.
    pub steady: Duration,
    /// `fastinter`: while its state is changing, or unknown.
    pub fast: Duration,
    /// `downinter`: while it is down.
    pub down: Duration,
}

/// The operational state of a server by checks, agents or commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Operation {
    /// It accepts requests.
    #[default]
    Up,
    /// It serves existing sessions, but no new clients (`http-check disable-on-404`).
    Stopping,
    /// It accepts no requests.
    Down,
}

/// The health of a server, by its checks or by its agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    rise: u32,
    fall: u32,
    /// From 0, down, to `rise + fall - 1`, up; up from `rise` on.
    level: u32,
    /// Counts as up before its checks have confirmed it (`init-state none`): until one fails, or `rise` have passed.
    trusted: bool,
    /// Cleared by `disable health` and `disable agent`.
    enabled: bool,
    /// Set during a maintenance if checks were enabled when it began.
    paused: bool,
    /// The last counted check passed conditionally (`http-check disable-on-404`).
    conditional: bool,
    /// A check is running.
    running: bool,
    /// The next check uses the fast interval whatever the level is.
    hurried: bool,
    last: Report,
    /// Checks that failed while `level` was above 0.
    failed: u64,
    /// How often observed traffic exceeded the error limit.
    analyzed: u64,
}

impl Health {
    /// Creates the health of a server before its first check. Both thresholds are at least 1.
    pub fn new(rise: u32, fall: u32, initial: InitialState) -> Self {
        let (rise, fall) = (rise.max(1), fall.max(1));
        let level = match initial {
            InitialState::None => 0,
            InitialState::Up => rise,
            InitialState::FullyUp => rise + fall - 1,
            InitialState::Down => rise - 1,
            InitialState::FullyDown => 0,
        };
        let last = Report { status: CheckStatus::Initializing, ..Report::default() };
        let (enabled, running, hurried, paused, conditional) = (true, false, false, false, false);
        let trusted = initial == InitialState::None;
        Self {
            rise,
            fall,
            level,
            trusted,
            enabled,
            paused,
            conditional,
            running,
            hurried,
            last,
            failed: 0,
            analyzed: 0,
        }
    }

    /// Creates the health of an agent before its first check: a single result changes it.
    pub fn of_agent() -> Self {
        Self::new(1, 1, InitialState::FullyUp)
    }

    /// Whether the server counts as up.
    pub fn is_up(&self) -> bool {
        self.trusted || self.level >= self.rise
    }

    /// Whether results are currently counted.
    pub fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Pauses or resumes it.
    pub fn enable(&mut self, enabled: bool) {
        self.enabled = enabled;
    }

    /// Whether it keeps the server from accepting requests.
    pub fn objects(&self) -> bool {
        self.enabled && !self.is_up()
    }

    /// Whether a maintenance paused the checks.
    pub fn is_paused(&self) -> bool {
        self.paused
    }

    /// Forgets that the last check excluded new clients, after a command.
    pub(crate) fn admit(&mut self) {
        self.conditional = false;
    }

    /// Whether the last counted check excludes new clients.
    pub fn is_conditional(&self) -> bool {
        self.conditional && self.enabled
    }

    /// Sets whether the server counts as up before its checks have passed: after a command, until a check fails.
    pub(crate) fn trust(&mut self, trusted: bool) {
        self.trusted = trusted && self.level < self.rise;
    }

    /// Begins a maintenance of a server: enabled checks pause, and previous results no longer count, unless checks are
    /// disabled and the server was down.
    pub(crate) fn pause(&mut self, served: bool) {
        self.paused = self.enabled;
        if served || self.enabled {
            self.set_level(0);
        }
    }

    pub fn begin(&mut self) {
        self.running = true;
        self.hurried = false;
    }

    /// Ends a check: returns the server's new operational state, if the check determines it, and whether
    /// `option log-health-checks` logs the result.
    pub fn end(&mut self, report: Report) -> (Option<Operation>, bool) {
        self.running = false;
        let before = (self.last.status, self.level);
        let verdict = report.status.verdict().filter(|_| self.enabled);
        if let Some(verdict) = verdict {
            self.conditional = verdict == Verdict::Conditional;
        }
        let wanted = match verdict {
            None => None,
            Some(Verdict::Failed) => self.fail(),
            Some(Verdict::Passed) => self.pass(),
            Some(Verdict::Conditional) if !self.is_up() => None,
            Some(Verdict::Conditional) => self.pass().map(|_| Operation::Stopping),
        };
        let told = verdict.is_some() && before != (report.status, self.level);
        self.last = report;
        (wanted, told)
    }

    /// Ends an agent check: only the agent's own answer counts, not a failure to connect to it.
    pub fn end_of_agent(&mut self, report: Report) -> (Option<Operation>, bool) {
        match report.status {
            CheckStatus::L7Ok | CheckStatus::L7Status => self.end(report),
            // Unlike a check, an agent that had the server down may admit its known clients.
            CheckStatus::L7Conditional => {
                self.trusted |= self.enabled;
                self.end(report)
            }
            status => {
                self.running = false;
                let told = self.enabled && status.verdict().is_some() && status != self.last.status;
                self.last = report;
                (None, told)
            }
        }
    }

    fn fail(&mut self) -> Option<Operation> {
        self.failed += u64::from(self.level > 0);
        self.trusted = false;
        if self.level > self.rise {
            self.level -= 1;
            return None;
        }
        self.level = 0;
        Some(Operation::Down)
    }

    fn pass(&mut self) -> Option<Operation> {
        self.level = (self.level + 1).min(self.full());
        if self.level < self.rise {
            return None;
        }
        self.set_level(self.full());
        Some(Operation::Up)
    }

    fn full(&self) -> u32 {
        self.rise + self.fall - 1
    }

    /// Forces the operational state by a command.
    pub fn force(&mut self, operation: Operation) {
        self.set_level(if operation == Operation::Down { 0 } else { self.full() });
    }

    /// Records that observed traffic had `errors` consecutive errors, the last of which was `last` (`on-error`).
    /// Returns the server's new operational state, and whether to log it.
    pub fn suspect(&mut self, on_error: OnError, errors: u32, last: &str) -> (Option<Operation>, bool) {
        self.analyzed += 1;
        self.hurried = true;
        let before = (self.last.status, self.level);
        match on_error {
            OnError::FastInterval => return (None, false),
            OnError::FailCheck => {}
            OnError::SuddenDeath => self.level = self.level.min(self.rise + 1),
            OnError::MarkDown => self.level = self.rise,
        }
        let info = format!("Detected {errors} consecutive errors, last one was: {last}");
        let wanted = self.fail();
        self.last = Report { status: CheckStatus::Analyzed, info, ..Report::default() };
        (wanted, before != (self.last.status, self.level))
    }

    /// Sets the level, limited to its range.
    pub(crate) fn set_level(&mut self, level: u32) {
        self.level = level.min(self.full());
        self.trusted = false;
    }

    /// Sets the numbers of failed checks and of exceeded error limits; `None`: unchanged.
    pub(crate) fn preset(&mut self, failed: Option<u64>, analyzed: Option<u64>) {
        self.failed = failed.unwrap_or(self.failed);
        self.analyzed = analyzed.unwrap_or(self.analyzed);
    }

    /// Sets the result of the last check.
    pub(crate) fn set_last(&mut self, last: Report) {
        self.last = last;
    }

    /// Leaves maintenance: the level is that of `initial`, up if `None`. The result of the last check is kept until the
    /// next one.
    pub fn restart(&mut self, initial: InitialState) {
        let initial = if initial == InitialState::None { InitialState::Up } else { initial };
        self.set_level(Self::new(self.rise, self.fall, initial).level);
        (self.hurried, self.paused, self.conditional) = (false, false, false);
    }

    /// The interval to the next check.
    pub fn interval(&self, pace: &Pace) -> Duration {
        match self.level {
            _ if self.hurried || self.trusted || self.last.status == CheckStatus::Initializing => pace.fast,
            0 => pace.down,
            level if level == self.full() => pace.steady,
            _ => pace.fast,
        }
    }

    /// The number of consecutive results, the number required, and the state that they confirm: `2/3 UP`.
    pub fn progress(&self) -> (u32, u32, &'static str) {
        match self.level.checked_sub(self.rise) {
            Some(above) => (above + 1, self.fall, "UP"),
            None => (self.level, self.rise, "DOWN"),
        }
    }

    /// Formats a server's state `word` with its progress, unless the state is stable: `DOWN 1/2`. For a server admitted
    /// early the number is that of checks still required: `UP -1/3`.
    pub fn standing(&self, word: &str, serves: bool) -> String {
        let (now, of) = match serves {
            true => (i64::from(self.level) - i64::from(self.rise) + 1, self.fall),
            false => (i64::from(self.level), self.rise),
        };
        let lasts = if serves { now >= i64::from(of) } else { now == 0 };
        if lasts { word.to_owned() } else { format!("{word} {now}/{of}") }
    }

    /// Returns the result of the last check.
    pub fn last(&self) -> &Report {
        &self.last
    }

    /// Whether a check is running.
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

    /// Whether the next check is due earlier than scheduled.
    pub fn is_hurried(&self) -> bool {
        self.hurried
    }

    /// How often observed traffic exceeded the error limit.
    pub fn analyzed(&self) -> u64 {
        self.analyzed
    }

    /// Resets both counts (`clear counters all`).
    pub fn forget_counts(&mut self) {
        (self.failed, self.analyzed) = (0, 0);
    }

    /// Checks that failed while the server was up, or recovering.
    pub fn failed(&self) -> u64 {
        self.failed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(status: CheckStatus) -> Report {
        Report { status, ..Report::default() }
    }

    /// The effect of a row of results on a server: `.` passes, `x` fails, `c` passes conditionally.
    fn course(initial: InitialState, rise: u32, fall: u32, results: &str) -> String {
        let mut health = Health::new(rise, fall, initial);
        let mut course = String::new();
        let mut now_is = if health.is_up() { Operation::Up } else { Operation::Down };
        for result in results.chars() {
            let status = match result {
                '.' => CheckStatus::L7Ok,
                'c' => CheckStatus::L7Conditional,
                _ => CheckStatus::L7Status,
            };
            let wanted = health.end(report(status)).0.unwrap_or(now_is);
            let (now, of, state) = health.progress();
            let sign = match (std::mem::replace(&mut now_is, wanted), wanted) {
                (before, now) if before == now => "",
                (Operation::Stopping, Operation::Up) => "r",
                (_, Operation::Up) => "^",
                (_, Operation::Down) => "v",
                (_, Operation::Stopping) => "s",
            };
            course.push_str(&format!("{sign}{now}/{of}{} ", &state[..1]));
        }
        course.trim_end().to_owned()
    }

    #[test]
    fn results_add_up_as_haproxy_shows_them() {
        use InitialState::{Down, FullyDown, FullyUp, None, Up};
        let rows = [
            (None, 2, 3, "..", "1/2D 3/3U"),
            (None, 2, 3, ".x", "1/2D v0/2D"),
            (None, 2, 3, "x", "v0/2D"),
            (None, 1, 3, ".x", "3/3U 2/3U"),
            (None, 3, 3, "..x..", "1/3D 2/3D v0/3D 1/3D 2/3D"),
            (None, 2, 2, "cc", "1/2D s2/2U"),
            (Up, 2, 3, ".x", "3/3U 2/3U"),
            (Up, 2, 3, "x", "v0/2D"),
            (FullyUp, 2, 3, "xxx", "2/3U 1/3U v0/2D"),
            (FullyUp, 2, 3, "xx.xxx", "2/3U 1/3U 3/3U 2/3U 1/3U v0/2D"),
            (Down, 2, 3, ".", "^3/3U"),
            (Down, 2, 3, "x..", "0/2D 1/2D ^3/3U"),
            (FullyDown, 3, 1, "...", "1/3D 2/3D ^1/1U"),
            (FullyDown, 3, 1, "..x...", "1/3D 2/3D 0/3D 1/3D 2/3D ^1/1U"),
            (Up, 2, 2, ".cc.", "2/2U s2/2U 2/2U r2/2U"),
            (Up, 2, 2, ".cxx", "2/2U s2/2U 1/2U v0/2D"),
            (None, 2, 2, "xc..", "v0/2D 0/2D 1/2D ^2/2U"),
        ];
        for (initial, rise, fall, results, expected) in rows {
            assert_eq!(course(initial, rise, fall, results), expected, "{initial:?} {results}");
        }
    }

    #[test]
    fn failures_count_where_they_take_something_back() {
        let mut health = Health::new(2, 2, InitialState::FullyUp);
        for status in [CheckStatus::L4Connection; 4] {
            health.end(report(status));
        }
        assert_eq!(health.failed(), 2);
        // A failure that resets earlier successes counts, too.
        for status in [CheckStatus::L7Ok, CheckStatus::L4Connection, CheckStatus::L4Connection] {
            health.end(report(status));
        }
        assert_eq!(health.failed(), 3);
    }

    #[test]
    fn the_first_check_counts_where_the_server_was_up_until_then() {
        let rows =
            [(InitialState::None, 0), (InitialState::Up, 1), (InitialState::Down, 0), (InitialState::FullyDown, 0)];
        for (initial, failed) in rows {
            let mut health = Health::new(1, 3, initial);
            health.end(report(CheckStatus::L4Connection));
            health.end(report(CheckStatus::L4Connection));
            assert_eq!(health.failed(), failed, "{initial:?}");
            health.forget_counts();
            assert_eq!(health.failed(), 0);
        }
    }

    #[test]
    fn traffic_that_fails_counts_as_the_configuration_says() {
        let rows = [
            (OnError::FastInterval, None, (3, 3), 0),
            (OnError::FailCheck, None, (2, 3), 1),
            (OnError::SuddenDeath, None, (1, 3), 1),
            (OnError::MarkDown, Some(Operation::Down), (0, 2), 1),
        ];
        for (on_error, wanted, (now, of), failed) in rows {
            let mut health = Health::new(2, 3, InitialState::FullyUp);
            assert_eq!(health.suspect(on_error, 3, "Wrong http response").0, wanted, "{on_error:?}");
            let progress = health.progress();
            assert_eq!((progress.0, progress.1, health.failed()), (now, of, failed), "{on_error:?}");
            let said = "Detected 3 consecutive errors, last one was: Wrong http response";
            assert_eq!(health.last().info == said, failed > 0, "{on_error:?}");
            assert!(health.is_hurried());
        }
    }

    #[test]
    fn an_agent_that_cannot_be_asked_changes_nothing() {
        let mut health = Health::of_agent();
        let statuses = [
            (CheckStatus::L4Connection, None, true),
            (CheckStatus::L4Connection, None, false),
            (CheckStatus::L7Status, Some(Operation::Down), true),
            (CheckStatus::L7Timeout, None, true),
            (CheckStatus::Checked, None, false),
            (CheckStatus::L7Ok, Some(Operation::Up), true),
        ];
        for (status, wanted, told) in statuses {
            assert_eq!(health.end_of_agent(report(status)), (wanted, told), "{status:?}");
        }
    }

    #[test]
    fn what_is_paused_has_no_say() {
        let mut health = Health::new(1, 1, InitialState::FullyUp);
        health.enable(false);
        assert_eq!(health.end(report(CheckStatus::L7Status)), (None, false));
        assert!(!health.objects());
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
        // From the start; before the first check the interval is the fast one, as the state is unknown.
        let rows: [(_, _, &[u64]); 6] = [
            (InitialState::None, "..xx..", &[2, 2, 1, 2, 3, 2, 1]),
            (InitialState::None, "x...", &[2, 3, 2, 1, 1]),
            (InitialState::Up, ".", &[2, 1]),
            (InitialState::FullyUp, ".x.", &[2, 1, 2, 1]),
            (InitialState::Down, ".", &[2, 1]),
            (InitialState::FullyDown, "..x", &[2, 2, 1, 2]),
        ];
        for (initial, results, expected) in rows {
            let mut health = Health::new(2, 2, initial);
            let mut intervals = vec![health.interval(&pace).as_secs()];
            for sign in results.chars() {
                health.end(report(if sign == '.' { CheckStatus::L7Ok } else { CheckStatus::L7Status }));
                intervals.push(health.interval(&pace).as_secs());
            }
            assert_eq!(intervals, expected, "{initial:?} {results}");
        }
    }

    #[test]
    fn a_server_may_serve_before_its_checks_say_so() {
        let mut health = Health::new(3, 2, InitialState::None);
        let mut told = vec![health.standing("UP", health.is_up())];
        for _ in 0..3 {
            health.end(report(CheckStatus::L7Ok));
            told.push(health.standing("UP", health.is_up()));
        }
        health.end(report(CheckStatus::L7Status));
        told.push(health.standing("NOLB", health.is_up()));
        health.end(report(CheckStatus::L7Status));
        told.push(health.standing("DOWN", health.is_up()));
        health.end(report(CheckStatus::L7Ok));
        told.push(health.standing("DOWN", health.is_up()));
        assert_eq!(told, ["UP -2/2", "UP -1/2", "UP 0/2", "UP", "NOLB 1/2", "DOWN", "DOWN 1/3"]);
        // After a maintenance a single failure counts.
        health.restart(InitialState::None);
        assert_eq!((health.standing("UP", true), health.last().status), ("UP 1/2".to_owned(), CheckStatus::L7Ok));
    }
}
