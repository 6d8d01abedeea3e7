//! A whole run, from the environment to the results. Must never measure: [`super::measure`] does.

use super::arguments::Settings;
use super::child::{self, Stop};
use super::client::LoadRates;
use super::environment::{self, RunRequirements};
use super::machine;
use super::measure::RoundContext;
use super::prepare::{self, PreparedRun};
use super::processor_assignment::{self, Places};
use super::progress::{Progress, write};
use super::results::{FORM, Finding, Point, ProxyName, Results, Round, ScenarioName};
use super::scenario::Proxy;
use super::scenario::quantity::Rate;
use super::stage::{self, Origins, Stage};
use super::steps::{BenchStep, Measurement, turns};
use super::{report, table};
use crate::Outcome;
use base::ProcessorSet;
use rt::clock;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Estimated overhead of a turn in addition to the load: start, samples, end.
const AROUND: Duration = Duration::from_millis(500);

/// Duration for which the idle machine is observed, and that in a trial.
const LISTEN: [Duration; 2] = [Duration::from_secs(1), Duration::from_millis(200)];

/// State of a run.
struct Run<'a> {
    settings: &'a Settings,
    prepared: &'a PreparedRun,
    stage: Stage,
    origins: Origins,
    available: ProcessorSet,
    progress: Progress,
    /// The first proxy's full speed for each step whose rate is a share of it.
    full: Vec<f64>,
}

/// Runs the task of the command line.
#[must_use]
pub fn run(settings: &Settings, command: &str) -> Outcome {
    let mut prepared = match prepare::prepare(settings) {
        Ok(prepared) => prepared,
        Err(outcome) => return outcome,
    };
    if let Err(error) = rt::signal::handle_signals(&child::ENDING) {
        return Outcome::Failed(format!("signals cannot be handled: {error}"));
    }
    let available = rt::process::available_processors();
    let done = if settings.check {
        look(&prepared, settings, &available).map(drop)
    } else {
        measured(&mut prepared, settings, command, available)
    };
    match done {
        Ok(()) => Outcome::Done,
        Err(Stop::Interrupted) => Outcome::Failed("interrupted".to_owned()),
        Err(Stop::Failed(why)) => Outcome::Failed(why),
    }
}

/// Checks the environment and prints the findings.
fn look(prepared: &PreparedRun, settings: &Settings, available: &ProcessorSet) -> Result<Vec<Finding>, Stop> {
    let scenario = &prepared.source.scenario;
    let workers = prepared.steps.iter().map(|step| step.workers).max().unwrap_or(1);
    let places = processor_assignment::places(&scenario.processors, workers, available);
    let listen = LISTEN[usize::from(settings.quick)];
    let found = environment::check(&RunRequirements { scenario, steps: &prepared.steps, available, places, listen })?;
    write(&environment::text(&found));
    Ok(found)
}

/// Measures, then writes and prints the results.
fn measured(
    prepared: &mut PreparedRun,
    settings: &Settings,
    command: &str,
    available: ProcessorSet,
) -> Result<(), Stop> {
    let begun = clock::since_epoch().as_secs();
    let weir = std::env::current_exe().map_err(|error| format!("this program cannot be found: {error}"))?;
    let scenario = &prepared.source.scenario;
    let folder = settings.out.clone().unwrap_or_else(|| usual_folder(scenario.name.get_ref(), begun));
    let mut stage = Stage::new(&folder, scenario, &settings.values, &weir.display().to_string())?;
    let origins = Origins::new(&mut stage, scenario)?;
    prepare::leave_out(prepared, &stage)?;
    let environment = look(prepared, settings, &available)?;
    let progress = Progress::of_standard_output();
    prepared.left_out.iter().for_each(|line| progress.line(line));
    let mut run = Run { settings, prepared, stage, origins, available, progress, full: Vec::new() };
    progress.line(&run.estimate());
    let proxies = run.trial()?;
    let mut results = Results {
        form: FORM,
        begun: machine::rfc3339(begun),
        weir: env!("CARGO_PKG_VERSION").to_owned(),
        command: command.to_owned(),
        scenario_text: prepared.source.text.clone(),
        scenario: ScenarioName {
            name: prepared.source.scenario.name.get_ref().clone(),
            title: prepared.source.scenario.title.clone(),
            repeats: prepared.source.scenario.repeats.clone(),
        },
        machine: machine::machine(),
        environment,
        proxies,
        points: Vec::new(),
    };
    let ended = run.rounds(&mut results.points);
    let folder = run.stage.folder.clone();
    // All processes have ended before anything is written.
    drop(run);
    if matches!(ended, Err(Stop::Interrupted)) && results.points.is_empty() {
        return Err(Stop::Interrupted);
    }
    conclude(&results, &folder, progress)?;
    match ended {
        Err(Stop::Interrupted) => {
            Err(Stop::Failed(format!("interrupted; what was measured until then is in {}", folder.display())))
        }
        Err(stop) => Err(stop),
        Ok(()) => faults(&results),
    }
}

