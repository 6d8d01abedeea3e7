//! Execution of the load: sends the requests of a plan over its connections, and counts the results. Must never
//! print, and never interpret a response's body.

mod answer;
mod client;
mod failure;
mod gather;
mod h2_request;
mod h3_control;
mod h3_handshake;
mod h3_request;
mod h3_session;
mod link;
mod load_run;
mod pacer;
mod quic_link;
mod quic_settings;
mod schedule;
mod streams;
mod worker;

use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender, TrySendError};

use rt::{Class, NO_TAG, Signal};

pub use self::gather::{Gathering, Report, Sink};
use self::load_run::{LaneStart, LoadRun};
use self::worker::{Phase, Worker};
use super::plan::Plan;
use super::show::Show;
use crate::Outcome;

/// Maximum number of queued reports for the printing thread, for each worker.
const REPORTS_WAITING: usize = 4;
/// Number of descriptors of a process besides its connections.
const OTHER_DESCRIPTORS: u64 = 64;

/// A prepared run.
#[derive(Clone)]
pub struct Drive {
    course: Arc<LoadRun>,
}

impl Drive {
    /// Prepares a plan.
    ///
    /// # Errors
    /// The plan is impossible: more addresses than connections.
    pub fn new(plan: Plan) -> Result<Self, String> {
        Ok(Self { course: Arc::new(LoadRun::new(plan)?) })
    }

    /// Returns the first task of each worker of a runtime with [`Drive::workers`] workers.
    #[must_use]
    pub fn main(&self, sink: Arc<dyn Sink>) -> rt::Main {
        let course = Arc::clone(&self.course);
        Arc::new(move |number| {
            let (course, sink) = (Arc::clone(&course), Arc::clone(&sink));
            Box::pin(async move { begin(&course, sink, number) })
        })
    }

    /// Returns the first failure to connect; with `-e` the first failure of any kind.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.course.trouble()
    }

    /// Returns the number of workers of the plan.
    #[must_use]
    pub fn workers(&self) -> usize {
        self.course.workers
    }
}

impl std::fmt::Debug for Drive {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Drive").field("plan", &self.course.plan).finish_non_exhaustive()
    }
}

/// Starts one worker's part.
fn begin(course: &Arc<LoadRun>, sink: Arc<dyn Sink>, number: rt::WorkerId) {
    course.start();
    let places = course.places(usize::from(number));
    let worker = Rc::new(Worker::new(course, sink, &places));
    rt::set_local(Rc::clone(&worker) as Rc<dyn std::any::Any>);
    let is_reference = |place: &LaneStart| course.lanes.get(place.lane).is_some_and(|lane| lane.reference);
    if places.iter().all(is_reference) {
        worker.load_ended();
    }
    if places.is_empty() {
        worker.finish();
    }
    for place in places {
        let alive = worker.begin_task(is_reference(&place));
        rt::spawn(Class::Normal, NO_TAG, client::fill(Rc::clone(&worker), alive, place));
    }
    for lane in 0..course.lanes.len() {
        let pace = Rc::clone(&worker);
        rt::spawn(Class::Normal, NO_TAG, async move {
            if let Err(error) = pace.keep_pace(lane).await {
                pace.course.report_trouble(|| format!("no alarm for the rate: {error}"));
                Worker::enter_everywhere(Phase::Over);
            }
        });
    }
    let (phases, seconds) = (Rc::clone(&worker), Rc::clone(&worker));
    rt::spawn(Class::Normal, NO_TAG, async move { phases.watch_phases().await });
    rt::spawn(Class::Normal, NO_TAG, async move { seconds.report_seconds().await });
    if number == 0 {
        rt::spawn(Class::Normal, NO_TAG, heed_signals());
    }
}

/// Handles signals: the first one ends the run in order, the second one immediately.
async fn heed_signals() {
    let Ok(mut signals) = rt::signals(&[Signal::Interrupt, Signal::Terminate]) else { return };
    for phase in [Phase::Ending, Phase::Over] {
        signals.next().await;
        Worker::enter_everywhere(phase);
    }
}

/// Sends reports to the printing thread.
struct ToThread(SyncSender<Report>);

impl Sink for ToThread {
    fn report(&self, report: Report) -> Result<(), Box<Report>> {
        if report.last {
            // The load has ended, so that waiting is harmless.
            let _ = self.0.send(report);
            return Ok(());
        }
        match self.0.try_send(report) {
            Ok(()) => Ok(()),
            Err(TrySendError::Full(report)) => Err(Box::new(report)),
            Err(TrySendError::Disconnected(_)) => {
                // The show has ended the run.
                rt::stop();
                Ok(())
            }
        }
    }

    fn ended(&self) {
        rt::stop();
    }
}

/// Runs a plan to its end: until its requests are answered, its time is over, or it is interrupted.
pub fn run(plan: Plan, show: Box<dyn Show>) -> Outcome {
    let drive = match Drive::new(plan) {
        Ok(drive) => drive,
        Err(why) => return Outcome::Misused(why),
    };
    if let Err(why) = raise_descriptors(&drive.course) {
        return Outcome::Failed(why);
    }
    let (sender, receiver) = mpsc::sync_channel(REPORTS_WAITING * drive.workers());
    let gathering = match Gathering::new(&drive.course.plan, show, drive.workers()) {
        Ok(gathering) => gathering,
        Err(outcome) => return outcome,
    };
    let printing = std::thread::Builder::new().name("show".to_owned()).spawn(move || gather(gathering, &receiver));
    let printing = match printing {
        Ok(printing) => printing,
        Err(error) => return Outcome::Failed(format!("no thread to print from: {error}")),
    };
    let config = rt::Config { workers: drive.workers(), ..rt::Config::default() };
    let ran = rt::run(&config, drive.main(Arc::new(ToThread(sender))));
    let shown = printing.join().unwrap_or_else(|_| Err(Outcome::Failed("the printing thread panicked".to_owned())));
    match (ran, shown, drive.trouble()) {
        (Err(error), ..) => Outcome::Failed(error.to_string()),
        (Ok(()), Err(outcome), _) => outcome,
        (Ok(()), Ok(answers), Some(trouble)) if answers == 0 || drive.course.plan.stop_on_error => {
            Outcome::Failed(trouble)
        }
        _ => Outcome::Done,
    }
}

/// Shows reports as they are received; returns the number of responses.
fn gather(mut gathering: Gathering, reports: &Receiver<Report>) -> Result<u64, Outcome> {
    while let Ok(report) = reports.recv() {
        if !gathering.take(report)? {
            break;
        }
    }
    Ok(gathering.total().answers)
}

fn raise_descriptors(course: &LoadRun) -> Result<(), String> {
    let wanted = course.connections() + OTHER_DESCRIPTORS;
    let limit = match rt::process::raise_descriptor_limit(wanted) {
        Ok((soft, _)) => soft,
        Err(error) => return Err(format!("the limit of descriptors cannot be raised: {error}")),
    };
    if limit < wanted {
        return Err(format!(
            "{} connections need {wanted} descriptors, and this process may have {limit} (ulimit -n)",
            course.connections()
        ));
    }
    Ok(())
}
