//! Libraries that were loaded before the C library and replace its functions. Must never call one of these functions.

use std::ffi::{CStr, OsStr};
use std::mem::MaybeUninit;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

/// The functions of [`super::calls`].
const FUNCTIONS: [&CStr; 9] =
    [c"recv", c"recvfrom", c"recvmsg", c"send", c"sendto", c"sendmsg", c"accept4", c"epoll_wait", c"close"];

/// Functions of the C library itself. Before release 2.34 of glibc it had two files, of which the second one, with the last of these
/// functions, has the functions for sockets as well.
const OWN: [&CStr; 2] = [c"__libc_start_main", c"pthread_key_create"];

/// Returns the library whose functions the program would call instead of those of the C library; `None`: there is none.
pub(crate) fn replacement() -> Option<PathBuf> {
    let own = OWN.map(|name| file_of(name).map(|file| file.start));
    let files = FUNCTIONS.iter().filter_map(|name| file_of(name));
    files.into_iter().find(|file| !own.contains(&Some(file.start))).map(|file| file.path)
}

/// A loaded file.
struct LoadedFile {
    /// Address of its first byte, which distinguishes it from others.
    start: usize,
    path: PathBuf,
}

/// Returns the first loaded file with a function of that name.
fn file_of(name: &CStr) -> Option<LoadedFile> {
    // SAFETY: the name ends with a zero byte.
    let function = unsafe { libc::dlsym(libc::RTLD_DEFAULT, name.as_ptr()) };
    if function.is_null() {
        return None;
    }
    let mut found = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: the function only looks up the address, and the pointer is to a place as large as the type.
    let is_known = unsafe { libc::dladdr(function, found.as_mut_ptr()) } != 0;
    // SAFETY: all bytes zero is a valid value of this plain structure.
    let found = unsafe { found.assume_init() };
    if !is_known || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: the name ends with a zero byte, and lives as long as the file is loaded: files are never unloaded here.
    let path = unsafe { CStr::from_ptr(found.dli_fname) };
    Some(LoadedFile { start: found.dli_fbase as usize, path: OsStr::from_bytes(path.to_bytes()).into() })
}