/// Writes the results and everything generated from them, and prints the table.
fn conclude(results: &Results, folder: &Path, progress: Progress) -> Result<(), Stop> {
    progress.clear();
    let file = folder.join("results.json");
    let text = serde_json::to_string(results).map_err(|error| format!("{}: {error}", file.display()))?;
    fs::write(&file, text + "\n").map_err(|error| format!("{}: {error}", file.display()))?;
    write(&format!("\n{}\nResults: {}\n", table::text(results), file.display()));
    let page = report::write(results, folder)?;
    write(&format!("Report:  {}\n", page.display()));
    Ok(())
}

/// Returns an error if a round had a fault.
fn faults(results: &Results) -> Result<(), Stop> {
    let rounds = || results.points.iter().flat_map(|point| &point.rounds);
    let faults: Vec<&str> = rounds().filter_map(|round| round.fault.as_deref()).collect();
    match faults.first() {
        None => Ok(()),
        Some(first) => Err(Stop::Failed(format!("{} of {} rounds failed: {first}", faults.len(), rounds().count()))),
    }
}

fn usual_folder(name: &str, begun: u64) -> PathBuf {
    let digits: String = machine::rfc3339(begun).chars().filter(char::is_ascii_digit).collect();
    PathBuf::from(format!("weir-bench-{name}-{digits}"))
}

impl Run<'_> {
    fn turns(&self) -> Vec<Measurement> {
        let prepared = self.prepared;
        turns(prepared.rounds, &prepared.steps, prepared.source.scenario.proxy.len(), !self.settings.no_direct)
    }

    /// Returns a line with the estimated duration of the run.
    fn estimate(&self) -> String {
        let prepared = self.prepared;
        let turns = self.turns().len() as u32;
        let mut all = (prepared.duration + prepared.warm_up + AROUND) * turns;
        all += AROUND * prepared.source.scenario.proxy.len() as u32;
        let shares = prepared.steps.iter().filter(|step| self.is_share(step)).count();
        all += (prepared.duration + AROUND) * shares as u32;
        if self.settings.syscalls {
            let traced = prepared.steps.len() * prepared.source.scenario.proxy.len();
            all += (prepared.duration.min(Duration::from_secs(2)) + AROUND) * traced as u32;
        }
        if self.settings.flame {
            let sampled = prepared.steps.len() * prepared.source.scenario.proxy.len();
            all += (prepared.duration.min(Duration::from_secs(5)) + AROUND) * sampled as u32;
        }
        let minutes = all.as_secs() / 60;
        format!(
            "{turns} rounds of {:.1} s, {} m {:02} s in all; everything is written to {}",
            prepared.duration.as_secs_f64(),
            minutes,
            all.as_secs() % 60,
            self.stage.folder.display()
        )
    }

    fn is_share(&self, step: &BenchStep) -> bool {
        let load = &self.prepared.source.scenario.load;
        [step.rate, load.at_most, load.reference].iter().any(|rate| matches!(rate, Some(Rate::Share(_))))
    }

    fn places(&self, step: &BenchStep) -> Places {
        processor_assignment::places(&self.prepared.source.scenario.processors, step.workers, &self.available)
    }

    fn course<'b>(&'b self, step: BenchStep, full: f64, proxy: Option<&'b Proxy>) -> RoundContext<'b> {
        let scenario = &self.prepared.source.scenario;
        RoundContext {
            scenario,
            stage: &self.stage,
            origins: &self.origins,
            places: self.places(&step),
            step,
            offered: LoadRates::of(scenario, &step, full),
            proxy,
            warm_up: self.prepared.warm_up,
            duration: self.prepared.duration,
        }
    }

    fn run_origins(&mut self, step: &BenchStep) -> Result<(), Stop> {
        let on = self.places(step).origin;
        self.origins.run_on(on, &self.stage, &self.prepared.source.scenario)
    }

    /// Starts everything once before the measurement, and measures the full speed that shares refer to.
    fn trial(&mut self) -> Result<Vec<ProxyName>, Stop> {
        let prepared = self.prepared;
        let Some(first) = prepared.steps.first().copied() else { return Ok(Vec::new()) };
        self.run_origins(&first)?;
        let mut names = Vec::new();
        for proxy in &prepared.source.scenario.proxy {
            self.progress.under_way(&format!("trying {}", proxy.name.get_ref()));
            drop(self.course(first, 0.0, Some(proxy)).start()?);
            let values = self.stage.values(proxy.name.get_ref(), 0, Some((&first, None)));
            let command = stage::words(&proxy.command, &values)?;
            let version = prepare::version(proxy, &first, &self.stage)?;
            self.progress.line(&format!("{}: {version}", proxy.name.get_ref()));
            names.push(ProxyName { name: proxy.name.get_ref().clone(), version, command });
        }
        self.measure_full_speed()?;
        Ok(names)
    }

    fn measure_full_speed(&mut self) -> Result<(), Stop> {
        let prepared = self.prepared;
        let mut known: Vec<(BenchStep, f64)> = Vec::new();
        for step in &prepared.steps {
            let free = BenchStep { rate: None, ..*step };
            let speed = match known.iter().find(|(other, _)| *other == free) {
                Some((_, speed)) => *speed,
                None if self.is_share(step) => {
                    self.run_origins(step)?;
                    self.progress.under_way("measuring the full speed");
                    let proxy = prepared.source.scenario.proxy.first();
                    let mut course = self.course(free, 0.0, proxy);
                    course.offered = LoadRates::default();
                    let speed = course.full_speed()?;
                    self.progress.line(&format!("full speed: {speed:.0} requests/s"));
                    speed
                }
                None => 0.0,
            };
            known.push((free, speed));
        }
        self.full = known.into_iter().map(|(_, speed)| speed).collect();
        Ok(())
    }

    /// Measures all turns.
    fn rounds(&mut self, points: &mut Vec<Point>) -> Result<(), Stop> {
        let prepared = self.prepared;
        let turns = self.turns();
        for (order, turn) in turns.iter().enumerate() {
            let step = prepared.steps[turn.step];
            let proxy = turn.proxy.and_then(|number| prepared.source.scenario.proxy.get(number));
            let name = proxy.map_or("direct", |proxy| proxy.name.get_ref());
            self.progress.under_way(&format!("[{}/{}] {name}", order + 1, turns.len()));
            self.run_origins(&step)?;
            let full = self.full.get(turn.step).copied().unwrap_or(0.0);
            let course = self.course(step, full, proxy);
            let mut round = course.round(order as u32)?;
            if proxy.is_some() && turn.round + 1 == prepared.rounds {
                self.look_inside(&course, name, turn.step, &mut round)?;
            }
            let point = Point {
                proxy: proxy.map(|proxy| proxy.name.get_ref().clone()),
                size: step.size,
                rate: course.offered.rate,
                workers: if proxy.is_some() { step.workers } else { 0 },
                connections: step.connections,
                rounds: vec![round],
            };
            self.progress.line(&format_point(&format!("[{}/{}]", order + 1, turns.len()), name, &point));
            add(points, point);
        }
        Ok(())
    }
}

