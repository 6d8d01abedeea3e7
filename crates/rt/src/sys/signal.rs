//! Operating system signals: their numbers, and their dispositions.

use std::io;
use std::mem;
use std::sync::OnceLock;

use super::check;

/// A signal that Weir sends or handles.
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

    /// Returns the system's number.
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

    /// Returns the signal with a number.
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

/// Sets the handler of a signal. It must only do what is safe in a signal handler.
pub(crate) fn set_handler(number: i32, handler: extern "C" fn(libc::c_int)) -> io::Result<()> {
    set(number, handler as *const () as libc::sighandler_t)
}

/// Blocks all signals in this thread, so that those sent to the process are handled by other threads. Signals of the
/// thread's own faults are still delivered.
pub(crate) fn leave_to_other_threads() {
    // SAFETY: all bytes zero is a valid value of this plain structure.
    let mut all: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: `all` is valid for both calls, which write and read it, and no previous mask is returned.
    unsafe {
        libc::sigfillset(&mut all);
        libc::pthread_sigmask(libc::SIG_BLOCK, &all, std::ptr::null_mut());
    }
}

/// Unblocks every signal in this thread.
pub(crate) fn unblock_all() {
    // SAFETY: all bytes zero is a valid value of this plain structure.
    let mut none: libc::sigset_t = unsafe { mem::zeroed() };
    // SAFETY: `none` is valid for both calls, which write and read it, and no previous mask is returned.
    unsafe {
        libc::sigemptyset(&mut none);
        libc::pthread_sigmask(libc::SIG_SETMASK, &none, std::ptr::null_mut());
    }
}

/// Signals of faults that the standard library handles, to report a stack overflow.
const FAULTS: [libc::c_int; 2] = [libc::SIGSEGV, libc::SIGBUS];

/// The standard library's handlers of [`FAULTS`].
static FAULT_HANDLERS: [OnceLock<libc::sigaction>; 2] = [const { OnceLock::new() }; 2];

type FaultHandler = extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void);

/// Has a signal of [`FAULTS`] that another process sends end this one, as any other signal without a handler. The standard library's
/// handler takes it for a fault whose instruction is executed again, and returns. For a thread that has started no others.
pub(crate) fn end_by_sent_faults() {
    for (number, former) in FAULTS.into_iter().zip(&FAULT_HANDLERS) {
        // SAFETY: all bytes zero is a valid value of this plain structure.
        let mut disposition: libc::sigaction = unsafe { mem::zeroed() };
        // SAFETY: nothing is set, and `disposition` is valid for the call, which writes it.
        if unsafe { libc::sigaction(number, std::ptr::null(), &mut disposition) } != 0 {
            continue;
        }
        let is_handled = ![libc::SIG_DFL, libc::SIG_IGN].contains(&disposition.sa_sigaction)
            && disposition.sa_flags & libc::SA_SIGINFO != 0;
        if is_handled && former.set(disposition).is_ok() {
            disposition.sa_sigaction = faulted as FaultHandler as *const () as libc::sighandler_t;
            // SAFETY: `disposition` is valid for the call, and has a handler of the shape that its flags say.
            unsafe { libc::sigaction(number, &disposition, std::ptr::null_mut()) };
        }
    }
}

extern "C" fn faulted(number: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes what SA_SIGINFO promises.
    let is_sent = unsafe { (*info).si_code <= 0 };
    let former = FAULTS.iter().zip(&FAULT_HANDLERS).find(|(fault, _)| **fault == number);
    match former.and_then(|(_, former)| former.get()) {
        Some(former) if !is_sent => {
            // SAFETY: the standard library's handler, which was kept with SA_SIGINFO among its flags, has this shape.
            let handler: FaultHandler = unsafe { mem::transmute(former.sa_sigaction) };
            handler(number, info, context);
        }
        _ => {
            set_default(number);
            // It comes when this returns: a signal is blocked while its handler runs.
            // SAFETY: `raise` takes any number, and may be called in a handler.
            unsafe { libc::raise(number) };
        }
    }
}

/// Gives a signal the system's own effect.
pub(crate) fn set_default(number: i32) {
    let _ = set(number, libc::SIG_DFL);
}

/// Runs `action` with no signal blocked in this thread: processes and threads that it starts inherit this mask.
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
        // SAFETY: `before` was filled in above; no previous mask is returned.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &before, std::ptr::null_mut()) };
    }
    result
}

pub(crate) fn set_ignored(number: i32) {
    let _ = set(number, libc::SIG_IGN);
}
