//! System calls on the process and its threads.

use std::ffi::{CStr, CString};
use std::io;
use std::mem;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use base::ProcessorSet;
use base::processors::MOST_PROCESSORS;

use super::check;

/// Forks. Only the calling thread exists in the child.
///
/// # Safety
/// The process must have one thread only: the child could otherwise find a lock taken by a thread that it lacks.
pub(crate) unsafe fn fork() -> io::Result<libc::pid_t> {
    // SAFETY: the caller promises that there are no other threads.
    check(unsafe { libc::fork() })
}

/// Returns the number of threads of this process.
pub(crate) fn thread_count() -> io::Result<usize> {
    Ok(std::fs::read_dir("/proc/self/task")?.count())
}

/// Exits the process immediately, without running exit handlers.
pub(crate) fn exit_now(status: i32) -> ! {
    // SAFETY: no pointers are passed; the call does not return.
    unsafe { libc::_exit(status) }
}

pub(crate) fn new_session() -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::setsid() }).map(drop)
}

/// Waits for a child; `None` if `block` is false and none has ended. Returns the raw status.
pub(crate) fn wait(pid: libc::pid_t, block: bool) -> io::Result<Option<(libc::pid_t, i32)>> {
    let mut status = 0;
    loop {
        // SAFETY: `status` is valid for the result.
        match check(unsafe { libc::waitpid(pid, &mut status, if block { 0 } else { libc::WNOHANG }) }) {
            Ok(0) => return Ok(None),
            Ok(ended) => return Ok(Some((ended, status))),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

pub(crate) fn kill(pid: libc::pid_t, signal: i32) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::kill(pid, signal) }).map(drop)
}

/// Sends a signal to the process group led by `head`.
pub(crate) fn kill_group(head: u32, signal: i32) -> io::Result<()> {
    match libc::pid_t::try_from(head) {
        Ok(head) if head > 1 => kill(-head, signal),
        _ => Err(io::ErrorKind::InvalidInput.into()),
    }
}

/// Opens a descriptor of a child that was not reaped yet: readable once it has ended.
pub(crate) fn open_process(child: u32) -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, libc::c_long::from(child), 0) };
    let fd = i32::try_from(fd).map_err(|_| io::ErrorKind::InvalidInput)?;
    let fd = check(fd)?;
    // SAFETY: the descriptor is new and has no other owner. The kernel sets close-on-exec.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Creates a blocking pipe, for the status of a child.
pub(crate) fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [0; 2];
    // SAFETY: `ends` is valid for the two numbers that the kernel writes.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: both descriptors are new and have no other owner.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

/// Reads the available bytes into `place`; 0 at the end. Waits if the descriptor is blocking.
pub(crate) fn read_some(fd: i32, place: &mut [u8]) -> io::Result<usize> {
    // SAFETY: pointer and length describe `place`, which is not used elsewhere during the call.
    let read = super::attempt(|| unsafe { libc::read(fd, place.as_mut_ptr().cast(), place.len()) });
    read?.ok_or_else(|| io::ErrorKind::WouldBlock.into())
}

/// Writes bytes, all of them or as many as the descriptor accepts immediately.
pub(crate) fn write_some(fd: &impl AsRawFd, bytes: &[u8]) -> io::Result<usize> {
    // SAFETY: pointer and length describe `bytes`.
    let written = super::attempt(|| unsafe { libc::write(fd.as_raw_fd(), bytes.as_ptr().cast(), bytes.len()) });
    written?.ok_or_else(|| io::ErrorKind::WouldBlock.into())
}

/// Closes every descriptor from a number on. For a child that continues without any, in which nothing owns them.
pub(crate) fn close_from(first: u32) -> io::Result<()> {
    // SAFETY: no pointers are passed; the callers' processes use no descriptor after this.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, 0) };
    check(closed as libc::c_int).map(drop)
}

