//! Finds workers that stopped making progress: a task that does not return keeps its worker from all others.
//!
//! A thread of its own looks at every worker some times a second. A worker pays one relaxed store a turn for that; the
//! rest is asked of it only when it seems to stand still. Nothing here may end the process: that is the program's.

use std::fmt;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::mailbox::{Message, Remote, Shared};
use crate::sys::thread::{self as threads, NO_TASK, Sample};
use crate::task::NO_TAG;
use crate::{WorkerId, sys};

/// When to speak up, and to whom.
#[derive(Clone)]
pub struct Watchdog {
    /// Processor time that a task may use in one go before it is reported.
    pub warn_after: Duration,
    /// Processor time after which nobody believes that it will return.
    pub give_up_after: Duration,
    /// Gets every report, on the watchdog's own thread.
    pub report: Arc<dyn Fn(&Stall<'_>) + Send + Sync>,
    /// Runs on the worker once the task that was reported has let go of it, and gets the task's tag: what belongs to a
    /// worker can be looked at only there.
    pub afterwards: Option<fn(u64)>,
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Watchdog { warn_after, give_up_after, report: _, afterwards: _ } = self;
        f.debug_struct("Watchdog").field("warn_after", warn_after).field("give_up_after", give_up_after).finish()
    }
}

/// A worker that stands still.
#[derive(Debug)]
pub struct Stall<'a> {
    /// Which one.
    pub worker: WorkerId,
    /// Its thread, as the system counts them.
    pub thread: i32,
    /// The tag of the task that does not return; `None` outside of tasks, and for tasks without one.
    pub tag: Option<u64>,
    /// How long it has been seen standing still.
    pub elapsed: Duration,
    /// The processor time that it used meanwhile: none to speak of when it waits for something.
    pub busy: Duration,
    /// Whether it is past the time to give up.
    pub is_final: bool,
    /// Return addresses of the thread, the innermost first, relative to the program's place in memory.
    pub frames: &'a [usize],
}

/// Watches the workers until they are told to stop.
pub(crate) struct Guard {
    thread: Option<JoinHandle<()>>,
}

impl Guard {
    /// Starts watching. Without a thread for it, nobody watches: that is no reason not to serve.
    pub(crate) fn start(watchdog: Option<&Watchdog>, shared: &Arc<Shared>) -> Guard {
        let Some(watchdog) = watchdog.cloned() else { return Guard { thread: None } };
        if threads::prepare_to_look().is_err() {
            return Guard { thread: None };
        }
        let shared = Arc::clone(shared);
        let builder = thread::Builder::new().name("watchdog".into());
        Guard { thread: builder.spawn(move || watch(&watchdog, &shared)).ok() }
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            thread.thread().unpark();
            let _ = thread.join();
        }
    }
}

fn watch(watchdog: &Watchdog, shared: &Shared) {
    // A handler that ran here could not reach the descriptors that it writes to.
    sys::signal::leave_to_other_threads();
    threads::leave_descriptors();
    let period = period(watchdog.warn_after);
    let base = threads::base_address();
    let mut judges: Vec<Judge> = shared.remotes.iter().map(|_| Judge::default()).collect();
    while !shared.stopping() {
        thread::park_timeout(period);
        for (remote, judge) in shared.remotes.iter().zip(&mut judges) {
            examine(watchdog, remote, judge, period, base);
        }
    }
}

/// How often the workers are looked at.
fn period(warn_after: Duration) -> Duration {
    (warn_after / 4).max(Duration::from_millis(1))
}

fn examine(watchdog: &Watchdog, remote: &Remote, judge: &mut Judge, period: Duration, base: usize) {
    let thread = remote.thread();
    if remote.is_sleeping() || thread == 0 {
        return judge.forget();
    }
    let Ok(used) = threads::processor_time(thread) else { return judge.forget() };
    let seen = Seen { turn: remote.turn(), used };
    let limits = Limits { period, warn_after: watchdog.warn_after, give_up_after: watchdog.give_up_after };
    let Some(verdict) = judge.judge(seen, limits, || threads::look_at(thread)) else { return };
    let Sample { tag, mut frames, count, .. } = verdict.sample;
    frames.iter_mut().for_each(|frame| *frame = frame.wrapping_sub(base));
    let tag = (verdict.sample.task != NO_TASK && tag != NO_TAG).then_some(tag);
    (watchdog.report)(&Stall {
        worker: remote.worker,
        thread,
        tag,
        elapsed: verdict.elapsed,
        busy: verdict.busy,
        is_final: verdict.is_final,
        frames: frames.get(..count).unwrap_or_default(),
    });
    if let (Some(afterwards), Some(tag)) = (watchdog.afterwards, tag) {
        remote.send(Message::Job(Box::new(move || afterwards(tag))));
    }
}

