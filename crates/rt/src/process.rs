//! The life of the process: going to the background, limits, processors, accounts, children. What it gives up: [`crate::rights`].
//!
//! Nothing here may be called from a task that others wait for: some of these calls take milliseconds.

use std::ffi::CString;
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, PoisonError};

use base::ProcessorSet;

use crate::sys;

/// The exit status of a starter whose child ended without a word.
const SILENT_CHILD: u8 = 1;

/// The daemon's line to the process that started it, which waits for the first word and leaves with it.
#[derive(Debug)]
pub struct StarterWaits {
    pipe: File,
    /// `/dev/null`: a process in a jail does not see it any more.
    null: File,
}

impl StarterWaits {
    /// Lets the starter leave with `status`: 0 when everything is bound and served.
    pub fn leave(mut self, status: u8) {
        // A starter that is gone already needs no word.
        let _ = self.pipe.write_all(&[status]);
    }

    /// Points standard input, output and error at `/dev/null`, as a daemon does once it has started.
    ///
    /// # Errors
    /// The kernel's.
    pub fn detach_standard_streams(&self) -> io::Result<()> {
        (0..=2).try_for_each(|stream| sys::process::duplicate_onto(&self.null, stream))
    }
}

/// Goes to the background: forks and starts a session in the child. The calling process (the starter) never returns
/// from this; it waits for [`StarterWaits::leave`] and exits with that status, or with 1 when the child ends without.
/// Standard streams stay as they are, so that errors of the start are still seen; see
/// [`StarterWaits::detach_standard_streams`].
///
/// # Errors
/// The kernel's; `Unsupported` when the process has more than one thread.
pub fn daemonise() -> io::Result<StarterWaits> {
    let null = OpenOptions::new().read(true).write(true).open("/dev/null")?;
    let (read, write) = sys::process::pipe()?;
    match fork()? {
        Fork::Child => {
            drop(read);
            sys::process::new_session()?;
            Ok(StarterWaits { pipe: File::from(write), null })
        }
        Fork::Parent(_) => {
            drop(write);
            let mut status = [SILENT_CHILD];
            let heard = File::from(read).read_exact(&mut status);
            // Without exit handlers: what they would flush or remove belongs to the child now.
            sys::process::exit_now(i32::from(if heard.is_ok() { status[0] } else { SILENT_CHILD }))
        }
    }
}

/// Which of the two processes after a fork this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// The new process.
    Child,
    /// The old one; the number is the child's.
    Parent(u32),
}

/// Forks the process.
///
/// # Errors
/// The kernel's; `Unsupported` when the process has more than one thread.
pub fn fork() -> io::Result<Fork> {
    if sys::process::thread_count()? > 1 {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "a process with threads does not fork"));
    }
    // SAFETY: there is one thread, which is this one.
    let child = unsafe { sys::process::fork()? };
    Ok(if child == 0 { Fork::Child } else { Fork::Parent(child as u32) })
}

/// A child that has ended, if any has; all children when `of` is `None`. Does not wait.
///
/// # Errors
/// The kernel's; there is none when there are no children.
pub fn reap(of: Option<u32>) -> io::Result<Option<(u32, ExitStatus)>> {
    reap_or_wait(of, false)
}

/// Waits until a child has ended.
///
/// # Errors
/// The kernel's, which says so when there is no such child.
pub fn wait(of: u32) -> io::Result<ExitStatus> {
    match reap_or_wait(Some(of), true)? {
        Some((_, status)) => Ok(status),
        None => Err(io::ErrorKind::WouldBlock.into()),
    }
}

fn reap_or_wait(of: Option<u32>, block: bool) -> io::Result<Option<(u32, ExitStatus)>> {
    let pid = of.map_or(-1, |pid| pid as libc::pid_t);
    match sys::process::wait(pid, block) {
        Ok(ended) => Ok(ended.map(|(pid, status)| (pid as u32, ExitStatus::from_raw(status)))),
        Err(error) if error.raw_os_error() == Some(libc::ECHILD) && !block => Ok(None),
        Err(error) => Err(error),
    }
}

/// `/dev/null`, opened while the process sees it: one in a jail does not any more.
#[derive(Debug)]
pub struct NullDevice(File);

impl NullDevice {
    /// Opens it.
    ///
    /// # Errors
    /// The kernel's.
    pub fn open() -> io::Result<NullDevice> {
        OpenOptions::new().read(true).write(true).open("/dev/null").map(NullDevice)
    }

    /// Points standard input, output and error there.
    ///
    /// # Errors
    /// The kernel's.
    pub fn replace_standard_streams(&self) -> io::Result<()> {
        (0..=2).try_for_each(|stream| sys::process::duplicate_onto(&self.0, stream))
    }
}

/// Lets the programs that this process starts from now on have a descriptor, under the same number.
///
/// # Errors
/// The kernel's.
pub fn keep_for_children(fd: &OwnedFd) -> io::Result<()> {
    sys::set_close_on_exec(fd, false)
}

