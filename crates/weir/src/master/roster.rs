//! The workers of a master and their states: loading, serving, leaving. Must never signal a process: it only returns
//! what is to be done.

use base::Moment;
use std::fmt::Write;
use std::time::Duration;

/// State of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WorkerState {
    /// It loads its configuration.
    Loading,
    /// It serves.
    Serving,
    /// It was replaced, or is being replaced.
    Former,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Process id.
    pub pid: u32,
    pub standing: WorkerState,
    /// Number of reloads since its start.
    pub reloads: u32,
    /// Start time.
    pub started: Moment,
    /// Version, as reported by the worker.
    pub version: String,
}

/// State of a worker when it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndedState {
    /// It failed to load.
    NotLoaded,
    /// It was serving.
    Serving,
    /// It was leaving.
    Former,
    /// It is unknown.
    Stranger,
}

/// Every worker, and the numbers of reloads.
#[derive(Debug, Default)]
pub struct Roster {
    entries: Vec<Entry>,
    /// Number of requested reloads.
    pub reloads: u32,
    /// Number of failed reloads since the last successful one.
    pub failed: u32,
}

impl Roster {
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// Whether a worker is loading.
    pub fn is_loading(&self) -> bool {
        self.entries.iter().any(|entry| entry.standing == WorkerState::Loading)
    }

    /// Returns the newest worker that has loaded, even if its successor is loading.
    pub fn newest(&self) -> Option<u32> {
        self.entries.iter().rfind(|entry| entry.standing != WorkerState::Loading).map(|entry| entry.pid)
    }

    /// Returns the worker that serves with the configuration of the last reload.
    pub fn serving(&self) -> Option<u32> {
        self.entries.iter().find(|entry| entry.standing == WorkerState::Serving).map(|entry| entry.pid)
    }

    /// Marks all workers as replaced, because a new worker is about to start, and counts a reload for each.
    pub fn retire(&mut self) {
        for entry in &mut self.entries {
            entry.reloads += 1;
            entry.standing = WorkerState::Former;
        }
    }

    /// Adds a started worker.
    pub fn add(&mut self, pid: u32, started: Moment, version: String) {
        self.entries.push(Entry { pid, standing: WorkerState::Loading, reloads: 0, started, version });
    }

    /// Marks a worker as serving. Returns the workers that must leave now, and those that have been leaving for more
    /// than `most` reloads and must be ended. `None`: the worker is unknown or was not loading.
    pub fn loaded(&mut self, pid: u32, version: &str, most: u32) -> Option<(Vec<u32>, Vec<u32>)> {
        let entry = self.entries.iter_mut().find(|entry| entry.pid == pid && entry.standing == WorkerState::Loading)?;
        entry.standing = WorkerState::Serving;
        version.clone_into(&mut entry.version);
        self.failed = 0;
        let former = self.entries.iter().filter(|entry| entry.standing == WorkerState::Former);
        let (overdue, leaving): (Vec<_>, Vec<_>) = former.partition(|entry| entry.reloads > most);
        let pids = |entries: Vec<&Entry>| entries.iter().map(|entry| entry.pid).collect();
        Some((pids(leaving), pids(overdue)))
    }

    /// Removes a worker that has ended and returns its last state.
    pub fn end(&mut self, pid: u32) -> EndedState {
        let Some(at) = self.entries.iter().position(|entry| entry.pid == pid) else { return EndedState::Stranger };
        match self.entries.remove(at).standing {
            WorkerState::Loading => {
                self.failed += u32::from(self.reloads > 0);
                EndedState::NotLoaded
            }
            WorkerState::Serving => EndedState::Serving,
            WorkerState::Former => EndedState::Former,
        }
    }

