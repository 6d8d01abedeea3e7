//! Shared state of one worker's connections: its counters, its part of the budget, and the phase of the run. Must never
//! send or receive.

use std::cell::{Cell, OnceCell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, Waker};
use std::time::Duration;

use base::{Buffer, Moment};

use super::answer::Scratch;
use super::gather::{Report, Sink};
use super::load_run::{LaneStart, LoadRun};
use super::pacer::Pacer;
use super::quic_settings::QuicSettings;
use super::schedule::{DueRequests, Schedule};
use crate::load::counters::Counters;
use crate::load::plan::Pace;

/// Maximum time to wait for responses after the last request.
const DRAIN_AT_MOST: Duration = Duration::from_secs(30);
/// Interval of reports.
const INTERVAL: Duration = Duration::from_secs(1);

/// Phase of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Phase {
    /// Requests are started.
    Running,
    /// No more requests are started; responses are awaited.
    Ending,
    /// Nothing is awaited.
    Over,
}

/// One worker's part of a run.
pub(super) struct Worker {
    pub(super) course: Arc<LoadRun>,
    sink: Arc<dyn Sink>,
    pub(super) counters: RefCell<Counters>,
    pub(super) reading: RefCell<Reading>,
    /// Number of connections that are open, or being opened.
    pub(super) open: Cell<u64>,
    phase: Cell<Phase>,
    /// The last reported second.
    reported: Cell<u32>,
    /// Number of tasks of the load's connections, and of those of the reference client.
    alive: [Cell<usize>; 2],
    /// Wakers of the tasks to wake when the phase changes.
    wakers: RefCell<Vec<Waker>>,
    budget: Cell<u64>,
    /// State of weighted selection, by lane.
    turns: RefCell<Vec<Turns>>,
    /// Pacers, by lane; a lane without a rate has none.
    pacers: Vec<Option<Pacer>>,
    /// TLS clients, by lane, if sessions are not resumed.
    secure: Vec<Option<Arc<tls::Client>>>,
    /// Settings of QUIC connections, once there is one.
    quic: OnceCell<QuicSettings>,
}

/// Read buffer and parser state shared by all connections of this worker.
pub(super) struct Reading {
    pub(super) buffer: Buffer,
    pub(super) scratch: Scratch,
}

/// Weighted round robin among the requests of a lane, spread as evenly as possible.
struct Turns {
    weights: Vec<i64>,
    credits: Vec<i64>,
}

/// Guard that counts a task of a connection.
pub(super) struct Alive {
    worker: Rc<Worker>,
    reference: bool,
}

impl Worker {
    pub(super) fn new(course: &Arc<LoadRun>, sink: Arc<dyn Sink>, places: &[LaneStart]) -> Self {
        let reading = Reading { buffer: rt::buffer(), scratch: Scratch::new(course.plan.targets.len()) };
        let turns = course.lanes.iter().map(|lane| Turns::new(lane.requests.iter().map(|request| request.weight)));
        Self {
            course: Arc::clone(course),
            sink,
            counters: RefCell::default(),
            reading: RefCell::new(reading),
            open: Cell::new(0),
            phase: Cell::new(Phase::Running),
            reported: Cell::new(0),
            alive: [Cell::new(0), Cell::new(0)],
            wakers: RefCell::default(),
            budget: Cell::new(0),
            turns: RefCell::new(turns.collect()),
            pacers: pacers(course, places),
            secure: course.lanes.iter().map(|lane| lane.secure.as_ref().and_then(|_| client(course))).collect(),
            quic: OnceCell::new(),
        }
    }

    #[inline]
    pub(super) fn phase(&self) -> Phase {
        self.phase.get()
    }

    /// Enters a later phase and wakes its waiters.
    pub(super) fn enter(&self, phase: Phase) {
        let before = self.phase.get();
        if before < phase {
            if before == Phase::Running {
                self.count_unsent(rt::now().min(self.deadline()));
            }
            self.phase.set(phase);
            self.wakers.borrow().iter().for_each(Waker::wake_by_ref);
        }
    }

    /// Enters a later phase on every worker.
    pub(super) fn enter_everywhere(phase: Phase) {
        for worker in 0..rt::workers() {
            let job = move || {
                if let Some(worker) = rt::local::<Worker>() {
                    worker.enter(phase);
                }
            };
            rt::post(u16::try_from(worker).unwrap_or(u16::MAX), Box::new(job));
        }
    }

