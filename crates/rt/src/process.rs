//! The process: daemonizing, limits, processors, user accounts, children. Giving up privileges: [`crate::rights`].
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

/// The exit status of a starter whose child ended without reporting one.
const SILENT_CHILD: u8 = 1;

/// The daemon's pipe to the process that started it, which waits for a status and exits with it.
#[derive(Debug)]
pub struct StarterWaits {
    pipe: File,
    /// `/dev/null`, opened early: it is not visible inside a chroot.
    null: File,
}

impl StarterWaits {
    /// Makes the starter exit with `status`: 0 once everything is bound and served.
    pub fn leave(mut self, status: u8) {
        // Fails only if the starter has exited already.
        let _ = self.pipe.write_all(&[status]);
    }

    /// Redirects standard input, output and error to `/dev/null`, as a daemon does once it has started.
    ///
    /// # Errors
    /// From the kernel.
    pub fn detach_standard_streams(&self) -> io::Result<()> {
        (0..=2).try_for_each(|stream| sys::process::duplicate_onto(&self.null, stream))
    }
}

/// Moves to the background: forks and starts a session in the child. In the calling process (the starter) this never
/// returns; it waits for [`StarterWaits::leave`] and exits with that status, or with 1 if the child ends without it.
/// Standard streams are unchanged, so that startup errors are still visible; see
/// [`StarterWaits::detach_standard_streams`].
///
/// # Errors
/// From the kernel; `Unsupported` if the process has more than one thread.
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
            // Skips exit handlers: the resources that they would flush or remove belong to the child now.
            sys::process::exit_now(i32::from(if heard.is_ok() { status[0] } else { SILENT_CHILD }))
        }
    }
}

/// The side of a fork that returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fork {
    /// The new process.
    Child,
    /// The old process, with the child's process ID.
    Parent(u32),
}

/// Forks the process.
///
/// # Errors
/// From the kernel; `Unsupported` if the process has more than one thread.
pub fn fork() -> io::Result<Fork> {
    if sys::process::thread_count()? > 1 {
        return Err(io::Error::new(io::ErrorKind::Unsupported, "a process with threads does not fork"));
    }
    // SAFETY: there is one thread, which is this one.
    let child = unsafe { sys::process::fork()? };
    Ok(if child == 0 { Fork::Child } else { Fork::Parent(child as u32) })
}

/// Reaps a child that has ended, if any; `of`: only this child. Does not wait.
///
/// # Errors
/// From the kernel; having no children is not an error.
pub fn reap(of: Option<u32>) -> io::Result<Option<(u32, ExitStatus)>> {
    reap_or_wait(of, false)
}

/// Waits until a child has ended.
///
/// # Errors
/// From the kernel, among others if there is no such child.
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

/// `/dev/null`, opened while it is visible: it is not inside a chroot.
#[derive(Debug)]
pub struct NullDevice(File);

impl NullDevice {
    /// Opens `/dev/null`.
    ///
    /// # Errors
    /// From the kernel.
    pub fn open() -> io::Result<NullDevice> {
        OpenOptions::new().read(true).write(true).open("/dev/null").map(NullDevice)
    }

    /// Redirects standard input, output and error to it.
    ///
    /// # Errors
    /// From the kernel.
    pub fn replace_standard_streams(&self) -> io::Result<()> {
        (0..=2).try_for_each(|stream| sys::process::duplicate_onto(&self.0, stream))
    }
}

/// Makes the programs that this process starts from now on inherit a descriptor, under the same number.
///
/// # Errors
/// From the kernel.
pub fn keep_for_children(fd: &OwnedFd) -> io::Result<()> {
    sys::set_close_on_exec(fd, false)
}

