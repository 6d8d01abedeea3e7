//! A UDP socket on the worker's driver: receiving and sending in batches.
//!
//! It must never queue a datagram, and an error about one datagram must never end it.

use std::cell::Cell;
use std::fmt;
use std::io;
use std::mem::ManuallyDrop;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::os::unix::fs::MetadataExt;
use std::task::{Context, Poll};

use base::Key;

use super::kept;
use super::receive_batch::ReceiveBatch;
use super::receive_space::ReceiveSpace;
use super::reports::Reports;
use super::transmit::{self, Transmit};
use crate::calls::are_named;
use crate::net::Socket;
use crate::source::{Readiness, Source, Watch};
use crate::sys::control_data::UDP_GRO;
use crate::sys::receive_messages::MESSAGES;
use crate::sys::send_messages::{Naming, OutgoingMessage};
use crate::worker::Worker;
use crate::{current, sys};

/// A non-blocking UDP socket, for many peers, or connected to one. `Send` until it first waits; from then on it stays on one worker.
pub struct DatagramSocket {
    /// Another socket may get it when this one is dropped.
    pub(super) socket: ManuallyDrop<Socket>,
    local: SocketAddr,
    naming: Naming,
    receiving: Cell<Receiving>,
    pub(super) reports: Cell<Reports>,
    /// It can be connected anew.
    is_reusable: bool,
    watched_by: Cell<Option<(u32, Key)>>,
    /// The driver reports when it is writable. Otherwise it would do so after each sending.
    reports_writable: Cell<bool>,
    /// Maximum number of datagrams of a message: 1 if the kernel cannot split messages.
    most_segments: Cell<usize>,
    counts: Cell<DatagramCounts>,
}

/// Calls of a socket, and datagrams that were lost in this host.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DatagramCounts {
    /// System calls that received, those that found nothing included.
    pub receive_calls: u64,
    /// System calls that sent, those that were refused included.
    pub send_calls: u64,
    /// Not sent: longer than the path permits.
    pub too_large: u64,
    /// Not sent for another reason: no route, a filter, an address that is not local.
    pub unsent: u64,
    /// The last error of these: the system's number.
    pub last_error: Option<i32>,
}

/// How a socket receives.
#[derive(Clone, Copy)]
enum Receiving {
    /// Several messages with a call, each with its control data; the kernel joins datagrams.
    Together,
    /// One datagram with a call, which costs less. `streak`: number of successive iterations up to `turn` that have received one.
    Singly { turn: u64, streak: u8 },
}

/// Number of successive iterations with a datagram after which a socket receives several with a call.
const LONGEST_STREAK: u8 = 8;

/// The result of sending without waiting.
#[derive(Default)]
struct Progress {
    /// Number of transmits that are done.
    done: usize,
    /// The kernel accepts no more now.
    is_full: bool,
    /// Sending has stopped at an error.
    is_stopped: bool,
}

/// The peer of a connected socket, or a router, has rejected a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PeerRejected;

impl DatagramSocket {
    pub(super) fn new(socket: Socket, local: SocketAddr, most_segments: usize) -> DatagramSocket {
        DatagramSocket {
            socket: ManuallyDrop::new(socket),
            local,
            receiving: Cell::new(Receiving::Together),
            reports: Cell::new(Reports::Ignored),
            is_reusable: false,
            naming: if local.is_ipv6() { Naming::Inet6 } else { Naming::Inet4 },
            watched_by: Cell::new(None),
            reports_writable: Cell::new(false),
            most_segments: Cell::new(most_segments),
            counts: Cell::default(),
        }
    }

    pub(super) fn connected(socket: Socket, local: SocketAddr, most_segments: usize) -> DatagramSocket {
        let mut socket = DatagramSocket::new(socket, local, most_segments);
        socket.naming = Naming::Connected;
        if let Socket::Os(_) = &*socket.socket {
            socket.receiving.set(Receiving::Singly { turn: 0, streak: 0 });
        }
        socket
    }

    /// Makes a connected socket one that another one may get. `source`: where the driver reports it already.
    pub(super) fn reusable(mut self, source: Option<(u32, Key)>) -> DatagramSocket {
        self.is_reusable = true;
        self.watched_by.set(source);
        self
    }