/// Makes descriptor `to` a copy of `from`.
pub(crate) fn duplicate_onto(from: &impl AsRawFd, to: i32) -> io::Result<()> {
    // SAFETY: no pointers are passed; the callers pass the standard streams only, which have no owner.
    check(unsafe { libc::dup2(from.as_raw_fd(), to) }).map(drop)
}

/// Whether a descriptor is closed when the process executes another program.
pub(crate) fn is_closed_on_exec(fd: i32) -> io::Result<bool> {
    // SAFETY: no pointers are passed, and a number that is no descriptor is an error.
    check(unsafe { libc::fcntl(fd, libc::F_GETFD) }).map(|flags| flags & libc::FD_CLOEXEC != 0)
}

/// Makes a descriptor close when the process executes another program.
pub(crate) fn close_on_exec(fd: i32) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::fcntl(fd, libc::F_SETFD, libc::FD_CLOEXEC) }).map(drop)
}

/// Replaces what `to` refers to by what `from` refers to; its number and owner are unchanged.
pub(crate) fn replace(from: &OwnedFd, to: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no pointers are passed; the owner of `to` keeps owning it.
    check(unsafe { libc::dup3(from.as_raw_fd(), to.as_raw_fd(), libc::O_CLOEXEC) }).map(drop)
}

/// Returns the limits (soft, hard) of open descriptors.
pub(crate) fn descriptor_limit() -> io::Result<(u64, u64)> {
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: `limit` is valid for the result.
    check(unsafe { libc::getrlimit(libc::RLIMIT_NOFILE, &mut limit) })?;
    Ok((limit.rlim_cur, limit.rlim_max))
}

pub(crate) fn set_descriptor_limit(soft: u64, hard: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: soft, rlim_max: hard };
    // SAFETY: `limit` is valid for the call, which only reads it.
    check(unsafe { libc::setrlimit(libc::RLIMIT_NOFILE, &limit) }).map(drop)
}

pub(crate) fn set_priority(nice: i32) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::setpriority(libc::PRIO_PROCESS, 0, nice) }).map(drop)
}

/// Applies to the calling thread only: nice(2) of the C library is setpriority(2) of the caller, which is a thread on
/// Linux.
pub(crate) fn lower_priority(by: i32) {
    // SAFETY: no pointers are passed. The priority is clamped at the lowest one, so that there is no error to report.
    let _ = unsafe { libc::nice(by.max(0)) };
}

/// Duplicates standard error with a number of at least `number`.
pub(crate) fn open_at_least(number: i32) -> io::Result<OwnedFd> {
    // SAFETY: no pointers are passed.
    let fd = check(unsafe { libc::fcntl(libc::STDERR_FILENO, libc::F_DUPFD_CLOEXEC, number) })?;
    // SAFETY: the descriptor is new and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Returns the processors that this thread may run on.
pub(crate) fn affinity() -> io::Result<ProcessorSet> {
    // SAFETY: all bytes zero is a valid value of this plain structure.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    // SAFETY: `set` is valid for the size that is given.
    check(unsafe { libc::sched_getaffinity(0, mem::size_of_val(&set), &mut set) })?;
    let numbers = 0..MOST_PROCESSORS.min(libc::CPU_SETSIZE as u32);
    // SAFETY: the macro's function only reads `set`, and the numbers are below its size.
    Ok(numbers.filter(|number| unsafe { libc::CPU_ISSET(*number as usize, &set) }).collect())
}

/// Binds this thread to some processors.
pub(crate) fn set_affinity(processors: &ProcessorSet) -> io::Result<()> {
    // SAFETY: all bytes zero is a valid value of this plain structure.
    let mut set: libc::cpu_set_t = unsafe { mem::zeroed() };
    for number in processors.iter().take_while(|number| *number < libc::CPU_SETSIZE as u32) {
        // SAFETY: the number is below the set's size.
        unsafe { libc::CPU_SET(number as usize, &mut set) };
    }
    // SAFETY: `set` is valid for the size that is given.
    check(unsafe { libc::sched_setaffinity(0, mem::size_of_val(&set), &set) }).map(drop)
}

pub(crate) fn set_groups(groups: &[u32]) -> io::Result<()> {
    // SAFETY: pointer and length describe `groups`.
    check(unsafe { libc::setgroups(groups.len() as _, groups.as_ptr()) }).map(drop)
}

pub(crate) fn set_group(group: u32) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::setgid(group) }).map(drop)
}

