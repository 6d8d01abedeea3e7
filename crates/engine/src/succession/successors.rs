//! The younger processes that have got UDP sockets of this one: receiving datagrams from them. Must never keep the process
//! from ending.

use std::future::poll_fn;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rt::net::{Channel, channel_pair};

use super::message::{LONGEST, MOST_HANDSHAKES, Message, Parcel};
use super::predecessors::{Sending, send};
use super::{PassedChannel, Succession};
use crate::datagram_queue::HandshakeReport;
use crate::datagram_sockets::{DatagramSockets, SocketClaim};
use crate::worker::Process;

/// Maximum number of younger processes. Those that do not start end their channels.
const MOST: usize = 16;

/// The younger processes.
#[derive(Debug, Default)]
pub struct Successors {
    count: AtomicUsize,
    /// Number of processes that have got the sockets and have not asked this one to stop receiving. It may be a process of
    /// another kind, which never asks: it receives from the same sockets until this one has ended.
    silent: AtomicUsize,
    /// Ends of the channels to processes that have not asked, the newest last.
    ends: Mutex<Vec<Arc<OwnedFd>>>,
}

impl Successors {
    fn lock(&self) -> MutexGuard<'_, Vec<Arc<OwnedFd>>> {
        self.ends.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there may be any.
    pub fn are_any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0 || self.may_receive()
    }

    /// Whether one may receive from the sockets of this process while this one does.
    pub fn may_receive(&self) -> bool {
        self.silent.load(Ordering::Relaxed) > 0
    }

    /// Passes a datagram that begins a connection to the newest one that has not asked yet, which reads the channel until it receives
    /// itself.
    pub fn pass(&self, parcel: Parcel<'_>) {
        let Some(end) = self.lock().last().cloned() else { return };
        let mut message = Vec::new();
        Message::Datagram(parcel).encode(&mut message);
        send((*end).as_fd(), &message);
    }
}

/// A younger process, until it and those that it passed the channel to have ended.
struct Successor {
    succession: Succession,
    end: Arc<OwnedFd>,
    /// It has asked this process to stop receiving.
    has_asked: bool,
}

impl Successor {
    /// `None`: there are too many.
    fn enter(succession: &Succession, end: OwnedFd) -> Option<Self> {
        let successors = succession.successors();
        let mut ends = successors.lock();
        if successors.count.load(Ordering::Relaxed) >= MOST {
            return None;
        }
        let end = Arc::new(end);
        ends.push(Arc::clone(&end));
        successors.count.fetch_add(1, Ordering::Relaxed);
        Some(Self { succession: succession.clone(), end, has_asked: false })
    }

    /// Notes that it receives from sockets, and this process does not.
    fn note_request(&mut self) {
        if !std::mem::replace(&mut self.has_asked, true) {
            self.succession.successors().silent.fetch_sub(1, Ordering::Relaxed);
            self.forget_end();
        }
    }

    fn forget_end(&self) {
        self.succession.successors().lock().retain(|end| !Arc::ptr_eq(end, &self.end));
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        self.forget_end();
        self.succession.successors().count.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Returns the channels for a younger process that gets the sockets of this one: to this process, and to older ones that live.
pub fn channels(process: &Arc<Process>) -> Vec<PassedChannel> {
    let succession = process.service::<Succession>();
    let mut channels: Vec<PassedChannel> = succession.predecessors().channels().collect();
    succession.successors().silent.fetch_add(1, Ordering::Relaxed);
    let own = channel_pair().and_then(|(ours, theirs)| Ok((ours.try_clone()?, Channel::adopt(ours)?, theirs)));
    if let Ok((copy, channel, theirs)) = own
        && let Some(successor) = Successor::enter(succession, copy)
    {
        rt::spawn(rt::Class::Normal, rt::NO_TAG, serve(Arc::clone(process), channel, successor));
        channels.push(PassedChannel { tag: succession.tag(), end: theirs });
    }
    channels
}

/// Receives the messages of a younger process until it has ended. Then this process receives from its sockets again.
async fn serve(process: Arc<Process>, mut channel: Channel, mut successor: Successor) {
    let sockets = process.service::<DatagramSockets>();
    let mut taken: Vec<SocketClaim> = Vec::new();
    let (mut space, mut descriptors) = (vec![0; LONGEST + 1], Vec::new());
    while let Ok(length @ 1..) = channel.receive(&mut space, &mut descriptors).await {
        descriptors.clear();
        match space.get(..length).and_then(Message::decode) {
            Some(Message::Datagram(parcel)) => sockets.deliver(&parcel),
            Some(Message::Take { number, sockets: identities }) => {
                let report = Arc::new(HandshakeReport::default());
                sockets.give(&identities, &report, &mut taken);
                let ids = poll_fn(|cx| report.poll(cx)).await;
                successor.note_request();
                let mut message = Vec::new();
                let handshakes =
                    ids.chunks(MOST_HANDSHAKES).map(|ids| Message::Handshakes { number, ids: ids.to_vec() });
                for answer in handshakes.chain([Message::Taken { number }]) {
                    answer.encode(&mut message);
                    if send((*successor.end).as_fd(), &message) == Sending::Closed {
                        break;
                    }
                }
            }
            _ => {}
        }
    }
    taken.into_iter().for_each(SocketClaim::release);
    drop(successor);
}
