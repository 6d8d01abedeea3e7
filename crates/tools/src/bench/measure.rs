//! One round of one way: starts a fresh proxy and the load, and measures both. Must never compare anything.

use super::child::{ChildProcess, Output, Stop};
use super::client::{self, LoadRates, LoadReport};
use super::port::ReservedPort;
use super::processor_assignment::Places;
use super::procfs::{self, Thread};
use super::results::{Memory, Round, ThreadTime};
use super::scenario::{Proxy, Scenario};
use super::stage::{self, Origins, Stage};
use super::steps::BenchStep;
use super::{flame, syscalls};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The network interface of the traffic.
const INTERFACE: &str = "lo";

/// Time before the end of a round at which memory is sampled.
const BEFORE_THE_END: Duration = Duration::from_millis(300);

/// Interval of memory samples, if the load takes longer than its duration.
const BETWEEN_LOOKS: Duration = Duration::from_millis(250);

/// Maximum duration of a round that counts system calls.
const LONGEST_TRACE: Duration = Duration::from_secs(2);

/// Maximum duration of a round with `perf`.
const LONGEST_RECORDING: Duration = Duration::from_secs(5);

/// Context of a round.
pub struct RoundContext<'a> {
    pub scenario: &'a Scenario,
    /// Folder of the run, and its placeholders.
    pub stage: &'a Stage,
    /// The running origins.
    pub origins: &'a Origins,
    /// Processors of each role.
    pub places: Places,
    /// Combination to measure.
    pub step: BenchStep,
    /// Rates of the load.
    pub offered: LoadRates,
    /// The proxy; `None`: direct, without a proxy.
    pub proxy: Option<&'a Proxy>,
    /// Duration of the warm-up.
    pub warm_up: Duration,
    /// Duration of the measurement.
    pub duration: Duration,
}

/// A proxy that listens.
pub struct ListeningProxy {
    process: ChildProcess,
    port: ReservedPort,
}

impl RoundContext<'_> {
    /// Measures a round. An error of the proxy or the load becomes the round's fault.
    ///
    /// # Errors
    /// An interruption only.
    pub fn round(&self, order: u32) -> Result<Round, Stop> {
        match self.measure(order) {
            Ok(round) => Ok(round),
            Err(Stop::Failed(why)) => Ok(Round { fault: Some(why), ..empty(order) }),
            Err(Stop::Interrupted) => Err(Stop::Interrupted),
        }
    }

    /// Starts the proxy and waits until it listens; `None` without a proxy.
    ///
    /// # Errors
    /// One line.
    pub fn start(&self) -> Result<Option<ListeningProxy>, Stop> {
        let Some(proxy) = self.proxy else { return Ok(None) };
        let name = proxy.name.get_ref();
        let reserved = ReservedPort::new()?;
        let port = reserved.number();
        let values = self.stage.values(name, port, Some((&self.step, self.offered.rate)));
        // A proxy's own file replaces the common one of the same name.
        let common = self
            .scenario
            .files
            .iter()
            .filter(|(file, _)| !proxy.files.keys().any(|own| own.get_ref() == file.get_ref()));
        let folder = self.stage.write(name, common.chain(&proxy.files), &values)?;
        let command = stage::words(&proxy.command, &values)?;
        let mut process = ChildProcess::start(name, &command, &self.places.proxy, &folder.join("log"), Output::Log)?;
        process.wait_to_listen(port)?;
        Ok(Some(ListeningProxy { process, port: reserved }))
    }

    fn measure(&self, order: u32) -> Result<Round, Stop> {
        let mut standing = self.start()?;
        let process = standing.as_ref().map(|standing| standing.process.id());
        let before = process.map_or((0, 0), procfs::memory);
        if !self.warm_up.is_zero() {
            self.load(&mut standing, self.warm_up, &mut |_| {})?;
        }
        let threads_before = process.map(procfs::threads).unwrap_or_default();
        let (origin_before, packets_before) = (self.origins.time(), packets());
        let load_before = waited_for();
        // Memory is sampled from shortly before the end until the load has ended, so that its connections are open in
        // one sample.
        let mut memory = (0, 0);
        let mut look_at = self.duration.saturating_sub(BEFORE_THE_END).max(self.duration / 2);
        let told = self.load(&mut standing, self.duration, &mut |elapsed| {
            if elapsed >= look_at {
                memory = memory.max(process.map_or((0, 0), procfs::memory));
                look_at = elapsed + BETWEEN_LOOKS;
            }
        })?;
        let packets_after = packets();
        let threads_after = process.map(procfs::threads).unwrap_or_default();
        let (anonymous, resident) = memory;
        if let Some(standing) = &mut standing {
            standing.process.check()?;
        }
        Ok(Round {
            seconds: told.seconds,
            total: told.total,
            latency: told.latency,
            reference: told.reference,
            statuses: told.statuses,
            threads: times(&threads_before, &threads_after),
            origin_cpu: (self.origins.time() - origin_before).max(0.0),
            load_cpu: (waited_for() - load_before).max(0.0),
            memory: Memory { before: before.0, anonymous, resident },
            packets: (
                packets_after.0.saturating_sub(packets_before.0),
                packets_after.1.saturating_sub(packets_before.1),
            ),
            ..empty(order)
        })
    }

    /// Runs the load through the running proxy, or directly to the origins.
    fn load(
        &self,
        standing: &mut Option<ListeningProxy>,
        duration: Duration,
        meanwhile: &mut dyn FnMut(Duration),
    ) -> Result<LoadReport, Stop> {
        let port = standing.as_ref().map_or(self.origins.port(), |standing| standing.port.number());
        let name = self.proxy.map_or("direct", |proxy| proxy.name.get_ref());
        let values = self.stage.values(name, port, Some((&self.step, self.offered.rate)));
        let command = client::command(self.scenario, &self.step, &self.offered, port, duration, &values)?;
        let log = self.log()?;
        client::run(&command, &self.places.load, &log, duration, &mut |elapsed| {
            meanwhile(elapsed);
            standing.as_mut().map_or(Ok(()), |standing| standing.process.check())
        })
    }

    /// Returns the path of the load's log.
    fn log(&self) -> Result<PathBuf, String> {
        Ok(self.stage.write("load", [], &BTreeMap::new())?.join("log"))
    }

    /// Returns the requests per second of a fresh proxy at full speed.
    ///
    /// # Errors
    /// One line.
    pub fn full_speed(&self) -> Result<f64, Stop> {
        let mut standing = self.start()?;
        let told = self.load(&mut standing, self.duration, &mut |_| {})?;
        Ok(told.total.answers as f64 / told.total.length.max(1e-9))
    }

    /// Returns the system calls per request by name, of a fresh proxy under `strace`; empty without a proxy.
    ///
    /// # Errors
    /// One line.
    pub fn system_calls(&self) -> Result<BTreeMap<String, f64>, Stop> {
        let mut standing = self.start()?;
        let Some(process) = standing.as_ref().map(|standing| standing.process.id()) else {
            return Ok(BTreeMap::new());
        };
        let folder = self.stage.write("strace", [], &BTreeMap::new())?;
        let trace = syscalls::Trace::attach(process, &folder)?;
        let told = self.load(&mut standing, self.duration.min(LONGEST_TRACE), &mut |_| {})?;
        trace.finish(told.total.answers)
    }

    /// Draws the flame graph of a fresh proxy, from samples of `perf`; nothing without a proxy.
    ///
    /// # Errors
    /// One line.
    pub fn flame(&self, title: &str, stem: &Path) -> Result<(), Stop> {
        let mut standing = self.start()?;
        let Some(process) = standing.as_ref().map(|standing| standing.process.id()) else { return Ok(()) };
        let folder = self.stage.write("perf", [], &BTreeMap::new())?;
        let recording = flame::Recording::begin(process, &folder)?;
        self.load(&mut standing, self.duration.min(LONGEST_RECORDING), &mut |_| {})?;
        recording.finish(title, stem)
    }
}