pub(crate) fn set_user(user: u32) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::setuid(user) }).map(drop)
}

/// Returns the number of supplementary groups.
pub(crate) fn group_count() -> usize {
    // SAFETY: a length of 0 only queries the number; nothing is written.
    usize::try_from(unsafe { libc::getgroups(0, std::ptr::null_mut()) }).unwrap_or(0)
}

pub(crate) fn effective_group() -> u32 {
    // SAFETY: no pointers are passed; the call cannot fail.
    unsafe { libc::getegid() }
}

pub(crate) fn effective_user() -> u32 {
    // SAFETY: no pointers are passed; the call cannot fail.
    unsafe { libc::geteuid() }
}

/// Looks up a user in the user database; returns the IDs of the user and its primary group.
pub(crate) fn user_by_name(name: &str) -> io::Result<Option<(u32, u32)>> {
    let name = c_string(name)?;
    let mut room = vec![0; 16 * 1024];
    // SAFETY: all bytes zero is a valid value of this plain structure.
    let mut entry: libc::passwd = unsafe { mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are valid for the call, and `room` has the length that is given.
    let code = unsafe { libc::getpwnam_r(name.as_ptr(), &mut entry, room.as_mut_ptr(), room.len(), &mut found) };
    lookup_result(code, found.is_null()).map(|known| known.then_some((entry.pw_uid, entry.pw_gid)))
}

/// Looks up a group in the group database; returns its ID.
pub(crate) fn group_by_name(name: &str) -> io::Result<Option<u32>> {
    let name = c_string(name)?;
    let mut room = vec![0; 64 * 1024];
    // SAFETY: all bytes zero is a valid value of this plain structure.
    let mut entry: libc::group = unsafe { mem::zeroed() };
    let mut found = std::ptr::null_mut();
    // SAFETY: all pointers are valid for the call, and `room` has the length that is given.
    let code = unsafe { libc::getgrnam_r(name.as_ptr(), &mut entry, room.as_mut_ptr(), room.len(), &mut found) };
    lookup_result(code, found.is_null()).map(|known| known.then_some(entry.gr_gid))
}

/// Whether a database contains a name. Some systems return "no such entry" as an error.
fn lookup_result(code: i32, nothing: bool) -> io::Result<bool> {
    match code {
        0 => Ok(!nothing),
        libc::ENOENT | libc::ESRCH => Ok(false),
        code => Err(io::Error::from_raw_os_error(code)),
    }
}

fn c_string(text: &str) -> io::Result<CString> {
    CString::new(text).map_err(|_| io::Error::from(io::ErrorKind::InvalidInput))
}

/// Sets the calling thread's name for tools; the kernel keeps 15 bytes.
pub(crate) fn set_name(name: &CStr) {
    // SAFETY: the name is a valid string that the kernel copies.
    unsafe { libc::prctl(libc::PR_SET_NAME, name.as_ptr()) };
}

/// Makes the kernel send `signal` to this process when its parent ends.
pub(crate) fn signal_on_parents_end(signal: i32) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, signal as libc::c_ulong) }).map(drop)
}

/// Permits or forbids core dumps, which a change of the user forbids.
pub(crate) fn set_dumpable(on: bool) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::prctl(libc::PR_SET_DUMPABLE, libc::c_ulong::from(on)) }).map(drop)
}

/// Moves only the calling thread to a network namespace.
pub(crate) fn enter_network_namespace(namespace: &impl AsRawFd) -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::setns(namespace.as_raw_fd(), libc::CLONE_NEWNET) }).map(drop)
}
