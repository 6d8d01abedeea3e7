//! State of frontends that were paused or stopped individually at run time (management manual, "disable frontend", "enable
//! frontend", "shutdown frontend"). Must never end a session.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use crate::sockets::Sockets;
use crate::worker::Process;

/// Whether a frontend accepts connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Opening {
    /// It accepts.
    Open,
    /// It is paused, and its addresses are free where the system allows that.
    Paused,
    /// It is stopped for good.
    Shut,
}

/// State of every frontend, by the index of its proxy.
#[derive(Debug)]
pub struct Frontends(Box<[AtomicU8]>);

impl Frontends {
    /// All frontends accept.
    pub(crate) fn new(proxies: usize) -> Self {
        Self((0..proxies).map(|_| AtomicU8::new(Opening::Open as u8)).collect())
    }

    /// Returns the state of a frontend.
    pub fn opening(&self, proxy: usize) -> Opening {
        match self.0.get(proxy).map(|one| one.load(Ordering::Relaxed)) {
            Some(one) if one == Opening::Paused as u8 => Opening::Paused,
            Some(one) if one == Opening::Shut as u8 => Opening::Shut,
            _ => Opening::Open,
        }
    }

    fn set(&self, proxy: usize, opening: Opening) {
        if let Some(one) = self.0.get(proxy) {
            one.store(opening as u8, Ordering::Relaxed);
        }
    }
}

/// A socket could not be paused, or another process uses its address now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failed;

/// Applies `act` to the open sockets of a frontend.
fn each_socket(
    shared: &Process,
    proxy: usize,
    act: impl Fn(&rt::net::ListeningSocket) -> std::io::Result<()>,
) -> Result<(), Failed> {
    let sockets = shared.sockets().into_iter().flat_map(Sockets::open);
    let results = sockets.filter(|(frontend, _)| *frontend == Some(proxy)).map(|(_, socket)| act(&socket));
    // `count` consumes all: every socket is tried.
    if results.filter(Result::is_err).count() == 0 { Ok(()) } else { Err(Failed) }
}

/// Stops listening until [`resume`]: another process can bind the addresses. Open connections continue.
///
/// # Errors
/// [`Failed`]: the frontend accepts no connections, but one of its addresses may not be free.
pub fn pause(shared: &Arc<Process>, proxy: usize) -> Result<(), Failed> {
    shared.frontends.set(proxy, Opening::Paused);
    crate::wake_watchers(shared);
    if shared.is_paused() { Ok(()) } else { each_socket(shared, proxy, rt::net::ListeningSocket::pause) }
}

/// Listens and accepts again after [`pause`].
///
/// # Errors
/// [`Failed`]: the frontend stays paused.
pub fn resume(shared: &Arc<Process>, proxy: usize) -> Result<(), Failed> {
    if !shared.is_paused() {
        each_socket(shared, proxy, rt::net::ListeningSocket::resume)?;
    }
    shared.frontends.set(proxy, Opening::Open);
    crate::wake_watchers(shared);
    Ok(())
}

/// Closes a frontend's sockets for good. Clients that have connected by then are served.
pub fn shut(shared: &Arc<Process>, proxy: usize) {
    shared.frontends.set(proxy, Opening::Shut);
    crate::wake_watchers(shared);
}