    /// Returns the answer to `show proc`. `pid`, `started` and `version` are those of the master.
    pub fn show(&self, pid: u32, started: Moment, version: &str, now: Moment) -> String {
        let mut text =
            format!("{:<15} {:<15} {:<15} {:<15} {:<15}\n", "#<PID>", "<type>", "<reloads>", "<uptime>", "<version>");
        let reloads = format!("{} [failed: {}]", self.reloads, self.failed);
        row(&mut text, pid, "master", &reloads, now.saturating_since(started), version);
        text.push_str("# workers\n");
        let rows = |former: bool, text: &mut String| {
            for entry in self.entries.iter().filter(|entry| (entry.standing == WorkerState::Former) == former) {
                let up = now.saturating_since(entry.started);
                row(text, entry.pid, "worker", &entry.reloads.to_string(), up, &entry.version);
            }
        };
        rows(false, &mut text);
        if self.entries.iter().any(|entry| entry.standing == WorkerState::Former) {
            text.push_str("# old workers\n");
            rows(true, &mut text);
        }
        text
    }
}

fn row(text: &mut String, pid: u32, kind: &str, reloads: &str, up: Duration, version: &str) {
    let up = up.as_secs();
    let up = format!("{}d{:02}h{:02}m{:02}s", up / 86_400, up / 3_600 % 24, up / 60 % 60, up % 60);
    let _ = writeln!(text, "{pid:<15} {kind:<15} {reloads:<15} {up:<15} {version}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn begin_reload(roster: &mut Roster) {
        roster.reloads += 1;
        roster.retire();
    }

    fn at(seconds: u64) -> Moment {
        Moment::from_nanos(seconds * 1_000_000_000)
    }

    /// A roster with worker 10, which serves.
    fn serving() -> Roster {
        let mut roster = Roster::default();
        roster.add(10, at(1), "v".into());
        assert_eq!(roster.loaded(10, "v1", 50), Some((vec![], vec![])));
        roster
    }

    #[test]
    fn a_worker_that_serves_sends_the_others_away() {
        let mut roster = serving();
        begin_reload(&mut roster);
        roster.add(11, at(2), "v".into());
        assert!(roster.is_loading());
        assert_eq!((roster.newest(), roster.serving()), (Some(10), None));
        assert_eq!(roster.loaded(11, "v2", 50), Some((vec![10], vec![])));
        assert_eq!(roster.loaded(11, "v2", 50), None);
        assert_eq!((roster.newest(), roster.serving()), (Some(11), Some(11)));
        assert_eq!(
            [roster.end(10), roster.end(11), roster.end(11)],
            [EndedState::Former, EndedState::Serving, EndedState::Stranger]
        );
    }

    #[test]
    fn a_worker_that_cannot_be_loaded_changes_nothing() {
        let mut roster = serving();
        begin_reload(&mut roster);
        roster.add(11, at(2), "v".into());
        assert_eq!(roster.end(11), EndedState::NotLoaded);
        assert_eq!((roster.reloads, roster.failed, roster.newest()), (1, 1, Some(10)));
        begin_reload(&mut roster);
        roster.add(12, at(3), "v".into());
        assert_eq!(roster.loaded(12, "v2", 50), Some((vec![10], vec![])));
        assert_eq!((roster.reloads, roster.failed), (2, 0));
    }

    #[test]
    fn workers_that_stay_too_long_are_ended() {
        let mut roster = serving();
        for round in 0_u32..3 {
            begin_reload(&mut roster);
            roster.add(20 + round, at(2), "v".into());
            let (leaving, overdue) = roster.loaded(20 + round, "v", 2).expect("it was loading");
            assert_eq!((leaving.contains(&10), overdue.contains(&10)), (round < 2, round == 2));
        }
    }

    #[test]
    fn everybody_is_shown() {
        let mut roster = serving();
        begin_reload(&mut roster);
        roster.add(11, at(90_061), "v2".into());
        let shown = roster.show(9, at(0), "m", at(90_062));
        let expected = "\
#<PID>          <type>          <reloads>       <uptime>        <version>      
9               master          1 [failed: 0]   1d01h01m02s     m
# workers
11              worker          0               0d00h00m01s     v2
# old workers
10              worker          1               1d01h01m01s     v1
";
        assert_eq!(shown, expected);
    }
}
