//! State of frontends that were paused or stopped individually at run time (management manual, "disable frontend", "enable
//! frontend", "shutdown frontend"). Must never end a session.

use std::sync::Arc;

use crate::sockets::Sockets;
use crate::worker::Process;
pub use crate::worker::open_frontends::{Frontends, Opening};

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
