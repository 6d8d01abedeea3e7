//! The start of a session: its slots on the worker, the rules on connections, its task. Must never read from its
//! connection.

use std::rc::Rc;

use conn::transport::{self, Transport};
use live::Entry;
use rt::LocalRc;
use rt::net::{Address, OwnedSocket};

use super::run::{admit, leave, run_unless_killed};
use crate::end_notice::Guard;
use crate::generation::FrontendHandle;
use crate::session::Session;
use crate::session::task::StreamTask;
use crate::stream::record::metrics;
use crate::worker::Worker;

/// Starts the session of an accepted connection on this worker. A connection that is rejected by `tcp-request
/// connection` rules never becomes a task.
pub fn start(
    worker: &Rc<Worker>,
    handle: &Rc<FrontendHandle>,
    bind: usize,
    socket: OwnedSocket,
    peer: Address,
    slots: Entry,
) {
    let offered = handle.proxy.frontend.as_ref().and_then(|frontend| frontend.binds.get(bind)?.tls.as_ref());
    let stream = match offered {
        None => transport::accept(socket),
        Some(offered) => transport::accept_tls(socket, offered),
    };
    begin(worker, handle, bind, stream, peer, slots, None);
}

/// Starts the session of a connection that Weir has opened and on which the peer sends requests (reverse HTTP).
pub fn start_reversed(
    worker: &Rc<Worker>,
    handle: &Rc<FrontendHandle>,
    bind: usize,
    stream: Transport,
    peer: Address,
    slots: Entry,
    guard: Guard,
) {
    begin(worker, handle, bind, stream, peer, slots, Some(guard));
}

fn begin(
    worker: &Rc<Worker>,
    handle: &Rc<FrontendHandle>,
    bind: usize,
    stream: Transport,
    peer: Address,
    slots: Entry,
    guard: Option<Guard>,
) {
    let make = || Session::new(worker, handle, bind, stream.socket(), peer.inet(), slots);
    let session = LocalRc::new(|| StreamTask::own(make()));
    if let Some(guard) = guard {
        let _ = session.extras().reversed.set(guard);
    }
    StreamTask::enter(&session);
    metrics::connection(&session);
    if session.proxy().rules.connection.is_empty() {
        spawn(session, stream);
    } else {
        // A panic is attributed to the session, not to the listener's task.
        rt::contain(session.tag(), || screen(session, stream));
    }
}

/// Runs the rules on connections, and continues with a connection that passes.
fn screen(session: LocalRc<StreamTask>, mut stream: Transport) {
    match admit(&session, &mut stream, true) {
        Some(expected) => {
            if expected.is_some() {
                session.extras().expected.set(Some(expected));
            }
            spawn(session, stream);
        }
        None => {
            drop(stream);
            leave(&session);
        }
    }
}

fn spawn(session: LocalRc<StreamTask>, stream: Transport) {
    rt::spawn_with(rt::Class::Normal, session.tag(), (session, stream), |(session, stream)| {
        run_unless_killed(session, stream)
    });
}
