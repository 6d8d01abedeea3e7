//! The environment of a run: its folders, the files of each process, the values of placeholders, the origins. Must
//! never measure.

use super::child::{ChildProcess, Output, Stop};
use super::port::ReservedPort;
use super::scenario::template::{Values, fill};
use super::scenario::{Origin, Scenario};
use super::steps::BenchStep;
use base::ProcessorSet;
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use toml::Spanned;

/// A folder in memory that is removed at the end.
#[derive(Debug)]
pub struct Scratch(PathBuf);

impl Scratch {
    /// Creates the folder.
    ///
    /// # Errors
    /// One line that names it.
    pub fn new() -> Result<Self, String> {
        let memory = Path::new("/dev/shm");
        let above = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
        let own = std::process::id();
        let mut names = (0..100).map(|number| above.join(format!("weir-bench-{own}-{number}")));
        // An existing one belongs to another user, or was left by a process with the same id.
        let made = names.find(|path| fs::create_dir(path).is_ok());
        made.map(Self).ok_or_else(|| format!("{}: no folder can be made there", above.display()))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // A folder that cannot be removed stays in memory until the machine restarts; nothing depends on it.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The folders of a run, and the values of placeholders.
#[derive(Debug)]
pub struct Stage {
    /// Output folder.
    pub folder: PathBuf,
    scratch: Scratch,
    values: Values,
}

impl Stage {
    /// Creates the folder, which must not contain results yet.
    ///
    /// # Errors
    /// One line that names the folder that could not be created.
    pub fn new(folder: &Path, scenario: &Scenario, own: &BTreeMap<String, String>, weir: &str) -> Result<Self, String> {
        let failed = |error: io::Error| format!("{}: {error}", folder.display());
        fs::create_dir_all(folder).map_err(failed)?;
        let folder = folder.canonicalize().map_err(failed)?;
        if folder.join("results.json").exists() {
            return Err(format!("{} holds results already: name another folder with --out", folder.display()));
        }
        let mut values: Values =
            scenario.values.iter().map(|(name, value)| (name.get_ref().clone(), value.clone())).collect();
        values.insert("weir".to_owned(), weir.to_owned());
        values.extend(own.clone());
        let scratch = Scratch::new()?;
        let lists = scratch.0.join("lists");
        values.insert("lists".to_owned(), lists.display().to_string());
        write_lists(&lists, scenario)?;
        Ok(Self { folder, scratch, values })
    }

    /// Sets the placeholders of the origins' ports.
    fn set_origins(&mut self, ports: &[u16]) {
        for (number, port) in ports.iter().enumerate() {
            let mut names = vec![format!("origin_{}", number + 1)];
            names.extend((number == 0).then(|| "origin".to_owned()));
            for name in names {
                self.values.insert(format!("{name}_port"), port.to_string());
                self.values.insert(name, format!("127.0.0.1:{port}"));
            }
        }
    }

    /// Returns the placeholders of a process called `name` that listens on `port`.
    #[must_use]
    pub fn values(&self, name: &str, port: u16, step: Option<(&BenchStep, Option<f64>)>) -> Values {
        let mut values = self.values.clone();
        let mut set = |name: &str, value: String| values.insert(name.to_owned(), value);
        set("folder", self.folder.join(name).display().to_string());
        set("scratch", self.scratch.0.join(name).display().to_string());
        set("port", port.to_string());
        if let Some((step, rate)) = step {
            set("size", step.size.to_string());
            set("rate", rate.unwrap_or(0.0).to_string());
            set("workers", step.workers.to_string());
            set("connections", step.connections.to_string());
        }
        values
    }

    /// Writes the files of a process into its folder, which is created.
    ///
    /// # Errors
    /// One line that names the file.
    pub fn write<'a>(
        &self,
        name: &str,
        files: impl IntoIterator<Item = (&'a Spanned<String>, &'a Spanned<String>)>,
        values: &Values,
    ) -> Result<PathBuf, String> {
        let failed = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
        let folder = self.folder.join(name);
        for folder in [&folder, &self.scratch.0.join(name)] {
            fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
        }
        for (file, text) in files {
            let path = folder.join(file.get_ref());
            if let Some(above) = path.parent() {
                fs::create_dir_all(above).map_err(|error| failed(above, error))?;
            }
            let text = fill(text.get_ref(), values)?;
            // Multi-line strings may start with a line feed.
            let text = text.strip_prefix('\n').unwrap_or(&text);
            fs::write(&path, text).map_err(|error| failed(&path, error))?;
        }
        Ok(folder)
    }
}

/// Writes the lists of a scenario into a folder, which is created.
fn write_lists(folder: &Path, scenario: &Scenario) -> Result<(), String> {
    let failed = |path: &Path, error: io::Error| format!("{}: {error}", path.display());
    fs::create_dir_all(folder).map_err(|error| failed(folder, error))?;
    for (name, list) in &scenario.lists {
        let path = folder.join(name.get_ref());
        let written = fs::File::create(&path).and_then(|file| {
            let mut file = BufWriter::new(file);
            list.write(&mut file)?;
            file.flush()
        });
        written.map_err(|error| failed(&path, error))?;
    }
    Ok(())
}

/// Replaces the placeholders of a command.
///
/// # Errors
/// A placeholder without a value.
pub fn words(command: &[Spanned<String>], values: &Values) -> Result<Vec<String>, String> {
    command.iter().map(|word| fill(word.get_ref(), values)).collect()
}

/// The running origins.
pub struct Origins {
    ports: Vec<ReservedPort>,
    /// Port of the default origin for the direct way, if that uses TLS.
    secure: Option<ReservedPort>,
    /// Whether the load speaks HTTP/3.
    speaks_h3: bool,
    on: ProcessorSet,
    running: Vec<ChildProcess>,
}

impl Origins {
    /// Reserves the ports; no origin is started.
    ///
    /// # Errors
    /// One line.
    pub fn new(stage: &mut Stage, scenario: &Scenario) -> Result<Self, String> {
        let ports: Vec<_> = (0..scenario.origin.len().max(1)).map(|_| ReservedPort::new()).collect::<Result<_, _>>()?;
        let numbers: Vec<u16> = ports.iter().map(ReservedPort::number).collect();
        stage.set_origins(&numbers);
        let is_secure = scenario.load.scheme.as_ref().is_some_and(|scheme| scheme.get_ref() == "https");
        let secure = (is_secure && scenario.origin.is_empty()).then(ReservedPort::new).transpose()?;
        let speaks_h3 = scenario.load.options.iter().any(|option| option == "--h3");
        Ok(Self { ports, secure, speaks_h3, on: ProcessorSet::EMPTY, running: Vec::new() })
    }

