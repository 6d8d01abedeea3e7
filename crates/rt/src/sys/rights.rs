//! System calls that reduce the process's privileges: capabilities, limits, a user namespace.
//!
//! Nothing here may decide what is given up.

use std::io;

use super::check;

/// The third version of the capability calls: two words of 32 bits each.
const CAPABILITY_VERSION: u32 = 0x2008_0522;

#[repr(C)]
struct Header {
    version: u32,
    pid: libc::c_int,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
struct Words {
    effective: u32,
    permitted: u32,
    inheritable: u32,
}

/// Returns the capabilities (effective, permitted) of this thread, one bit each.
pub(crate) fn capabilities() -> io::Result<(u64, u64)> {
    let mut header = Header { version: CAPABILITY_VERSION, pid: 0 };
    let mut words = [Words::default(); 2];
    // SAFETY: header and words have the layout that this version of the call reads and writes.
    let result = unsafe { libc::syscall(libc::SYS_capget, &raw mut header, words.as_mut_ptr()) };
    check(result as libc::c_int)?;
    let join = |low: u32, high: u32| u64::from(low) | u64::from(high) << 32;
    Ok((join(words[0].effective, words[1].effective), join(words[0].permitted, words[1].permitted)))
}

/// Sets the capabilities of this thread to `kept`, which must be permitted.
pub(crate) fn set_capabilities(kept: u64) -> io::Result<()> {
    let mut header = Header { version: CAPABILITY_VERSION, pid: 0 };
    let words = |kept: u32| Words { effective: kept, permitted: kept, inheritable: 0 };
    let words = [words(kept as u32), words((kept >> 32) as u32)];
    // SAFETY: header and words have the layout that this version of the call reads.
    let result = unsafe { libc::syscall(libc::SYS_capset, &raw mut header, words.as_ptr()) };
    check(result as libc::c_int).map(drop)
}

/// Makes the next change of the user keep the permitted capabilities.
pub(crate) fn keep_capabilities() -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::prctl(libc::PR_SET_KEEPCAPS, 1 as libc::c_ulong) }).map(drop)
}

/// Prevents programs that are executed from now on from gaining privileges.
pub(crate) fn forbid_new_privileges() -> io::Result<()> {
    let (on, none): (libc::c_ulong, libc::c_ulong) = (1, 0);
    // SAFETY: no pointers are passed.
    check(unsafe { libc::prctl(libc::PR_SET_NO_NEW_PRIVS, on, none, none, none) }).map(drop)
}

/// Moves the process into a user namespace of its own, where it may change its root. It must have one thread.
pub(crate) fn enter_user_namespace() -> io::Result<()> {
    // SAFETY: no pointers are passed.
    check(unsafe { libc::unshare(libc::CLONE_NEWUSER) }).map(drop)
}

/// Sets both limits of a resource.
pub(crate) fn set_limit(resource: libc::__rlimit_resource_t, value: u64) -> io::Result<()> {
    let limit = libc::rlimit { rlim_cur: value, rlim_max: value };
    // SAFETY: `limit` is valid for the call, which only reads it.
    check(unsafe { libc::setrlimit(resource, &limit) }).map(drop)
}
