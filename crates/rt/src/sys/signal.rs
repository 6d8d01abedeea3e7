//! Signals of the operating system: their numbers, and their dispositions.

use std::io;
use std::mem;

use super::check;

/// A signal that Weir knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Signal {
    /// SIGHUP.
    Hangup,
    /// SIGINT.
    Interrupt,
    /// SIGQUIT.
    Quit,
    /// SIGTERM.
    Terminate,
    /// SIGUSR1.
    User1,
    /// SIGUSR2.
    User2,
    /// SIGCHLD.
    Child,
    /// SIGTTIN.
    TerminalInput,
    /// SIGTTOU.
    TerminalOutput,
    /// SIGKILL: can be sent, never received.
    Kill,
}

impl Signal {
    const ALL: [Signal; 10] = [
        Signal::Hangup,
        Signal::Interrupt,
        Signal::Quit,
        Signal::Terminate,
        Signal::User1,
        Signal::User2,
        Signal::Child,
        Signal::TerminalInput,
        Signal::TerminalOutput,
        Signal::Kill,
    ];

    /// The system's number.
    pub const fn number(self) -> i32 {
        match self {
            Signal::Hangup => libc::SIGHUP,
            Signal::Interrupt => libc::SIGINT,
            Signal::Quit => libc::SIGQUIT,
            Signal::Terminate => libc::SIGTERM,
            Signal::User1 => libc::SIGUSR1,
            Signal::User2 => libc::SIGUSR2,
            Signal::Child => libc::SIGCHLD,
            Signal::TerminalInput => libc::SIGTTIN,
            Signal::TerminalOutput => libc::SIGTTOU,
            Signal::Kill => libc::SIGKILL,
        }
    }

    /// The signal with a number.
    pub fn from_number(number: i32) -> Option<Signal> {
        Signal::ALL.into_iter().find(|signal| signal.number() == number)
    }
}

fn set(number: i32, action: libc::sighandler_t) -> io::Result<()> {
    // SAFETY: all bytes zero is a valid value of this plain structure: no flags, an empty mask.
    let mut disposition: libc::sigaction = unsafe { mem::zeroed() };
    disposition.sa_sigaction = action;
    disposition.sa_flags = libc::SA_RESTART;
    // SAFETY: `disposition` is valid for the call, and `action` is a handler of this shape or one of the constants.
    check(unsafe { libc::sigaction(number, &disposition, std::ptr::null_mut()) }).map(drop)
}

/// Has `handler` called for a signal. It must only do what is safe in a signal handler.
pub(crate) fn set_handler(number: i32, handler: extern "C" fn(libc::c_int)) -> io::Result<()> {
    set(number, handler as *const () as libc::sighandler_t)
}

/// Has every signal that is meant for the process go to another thread than this one. Signals of the thread's own faults
/// come all the same.
pub(crate) fn leave_to_other_threads() {
    // SAFETY: all bytes zero is a valid value of this plain structure.
    let mut all: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: `all` is valid for both calls, which write and read it, and nothing is asked back.
    unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
}

/// Unblocks every signal in this thread.
pub(crate) fn unblock_all() {
    // SAFETY: all bytes zero is a valid value of this plain structure.
    let mut none: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: `none` is valid for both calls, which write and read it, and nothing is asked back.
    unsafe {
        libc::sigemptyset(&mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// Gives a signal the system's own effect.
pub(crate) fn set_default(number: i32) {
    let _ = set(number, libc::SIG_DFL);
}

/// Runs `action` with no signal blocked in this thread: what it starts begins like that.
pub(crate) fn with_none_blocked<T>(action: impl FnOnce() -> T) -> T {
    // SAFETY: all bytes zero is a valid value of this plain structure.
    let (mut none, mut before): (libc::sigset_t, libc::sigset_t) = unsafe { (mem::zeroed(), mem::zeroed()) };
    // SAFETY: both sets are valid for the calls, which write the one and read and write the other.
    let changed = unsafe {
        libc::sigemptyset(&mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &none, &mut before) == 0
    };
    let result = action();
    if changed {
        // SAFETY: `before` was filled in above; nothing is asked back.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    }
    result
}

/// Ignores a signal.
pub(crate) fn set_ignored(number: i32) {
    let _ = set(number, libc::SIG_IGN);
}
