//! The simulator: several workers in one thread, on a virtual clock and a virtual network, from one seed.
//!
//! A test runs the real code of every layer above this one: the same streams, listeners, timers and wakers. Nothing
//! here may take real time or real randomness. While there is work, the clock advances only by a microsecond per round;
//! without work it jumps to the next timer or arrival.
//!
//! ```
//! use std::sync::Arc;
//! use std::time::Duration;
//! use weir_rt as rt;
//!
//! let main: rt::Main = Arc::new(|_worker| Box::pin(async { /* the engine starts here */ }));
//! let slept = rt::sim::run(7, 2, main, async {
//!     let before = rt::now();
//!     rt::sleep(Duration::from_secs(3600)).await;
//!     rt::now().saturating_since(before)
//! });
//! assert!(slept >= Duration::from_secs(3600));
//! ```

mod datagram;
mod delivery;
mod endpoint;
mod faults;
mod listener;
mod network;
mod node;
mod path;
mod stream;
mod udp;
mod world;

use std::any::Any;
use std::cell::RefCell;
use std::future::Future;
use std::panic::{self, AssertUnwindSafe};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use base::Moment;

pub use faults::Link;
pub use network::Network;
pub use node::CapturedDatagram;
pub use path::{DatagramFaults, DatagramPath};

pub(crate) use endpoint::{SimDriver, SimSocket, SimSocketView};
pub(crate) use world::SharedWorld;
use world::{World, lock};

use crate::driver::Driver;
use crate::executor::{self, Main, Scratch};
use crate::mailbox::{self, Shared};
use crate::random::Random;
use crate::task::Class;
use crate::task_id::NO_TAG;
use crate::worker::{Parts, Worker};
use crate::{Signal, current};

/// The virtual time of one round of iterations.
const ROUND: Duration = Duration::from_micros(1);

/// The parameters of a simulation.
#[derive(Clone, Debug)]
pub struct Options {
    /// The seed of the run: it determines the order of workers, latencies, fragments and random numbers.
    pub seed: u64,
    /// Number of workers that run `main`. The script runs on one more, whose ID equals this number.
    pub workers: usize,
    /// Size of a [`crate::buffer`] in bytes.
    pub buffer_size: usize,
    /// Virtual time after which the script counts as stuck.
    pub limit: Duration,
    /// Whether tasks may panic. Otherwise a contained panic fails the run at its end.
    pub panics_allowed: bool,
}

impl Default for Options {
    fn default() -> Options {
        let limit = Duration::from_secs(24 * 3600);
        Options { seed: 1, workers: 1, buffer_size: 16 * 1024, limit, panics_allowed: false }
    }
}

/// A simulation that has not begun: sockets can be opened in it, as a process does before its workers start.
pub struct Simulation {
    options: Options,
    world: SharedWorld,
    shared: Arc<Shared>,
    workers: Vec<Worker>,
}

/// Runs `main` on `workers` simulated workers and `script` on one more, until the script ends; returns its result.
///
/// # Panics
/// If the script or any other task panics, if there is no further event, or after a day of virtual time. The seed is
/// printed then.
pub fn run<R: 'static>(seed: u64, workers: usize, main: Main, script: impl Future<Output = R> + 'static) -> R {
    Simulation::new(Options { seed, workers, ..Options::default() }).run(main, script)
}

/// Returns the simulated network of the current worker.
///
/// # Panics
/// If the current worker is not simulated.
pub fn network() -> Network {
    match current_world() {
        Some(world) => Network { world },
        None => panic!("the current worker is not simulated"),
    }
}

/// Whether the current worker is simulated, in a network with [`Network::shuffle_records`].
pub fn shuffles_records() -> bool {
    current_world().is_some_and(|world| lock(&world).faults.records)
}

/// Raises a signal, as if the operating system had sent it.
///
/// # Panics
/// If the current worker is not simulated.
pub fn raise(signal: Signal) {
    lock(&network().world).raise(signal.number());
}

/// Returns the world of the current worker, if it is simulated.
pub(crate) fn current_world() -> Option<SharedWorld> {
    current::try_with(|worker| match &worker.driver {
        Driver::Sim(driver) => Some(SharedWorld::clone(&driver.world)),
        Driver::Epoll(_) => None,
    })
    .flatten()
}

/// The result of the script, or its panic.
type Outcome<R> = Rc<RefCell<Option<Result<R, Box<dyn Any + Send>>>>>;

impl Simulation {
    /// Creates a simulation that has not begun.
    ///
    /// # Panics
    /// If the process has too many workers.
    pub fn new(options: Options) -> Simulation {
        let world: SharedWorld = Arc::new(Mutex::new(World::new(options.seed)));
        let registered = mailbox::register((0..=options.workers).map(|_| None).collect());
        let remotes = registered.unwrap_or_else(|error| panic!("{error}"));
        let shared = Arc::new(Shared {
            remotes: remotes.clone(),
            workers: options.workers,
            stop: AtomicBool::new(false),
            spin: AtomicBool::new(false),
        });
        let of_remote = |remote: Arc<mailbox::Remote>| {
            let driver = Driver::Sim(SimDriver { world: SharedWorld::clone(&world), instance: remote.instance });
            Worker::new(Parts {
                seed: options.seed ^ (u64::from(remote.worker) + 1) << 48,
                remote,
                shared: Arc::clone(&shared),
                driver,
                buffer_size: options.buffer_size,
                buffers_kept: 64,
                run_queue_depth: 512,
            })
        };
        let workers = remotes.into_iter().map(of_remote).collect();
        Simulation { options, world, shared, workers }
    }

