//! One flow of datagrams: between the address of a client and a server, from its first datagram to its end. Must never choose a
//! server.

use std::cell::{Cell, OnceCell, RefCell};
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;
use std::task::{Context, Poll};

use base::moment::Moment;
use policy::program::FlowSettings;
use rt::LocalRc;
use rt::net::{DatagramSocket, Datagrams, ReceiveBatch, Transmit};

use super::client_socket::ClientSocket;
use super::flow_ids::FlowIds;
use super::flow_table::{FlowPlace, Standing};
use crate::check::{Sign, observe};
use crate::service::ejections;
use crate::session::task::StreamTask;
use crate::stream::client::run::leave;
use crate::stream::conclude;
use crate::stream::record::metrics;
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::{SharedStreamState, Slot};
use live::health::Symptom;

/// A flow, as its task and the listener use it.
pub(super) struct Flow {
    pub(super) session: LocalRc<StreamTask>,
    pub(super) state: SharedStreamState,
    pub(super) settings: FlowSettings,
    /// Socket that is connected to the server.
    pub(super) socket: DatagramSocket,
    pub(super) server: SocketAddr,
    pub(super) client: SocketAddr,
    /// The address that the client sends to.
    pub(super) local: Option<IpAddr>,
    /// PROXY header in front of each datagram; empty: none.
    pub(super) header: Box<[u8]>,
    pub(super) progress: Progress,
    pub(super) slot: Cell<Option<Slot>>,
    pub(super) place: Cell<Option<FlowPlace>>,
    /// Its connection IDs; none without `option quic-passthrough`.
    pub(super) ids: OnceCell<Box<RefCell<FlowIds>>>,
}

/// The datagrams of a flow so far.
pub(super) struct Progress {
    /// Time of the last datagram.
    seen: Cell<Moment>,
    /// Datagrams of the client, and answers.
    requests: Cell<u64>,
    answers: Cell<u64>,
    /// Why it has to end.
    order: Cell<Option<Outcome>>,
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { seen: Cell::new(rt::now()), requests: Cell::new(0), answers: Cell::new(0), order: Cell::new(None) }
    }
}

/// The server, or a router, has rejected a datagram: one of these, or an earlier one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Rejected {
    /// Number of datagrams that were sent before that. The others were not sent.
    pub(super) sent: usize,
}

impl Rejected {
    /// Returns the datagrams that were not sent.
    pub(super) fn rest<'a>(self, datagrams: &Datagrams<'a>) -> Datagrams<'a> {
        let begin = self.sent.saturating_mul(datagrams.stride);
        Datagrams { bytes: datagrams.bytes.get(begin..).unwrap_or_default(), ..*datagrams }
    }
}

impl Flow {
    /// Sends datagrams of the client to the server. Returns whether the system has taken them; otherwise they are lost. In `place`
    /// those are put together that differ from what the client has sent.
    ///
    /// # Errors
    /// [`Rejected`]: the flow has to end. Some may have been sent, which must not be sent again.
    pub(super) fn forward(&self, datagrams: &Datagrams<'_>, place: &mut Vec<u8>) -> Result<bool, Rejected> {
        let before = self.socket.counts().too_large;
        let (contents, stride) = match self.header.is_empty() {
            true => (datagrams.bytes, datagrams.stride),
            false => self.mark(datagrams, place),
        };
        let segment_size = (stride < contents.len()).then_some(stride);
        let mut transmit = Transmit { destination: self.server, source: None, ecn: None, contents, segment_size };
        let Ok(is_accepted) = self.socket.try_send_to_peer(&mut transmit) else {
            let sent = (contents.len() - transmit.contents.len()) / stride;
            if sent > 0 {
                let bytes = datagrams.bytes.get(..sent * datagrams.stride).unwrap_or_default();
                self.count_request(&Datagrams { bytes, ..*datagrams }, true);
            }
            return Err(Rejected { sent });
        };
        let is_sent = is_accepted && self.socket.counts().too_large == before;
        self.count_request(datagrams, is_sent);
        Ok(is_sent)
    }