impl Run<'_> {
    /// Counts the system calls and draws the flame graph of a proxy, if requested. Errors are reported, but do not
    /// invalidate a measurement.
    fn look_inside(&self, course: &RoundContext<'_>, name: &str, step: usize, round: &mut Round) -> Result<(), Stop> {
        if self.settings.syscalls {
            self.progress.under_way(&format!("{name}: counting system calls"));
            match course.system_calls() {
                Ok(calls) => round.system_calls = calls,
                Err(Stop::Failed(why)) => self.progress.line(&format!("{name}: no system calls: {why}")),
                Err(Stop::Interrupted) => return Err(Stop::Interrupted),
            }
        }
        if self.settings.flame {
            self.progress.under_way(&format!("{name}: taking samples"));
            let number = if self.prepared.steps.len() > 1 { format!("-{}", step + 1) } else { String::new() };
            let stem = self.stage.folder.join(format!("flame-{name}{number}.svg"));
            let title = format!("{name}: {}", self.prepared.source.scenario.title);
            match course.flame(&title, &stem) {
                Ok(()) => self.progress.line(&format!("{name}: {}", stem.display())),
                Err(Stop::Failed(why)) => self.progress.line(&format!("{name}: no flame graph: {why}")),
                Err(Stop::Interrupted) => return Err(Stop::Interrupted),
            }
        }
        Ok(())
    }
}

/// Adds a point's rounds to those of the same point.
fn add(points: &mut Vec<Point>, point: Point) {
    let key = |point: &Point| (point.proxy.clone(), point.size, point.rate, point.workers, point.connections);
    match points.iter_mut().find(|other| key(other) == key(&point)) {
        Some(known) => known.rounds.extend(point.rounds),
        None => points.push(point),
    }
}

/// Formats a point with one round as a line.
fn format_point(place: &str, name: &str, point: &Point) -> String {
    let workers = if point.workers > 1 { format!(", {} workers", point.workers) } else { String::new() };
    let rate = point.rate.map_or_else(String::new, |rate| format!(", {rate:.0} offered"));
    let what = format!("{place} {name}, {} bytes, {} connections{workers}{rate}", point.size, point.connections);
    let Some(medians) = table::medians(point) else {
        let fault = point.rounds.iter().find_map(|round| round.fault.as_deref());
        return format!("{what}: FAILED: {}", fault.unwrap_or("not a single answer"));
    };
    let cpu = medians.cpu.map_or_else(String::new, |cpu| format!(", {:.2} us CPU a request", cpu.whole()));
    let errors = if medians.errors > 0 { format!(", {} errors", medians.errors) } else { String::new() };
    format!("{what}: {:.0} requests/s{cpu}, p99 {:.0} us{errors}", medians.rate, medians.latency.1)
}