/// Takes over an inherited descriptor. Programs started by this process do not inherit it.
///
/// # Errors
/// `InvalidInput` for a standard stream; `ResourceBusy` if it was already taken over, or was opened by this process;
/// from the kernel if there is no such descriptor.
pub fn take_inherited(number: RawFd) -> io::Result<OwnedFd> {
    if number <= libc::STDERR_FILENO {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    take(number)
}

/// Like [`take_inherited`], for any number. Ownership is derived from close-on-exec (`FD_CLOEXEC`): descriptors
/// inherited at the start lack it, and all that the process opens or has taken over have it. So a descriptor has one
/// owner.
pub(crate) fn take(number: RawFd) -> io::Result<OwnedFd> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
    if sys::process::is_closed_on_exec(number)? {
        return Err(io::Error::new(io::ErrorKind::ResourceBusy, "it is in use by this process already"));
    }
    sys::process::close_on_exec(number)?;
    // SAFETY: the descriptor is open (the calls above would have failed), the parent process gave it away, and nothing
    // else in this process owns it, by the rule above.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// Sends a signal to a process.
///
/// # Errors
/// From the kernel; `InvalidInput` for numbers that would refer to a process group or to all processes.
pub fn kill(pid: u32, signal: crate::Signal) -> io::Result<()> {
    match libc::pid_t::try_from(pid) {
        Ok(pid) if pid > 0 => sys::process::kill(pid, signal.number()),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Raises the soft limit of open descriptors to `wanted`, and the hard one if necessary and permitted; otherwise as far
/// as permitted. Never lowers a limit. Returns the resulting limits (soft, hard).
///
/// # Errors
/// From the kernel, if the limits cannot be read.
pub fn raise_descriptor_limit(wanted: u64) -> io::Result<(u64, u64)> {
    let (soft, hard) = sys::process::descriptor_limit()?;
    if wanted > soft && sys::process::set_descriptor_limit(wanted, hard.max(wanted)).is_err() {
        let _ = sys::process::set_descriptor_limit(wanted.min(hard), hard);
    }
    sys::process::descriptor_limit()
}

/// Returns the limits (soft, hard) of open descriptors.
///
/// # Errors
/// From the kernel.
pub fn descriptor_limit() -> io::Result<(u64, u64)> {
    sys::process::descriptor_limit()
}

/// Sets the limits of open descriptors.
///
/// # Errors
/// From the kernel: a privilege is missing.
pub fn set_descriptor_limit(soft: u64, hard: u64) -> io::Result<()> {
    sys::process::set_descriptor_limit(soft, hard)
}

/// Sets the scheduling priority of this thread and those that it starts: -20 is the highest, 19 the lowest.
///
/// # Errors
/// From the kernel: a privilege is missing.
pub fn set_priority(nice: i32) -> io::Result<()> {
    sys::process::set_priority(nice)
}

/// Lowers the scheduling priority of this thread, and of those that it starts, by a number of steps; this cannot be
/// reverted.
pub fn lower_priority(by: i32) {
    sys::process::lower_priority(by);
}

/// Makes the kernel grow its table of descriptors to the limit, so that it never grows while serving.
///
/// # Errors
/// From the kernel.
pub fn preallocate_descriptors() -> io::Result<()> {
    let (most, _) = descriptor_limit()?;
    let highest = i32::try_from(most.saturating_sub(1)).unwrap_or(i32::MAX);
    sys::process::open_at_least(highest).map(drop)
}

/// Returns the processors that this thread may run on; empty if the kernel does not report them.
pub fn available_processors() -> ProcessorSet {
    sys::process::affinity().unwrap_or_default()
}

/// Binds this thread to some processors. Threads that it starts later inherit the binding.
///
/// # Errors
/// From the kernel; `InvalidInput` if none of them can be used.
pub fn bind_to(processors: &ProcessorSet) -> io::Result<()> {
    sys::process::set_affinity(processors)
}

/// Starts a program on some processors (if empty, on those of this thread). The kernel sends it `at_end` when the
/// thread that started it ends, for any reason.
///
/// # Errors
/// From the kernel; `InvalidInput` if none of the processors can be used.
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

/// Returns the process ID.
pub fn id() -> u32 {
    std::process::id()
}

/// Whether the effective user is the superuser.
pub fn is_superuser() -> bool {
    sys::process::effective_user() == 0
}

/// Returns the IDs of a user and its primary group, by name; `None`: there is no such user.
///
/// # Errors
/// From the user database.
pub fn user_by_name(name: &str) -> io::Result<Option<(u32, u32)>> {
    sys::process::user_by_name(name)
}

/// Returns the ID of a group, by name; `None`: there is no such group.
///
/// # Errors
/// From the group database.
pub fn group_by_name(name: &str) -> io::Result<Option<u32>> {
    sys::process::group_by_name(name)
}

/// Returns the effective user and group.
pub fn identity() -> (u32, u32) {
    (sys::process::effective_user(), sys::process::effective_group())
}

/// Sets the name that tools display for this thread; the kernel keeps 15 bytes.
pub fn set_name(name: &str) {
    if let Ok(name) = CString::new(name) {
        sys::process::set_name(&name);
    }
}

/// Makes the kernel send `signal` to this process when its parent ends.
///
/// # Errors
/// From the kernel.
pub fn signal_on_parents_end(signal: crate::Signal) -> io::Result<()> {
    sys::process::signal_on_parents_end(signal.number())
}
