//! From a command line to a run: the scenario is found, read and changed by the options, and proxies that cannot
//! run are left out. Must never start anything but a proxy to query its version.

use super::arguments::Settings;
use super::child::Stop;
use super::programs;
use super::scenario::template::{Values, fill};
use super::scenario::{self, Proxy, RequiredFeature, Source, shipped};
use super::stage::{self, Stage};
use super::steps::{self, BenchStep};
use crate::Outcome;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::time::Duration;

/// Maximum size of a scenario, in bytes.
const LARGEST: u64 = 4 << 20;

/// Maximum duration of a round and of the warm-up of a trial, in seconds.
const TRIAL: (f64, f64) = (1.0, 0.3);

/// A run ready to start.
#[derive(Debug)]
pub struct PreparedRun {
    /// The changed scenario.
    pub source: Source,
    /// Combinations of the scenario.
    pub steps: Vec<BenchStep>,
    /// Number of rounds.
    pub rounds: u32,
    /// Duration of a round.
    pub duration: Duration,
    /// Warm-up of a fresh proxy.
    pub warm_up: Duration,
    /// Proxies that are left out, with the reason: one line each.
    pub left_out: Vec<String>,
}

/// Finds and reads the scenario, and changes it by the options.
///
/// # Errors
/// The outcome of the tool.
pub fn prepare(settings: &Settings) -> Result<PreparedRun, Outcome> {
    let mut source = find(&settings.scenario)?;
    let scenario = &mut source.scenario;
    for name in &settings.only {
        if !scenario.proxy.iter().any(|proxy| proxy.name.get_ref() == name) {
            let known: Vec<_> = scenario.proxy.iter().map(|proxy| proxy.name.get_ref().as_str()).collect();
            return Err(Outcome::Misused(format!("--only: no proxy '{name}' here, but {}", known.join(", "))));
        }
    }
    for name in settings.values.keys() {
        if name != "weir" && !scenario.values.keys().any(|known| known.get_ref() == name) {
            let known: Vec<_> = scenario.values.keys().map(|known| known.get_ref().as_str()).chain(["weir"]).collect();
            return Err(Outcome::Misused(format!("--set: no value '{name}' here, but {}", known.join(", "))));
        }
    }
    if let Some(what) = &scenario.waits_for {
        let name = scenario.name.get_ref();
        return Err(Outcome::Failed(format!("scenario '{name}' waits for what Weir does not have yet: {what}")));
    }
    let mut rounds = settings.rounds.unwrap_or(*scenario.rounds.get_ref());
    let mut duration = settings.duration.unwrap_or(scenario.load.duration.get_ref().0);
    // Idle clients have no warm-up: the cost of the first ones is measured too.
    let usual = if scenario.load.think.is_some() { 0.0 } else { 1.0 };
    let mut warm_up = scenario.load.warm_up.map_or(usual, |time| time.0);
    if settings.quick {
        rounds = settings.rounds.unwrap_or(1);
        duration = settings.duration.unwrap_or(duration.min(TRIAL.0));
        warm_up = warm_up.min(TRIAL.1);
        let sweep = &mut scenario.sweep;
        steps::thin(&mut sweep.sizes);
        steps::thin(&mut sweep.rates);
        steps::thin(&mut sweep.workers);
        steps::thin(&mut sweep.connections);
    }
    if !settings.only.is_empty() {
        scenario.proxy.retain(|proxy| settings.only.contains(proxy.name.get_ref()));
    }
    let steps = steps::steps(scenario);
    let time = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
    Ok(PreparedRun { steps, rounds, duration: time(duration), warm_up: time(warm_up), left_out: Vec::new(), source })
}

fn find(name: &str) -> Result<Source, Outcome> {
    if let Some(text) = shipped::find(name) {
        return scenario::read(&format!("{name}.toml"), text).map_err(Outcome::Misused);
    }
    if !name.contains(['/', '.']) {
        return Err(Outcome::Misused(format!("no scenario '{name}' ships, and a file's name ends in .toml")));
    }
    let mut text = String::new();
    let read = File::open(name).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text));
    read.map_err(|error| Outcome::Failed(format!("{name}: {error}")))?;
    if text.len() as u64 > LARGEST {
        return Err(Outcome::Failed(format!("{name}: larger than 4 MB")));
    }
    scenario::read(name, &text).map_err(Outcome::Misused)
}