    /// Whether the driver watches it level-triggered.
    fn is_level(&self) -> bool {
        self.naming == Naming::Connected && matches!(*self.socket, Socket::Os(_))
    }

    /// Returns the address that it is bound to; port 0 is replaced by the chosen port.
    pub fn local_address(&self) -> SocketAddr {
        self.local
    }

    /// Returns the number of datagrams that one message to the kernel carries: 1 if it cannot split messages. A
    /// [`Transmit`] of more datagrams is sent as several messages.
    pub fn most_segments(&self) -> usize {
        self.most_segments.get()
    }

    /// Returns the numbers of calls, and of datagrams that were not sent.
    pub fn counts(&self) -> DatagramCounts {
        self.counts.get()
    }

    /// Returns the number of received datagrams that the kernel dropped, mostly because the receive buffer was full.
    /// Costs a system call.
    pub fn kernel_drops(&self) -> u64 {
        match &*self.socket {
            Socket::Os(fd) => sys::socket::drops(fd.as_raw_fd()).unwrap_or(0),
            Socket::Sim(socket) => socket.udp_drops(),
        }
    }

    /// Returns the descriptor, for passing it to another process; `None` in a simulation.
    pub fn as_descriptor(&self) -> Option<BorrowedFd<'_>> {
        match &*self.socket {
            Socket::Os(fd) => Some(fd.as_fd()),
            Socket::Sim(_) => None,
        }
    }

    /// Returns the number of the socket in this machine, which is the same in every process that has it; `None` in a simulation, or
    /// if the kernel does not report it.
    pub fn identity(&self) -> Option<u64> {
        let copy = self.as_descriptor()?.try_clone_to_owned().ok()?;
        std::fs::File::from(copy).metadata().ok().map(|metadata| metadata.ino())
    }

    /// Returns the descriptor's number; `None` in a simulation.
    pub fn descriptor(&self) -> Option<RawFd> {
        self.socket.descriptor()
    }

    /// Clears the batch and receives the next messages into it: at least one.
    ///
    /// # Errors
    /// `ResourceBusy`: too many batches of this worker hold messages. Otherwise from the kernel, but never about a
    /// single datagram, unless the socket is connected: then `ConnectionRefused` and the like report that the peer, or a
    /// router, has rejected one.
    pub fn poll_receive(&self, context: &mut Context<'_>, batch: &mut ReceiveBatch) -> Poll<io::Result<()>> {
        batch.clear();
        current::with(|worker| {
            let key = self.key(worker);
            while worker.sources.borrow().get(key).is_some_and(Source::may_read) {
                if !worker.may_spend(context) {
                    return Poll::Pending;
                }
                let mut filled = ReceiveBatch::holding(worker.receive_spaces.take()?);
                // A call that sends may have taken the error, and returned nothing of it.
                if worker.sources.borrow_mut().get_mut(key).is_some_and(Source::forget_error) {
                    self.note_report();
                }
                let readiness = self.receive_now(worker, filled.space_mut())?;
                if let Some(source) = worker.sources.borrow_mut().get_mut(key) {
                    (source.read, source.unheeded) = (readiness, 0);
                }
                if !filled.is_empty() {
                    worker.spend_bytes(filled.length());
                    *batch = filled;
                    return Poll::Ready(Ok(()));
                }
                // After an error the source may always be tried.
                if readiness == Readiness::Drained {
                    break;
                }
            }
            self.watch(worker, key, self.reports_writable.get())?;
            if let Some(source) = worker.sources.borrow_mut().get_mut(key) {
                source.wait_to_read(context);
            }
            Poll::Pending
        })
    }

    /// Stops waiting for datagrams, until the next call that waits: another process that has the same socket may receive
    /// them, and arrivals do not wake this one.
    pub fn stop_watching(&self) {
        let Some((instance, key)) = self.watched_by.take() else { return };
        self.reports_writable.set(false);
        let _source = current::try_with(|worker| {
            if worker.remote.instance != instance {
                return None;
            }
            let source = worker.sources.borrow_mut().remove(key)?;
            // Another process may have the same socket, which would then continue to be reported. Connected ones are not passed on.
            if source.watched && self.naming != Naming::Connected {
                worker.driver.unwatch(&self.socket);
            }
            Some(source)
        });
    }

    /// Receives messages; returns whether there may be more.
    fn receive_now(&self, worker: &Worker, space: Option<&mut ReceiveSpace>) -> io::Result<Readiness> {
        let Some(space) = space else { return Ok(Readiness::Drained) };
        self.count(|counts| counts.receive_calls += 1);
        if let Receiving::Singly { turn, streak } = self.receiving.get() {
            let received = self.receive_one(space);
            if let Ok(Some(())) = received {
                self.note_received(turn, streak, worker.counts.turns.get());
            }
            return self.readiness_after(received.map(|found| found.map(|()| 1)));
        }
        let received = match &*self.socket {
            Socket::Os(fd) => {
                let ReceiveSpace { bytes, heads, messages } = space;
                sys::receive_messages::receive(fd.as_raw_fd(), bytes, heads, |info| messages.push(info))
            }
            Socket::Sim(socket) => socket.receive_messages(space),
        };
        self.readiness_after(received)
    }

    fn receive_one(&self, space: &mut ReceiveSpace) -> io::Result<Option<()>> {
        let Socket::Os(fd) = &*self.socket else { return Ok(None) };
        let ReceiveSpace { bytes, heads, messages } = space;
        sys::receive_messages::receive_one(fd.as_raw_fd(), bytes, heads, |info| messages.push(info))
    }

    /// Records that an iteration has received a datagram. After many in a row the kernel joins them.
    fn note_received(&self, last: u64, streak: u8, turn: u64) {
        let streak = if turn.saturating_sub(last) <= 1 { streak + 1 } else { 0 };
        self.receiving.set(Receiving::Singly { turn, streak });
        if streak >= LONGEST_STREAK {
            // A kernel that cannot join datagrams passes them on one by one.
            let _ = self.socket.set_option(libc::IPPROTO_UDP, UDP_GRO, 1);
            self.receiving.set(Receiving::Together);
        }
    }

    /// Returns whether there may be more after a call that received `received` messages.
    fn readiness_after(&self, received: io::Result<Option<usize>>) -> io::Result<Readiness> {
        match received {
            Ok(Some(MESSAGES..)) => Ok(Readiness::Ready),
            // An error ended the call, or one datagram was asked for and the driver reports no others.
            Ok(Some(_)) if are_named() || (self.is_level() && self.reports_writable.get()) => Ok(Readiness::Ready),
            Ok(_) => Ok(Readiness::Drained),
            // A router's or a peer's message about an earlier datagram. This call has removed it.
            Err(error) if is_about_a_datagram(&error) && !self.is_rejection(&error) => {
                self.note_report();
                Ok(Readiness::Ready)
            }
            Err(error) => Err(error),
        }
    }

    /// Whether an error of sending may be about an earlier datagram, without being a rejection.
    fn is_of_another(&self, error: &io::Error) -> bool {
        let is_reported = self.naming == Naming::Connected || self.reports.get() != Reports::Ignored;
        is_reported && is_about_a_datagram(error) && !self.is_rejection(error)
    }

    /// Records that the queue of errors may have a report.
    fn note_report(&self) {
        if self.reports.get() == Reports::Requested {
            self.reports.set(Reports::Waiting);
        }
    }

    /// Whether an error means that the only peer of a connected socket does not receive. A path that is too narrow concerns
    /// single datagrams.
    fn is_rejection(&self, error: &io::Error) -> bool {
        self.naming == Naming::Connected && error.raw_os_error() != Some(libc::EMSGSIZE)
    }

    /// Sends from the front of `transmits`; returns how many are done, at least one. Datagrams that the kernel refuses
    /// are lost, and done. If the kernel accepts no more, `contents` of the first transmit that is not done is what
    /// remains of it.
    ///
    /// # Errors
    /// From the driver, when the socket cannot be watched.
    pub fn poll_send(&self, context: &mut Context<'_>, transmits: &mut [Transmit<'_>]) -> Poll<io::Result<usize>> {
        if transmits.is_empty() {
            return Poll::Ready(Ok(0));
        }
        current::with(|worker| {
            let key = self.key(worker);
            if worker.sources.borrow().get(key).is_some_and(Source::may_write) {
                if !worker.may_spend(context) {
                    return Poll::Pending;
                }
                let length = transmit::length(transmits);
                let Progress { done, is_full, .. } = self.send_now(transmits, |_| false);
                worker.spend_bytes(length - transmit::length(transmits));
                if is_full {
                    self.note_full(worker, key);
                } else if self.reports_writable.get() {
                    self.watch(worker, key, false)?;
                }
                if done > 0 {
                    return Poll::Ready(Ok(done));
                }
            }
            self.watch(worker, key, true)?;
            if let Some(source) = worker.sources.borrow_mut().get_mut(key) {
                source.wait_to_write(context);
            }
            Poll::Pending
        })
    }

    /// Sends from the front of `transmits` what the kernel accepts now; returns how many are done. For datagrams that
    /// may be lost.
    pub fn try_send(&self, transmits: &mut [Transmit<'_>]) -> usize {
        self.send_now(transmits, |_| false).done
    }

    /// Sends to the peer of a connected socket what the kernel accepts now, up to a rejection. `contents` of the transmit is what
    /// remains of it. Returns whether the kernel has accepted everything.
    ///
    /// # Errors
    /// [`PeerRejected`]: nothing of what remains was sent. The rejection may be about an earlier datagram.
    pub fn try_send_to_peer(&self, transmit: &mut Transmit<'_>) -> Result<bool, PeerRejected> {
        let progress = self.send_now(std::slice::from_mut(transmit), |error| self.is_rejection(error));
        if progress.is_stopped { Err(PeerRejected) } else { Ok(progress.done > 0) }
    }

    fn note_full(&self, worker: &Worker, key: Key) {
        if let Some(source) = worker.sources.borrow_mut().get_mut(key) {
            source.write = Readiness::Drained;
        }
    }

    /// Sends until the kernel accepts no more, or an error `stops` it. Other errors cost the message that they are about.
    fn send_now(&self, transmits: &mut [Transmit<'_>], stops: impl Fn(&io::Error) -> bool) -> Progress {
        let (mut done, mut is_repeated) = (0, false);
        while let Some(rest) = transmits.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let joined = self.most_segments.get() > 1;
            let sent = self.send_messages(transmit::messages(rest, joined));
            let is_first_error = sent.is_err() && !std::mem::replace(&mut is_repeated, sent.is_err());
            match sent {
                Ok(Some(count @ 1..)) => done += transmit::advance(rest, joined, count),
                Ok(_) => return Progress { done, is_full: true, ..Progress::default() },
                // Nothing was sent; the call has removed the error.
                Err(error) if is_first_error && self.is_of_another(&error) => self.note_report(),
                Err(error) => {
                    is_repeated = false;
                    let progress = self.send_refused(rest, joined, &error, &stops);
                    done += progress.done;
                    if progress.is_full || progress.is_stopped {
                        return Progress { done, ..progress };
                    }
                }
            }
        }
        Progress { done, ..Progress::default() }
    }

    /// Deals with the first message, which the kernel refused: if it may have refused to split it, its datagrams are
    /// sent one by one; otherwise it is lost, unless the error stops sending.
    fn send_refused(
        &self,
        transmits: &mut [Transmit<'_>],
        joined: bool,
        error: &io::Error,
        stops: impl Fn(&io::Error) -> bool,
    ) -> Progress {
        let Some(first) = transmits.first_mut() else { return Progress::default() };
        let OutgoingMessage { bytes, segment, .. } = first.first_message(joined);
        if segment.is_none() || !sys::batch::is_about_segments(error) {
            if stops(error) {
                return Progress { is_stopped: true, ..Progress::default() };
            }
            self.count_loss(error, segment.map_or(1, |size| bytes.len().div_ceil(usize::from(size))));
            return Progress { done: transmit::advance(transmits, joined, 1), ..Progress::default() };
        }
        let mut apart = [Transmit { contents: bytes, ..*first }];
        let (mut are_sent, mut progress, too_large) = (false, Progress::default(), self.counts.get().too_large);
        while !apart[0].contents.is_empty() && !progress.is_full && !progress.is_stopped {
            match self.send_messages(transmit::messages(&apart, false)) {
                Ok(Some(count @ 1..)) => {
                    are_sent = true;
                    transmit::advance(&mut apart, false, count);
                }
                Ok(_) => progress.is_full = true,
                Err(error) if stops(&error) => progress.is_stopped = true,
                Err(error) => {
                    self.count_loss(&error, 1);
                    transmit::advance(&mut apart, false, 1);
                }
            }
        }
        // Datagrams that are too large for the path are refused together as well.
        if are_sent && self.counts.get().too_large == too_large {
            self.most_segments.set(1);
        }
        first.contents = &first.contents[bytes.len() - apart[0].contents.len()..];
        Progress { done: usize::from(first.contents.is_empty()), ..progress }
    }

    fn send_messages<'a>(&self, messages: impl Iterator<Item = OutgoingMessage<'a>>) -> io::Result<Option<usize>> {
        self.count(|counts| counts.send_calls += 1);
        match &*self.socket {
            Socket::Os(fd) => sys::send_messages::send(fd.as_raw_fd(), self.naming, messages),
            Socket::Sim(socket) => socket.send_messages(messages),
        }
    }

    fn count_loss(&self, error: &io::Error, datagrams: usize) {
        self.count(|counts| match error.raw_os_error() {
            Some(libc::EMSGSIZE) => counts.too_large += datagrams as u64,
            code => (counts.unsent, counts.last_error) = (counts.unsent + datagrams as u64, code),
        });
    }

    fn count(&self, change: impl FnOnce(&mut DatagramCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// Returns the key of its source on a worker.
    fn key(&self, worker: &Worker) -> Key {
        match self.watched_by.get() {
            Some((instance, key)) if instance == worker.remote.instance => key,
            _ => {
                let source = if self.is_level() { Source::level() } else { Source::new() };
                let key = worker.sources.borrow_mut().insert(source);
                self.watched_by.set(Some((worker.remote.instance, key)));
                self.reports_writable.set(false);
                key
            }
        }
    }

    /// Makes the driver report when it is readable, and on demand when it is writable. It reports what it is already.
    fn watch(&self, worker: &Worker, key: Key, writable: bool) -> io::Result<()> {
        let mut sources = worker.sources.borrow_mut();
        let Some(source) = sources.get_mut(key) else { return Err(io::ErrorKind::InvalidInput.into()) };
        let watch = match (writable, self.is_level()) {
            (true, _) => Watch::Edges,
            (false, true) => Watch::Level,
            (false, false) => Watch::Arrivals,
        };
        if !source.watched {
            worker.driver.watch(&self.socket, watch, key)?;
            source.note_watched(self.socket.number());
        } else if self.reports_writable.get() != writable {
            worker.driver.watch_otherwise(&self.socket, watch, key)?;
        }
        self.reports_writable.set(writable);
        Ok(())
    }
}

/// Whether an error of receiving is an ICMP message about a datagram that was sent.
fn is_about_a_datagram(error: &io::Error) -> bool {
    let codes = [
        libc::ECONNREFUSED,
        libc::ECONNRESET,
        libc::EHOSTUNREACH,
        libc::EHOSTDOWN,
        libc::ENETUNREACH,
        libc::ENETDOWN,
        libc::ENONET,
        libc::EMSGSIZE,
        libc::EPROTO,
        libc::ENOPROTOOPT,
        libc::EOPNOTSUPP,
        libc::EACCES,
    ];
    error.raw_os_error().is_some_and(|code| codes.contains(&code))
}

impl Drop for DatagramSocket {
    fn drop(&mut self) {
        let is_reusable = self.is_reusable && matches!(self.receiving.get(), Receiving::Singly { .. });
        let source = self.watched_by.get();
        if !is_reusable || self.reports_writable.get() {
            self.stop_watching();
        }
        // SAFETY: the socket is not used again.
        let socket = unsafe { ManuallyDrop::take(&mut self.socket) };
        if let Socket::Os(descriptor) = socket
            && is_reusable
            && !self.reports_writable.get()
        {
            kept::keep(descriptor, self.local.is_ipv6(), source);
        }
    }
}

impl fmt::Debug for DatagramSocket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let descriptor = self.descriptor();
        f.debug_struct("DatagramSocket").field("local", &self.local).field("descriptor", &descriptor).finish()
    }
}