/// Takes over a descriptor that the process was started with. Programs that this one starts do not get it.
///
/// # Errors
/// `InvalidInput` for a standard stream; `ResourceBusy` where it was taken over already, or is one that the process opened itself;
/// the kernel's when there is no such descriptor.
pub fn take_inherited(number: RawFd) -> io::Result<OwnedFd> {
    if number <= libc::STDERR_FILENO {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    take(number)
}

/// The same for any number. What keeps a descriptor from programs that are started (`FD_CLOEXEC`) says whose it is: one that came
/// with the start of this program does not have it, all that the process opens do, and so does what was taken over once. So
/// a descriptor has one owner.
pub(crate) fn take(number: RawFd) -> io::Result<OwnedFd> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if sys::process::is_closed_on_exec(number)? {
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, "it is in use by this process already"));
    }
    sys::process::close_on_exec(number)?;
    // SAFETY: the descriptor is open (the calls above would have failed), the parent process gave it away, and nothing else
    // in this process owns it, by what is said above.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Sends a signal to a process.
///
/// # Errors
/// The kernel's; `InvalidInput` for numbers that would name a group of processes or all of them.
pub fn kill(pid: u32, signal: crate::Signal) -> io::Result<()> {
    match libc::pid_t::try_from(pid) {
        Ok(pid) if pid > 0 => sys::process::kill(pid, signal.number()),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Raises the soft limit of open descriptors to `wanted`, and the hard one if need be and permitted; gets as near as
/// it may. Never lowers a limit. Returns the limits (soft, hard) that hold then.
///
/// # Errors
/// The kernel's, when the limits cannot be read.
pub fn raise_descriptor_limit(wanted: u64) -> io::Result<(u64, u64)> {
    let (soft, hard) = sys::process::descriptor_limit()?;
    if wanted > soft && sys::process::set_descriptor_limit(wanted, hard.max(wanted)).is_err() {
        let _ = sys::process::set_descriptor_limit(wanted.min(hard), hard);
    }
    sys::process::descriptor_limit()
}

/// The limits (soft, hard) of open descriptors.
///
/// # Errors
/// The kernel's.
pub fn descriptor_limit() -> io::Result<(u64, u64)> {
    sys::process::descriptor_limit()
}

/// Sets the limits of open descriptors.
///
/// # Errors
/// The kernel's: a privilege is missing.
pub fn set_descriptor_limit(soft: u64, hard: u64) -> io::Result<()> {
    sys::process::set_descriptor_limit(soft, hard)
}

/// Sets the scheduling priority of this thread and those that it starts: -20 is the most, 19 the least.
///
/// # Errors
/// The kernel's: a privilege is missing.
pub fn set_priority(nice: i32) -> io::Result<()> {
    sys::process::set_priority(nice)
}

/// Lowers the scheduling priority of this thread, and of those that it starts, by so much; it cannot be raised again.
pub fn lower_priority(by: i32) {
    sys::process::lower_priority(by);
}

/// Has the kernel make its table of descriptors as large as the limit allows, so that it never grows while serving.
///
/// # Errors
/// The kernel's.
pub fn preallocate_descriptors() -> io::Result<()> {
    let (most, _) = descriptor_limit()?;
    let highest = i32::try_from(most.saturating_sub(1)).unwrap_or(i32::MAX);
    sys::process::open_at_least(highest).map(drop)
}

/// The processors that this thread may run on; empty when the kernel does not tell.
pub fn available_processors() -> ProcessorSet {
    sys::process::affinity().unwrap_or_default()
}

/// Binds this thread to some processors. Threads that it starts later inherit that.
///
/// # Errors
/// The kernel's; `InvalidInput` when none of them can be used.
pub fn bind_to(processors: &ProcessorSet) -> io::Result<()> {
    sys::process::set_affinity(processors)
}

/// Starts a program on some processors (where none is named, on those of this thread). The kernel sends it `at_end` when
/// the thread that started it ends, however that comes about.
///
/// # Errors
/// The kernel's; `InvalidInput` when none of the processors can be used.
pub fn start(command: &mut Command, processors: &ProcessorSet, at_end: crate::Signal) -> io::Result<Child> {
    let processors = *processors;
    let prepare = move || {
        if !processors.is_empty() {
            sys::process::set_affinity(&processors)?;
        }
        sys::process::signal_on_parents_end(at_end.number())
    };
    // SAFETY: between fork and exec the closure makes two system calls on memory of its own: no allocation, no lock.
    unsafe { command.pre_exec(prepare) };
    command.spawn()
}

/// This process's number.
pub fn id() -> u32 {
    std::process::id()
}

/// Whether the process acts as the superuser.
pub fn is_superuser() -> bool {
    sys::process::effective_user() == 0
}

/// The numbers of a user and its group, by name; `None` when the system does not know it.
///
/// # Errors
/// The data base's.
pub fn user_by_name(name: &str) -> io::Result<Option<(u32, u32)>> {
    sys::process::user_by_name(name)
}

/// The number of a group, by name; `None` when the system does not know it.
///
/// # Errors
/// The data base's.
pub fn group_by_name(name: &str) -> io::Result<Option<u32>> {
    sys::process::group_by_name(name)
}

/// The user and the group that this process acts as.
pub fn identity() -> (u32, u32) {
    (sys::process::effective_user(), sys::process::effective_group())
}

/// Sets the name that tools show for this thread; the kernel keeps 15 bytes.
pub fn set_name(name: &str) {
    if let Ok(name) = CString::new(name) {
        sys::process::set_name(&name);
    }
}

/// Has the kernel send `signal` to this process when its parent ends.
///
/// # Errors
/// The kernel's.
pub fn signal_on_parents_end(signal: crate::Signal) -> io::Result<()> {
    sys::process::signal_on_parents_end(signal.number())
}
