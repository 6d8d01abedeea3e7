//! The older processes whose UDP sockets this one has: passing datagrams to them. Must never wait for one of them longer than
//! [`PATIENCE`].

use std::collections::HashMap;
use std::future::poll_fn;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError, RwLock};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use base::moment::Moment;
use quic::cid::{HandshakeIds, Id, Place};
use rt::net::{Channel, send_descriptors};

use super::message::{LONGEST, MOST_SOCKETS, Message, Parcel};
use super::{PassedChannel, Succession};
use crate::datagram_sockets::DatagramSockets;
use crate::worker::Process;

/// Maximum number of older processes.
const MOST: usize = 64;
/// Maximum number of handshakes of all of them.
const MOST_HANDSHAKES: usize = 4_096;
/// Maximum time that older processes are waited for, all together, before this one receives.
const PATIENCE: Duration = Duration::from_secs(1);
/// Time after which handshakes of older processes are forgotten: clients do not repeat first packets any longer.
const MEMORY: Duration = Duration::from_secs(30);

/// The older processes.
#[derive(Debug, Default)]
pub struct Predecessors {
    known: OnceLock<Vec<Predecessor>>,
    handshakes: RwLock<Handshakes>,
    has_handshakes: AtomicBool,
    gate: Mutex<Gate>,
}

#[derive(Debug)]
struct Predecessor {
    tag: u8,
    /// The channel, which younger processes use as well.
    end: OwnedFd,
    /// The process has ended.
    is_gone: AtomicBool,
}

/// Handshakes in progress in older processes, by the destinations of their packets.
#[derive(Debug, Default)]
struct Handshakes {
    owners: HashMap<Id, Place>,
    until: Moment,
}

/// Holds the listeners until older processes have stopped receiving.
#[derive(Debug, Default)]
struct Gate {
    is_open: bool,
    waiting: Vec<Waker>,
}

impl Predecessors {
    /// Sets the channels, before the workers start. Those above the limit, and further ones of a tag, are closed.
    pub fn set(&self, channels: Vec<PassedChannel>) {
        let mut known: Vec<Predecessor> = Vec::new();
        for PassedChannel { tag, end } in channels {
            if known.len() < MOST && known.iter().all(|one| one.tag != tag) {
                known.push(Predecessor { tag, end, is_gone: AtomicBool::new(false) });
            }
        }
        let _ = self.known.set(known);
    }

    fn known(&self) -> &[Predecessor] {
        self.known.get().map_or(&[], Vec::as_slice)
    }

    /// Whether there are any, which may have ended.
    pub fn are_any(&self) -> bool {
        !self.known().is_empty()
    }

    fn find(&self, tag: u8) -> Option<&Predecessor> {
        self.known().iter().find(|one| one.tag == tag)
    }

    /// Whether a tag is that of an older process, which may have ended.
    pub fn has(&self, tag: u8) -> bool {
        self.find(tag).is_some()
    }

    /// Whether datagrams with a tag can be passed to a process.
    pub fn lives(&self, tag: u8) -> bool {
        self.find(tag).is_some_and(|one| !one.is_gone.load(Ordering::Relaxed))
    }

    /// Returns copies of the channels to processes that live, for a younger process.
    pub fn channels(&self) -> impl Iterator<Item = PassedChannel> + '_ {
        let living = self.known().iter().filter(|one| self.lives(one.tag));
        living.filter_map(|one| Some(PassedChannel { tag: one.tag, end: one.end.try_clone().ok()? }))
    }

    /// Passes a datagram to the process of its owner. Returns false if that has ended. A datagram that the channel has no room
    /// for is lost, as by the kernel. `space` is memory for the message.
    pub fn pass(&self, owner: Place, parcel: Parcel<'_>, space: &mut Vec<u8>) -> bool {
        let Some(process) = self.find(owner.process) else { return false };
        Message::Datagram(parcel).encode(space);
        match send(process.end.as_fd(), space) {
            Sending::Closed => {
                process.is_gone.store(true, Ordering::Relaxed);
                false
            }
            Sending::Done | Sending::Full => true,
        }
    }

    /// Returns the owner of a handshake.
    pub fn handshake(&self, id: &Id) -> Option<Place> {
        if !self.has_handshakes.load(Ordering::Acquire) {
            return None;
        }
        let handshakes = self.handshakes.read().unwrap_or_else(PoisonError::into_inner);
        if rt::now() < handshakes.until {
            return handshakes.owners.get(id).copied();
        }
        drop(handshakes);
        if self.has_handshakes.swap(false, Ordering::AcqRel) {
            *self.handshakes.write().unwrap_or_else(PoisonError::into_inner) = Handshakes::default();
        }
        None
    }

    /// Remembers handshakes of the process with a tag.
    fn remember(&self, tag: u8, ids: &[HandshakeIds]) {
        let mut handshakes = self.handshakes.write().unwrap_or_else(PoisonError::into_inner);
        for ids in ids.iter().filter(|ids| ids.place().process == tag) {
            for id in [Some(ids.chosen), Id::new(&ids.own)].into_iter().flatten() {
                if handshakes.owners.len() < 2 * MOST_HANDSHAKES {
                    handshakes.owners.insert(id, ids.place());
                }
            }
        }
        handshakes.until = rt::now() + MEMORY;
        self.has_handshakes.store(!handshakes.owners.is_empty(), Ordering::Release);
    }

    fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Ready when datagrams may be received: older processes have stopped, or there are none.
    pub fn poll_taken(&self, cx: &mut Context<'_>) -> Poll<()> {
        let mut gate = self.gate();
        if gate.is_open || !self.are_any() {
            return Poll::Ready(());
        }
        gate.waiting.push(cx.waker().clone());
        Poll::Pending
    }

    fn open_gate(&self) {
        let waiting = {
            let mut gate = self.gate();
            gate.is_open = true;
            std::mem::take(&mut gate.waiting)
        };
        waiting.into_iter().for_each(Waker::wake);
    }
}