/// Leaves out proxies with unmet prerequisites, and optional ones whose program, a required file or a required feature is
/// missing.
///
/// # Errors
/// One line if something required is missing, or if no proxy is left.
pub fn leave_out(prepared: &mut PreparedRun, stage: &Stage) -> Result<(), Stop> {
    let scenario = &mut prepared.source.scenario;
    let mut staying = Vec::new();
    for proxy in std::mem::take(&mut scenario.proxy) {
        let name = proxy.name.get_ref().clone();
        let values = stage.values(&name, 0, prepared.steps.first().map(|step| (step, None)));
        let program = fill(proxy.command[0].get_ref(), &values)?;
        let needs = proxy.needs.iter().map(|file| fill(file.get_ref(), &values));
        let needs = needs.collect::<Result<Vec<String>, _>>()?;
        let lacking = match lacking(&program, &needs) {
            None => lacking_feature(&proxy, &values, stage)?,
            lacking => lacking,
        };
        if let Some(what) = &proxy.waits_for {
            prepared.left_out.push(format!("{name} is left out: it waits for what Weir does not have yet: {what}"));
        } else {
            match lacking {
                None => staying.push(proxy),
                Some(lacking) if proxy.optional => prepared.left_out.push(format!("{name} is left out: {lacking}")),
                Some(lacking) => return Err(Stop::Failed(format!("proxy '{name}': {lacking}"))),
            }
        }
    }
    scenario.proxy = staying;
    if scenario.proxy.is_empty() {
        return Err(Stop::Failed(format!("no proxy is left: {}", prepared.left_out.join("; "))));
    }
    Ok(())
}

/// Returns a message about a missing program or file.
fn lacking(program: &str, needs: &[String]) -> Option<String> {
    if programs::find(program).is_none() {
        return Some(format!("there is no program {program} here"));
    }
    let lacks = |file: &&String| !file.is_empty() && !Path::new(file).exists();
    needs.iter().find(lacks).map(|file| format!("there is no {file} here"))
}

/// Returns a message about a missing feature.
fn lacking_feature(proxy: &Proxy, values: &Values, stage: &Stage) -> Result<Option<String>, Stop> {
    let Some(RequiredFeature { command, text }) = &proxy.requires else { return Ok(None) };
    let folder = stage.write(proxy.name.get_ref(), [], values)?;
    let command = stage::words(command, values)?;
    let printed = programs::output(&command, &folder.join("features"))?;
    let (has, shown, text) = (printed.contains(text.get_ref()), command.join(" "), text.get_ref());
    Ok((!has).then(|| format!("'{shown}' does not print '{text}'")))
}

/// Returns a proxy's version.
///
/// # Errors
/// One line, or an interruption.
pub fn version(proxy: &Proxy, step: &BenchStep, stage: &Stage) -> Result<String, Stop> {
    if proxy.version.is_empty() {
        return Ok(String::new());
    }
    let values = stage.values(proxy.name.get_ref(), 0, Some((step, None)));
    let folder = stage.write(proxy.name.get_ref(), [], &values)?;
    let command = stage::words(&proxy.version, &values)?;
    programs::version(&command, &folder.join("version"))
}

#[cfg(test)]
mod tests {
    use super::lacking;

    #[test]
    fn a_program_or_a_file_that_is_missing_is_named() {
        let needs = |files: &[&str]| -> Vec<String> { files.iter().map(|file| (*file).to_owned()).collect() };
        assert_eq!(lacking("sh", &[]), None);
        assert_eq!(lacking("sh", &needs(&["", "/"])), None);
        assert_eq!(lacking("sh", &needs(&["/", "/nothing/here"])), Some("there is no /nothing/here here".to_owned()));
        let missing = lacking("no-such-program-at-all", &needs(&["/"]));
        assert_eq!(missing, Some("there is no program no-such-program-at-all here".to_owned()));
    }
}