/// Returns a round without measurements.
fn empty(order: u32) -> Round {
    Round {
        order,
        seconds: Vec::new(),
        total: crate::load::record::Counts::default(),
        latency: Vec::new(),
        reference: Vec::new(),
        statuses: BTreeMap::new(),
        threads: Vec::new(),
        origin_cpu: 0.0,
        load_cpu: 0.0,
        memory: Memory::default(),
        packets: (0, 0),
        system_calls: BTreeMap::new(),
        fault: None,
    }
}

fn packets() -> (u64, u64) {
    procfs::packets(&procfs::read("/proc/self/net/dev"), INTERFACE).unwrap_or_default()
}

/// Returns the CPU time of this process's terminated children in microseconds: the difference of two calls is that of
/// the load.
fn waited_for() -> f64 {
    procfs::stat(&procfs::read("/proc/self/stat")).map_or(0.0, |stat| stat.of_children)
}

/// Returns the CPU time of each thread between two samples. The sum is exact; the kernel splits it in ticks of 10 ms,
/// so the time of a thread with less than one tick is split like that of all threads together.
fn times(before: &BTreeMap<(u32, u32), Thread>, after: &BTreeMap<(u32, u32), Thread>) -> Vec<ThreadTime> {
    let spent = |(key, now): (&(u32, u32), &Thread)| {
        let then = before.get(key).filter(|then| then.stat.begun == now.stat.begun);
        let (time, user, system) = then.map_or((0.0, 0.0, 0.0), |then| (then.time, then.stat.user, then.stat.system));
        let user = (now.stat.user - user).max(0.0);
        ((now.time - time).max(0.0), user, (now.stat.system - system).max(0.0))
    };
    let all: Vec<_> = after.iter().map(|each| (each, spent(each))).collect();
    let (user, system) = all.iter().fold((0.0, 0.0), |sum, (_, (_, user, system))| (sum.0 + user, sum.1 + system));
    let share = |user: f64, system: f64| if user + system > 0.0 { Some(user / (user + system)) } else { None };
    let together = share(user, system).unwrap_or(0.5);
    all.into_iter()
        .map(|((&(process, thread), now), (time, user, system))| {
            let user = time * share(user, system).unwrap_or(together);
            ThreadTime { process, thread, name: now.stat.name.clone(), user, system: time - user }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::procfs::Stat;

    fn thread(begun: u64, time: f64, user: f64, system: f64) -> Thread {
        Thread { stat: Stat { name: "w".to_owned(), parent: 1, user, system, of_children: 0.0, begun }, time }
    }

    #[test]
    fn the_exact_sum_is_split_as_the_ticks_are() {
        let before = [((1, 1), thread(5, 100.0, 0.0, 0.0)), ((1, 2), thread(5, 900.0, 0.0, 0.0))].into();
        let after = [
            ((1, 1), thread(5, 300.0, 10.0, 30.0)),
            ((1, 2), thread(6, 40.0, 0.0, 0.0)),
            ((1, 3), thread(7, 80.0, 20.0, 0.0)),
        ]
        .into();
        let times: Vec<_> =
            times(&before, &after).into_iter().map(|time| (time.thread, time.user, time.system)).collect();
        // The second thread id was reused by another thread that had no tick: half and half, like all threads together.
        assert_eq!(times, [(1, 50.0, 150.0), (2, 20.0, 20.0), (3, 80.0, 0.0)]);
    }
}
