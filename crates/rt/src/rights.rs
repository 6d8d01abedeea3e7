//! Privileges that the process gives up permanently: its user, its view of the file system, capabilities, memory.
//!
//! Nothing here may be called once workers run: most of it applies to the calling thread and those that it starts.

use std::io;
use std::path::Path;

use crate::process::is_superuser;
use crate::sys;

/// A Linux capability, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Capability {
    /// CAP_SETGID.
    SetGroup = 6,
    /// CAP_SETUID.
    SetUser = 7,
    /// CAP_NET_BIND_SERVICE: ports below 1024.
    NetBindService = 10,
    /// CAP_NET_ADMIN: among others, non-local addresses.
    NetAdmin = 12,
    /// CAP_NET_RAW: among others, non-local addresses.
    NetRaw = 13,
    /// CAP_SYS_ADMIN: among others, namespaces.
    SysAdmin = 21,
}

fn bits(capabilities: &[Capability]) -> u64 {
    capabilities.iter().fold(0, |bits, capability| bits | 1 << *capability as u32)
}

/// Whether all of `capabilities` are permitted to this thread.
///
/// # Errors
/// From the kernel.
pub fn has(capabilities: &[Capability]) -> io::Result<bool> {
    let (_, permitted) = sys::rights::capabilities()?;
    Ok(permitted & bits(capabilities) == bits(capabilities))
}

/// Reduces the capabilities of this process to the permitted ones of `kept`, and makes them effective.
///
/// # Errors
/// From the kernel.
pub fn keep_only(kept: &[Capability]) -> io::Result<()> {
    let (_, permitted) = sys::rights::capabilities()?;
    sys::rights::set_capabilities(permitted & bits(kept))
}

/// Drops the supplementary groups. `false` if that is not permitted.
pub fn leave_other_groups() -> bool {
    sys::process::set_groups(&[]).is_ok() || sys::process::group_count() == 0
}

/// Changes the group.
///
/// # Errors
/// From the kernel: a privilege is missing.
pub fn change_group(group: u32) -> io::Result<()> {
    sys::process::set_group(group)
}

/// Changes the user, and keeps the capabilities in `kept` across the change, as far as the process has them.
///
/// # Errors
/// From the kernel: a privilege is missing. The process is in an undefined state then, and should exit.
pub fn change_user(user: u32, kept: &[Capability]) -> io::Result<()> {
    if kept.is_empty() {
        return sys::process::set_user(user);
    }
    let (_, permitted) = sys::rights::capabilities()?;
    sys::rights::keep_capabilities()?;
    sys::rights::set_capabilities(permitted & (bits(kept) | bits(&[Capability::SetUser])))?;
    sys::process::set_user(user)?;
    keep_only(kept)
}

/// Makes `directory` the root of the file system and enters it. Without the privilege, the process uses a user
/// namespace of its own.
///
/// # Errors
/// From the kernel: a privilege or the directory is missing.
pub fn change_root(directory: &Path) -> io::Result<()> {
    if !is_superuser() {
        sys::rights::enter_user_namespace()?;
    }
    std::os::unix::fs::chroot(directory)?;
    std::env::set_current_dir("/")
}

/// Makes an empty, already unlinked directory the root of the file system.
///
/// # Errors
/// From the kernel: a privilege is missing, or the directory cannot be created.
pub fn change_root_to_nothing() -> io::Result<()> {
    let directory = fresh_directory()?;
    let entered = std::env::set_current_dir(&directory);
    std::fs::remove_dir(&directory)?;
    entered?;
    change_root(Path::new("."))
}

/// Creates a directory that no other user may enter.
fn fresh_directory() -> io::Result<std::path::PathBuf> {
    use std::os::unix::fs::DirBuilderExt;
    const ATTEMPTS: u32 = 100;
    let mut builder = std::fs::DirBuilder::new();
    builder.mode(0o700);
    for _ in 0..ATTEMPTS {
        let path = std::env::temp_dir().join(format!("weir.{:016x}", sys::clock::seed()));
        match builder.create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            made => return made.map(|()| path),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Prevents programs that this process executes from gaining privileges (`no_new_privs`).
///
/// # Errors
/// From the kernel.
pub fn forbid_new_privileges() -> io::Result<()> {
    sys::rights::forbid_new_privileges()
}

/// Limits the memory for data, in bytes. [`crate::memory::keep_to_limits`] keeps the process within it.
///
/// # Errors
/// From the kernel: a privilege is missing.
pub fn limit_memory(bytes: u64) -> io::Result<()> {
    sys::rights::set_limit(libc::RLIMIT_DATA, bytes)
}

/// Permits core dumps of any size, which limits and a change of the user may forbid. Limits that may not be raised are
/// left as they are.
///
/// # Errors
/// From the kernel, if the process cannot be made dumpable.
pub fn allow_cores() -> io::Result<()> {
    for resource in [libc::RLIMIT_FSIZE, libc::RLIMIT_CORE] {
        let _ = sys::rights::set_limit(resource, libc::RLIM_INFINITY);
    }
    sys::process::set_dumpable(true)
}

/// Disables core dumps.
///
/// # Errors
/// From the kernel.
pub fn forbid_cores() -> io::Result<()> {
    sys::process::set_dumpable(false)
}