/// The result of sending a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sending {
    Done,
    /// There is no room: the message is lost.
    Full,
    /// The other end is closed.
    Closed,
}

/// Sends a message without waiting.
pub(super) fn send(end: BorrowedFd<'_>, message: &[u8]) -> Sending {
    match send_descriptors(end, message, &[]) {
        Ok(_) => Sending::Done,
        Err(error) if is_end(error.kind()) => Sending::Closed,
        Err(_) => Sending::Full,
    }
}

fn is_end(kind: std::io::ErrorKind) -> bool {
    use std::io::ErrorKind::{BrokenPipe, ConnectionRefused, ConnectionReset, NotConnected};
    matches!(kind, BrokenPipe | ConnectionRefused | ConnectionReset | NotConnected)
}

/// Makes older processes stop receiving from the sockets of this one, and then lets the listeners receive. Runs on one worker.
pub async fn take_over(process: &Process) {
    let succession = process.service::<Succession>().clone();
    let predecessors = succession.predecessors();
    let sockets = process.service::<DatagramSockets>();
    let (number, deadline) = (rt::random(), rt::now() + PATIENCE);
    let mut request = Vec::new();
    let listens = process.generation().program.global.quic.listens;
    let identities = sockets.identities().into_iter().filter(|_| listens).take(MOST_SOCKETS).collect();
    Message::Take { number, sockets: identities }.encode(&mut request);
    let mut asked = Vec::new();
    for one in predecessors.known() {
        match send(one.end.as_fd(), &request) {
            Sending::Done => asked.extend(one.end.try_clone().and_then(Channel::adopt).ok().map(|end| (one.tag, end))),
            Sending::Full => {}
            Sending::Closed => one.is_gone.store(true, Ordering::Relaxed),
        }
    }
    let mut timer = rt::Timer::new();
    timer.arm(Some(deadline));
    let (mut space, mut descriptors) = (vec![0; LONGEST + 1], Vec::new());
    for (tag, channel) in &mut asked {
        loop {
            // Whichever of both is ready: the process of a channel may never answer.
            let received = poll_fn(|cx| match channel.poll_receive(cx, &mut space, &mut descriptors) {
                Poll::Ready(received) => Poll::Ready(received.ok()),
                Poll::Pending => timer.poll_expired(cx).map(|()| None),
            });
            let Some(length @ 1..) = received.await else { break };
            descriptors.clear();
            match space.get(..length).and_then(Message::decode) {
                Some(Message::Taken { number: answered }) if answered == number => break,
                Some(Message::Handshakes { ids, .. }) => predecessors.remember(*tag, &ids),
                // A client that began a connection while the older process was stopping.
                Some(Message::Datagram(parcel)) => sockets.steer(&parcel),
                _ => {}
            }
        }
    }
    predecessors.open_gate();
}

#[cfg(test)]
mod tests {
    use quic::Datagram;
    use rt::net::channel_pair;

    use super::*;

    const OLD: Place = Place { worker: 1, process: 9 };

    fn parcel(bytes: &[u8]) -> Parcel<'_> {
        let datagram = Datagram { bytes, peer: "192.0.2.1:9".parse().unwrap(), local: None, ecn: 0 };
        Parcel { group: 1, worker: 1, datagram }
    }

    fn with_one() -> (Predecessors, OwnedFd) {
        let (end, other) = channel_pair().unwrap();
        let predecessors = Predecessors::default();
        let (second, _) = channel_pair().unwrap();
        predecessors.set(vec![PassedChannel { tag: 9, end }, PassedChannel { tag: 9, end: second }]);
        (predecessors, other)
    }

    /// A process that does not read costs a bounded number of bytes; its datagrams are lost, and others are not held up.
    #[test]
    fn a_process_that_does_not_read_holds_nothing_up() {
        let (predecessors, other) = with_one();
        let (mut space, large) = (Vec::new(), vec![7; 60_000]);
        assert_eq!((predecessors.known().len(), predecessors.channels().count()), (1, 1));
        assert!((0..100).all(|_| predecessors.pass(OLD, parcel(&large), &mut space)));
        assert!(predecessors.lives(9) && predecessors.has(9));
        let (mut place, mut descriptors) = (vec![0; LONGEST], Vec::new());
        let waiting =
            (0..200).take_while(|_| rt::net::receive_descriptors(&other, &mut place, &mut descriptors).is_ok());
        assert!((1..100).contains(&waiting.count()));
    }

    #[test]
    fn a_process_that_has_ended_is_passed_nothing() {
        let (predecessors, other) = with_one();
        assert!(predecessors.lives(9) && !predecessors.lives(8));
        drop(other);
        assert!(!predecessors.pass(OLD, parcel(b"x"), &mut Vec::new()));
        assert!(!predecessors.lives(9) && predecessors.has(9));
        assert_eq!(predecessors.channels().count(), 0);
        assert!(!predecessors.pass(Place { worker: 1, process: 8 }, parcel(b"x"), &mut Vec::new()));
    }
}