    /// Runs a function before the simulation begins, on the script's worker: to open listeners or configure links.
    pub fn enter<R>(&self, action: impl FnOnce() -> R) -> R {
        current::enter(&self.workers[self.options.workers], action)
    }

    /// Runs `main` on the workers and `script` on its own, until the script ends; returns its result.
    ///
    /// # Panics
    /// As [`run`].
    pub fn run<R: 'static>(self, main: Main, script: impl Future<Output = R> + 'static) -> R {
        let _seed = PrintSeed(self.options.seed);
        let outcome: Outcome<R> = Rc::default();
        self.begin(&main, contained(script, Rc::clone(&outcome)));
        let stuck = self.take_turns();
        let panics: u32 = self.workers.iter().map(|worker| worker.panics.get()).sum();
        self.workers.iter().for_each(|worker| current::enter(worker, || executor::end(worker)));
        if let Some(reason) = stuck {
            panic!("{reason}");
        }
        assert!(self.options.panics_allowed || panics == 0, "{panics} tasks or jobs panicked");
        let outcome = outcome.borrow_mut().take();
        match outcome {
            Some(Ok(result)) => result,
            Some(Err(payload)) => panic::resume_unwind(payload),
            None => panic!("the workers were stopped before the script ended"),
        }
    }

    fn begin(&self, main: &Main, script: impl Future<Output = ()> + 'static) {
        for worker in &self.workers[..self.options.workers] {
            current::enter(worker, || {
                let first = Box::new(|| crate::spawn(Class::Normal, NO_TAG, main(worker.remote.worker)));
                executor::run_job(worker, first);
            });
        }
        self.enter(|| crate::spawn(Class::Normal, NO_TAG, script));
    }

    /// Runs until the workers are stopped; returns the reason if it cannot continue.
    fn take_turns(&self) -> Option<String> {
        let order = Random::seeded(self.options.seed.rotate_left(32));
        let mut scratch = Scratch::default();
        while !self.shared.stopping() {
            lock(&self.world).happen();
            let mut busy: Vec<&Worker> = self.workers.iter().filter(|worker| self.has_work(worker)).collect();
            shuffle(&mut busy, &order);
            for worker in &busy {
                current::enter(worker, || executor::turn(worker, 0, &mut scratch));
            }
            let next = if busy.is_empty() { self.next_moment() } else { Some(lock(&self.world).now() + ROUND) };
            let Some(next) = next else { return Some("nothing is left to happen".to_owned()) };
            lock(&self.world).advance_to(next);
            if lock(&self.world).elapsed() > self.options.limit {
                return Some(format!("the script is not done after {:?}", self.options.limit));
            }
        }
        None
    }

    fn has_work(&self, worker: &Worker) -> bool {
        let world = lock(&self.world);
        executor::is_runnable(worker)
            || world.has_events(worker.remote.instance)
            || worker.timers.borrow().next_deadline().is_some_and(|deadline| deadline <= world.now())
    }

    /// Returns the time of the next event.
    fn next_moment(&self) -> Option<Moment> {
        let timers = self.workers.iter().filter_map(|worker| worker.timers.borrow().next_deadline());
        timers.chain(lock(&self.world).next_happening()).min()
    }
}

impl Drop for Simulation {
    fn drop(&mut self) {
        mailbox::unregister(&self.shared.remotes);
    }
}

impl std::fmt::Debug for Simulation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Simulation").field("options", &self.options).finish_non_exhaustive()
    }
}

fn shuffle<T>(items: &mut [T], random: &Random) {
    for last in (1..items.len()).rev() {
        items.swap(last, random.below(last as u64 + 1) as usize);
    }
}

/// Runs the script, and stops the workers when it ends or panics.
async fn contained<R>(script: impl Future<Output = R>, outcome: Outcome<R>) {
    let mut script = pin!(script);
    let result = std::future::poll_fn(|context| poll_contained(script.as_mut(), context)).await;
    *outcome.borrow_mut() = Some(result);
    crate::stop();
}

fn poll_contained<R>(
    script: Pin<&mut impl Future<Output = R>>,
    context: &mut Context<'_>,
) -> Poll<Result<R, Box<dyn Any + Send>>> {
    match panic::catch_unwind(AssertUnwindSafe(|| script.poll(context))) {
        Ok(polled) => polled.map(Ok),
        Err(payload) => Poll::Ready(Err(payload)),
    }
}

/// Prints the seed of a run that panics.
struct PrintSeed(u64);

impl Drop for PrintSeed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            // The only place that prints: without the seed the run cannot be reproduced.
            #[allow(clippy::print_stderr)]
            {
                eprintln!("simulation with seed {} failed", self.0);
            }
        }
    }
}
