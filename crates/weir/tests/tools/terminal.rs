//! A program in a pseudo-terminal, and the screen that it draws.

use crate::support::{PATIENCE, pid};
use rustix::process::{Signal, kill_process};
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use rustix::termios::{Winsize, tcsetwinsize};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::mpsc;
use std::thread::JoinHandle;

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

/// A running program and its screen. It is ended after a patience, so that reading from it ends.
pub struct Screen {
    master: File,
    parser: vt100::Parser,
    child: Child,
    done: Option<mpsc::Sender<()>>,
    guard: Option<JoinHandle<()>>,
    /// All that the program wrote.
    pub written: Vec<u8>,
}

impl Screen {
    /// Starts the program in a terminal of that size.
    pub fn start(command: &mut Command, width: u16, height: u16) -> Self {
        let (master, terminal) = terminal(width, height);
        command.stdin(terminal.try_clone().unwrap()).stdout(terminal.try_clone().unwrap()).stderr(terminal);
        let child = command.spawn().unwrap();
        // The command keeps the terminal's other side open.
        *command = Command::new("");
        let number = pid(child.id());
        let (done, wait) = mpsc::channel::<()>();
        let guard = std::thread::spawn(move || {
            if wait.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
                let _ = kill_process(number, Signal::KILL);
            }
        });
        let parser = vt100::Parser::new(height, width, 0);
        Self { master, parser, child, done: Some(done), guard: Some(guard), written: Vec::new() }
    }

    /// Types keys.
    pub fn press(&mut self, keys: &str) {
        self.master.write_all(keys.as_bytes()).unwrap();
    }

    /// Returns the text on the screen, without blanks at the ends of lines.
    pub fn text(&self) -> String {
        self.parser.screen().contents()
    }

    /// Reads until the screen satisfies a condition.
    pub fn until(&mut self, what: &str, holds: impl Fn(&str) -> bool) -> String {
        let mut piece = [0; 4096];
        while !holds(&self.text()) {
            match self.master.read(&mut piece) {
                Ok(count @ 1..) => {
                    self.parser.process(&piece[..count]);
                    self.written.extend_from_slice(&piece[..count]);
                }
                // A terminal whose other side is closed returns an error.
                _ => panic!("{what}: the program ended with\n{}", self.text()),
            }
        }
        self.text()
    }

    /// Returns the colours of the cell at the beginning of a text on the screen.
    pub fn colours_of(&self, text: &str) -> (vt100::Color, vt100::Color) {
        let screen = self.parser.screen();
        let rows: Vec<String> = screen.rows(0, screen.size().1).collect();
        let found = rows.iter().enumerate().find_map(|(row, line)| Some((row, line.find(text)?, line)));
        let (row, at, line) = found.unwrap();
        let column = line[..at].chars().count();
        let cell = screen.cell(row as u16, column as u16).unwrap();
        (cell.fgcolor(), cell.bgcolor())
    }

    /// Waits for the end of the program.
    pub fn finish(mut self) -> ExitStatus {
        let mut piece = [0; 4096];
        while let Ok(1..) = self.master.read(&mut piece) {}
        let status = self.child.wait().unwrap();
        drop(self.done.take());
        self.guard.take().unwrap().join().unwrap();
        status
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
