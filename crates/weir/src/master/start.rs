//! Starts a worker: the same program with the same arguments, and one end of a channel. Must never wait for it.

use super::link::CONNECTION;
use crate::arguments::{READER_FLAG, WorkerSeat};
use rt::net::{Channel, channel_pair, stream_pair};
use std::cell::Cell;
use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

/// How this program was started.
#[derive(Debug)]
pub struct LaunchCommand {
    /// Path of the program, determined at the start, so that an upgrade takes effect with the next worker.
    pub program: PathBuf,
    /// The name it was started by (`argv[0]`).
    pub name: OsString,
    pub arguments: Vec<OsString>,
    /// Working directory at the start.
    pub directory: PathBuf,
    /// Whether workers pass their sockets to successors (`-x /dev/null` disables it).
    pub hands_over: bool,
    /// The program's file when the last worker was started; `None` if it could not be read.
    pub started: Cell<Option<Mark>>,
}

/// Identifies a version of a file: device, inode, size, and the seconds and nanoseconds of its modification time.
pub type Mark = (u64, u64, u64, i64, i64);

impl LaunchCommand {
    fn mark(&self) -> Option<Mark> {
        let found = std::fs::metadata(&self.program).ok()?;
        Some((found.dev(), found.ino(), found.size(), found.mtime(), found.mtime_nsec()))
    }

    /// Whether the program's file has changed since the last worker was started.
    pub fn was_upgraded(&self) -> bool {
        self.mark() != self.started.get()
    }

    /// Starts a worker and returns its process id and the master's end of the channel. The worker receives the sockets
    /// of the worker connected to `former`.
    ///
    /// # Errors
    /// The kernel's error: out of descriptors or memory, or the program is missing.
    pub fn start(&self, former: Option<&Channel>, again: bool) -> io::Result<(u32, Channel)> {
        let (ours, theirs) = channel_pair()?;
        let sockets = match former {
            Some(former) if self.hands_over => connection(former).ok(),
            _ => None,
        };
        rt::process::keep_for_children(&theirs)?;
        if let Some(sockets) = &sockets {
            rt::process::keep_for_children(sockets)?;
        }
        let seat = WorkerSeat { channel: theirs.as_raw_fd(), again, sockets: sockets.as_ref().map(AsRawFd::as_raw_fd) };
        self.started.set(self.mark());
        let child = Command::new(&self.program)
            .arg0(&self.name)
            .arg(WorkerSeat::FLAG)
            .arg(seat.to_string())
            .args(&self.arguments)
            .current_dir(&self.directory)
            .env("HAPROXY_MWORKER", "1")
            .env_remove("NOTIFY_SOCKET")
            .spawn()?;
        Ok((child.id(), Channel::adopt(ours)?))
    }
}

impl LaunchCommand {
    /// Starts a process that reads the configuration for a worker, and returns the worker's end of the stream to it.
    ///
    /// # Errors
    /// The kernel's error: out of descriptors or memory, or the program is missing.
    pub fn start_reader(&self) -> io::Result<OwnedFd> {
        let (one, other) = stream_pair()?;
        let (Some(theirs), Some(workers)) = (one.into_descriptor(), other.into_descriptor()) else {
            return Err(io::ErrorKind::Unsupported.into());
        };
        rt::process::keep_for_children(&theirs)?;
        Command::new(&self.program)
            .arg0(&self.name)
            .arg(READER_FLAG)
            .arg(theirs.as_raw_fd().to_string())
            .args(&self.arguments)
            .current_dir(&self.directory)
            .env("HAPROXY_MWORKER", "1")
            .env_remove("NOTIFY_SOCKET")
            .spawn()?;
        Ok(workers)
    }
}

/// Opens a connection to the runtime API of a worker.
///
/// # Errors
/// The kernel's error; `BrokenPipe` if the worker has ended.
pub fn connection(worker: &Channel) -> io::Result<OwnedFd> {
    let (ours, theirs) = stream_pair()?;
    let (ours, theirs) = match (ours.into_descriptor(), theirs.into_descriptor()) {
        (Some(ours), Some(theirs)) => (ours, theirs),
        _ => return Err(io::ErrorKind::Unsupported.into()),
    };
    worker.send(CONNECTION, &[theirs.as_fd()])?;
    Ok(ours)
}
