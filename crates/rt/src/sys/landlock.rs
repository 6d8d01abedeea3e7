//! Landlock: file system rights that a thread gives up permanently.
//!
//! Nothing here may decide when they are given up.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd};

use super::check;

const CREATE_RULESET: libc::c_long = 444;
const ADD_RULE: libc::c_long = 445;
const RESTRICT_SELF: libc::c_long = 446;
/// A rule about the files in a folder and below.
const BENEATH: libc::c_int = 1;
const ASK_VERSION: libc::c_uint = 1;

const EXECUTE: u64 = 1;
const WRITE_FILE: u64 = 1 << 1;
const REMOVE_DIRECTORY: u64 = 1 << 4;
const MAKE_CHARACTER_DEVICE: u64 = 1 << 6;
const MAKE_DIRECTORY: u64 = 1 << 7;
const MAKE_FILE: u64 = 1 << 8;
const MAKE_SOCKET: u64 = 1 << 9;
const MAKE_FIFO: u64 = 1 << 10;
const MAKE_BLOCK_DEVICE: u64 = 1 << 11;
const MAKE_LINK: u64 = 1 << 12;
/// Since version 2.
const REFER: u64 = 1 << 13;
/// Since version 3.
const TRUNCATE: u64 = 1 << 14;

/// Removes from this thread, and those that it starts, the right to write, create or execute any file that is not open
/// already. Removing files remains permitted: the process removes its own sockets at its end. Files may still be
/// created and replaced in the folders in `written`. The thread must have set `no_new_privs`.
pub(crate) fn forbid_changes(written: &[BorrowedFd<'_>]) -> io::Result<()> {
    // SAFETY: the call only queries the version; no memory is passed.
    let version = unsafe { libc::syscall(CREATE_RULESET, std::ptr::null::<u64>(), 0_usize, ASK_VERSION) };
    let version = check(version as libc::c_int)?;
    let mut rights = EXECUTE
        | WRITE_FILE
        | REMOVE_DIRECTORY
        | MAKE_CHARACTER_DEVICE
        | MAKE_DIRECTORY
        | MAKE_FILE
        | MAKE_SOCKET
        | MAKE_FIFO
        | MAKE_BLOCK_DEVICE
        | MAKE_LINK;
    if version >= 2 {
        rights |= REFER;
    }
    if version >= 3 {
        rights |= TRUNCATE;
    }
    // The first version of the structure: one word with the rights that are denied without a rule.
    // SAFETY: the word is valid for the size that is given.
    let rules = unsafe { libc::syscall(CREATE_RULESET, &raw const rights, size_of::<u64>(), 0 as libc::c_uint) };
    let rules = check(rules as libc::c_int)?;
    // SAFETY: the descriptor is new and has no other owner.
    let rules = unsafe { OwnedFd::from_raw_fd(rules) };
    for folder in written {
        allow_files(&rules, *folder, rights)?;
    }
    // SAFETY: no pointers are passed.
    let result = unsafe { libc::syscall(RESTRICT_SELF, rules.as_raw_fd(), 0 as libc::c_uint) };
    check(result as libc::c_int).map(drop)
}

/// A rule in the kernel's layout.
#[repr(C, packed)]
struct PathRule {
    allowed: u64,
    folder: i32,
}

/// Permits creating and replacing files in a folder, as far as `rights` contains that.
fn allow_files(rules: &OwnedFd, folder: BorrowedFd<'_>, rights: u64) -> io::Result<()> {
    let rule = PathRule { allowed: rights & (WRITE_FILE | MAKE_FILE | TRUNCATE), folder: folder.as_raw_fd() };
    // SAFETY: the rule has the kernel's layout and outlives the call; both descriptors are open.
    let result = unsafe { libc::syscall(ADD_RULE, rules.as_raw_fd(), BENEATH, &raw const rule, 0 as libc::c_uint) };
    check(result as libc::c_int).map(drop)
}
