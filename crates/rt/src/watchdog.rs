//! Detects workers that make no progress: a task that does not return keeps its worker from all others.
//!
//! A thread of its own examines every worker several times per second. For that, a worker pays one relaxed store per
//! poll of a task; it is only sampled when it seems to be stalled. A worker that is slow, because it has much to do or
//! because each request costs much, makes progress and is never reported. Nothing here may end the process, or a task:
//! that is the program's decision.

use std::fmt;
use std::sync::Arc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::mailbox::{Message, Remote, Shared};
use crate::sys::thread::{self as threads, NO_TASK, RunningTask, Sample};
use crate::task_id::NO_TAG;
use crate::{WorkerId, sys};

/// The settings of the watchdog.
#[derive(Clone)]
pub struct Watchdog {
    /// Processor time that one poll of a task may use before it is reported.
    pub warn_after: Duration,
    /// Processor time after which the task is to end once it returns. After twice this time it is not expected to
    /// return.
    pub give_up_after: Duration,
    /// Receives every report, on the watchdog's own thread.
    pub report: Arc<dyn Fn(&Stall<'_>) + Send + Sync>,
    /// Runs on the worker once the reported task has returned, and gets the task's tag: a worker's data can only be
    /// inspected there. Called for [`Stage::Slow`] and [`Stage::Overdue`].
    pub afterwards: Option<fn(u64, Stage)>,
}

impl fmt::Debug for Watchdog {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Watchdog { warn_after, give_up_after, report: _, afterwards: _ } = self;
        f.debug_struct("Watchdog").field("warn_after", warn_after).field("give_up_after", give_up_after).finish()
    }
}

/// The severity of a stall.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The task has not returned for [`Watchdog::warn_after`].
    Slow,
    /// The task has not returned for [`Watchdog::give_up_after`].
    Overdue,
    /// The task has not returned for twice that time.
    Stuck,
}

/// A stalled worker.
#[derive(Debug)]
pub struct Stall<'a> {
    pub worker: WorkerId,
    /// Its thread ID.
    pub thread: i32,
    /// The tag of the task that does not return; `None` outside of tasks, and for tasks without one.
    pub tag: Option<u64>,
    /// The observed duration of the stall.
    pub elapsed: Duration,
    /// The processor time used during the stall: close to zero if the task blocks.
    pub busy: Duration,
    /// The severity, by the watchdog's limits.
    pub stage: Stage,
    /// Return addresses of the thread, innermost first, relative to the program's load address.
    pub frames: &'a [usize],
}

/// Watches the workers until they are stopped; dropping it waits for the watchdog's thread to end.
pub(crate) struct Guard {
    thread: Option<JoinHandle<()>>,
}

impl Guard {
    /// Starts watching. If no thread can be started, there is no watchdog: the process serves without one.
    pub(crate) fn start(watchdog: Option<&Watchdog>, shared: &Arc<Shared>, running_task: RunningTask) -> Guard {
        let Some(watchdog) = watchdog.cloned() else { return Guard { thread: None } };
        if threads::prepare_to_look(running_task).is_err() {
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
    // A signal handler that runs on this thread could not reach the descriptors that it writes to.
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

/// Returns the interval at which the workers are examined.
fn period(warn_after: Duration) -> Duration {
    (warn_after / 4).max(Duration::from_millis(1))
}

fn examine(watchdog: &Watchdog, remote: &Remote, judge: &mut Judge, period: Duration, base: usize) {
    let thread = remote.thread();
    if remote.is_sleeping() || thread == 0 {
        return judge.forget();
    }
    let Ok(used) = threads::processor_time(thread) else { return judge.forget() };
    let seen = Observation { progress: remote.progress(), used, will_end: remote.will_end(crate::clock::moment()) };
    let limits = StallLimits { period, warn_after: watchdog.warn_after, give_up_after: watchdog.give_up_after };
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
        stage: verdict.stage,
        frames: frames.get(..count).unwrap_or_default(),
    });
    if let (Some(afterwards), Some(tag)) = (watchdog.afterwards, tag) {
        let stage = verdict.stage;
        remote.send(Message::Job(Box::new(move || afterwards(tag, stage))));
    }
}

/// One observation of a worker that does not sleep.
#[derive(Clone, Copy)]
struct Observation {
    progress: u32,
    /// The processor time of its thread.
    used: Duration,
    /// The running task is expected to return at a known time ([`crate::ends_at`]).
    will_end: bool,
}

#[derive(Clone, Copy)]
struct StallLimits {
    period: Duration,
    warn_after: Duration,
    give_up_after: Duration,
}

/// The result of a stalled worker's examination.
#[derive(Debug)]
struct Verdict {
    elapsed: Duration,
    busy: Duration,
    stage: Stage,
    sample: Sample,
}

/// The state of one worker between two observations.
#[derive(Default)]
struct Judge {
    /// Its progress count, and the processor time when it was first observed.
    progress: Option<(u32, Duration)>,
    /// The running task, the processor time when it was first observed, and the number of observations since.
    task: Option<(u64, Duration, u32)>,
    /// Number of observations since the progress count was first seen.
    looks: u32,
    /// The processor time at the last observation of a task with a known end: only later time counts as more than slow.
    ended_by_itself: Duration,
    /// The last reported stage.
    reported: Option<Stage>,
}

impl Judge {
    fn forget(&mut self) {
        *self = Judge::default();
    }

