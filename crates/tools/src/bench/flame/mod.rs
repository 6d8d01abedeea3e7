//! Profile of a proxy: samples of `perf`, folded and drawn. Must never be active while anything is timed.

mod draw;
mod fold;

use super::child::{ChildProcess, Output, Stop, interrupted};
use super::procfs;
use rt::clock::Point;
use rt::{Signal, process};
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

/// Samples per second of each processor: a prime, so that it does not coincide with periodic events.
const FREQUENCY: &str = "499";

/// Unwinding method of stacks: copies of this number of bytes, unwound afterwards, since programs are built without
/// frame pointers.
const STACKS: &str = "dwarf,8192";

/// Maximum size of the samples that are read, in bytes.
const MOST_TEXT: u64 = 512 << 20;

/// Timeout for `perf` to start, to stop, and to print its samples.
const PATIENCE: Duration = Duration::from_secs(60);

/// Polling interval.
const PAUSE: Duration = Duration::from_millis(20);

/// A running `perf record`.
pub struct Recording {
    perf: ChildProcess,
    data: PathBuf,
    folder: PathBuf,
}

impl Recording {
    /// Starts sampling of a process and its descendants.
    ///
    /// # Errors
    /// One line if that fails: `perf` may lack the permission.
    pub fn begin(of: u32, folder: &Path) -> Result<Self, Stop> {
        let data = folder.join("perf.data");
        let family: Vec<String> = procfs::family(of).into_iter().map(|(process, _)| process.to_string()).collect();
        let mut command: Vec<String> =
            ["perf", "record", "-q", "-F", FREQUENCY, "--call-graph", STACKS, "-o"].map(str::to_owned).into();
        command.extend([data.display().to_string(), "-p".to_owned(), family.join(",")]);
        // Data of an earlier proxy must not be mistaken for this one's.
        let _ = fs::remove_file(&data);
        let anywhere = process::available_processors();
        let mut perf = ChildProcess::start("perf", &command, &anywhere, &folder.join("record.log"), Output::Log)?;
        let since = Point::now();
        while fs::metadata(&data).map_or(0, |file| file.len()) == 0 {
            perf.check()?;
            if since.elapsed() > PATIENCE {
                return Err(Stop::Failed("perf does not begin".to_owned()));
            }
            thread::sleep(PAUSE);
        }
        Ok(Self { perf, data, folder: folder.to_owned() })
    }

    /// Stops sampling and draws the samples into a file that ends in `.svg`, and writes the folded stacks as text
    /// beside it, `.folded`.
    ///
    /// # Errors
    /// One line.
    pub fn finish(mut self, title: &str, picture: &Path) -> Result<(), Stop> {
        self.perf.send(Signal::Interrupt);
        let since = Point::now();
        while let Ok(()) = self.perf.check() {
            if since.elapsed() > PATIENCE {
                return Err(Stop::Failed("perf does not end".to_owned()));
            }
            thread::sleep(PAUSE);
        }
        interrupted()?;
        let stacks = fold::fold(&self.samples()?);
        let _ = fs::remove_file(&self.data);
        if stacks.is_empty() {
            return Err(Stop::Failed("perf took no samples".to_owned()));
        }
        let drawn = [("svg", draw::draw(title, &stacks)), ("folded", fold::text(&stacks))];
        for (kind, text) in drawn {
            let file = picture.with_extension(kind);
            fs::write(&file, text).map_err(|error| format!("{}: {error}", file.display()))?;
        }
        Ok(())
    }

    /// Returns the samples as text.
    fn samples(&self) -> Result<String, Stop> {
        let mut command: Vec<String> =
            ["perf", "script", "--no-inline", "-F", "comm,tid,ip,sym", "-i"].map(str::to_owned).into();
        command.push(self.data.display().to_string());
        let anywhere = process::available_processors();
        let mut perf = ChildProcess::start("perf", &command, &anywhere, &self.folder.join("script.log"), Output::Read)?;
        let output = perf.output().ok_or_else(|| "perf has no output".to_owned())?;
        let (sender, text) = mpsc::channel();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            let read = output.take(MOST_TEXT).read_to_end(&mut bytes);
            // The receiver may have given up after the timeout.
            let _ = sender.send(read.map(|_| String::from_utf8_lossy(&bytes).into_owned()));
        });
        let since = Point::now();
        loop {
            match text.recv_timeout(PAUSE) {
                Ok(text) => return text.map_err(|error| Stop::Failed(format!("perf: {error}"))),
                Err(RecvTimeoutError::Timeout) if since.elapsed() < PATIENCE => interrupted()?,
                Err(_) => return Err(Stop::Failed("perf does not print its samples".to_owned())),
            }
        }
    }
}
