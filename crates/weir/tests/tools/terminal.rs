//! Pseudo-terminals: the user's side, and the program's.

use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

/// Opens a terminal of that size: the user's side, and the program's side.
pub fn terminal(width: u16, height: u16) -> (File, File) {
    let master = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC).unwrap();
    grantpt(&master).unwrap();
    unlockpt(&master).unwrap();
    let name = ptsname(&master, Vec::new()).unwrap();
    let path = Path::new(std::ffi::OsStr::from_bytes(name.as_bytes()));
    let program = File::options().read(true).write(true).open(path).unwrap();
    tcsetwinsize(&program, Winsize { ws_col: width, ws_row: height, ws_xpixel: 0, ws_ypixel: 0 }).unwrap();
    (File::from(master), program)
}