    /// An iteration may be long because of many tasks, and a poll may be long because of many requests: both make
    /// progress. A stall is the same task without progress in several observations. Time is counted in observations, so
    /// that a suspended machine does not count.
    fn judge(
        &mut self,
        seen: Observation,
        limits: StallLimits,
        look: impl FnOnce() -> Option<Sample>,
    ) -> Option<Verdict> {
        let Some((_, start)) = self.progress.filter(|(progress, _)| *progress == seen.progress) else {
            *self = Judge { progress: Some((seen.progress, seen.used)), ..Judge::default() };
            return None;
        };
        self.looks += 1;
        if seen.will_end {
            self.ended_by_itself = seen.used;
        }
        let waits = seen.used.saturating_sub(start) < limits.period * self.looks / 8;
        // A thread that gets no processor time stalls through no fault of its own: it is given ten times the limit.
        if waits && limits.period * self.looks < limits.warn_after * 10 {
            return None;
        }
        let sample = look()?;
        let (task, since, looks) = self.task.unwrap_or((sample.task, seen.used, 0));
        if task != sample.task || self.task.is_none() {
            self.task = Some((sample.task, seen.used, 1));
            self.reported = None;
            return None;
        }
        self.task = Some((task, since, looks + 1));
        let busy = seen.used.saturating_sub(since);
        let unbounded = seen.used.saturating_sub(since.max(self.ended_by_itself));
        let stage = match busy {
            _ if unbounded >= limits.give_up_after * 2 => Stage::Stuck,
            _ if unbounded >= limits.give_up_after => Stage::Overdue,
            _ if busy >= limits.warn_after || waits => Stage::Slow,
            _ => return None,
        };
        if self.reported >= Some(stage) {
            return None;
        }
        self.reported = Some(stage);
        Some(Verdict { elapsed: limits.period * looks, busy, stage, sample })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: Duration = Duration::from_millis(1);

    /// `story`: at each observation the progress, the milliseconds of processor time used, and the task that a sample
    /// would show.
    fn told(story: &[(u32, u32, u64)]) -> Vec<(usize, Stage)> {
        told_until(story, 0)
    }

    /// Like `told`, but all observations before `end` see a task with a known end.
    fn told_until(story: &[(u32, u32, u64)], end: usize) -> Vec<(usize, Stage)> {
        let limits =
            StallLimits { period: 25 * MILLISECOND, warn_after: 100 * MILLISECOND, give_up_after: 1_000 * MILLISECOND };
        let mut judge = Judge::default();
        let mut told = Vec::new();
        for (index, (progress, used, task)) in story.iter().enumerate() {
            let sample = || Some(Sample { task: *task, tag: 0, frames: [0; threads::MOST_FRAMES], count: 0 });
            let seen = Observation { progress: *progress, used: MILLISECOND * *used, will_end: index < end };
            if let Some(verdict) = judge.judge(seen, limits, sample) {
                told.push((index, verdict.stage));
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
    fn twenty_requests_of_110_milliseconds_in_one_task_are_no_stall() {
        // Four and a half observations each: the task stays the same, and its progress shows.
        assert_eq!(told(&looks(88, |look| (look * 25 / 110, look * 25, 1))), []);
    }

    #[test]
    fn a_task_that_does_not_return_is_reported_at_each_stage_once() {
        let story = looks(200, |look| (7, look * 25, 1));
        assert_eq!(told(&story), [(5, Stage::Slow), (41, Stage::Overdue), (81, Stage::Stuck)]);
    }

    #[test]
    fn a_thread_without_a_processor_is_given_ten_times_the_time() {
        let story = looks(60, |_| (7, 0, 1));
        assert_eq!(told(&story), [(41, Stage::Slow)]);
    }

    #[test]
    fn every_stall_is_warned_of() {
        let mut story = looks(10, |look| (7, look * 25, 1));
        story.extend(looks(10, |look| (8, 250 + look * 25, 2)));
        assert_eq!(told(&story).len(), 2);
    }

    #[test]
    fn what_ends_by_itself_is_slow_and_nothing_else_until_then() {
        // 25 ms of processor time between two observations; the first two report nothing.
        let story = looks(300, |look| (7, look * 25, 1));
        assert_eq!(told(&story), [(5, Stage::Slow), (41, Stage::Overdue), (81, Stage::Stuck)]);
        assert_eq!(told_until(&story, 300), [(5, Stage::Slow)]);
        // If it does not end, its time counts from then on.
        assert_eq!(told_until(&story, 201), [(5, Stage::Slow), (240, Stage::Overdue), (280, Stage::Stuck)]);
    }
}