    /// Registers the calling task to be woken when the phase changes.
    pub(super) async fn enlist(&self) {
        poll_fn(|context| {
            self.wakers.borrow_mut().push(context.waker().clone());
            Poll::Ready(())
        })
        .await;
    }

    /// Waits until a time, or until the running phase ends; returns whether it still runs.
    pub(super) async fn idle_until(&self, moment: Moment) -> bool {
        let mut timer = rt::Timer::new();
        timer.arm(Some(moment));
        poll_fn(|context| {
            if self.phase() != Phase::Running {
                return Poll::Ready(false);
            }
            timer.poll_expired(context).map(|()| true)
        })
        .await
    }

    /// Takes one request from the budget; `false` if there is none.
    #[inline]
    pub(super) fn take_request(&self) -> bool {
        if self.budget.get() == 0 {
            let Some(piece) = self.course.take_budget() else { return false };
            self.budget.set(piece);
        }
        self.budget.set(self.budget.get() - 1);
        true
    }

    /// Adds a request that was not started back to the budget.
    pub(super) fn return_request(&self) {
        self.budget.set(self.budget.get().saturating_add(1));
    }

    /// Returns the pacer of a lane, if its rate is limited.
    #[inline]
    pub(super) fn pacer(&self, lane: usize) -> Option<&Pacer> {
        self.pacers.get(lane)?.as_ref()
    }

    /// Returns the TLS client of a slot. With session resumption each slot has its own.
    pub(super) fn secure(&self, lane: usize) -> Option<Arc<tls::Client>> {
        let common = self.secure.get(lane)?.as_ref()?;
        if self.course.plan.tls.reuse { client(&self.course) } else { Some(Arc::clone(common)) }
    }

    /// Returns the settings of QUIC connections.
    pub(super) fn quic(&self) -> &QuicSettings {
        self.quic.get_or_init(QuicSettings::new)
    }

    /// Returns the index of a lane's next request.
    #[inline]
    pub(super) fn next_request(&self, lane: usize) -> usize {
        self.turns.borrow_mut().get_mut(lane).map_or(0, Turns::next)
    }

    pub(super) fn begin_task(self: &Rc<Self>, reference: bool) -> Alive {
        let alive = &self.alive[usize::from(reference)];
        alive.set(alive.get() + 1);
        Alive { worker: Rc::clone(self), reference }
    }

    fn tasks(&self) -> usize {
        self.alive.iter().map(Cell::get).sum()
    }

    /// Records that a connection's task has ended. The reference client ends with the load.
    fn task_ended(&self, reference: bool) {
        let alive = &self.alive[usize::from(reference)];
        alive.set(alive.get() - 1);
        if !reference && alive.get() == 0 {
            self.load_ended();
        }
        if self.tasks() == 0 {
            self.finish();
        }
    }

    /// Records that this worker's load has ended, or that it has none.
    pub(super) fn load_ended(&self) {
        if self.course.load_ended() {
            Self::enter_everywhere(Phase::Ending);
        }
    }

    /// Records that the worker's connections have ended, or that there are none.
    pub(super) fn finish(&self) {
        self.report(None);
        if self.course.worker_ended() {
            self.sink.ended();
        }
    }

    fn report(&self, second: Option<u32>) {
        let at = rt::now().saturating_since(self.course.start());
        // The last report belongs to the first second not reported yet, even if that has just ended.
        let number = second.unwrap_or(self.reported.get().saturating_add(1));
        self.reported.set(number);
        let report = Report {
            worker: rt::worker(),
            second: number,
            at,
            wall: rt::wall().seconds,
            open: self.open.get(),
            counters: self.counters.borrow_mut().take(),
            last: second.is_none(),
        };
        // A report that is not accepted is added to the next one.
        if let Err(report) = self.sink.report(report) {
            self.counters.borrow_mut().add(&report.counters);
        }
    }

    /// Reports counters each second, until the worker's connections have ended.
    pub(super) async fn report_seconds(&self) {
        let start = self.course.start();
        let mut second = 0;
        while self.tasks() > 0 {
            second += 1;
            rt::sleep_until(start + INTERVAL * second).await;
            if self.tasks() > 0 {
                self.report(Some(second));
                self.end_in_vain();
            }
        }
    }

    /// Ends the run if no target can be reached.
    fn end_in_vain(&self) {
        if self.course.is_in_vain() {
            self.enter(Phase::Ending);
        }
    }