    /// Counts datagrams of the client.
    fn count_request(&self, datagrams: &Datagrams<'_>, is_sent: bool) {
        self.progress.seen.set(rt::now());
        self.progress.requests.set(self.progress.requests.get() + datagrams.iter().count() as u64);
        if let Ok(mut state) = self.state.try_borrow_mut() {
            state.accounting.bytes.bytes_in += datagrams.bytes.len() as u64;
            state.accounting.bytes.sent += if is_sent { datagrams.bytes.len() as u64 } else { 0 };
            metrics::flowing(&self.session, &mut state);
        }
    }

    /// Puts datagrams together, each after the PROXY header. Returns them and the length of each.
    fn mark<'p>(&self, datagrams: &Datagrams<'_>, marked: &'p mut Vec<u8>) -> (&'p [u8], usize) {
        marked.clear();
        for bytes in datagrams.iter() {
            marked.extend_from_slice(&self.header);
            marked.extend_from_slice(bytes);
        }
        (marked, self.header.len() + datagrams.stride)
    }

    /// Returns how well the client has proven its address, with a datagram that it sends now.
    pub(super) fn standing(&self) -> Standing {
        if self.progress.answers.get() > 0 { Standing::Proven } else { Standing::New }
    }

    /// Whether the client's next datagram belongs to another flow (`proxy-requests`).
    pub(super) fn is_used_up(&self) -> bool {
        self.settings.requests.is_some_and(|most| self.progress.requests.get() >= u64::from(most.get()))
    }

    /// Whether all answers have come that are expected (`proxy-responses`).
    pub(super) fn is_answered(&self) -> bool {
        let each = self.settings.responses.map(u64::from);
        each.is_some_and(|each| self.progress.answers.get() >= self.progress.requests.get().saturating_mul(each))
    }

    /// Returns the outcome of a flow without a datagram for the idle time: that is how most flows end. A server that should have
    /// answered and never has is at fault.
    fn outcome_when_idle(&self) -> Outcome {
        let is_silent = self.progress.answers.get() == 0 && self.settings.responses != Some(0);
        if is_silent { Outcome::new(Cause::ServerTimeout, Phase::Data) } else { Outcome::default() }
    }

    /// Makes its connection IDs lead nowhere.
    pub(super) fn forget_ids(&self) {
        if let Some(ids) = self.ids.get() {
            ids.borrow_mut().clear();
        }
    }

    /// Makes its task end it.
    pub(super) fn end(&self, outcome: Outcome) {
        self.progress.order.set(Some(outcome));
        self.session.wake();
    }

    /// Passes answers on to the client.
    fn answer(&self, clients: &Rc<ClientSocket>, batch: &ReceiveBatch) {
        let (mut received, mut count) = (0, 0);
        let of_server = batch.iter().filter(|datagrams| is_from(datagrams, self.server));
        for datagrams in of_server.filter_map(|datagrams| clients.fitting(&datagrams, self.settings.payload)) {
            let number = datagrams.iter().count();
            if let Some(ids) = self.ids.get() {
                ids.borrow_mut().note_answers(&datagrams);
            }
            let contents = datagrams.bytes;
            let segment_size = (datagrams.stride < contents.len()).then_some(datagrams.stride);
            let answer = Transmit { destination: self.client, source: self.local, ecn: None, contents, segment_size };
            received += contents.len() as u64;
            count += number as u64;
            clients.answer(answer);
        }
        self.progress.seen.set(rt::now());
        self.progress.answers.set(self.progress.answers.get() + count);
        if let Ok(mut state) = self.state.try_borrow_mut() {
            state.accounting.bytes.received += received;
            state.accounting.bytes.bytes_out += received;
            metrics::flowing(&self.session, &mut state);
        }
    }

    /// Passes answers on until it has to end. Returns its outcome; `None`: its task was killed.
    pub(super) async fn serve(&self, clients: &Rc<ClientSocket>) -> Option<Outcome> {
        self.session.register().await;
        let mut timer = rt::Timer::new();
        let mut batch = ReceiveBatch::new();
        std::future::poll_fn(|cx| self.poll(cx, clients, &mut timer, &mut batch)).await
    }

    /// Ready once it has ended. `None`: its task was killed.
    fn poll(
        &self,
        cx: &mut Context<'_>,
        clients: &Rc<ClientSocket>,
        timer: &mut rt::Timer,
        batch: &mut ReceiveBatch,
    ) -> Poll<Option<Outcome>> {
        loop {
            if self.session.is_killed() {
                return Poll::Ready(None);
            }
            if let Some(outcome) = self.progress.order.get() {
                return Poll::Ready(Some(outcome));
            }
            match self.socket.poll_receive(cx, batch) {
                Poll::Ready(Ok(())) => {
                    self.answer(clients, batch);
                    batch.clear();
                    if self.is_answered() {
                        return Poll::Ready(Some(Outcome::default()));
                    }
                }
                Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::ResourceBusy => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
                Poll::Ready(Err(_)) => return Poll::Ready(Some(REJECTED)),
                Poll::Pending => break,
            }
        }
        let due = self.progress.seen.get() + self.settings.idle;
        if due <= rt::now() {
            return Poll::Ready(Some(self.outcome_when_idle()));
        }
        loop {
            timer.arm(Some(self.progress.seen.get() + self.settings.idle));
            if timer.poll_expired(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Frees its slot of the server.
    fn release(&self) {
        let Some(slot) = self.slot.take() else { return };
        let counts = slot.release();
        if let Ok(mut state) = self.state.try_borrow_mut() {
            state.attempts.counts = Some(counts);
        }
    }

    /// Ends it for the benefit of another flow, which may have its slots at once.
    pub(super) fn evict(&self) {
        self.forget_ids();
        drop(self.session.take_slots());
        self.release();
        self.end(EVICTED);
    }

    /// Concludes it: its slot is free, its log line is written.
    pub(super) fn conclude(&self, outcome: Option<Outcome>) {
        let session = &self.session;
        let proxy = session.proxy();
        if outcome == Some(REJECTED)
            && let Some(server) = self.state.borrow().route.server
        {
            ejections::observe(&session.worker, proxy, server, || ejections::FAILED);
            if let Some(server) = proxy.server(server) {
                observe(&session.worker, proxy, server, Sign::Ill(Symptom::Connection));
            }
        }
        self.release();
        match outcome {
            None => session.conclude_killed(),
            Some(outcome) => {
                if let Ok(mut state) = self.state.try_borrow_mut() {
                    state.outcome = outcome;
                }
                conclude::conclude(session, SharedStreamState::clone(&self.state));
            }
        }
        leave(session);
    }
}

/// Whether datagrams come from a server. A socket receives from others until it is connected, with its port being known.
fn is_from(datagrams: &Datagrams<'_>, server: SocketAddr) -> bool {
    (datagrams.peer.ip(), datagrams.peer.port()) == (server.ip().to_canonical(), server.port())
}

/// Outcome of a flow that had to make room for another one.
const EVICTED: Outcome = Outcome::new(Cause::Resource, Phase::Data);

/// Outcome of a flow whose client has closed its port.
pub(super) const GONE: Outcome = Outcome::new(Cause::Client, Phase::Data);

/// Outcome of a flow whose server has rejected a datagram.
pub(super) const REJECTED: Outcome = Outcome::new(Cause::Server, Phase::Data);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_before_a_rejection_is_not_sent_again() {
        let peer = ([192, 0, 2, 1], 9).into();
        let datagrams = |bytes| Datagrams { bytes, stride: 3, peer, local_ip: None, ecn: None };
        for (sent, expected) in [(0, &b"abcdefgh"[..]), (1, b"defgh"), (2, b"gh"), (3, b"")] {
            assert_eq!(Rejected { sent }.rest(&datagrams(b"abcdefgh")), datagrams(expected));
        }
    }
}
