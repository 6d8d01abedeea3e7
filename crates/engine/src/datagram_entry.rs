//! Admission of QUIC connections and flows at UDP sockets, by limits and rates. Must never wait.

use std::task::Waker;

use live::Entry;

use crate::datagram_sockets::{BindPlace, DatagramPlace};
use crate::frontends::Opening;
use crate::worker::{Process, Worker};

/// Returns whether connections are accepted from a socket.
pub(crate) fn opening(place: &DatagramPlace, process: &Process) -> Opening {
    if place.is_closed() { Opening::Shut } else { process.opening(place.owner().frontend) }
}

/// Why a connection gets no slots now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum NoEntry {
    /// A limit of connections is reached.
    Full,
    /// A rate is exceeded.
    TooFast,
}

/// Takes the slots that a connection needs, if limits and rates allow it now.
///
/// # Errors
/// They do not.
pub(crate) fn enter(worker: &Worker, owner: BindPlace, key: u64) -> Result<Entry, NoEntry> {
    let BindPlace { frontend, bind } = owner;
    let live = &worker.process.live;
    if let Some(slots) = live.enter_freely(frontend, bind) {
        return Ok(slots);
    }
    let slots = live.enter_or_park(frontend, bind, key, Waker::noop());
    let Some(slots) = slots else {
        live.unpark(frontend, bind, key);
        return Err(NoEntry::Full);
    };
    let admission = live.admit(frontend, bind, rt::now(), key, Waker::noop()).map_err(|_| NoEntry::TooFast)?;
    admission.confirm();
    Ok(slots)
}