    /// Ends the phases in time.
    pub(super) async fn watch_phases(&self) {
        self.enlist().await;
        self.await_deadline().await;
        self.enter(Phase::Ending);
        rt::sleep(DRAIN_AT_MOST).await;
        self.enter(Phase::Over);
    }

    /// Waits for the deadline with the precision of a rate's due times, or for another end.
    async fn await_deadline(&self) {
        let deadline = self.deadline();
        let mut alarm = rt::Alarm::new().ok().filter(|_| deadline != Moment::MAX);
        let mut timer = rt::Timer::new();
        timer.arm(Some(deadline));
        poll_fn(|context| {
            if self.phase() != Phase::Running || timer.poll_expired(context).is_ready() {
                return Poll::Ready(());
            }
            // Without an alarm, the timer is precise enough.
            let Some(alarm) = &mut alarm else { return Poll::Pending };
            alarm.poll_at(context, deadline).map(drop)
        })
        .await;
    }

    /// Returns the time after which no more requests are started.
    fn deadline(&self) -> Moment {
        self.course.plan.duration.map_or(Moment::MAX, |duration| self.course.start() + duration)
    }

    /// Counts the requests that were due before `end` and found no free connection: their waiting time is a
    /// lower bound. A run that ends by its number of requests has none.
    fn count_unsent(&self, end: Moment) {
        if self.course.is_spent() {
            return;
        }
        let counters = &mut *self.counters.borrow_mut();
        for (pacer, lane) in self.pacers.iter().zip(&self.course.lanes) {
            let Some(pacer) = pacer else { continue };
            pacer.take_rest(end, |waited, count| {
                let nanos = u64::try_from(waited.as_nanos()).unwrap_or(u64::MAX);
                if lane.reference {
                    counters.reference.record_many(nanos, count);
                } else {
                    counters.unanswered += count;
                    counters.first_byte.record_many(nanos, count);
                    counters.last_byte.record_many(nanos, count);
                }
            });
        }
    }

    /// Assigns due requests on a lane.
    pub(super) async fn keep_pace(&self, lane: usize) -> std::io::Result<()> {
        let Some(pacer) = self.pacer(lane) else { return Ok(()) };
        let mut alarm = rt::Alarm::new()?;
        self.enlist().await;
        poll_fn(|context| {
            if self.phase() != Phase::Running {
                return Poll::Ready(Ok(()));
            }
            while let Some(next) = pacer.hand_out(context) {
                if alarm.poll_at(context, next)?.is_pending() {
                    break;
                }
            }
            Poll::Pending
        })
        .await
    }
}

/// Creates a TLS client. The plan's settings were validated before the run began.
fn client(course: &LoadRun) -> Option<Arc<tls::Client>> {
    tls::Client::new(course.plan.tls_settings()).ok().map(Arc::new)
}

/// Returns the pacers of this worker: its share of the rate is its share of the connections.
fn pacers(course: &LoadRun, places: &[LaneStart]) -> Vec<Option<Pacer>> {
    let offset = f64::from(rt::worker()) / course.workers as f64;
    let pacer = |(number, lane): (usize, &super::load_run::Lane)| {
        let here = places.iter().filter(|place| place.lane == number).count();
        let share = here as f64 / f64::from(lane.connections.max(1));
        let ramp = if lane.reference { Duration::ZERO } else { course.plan.ramp_up };
        let (rate, constant) = match lane.pace {
            Pace::AsFastAsAnswered => return None,
            Pace::AtMost(rate) => (rate, false),
            Pace::Constant(rate) => (rate, true),
        };
        let schedule = Schedule::new(rate * share, ramp);
        (here > 0).then(|| Pacer::new(course.start(), DueRequests::new(schedule, offset, constant)))
    };
    course.lanes.iter().enumerate().map(pacer).collect()
}

impl Drop for Alive {
    fn drop(&mut self) {
        self.worker.task_ended(self.reference);
    }
}

impl Turns {
    fn new(weights: impl Iterator<Item = u32>) -> Self {
        let weights: Vec<i64> = weights.map(i64::from).collect();
        Self { credits: vec![0; weights.len()], weights }
    }

    fn next(&mut self) -> usize {
        if self.weights.len() < 2 {
            return 0;
        }
        let mut best = 0;
        for (number, weight) in self.weights.iter().enumerate() {
            self.credits[number] += weight;
            if self.credits[number] > self.credits[best] {
                best = number;
            }
        }
        self.credits[best] -= self.weights.iter().sum::<i64>();
        best
    }
}