    /// Runs the origins on those processors: they are restarted if they ran on others.
    ///
    /// # Errors
    /// One line if one does not start or has exited.
    pub fn run_on(&mut self, on: ProcessorSet, stage: &Stage, scenario: &Scenario) -> Result<(), Stop> {
        if !self.running.is_empty() && self.on == on {
            return self.running.iter_mut().try_for_each(ChildProcess::check);
        }
        self.running.clear();
        self.on = on;
        for number in 0..self.ports.len() {
            let started = self.start(number, scenario.origin.get(number), stage)?;
            self.running.push(started);
        }
        Ok(())
    }

    fn start(&self, number: usize, origin: Option<&Origin>, stage: &Stage) -> Result<ChildProcess, Stop> {
        let port = self.ports[number].number();
        let name = format!("origin-{}", number + 1);
        let values = stage.values(&name, port, None);
        let folder = stage.write(&name, origin.iter().flat_map(|origin| &origin.files), &values)?;
        let command = match origin {
            Some(origin) => words(&origin.command, &values)?,
            None => {
                let weir = values.get("weir").cloned().unwrap_or_default();
                let secure = self.secure.as_ref().map(|secure| format!(":{}", secure.number())).unwrap_or_default();
                let mut words = vec![weir, "origin".to_owned(), "-L".to_owned(), format!("127.0.0.1:{port}{secure}")];
                if let Some(secure) = self.secure.as_ref().filter(|_| self.speaks_h3) {
                    words.extend(["--quic".to_owned(), format!("127.0.0.1:{}", secure.number())]);
                }
                words
            }
        };
        let mut started = ChildProcess::start(&name, &command, &self.on, &folder.join("log"), Output::Log)?;
        started.wait_to_listen(port)?;
        Ok(started)
    }

    /// Returns the port of the first origin, for the direct way.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.secure.as_ref().or(self.ports.first()).map_or(0, ReservedPort::number)
    }

    /// Returns the CPU time of the origins in microseconds.
    #[must_use]
    pub fn time(&self) -> f64 {
        let threads = self.running.iter().flat_map(|origin| super::procfs::threads(origin.id()).into_values());
        threads.map(|thread| thread.time).sum()
    }
}