/// One look at a worker that does not sleep.
#[derive(Clone, Copy)]
struct Seen {
    turn: u32,
    /// The processor time of its thread.
    used: Duration,
}

#[derive(Clone, Copy)]
struct Limits {
    period: Duration,
    warn_after: Duration,
    give_up_after: Duration,
}

/// A worker stands still.
#[derive(Debug)]
struct Verdict {
    elapsed: Duration,
    busy: Duration,
    is_final: bool,
    sample: Sample,
}

/// What is remembered of one worker between two looks.
#[derive(Default)]
struct Judge {
    /// The turn that it was in, and the processor time when that was first seen.
    turn: Option<(u32, Duration)>,
    /// The task that it was in, the processor time when that was first seen, and how many looks ago.
    task: Option<(u64, Duration, u32)>,
    /// Looks since the turn was first seen.
    looks: u32,
    has_warned: bool,
}

impl Judge {
    fn forget(&mut self) {
        *self = Judge::default();
    }

    /// A turn may be long because it has many tasks. Only one and the same task in several looks is a stall. Time is
    /// counted in looks, so that a machine that stood still itself accuses nobody.
    fn judge(&mut self, seen: Seen, limits: Limits, look: impl FnOnce() -> Option<Sample>) -> Option<Verdict> {
        let Some((_, start)) = self.turn.filter(|(turn, _)| *turn == seen.turn) else {
            *self = Judge { turn: Some((seen.turn, seen.used)), ..Judge::default() };
            return None;
        };
        self.looks += 1;
        let waits = seen.used.saturating_sub(start) < limits.period * self.looks / 8;
        // A thread that gets no processor stands still without a fault of its own. Ten times the patience it is given.
        if waits && limits.period * self.looks < limits.warn_after * 10 {
            return None;
        }
        let sample = look()?;
        let (task, since, looks) = self.task.unwrap_or((sample.task, seen.used, 0));
        if task != sample.task || self.task.is_none() {
            self.task = Some((sample.task, seen.used, 1));
            self.has_warned = false;
            return None;
        }
        self.task = Some((task, since, looks + 1));
        let busy = seen.used.saturating_sub(since);
        let is_final = busy >= limits.give_up_after;
        if !is_final && (self.has_warned || (busy < limits.warn_after && !waits)) {
            return None;
        }
        self.has_warned = true;
        Some(Verdict { elapsed: limits.period * looks, busy, is_final, sample })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    /// A story: at each look the turn, the milliseconds of processor time used, and the task that a sample would show.
    fn told(story: &[(u32, u32, u64)]) -> Vec<(usize, bool)> {
        let limits =
            Limits { period: 25 * MILLISECOND, warn_after: 100 * MILLISECOND, give_up_after: 1_000 * MILLISECOND };
        let mut judge = Judge::default();
        let mut told = Vec::new();
        for (index, (turn, used, task)) in story.iter().enumerate() {
            let sample = || Some(Sample { task: *task, tag: 0, frames: [0; threads::MOST_FRAMES], count: 0 });
            let seen = Seen { turn: *turn, used: MILLISECOND * *used };
            if let Some(verdict) = judge.judge(seen, limits, sample) {
                told.push((index, verdict.is_final));
            }
        }
        told
    }

    fn looks(count: u32, of: impl Fn(u32) -> (u32, u32, u64)) -> Vec<(u32, u32, u64)> {
        (0..count).map(of).collect()
    }

    #[test]
    fn turns_that_go_by_are_no_stall() {
        assert_eq!(told(&looks(100, |look| (look, look * 25, 1))), []);
    }

    #[test]
    fn a_long_turn_of_many_tasks_is_no_stall() {
        assert_eq!(told(&looks(100, |look| (7, look * 25, u64::from(look)))), []);
    }

    #[test]
    fn a_task_that_does_not_return_is_warned_of_once_and_given_up() {
        let story = looks(46, |look| (7, look * 25, 1));
        let (first, rest) = (told(&story)[0], told(&story)[1..].to_vec());
        assert_eq!(first, (5, false), "four looks after it was first sampled");
        assert!(rest.iter().all(|(index, is_final)| *is_final && *index >= 41), "{rest:?}");
        assert!(!rest.is_empty());
    }

    #[test]
    fn a_thread_without_a_processor_is_given_ten_times_the_time() {
        let story = looks(60, |_| (7, 0, 1));
        assert_eq!(told(&story), [(41, false)]);
    }

    #[test]
    fn every_stall_is_warned_of() {
        let mut story = looks(10, |look| (7, look * 25, 1));
        story.extend(looks(10, |look| (8, 250 + look * 25, 2)));
        assert_eq!(told(&story).len(), 2);
    }
}
