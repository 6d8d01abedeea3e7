//! One name server: its socket, and the queries it has not answered. A socket is open while queries are pending, so each burst of
//! them uses another source port. A truncated answer is queried again over TCP. Must never accept an answer whose ID, sender and
//! question do not match a query.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::io::IoSlice;
use std::rc::Rc;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use policy::program::{Nameserver, Resolvers};
use policy::resolve::Failure;
use rt::net::{Address, Datagram, Family};
use std::sync::Arc;
use wire::dns::{AnswerRecords, Fault, ResponseCode, find, question, read};

use super::counters::Counts;
use super::round::Round;
use super::state::{Idle, Line};
use super::stream;
use crate::resolve::Resolving;
use crate::worker::Process;

/// Maximum number of pending queries of one name server.
const MOST_OPEN: usize = 4_096;
/// Datagrams that are received in a row before yielding.
const IN_A_ROW: usize = 64;

impl Line {
    pub(super) fn new(shared: Arc<Process>, written: Rc<Resolvers>, section: usize, index: usize) -> Self {
        Self {
            shared,
            written,
            section,
            index,
            open: RefCell::default(),
            socket: RefCell::default(),
            listener: Cell::default(),
            idle: Idle::default(),
        }
    }

    pub(super) fn section(&self) -> &Resolvers {
        &self.written
    }

    pub(super) fn nameserver(&self) -> &Nameserver {
        &self.section().nameservers[self.index]
    }

    pub(super) fn counts(&self) -> &Counts {
        &self.shared.service::<Resolving>().counts[self.section][self.index]
    }

    /// Sends a query.
    pub(super) fn ask(self: &Rc<Self>, round: &Rc<Round>) {
        if self.nameserver().over_tcp {
            return self.ask_over_tcp(round);
        }
        if self.send(round).is_err() {
            self.counts().send_error.add();
            return;
        }
        self.counts().sent.add();
        round.owe();
    }

    /// Sends a query over TCP.
    pub(super) fn ask_over_tcp(self: &Rc<Self>, round: &Rc<Round>) {
        self.counts().sent.add();
        round.owe();
        stream::ask(Rc::clone(self), Rc::clone(round));
    }

    /// Encodes a query with an ID.
    pub(super) fn question(&self, round: &Round, id: u16) -> Vec<u8> {
        question(id, &round.name, round.kind, self.section().payload)
    }

    fn send(self: &Rc<Self>, round: &Rc<Round>) -> std::io::Result<()> {
        let id = {
            let open = self.open.borrow();
            let mut tries = (0..16).map(|_| rt::random() as u16);
            tries.find(|id| open.len() < MOST_OPEN && !open.contains_key(id))
        };
        let Some(id) = id else { return Err(std::io::ErrorKind::WouldBlock.into()) };
        let is_new = self.socket.borrow().is_none();
        if is_new {
            let address = Address::Inet(self.nameserver().address);
            let socket = open_socket(&address)?;
            *self.socket.borrow_mut() = Some(socket);
        }
        let bytes = self.question(round, id);
        let sent = match &*self.socket.borrow() {
            Some(socket) => match socket.send(&[IoSlice::new(&bytes)]) {
                // The error belongs to an earlier datagram; sending again clears it.
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionRefused => {
                    socket.send(&[IoSlice::new(&bytes)])
                }
                sent => sent,
            },
            None => Ok(()),
        };
        if let Err(error) = sent {
            if is_new {
                *self.socket.borrow_mut() = None;
            }
            return Err(error);
        }
        self.open.borrow_mut().insert(id, Rc::clone(round));
        if is_new {
            rt::spawn(rt::Class::Normal, rt::NO_TAG, listen(Rc::clone(self)));
        }
        Ok(())
    }

    /// Removes the pending queries of a round. With `expired`, unanswered ones count as timeouts.
    pub(super) fn close(&self, round: &Rc<Round>, expired: bool) {
        let is_empty = {
            let mut open = self.open.borrow_mut();
            let before = open.len();
            open.retain(|_, other| !Rc::ptr_eq(other, round));
            if expired && open.len() < before {
                self.counts().timeout.add();
            }
            open.is_empty()
        };
        if is_empty && let Some(waker) = self.listener.take() {
            waker.wake();
        }
    }

    fn poll_next(&self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<bool> {
        if self.open.borrow().is_empty() {
            return Poll::Ready(false);
        }
        let mut socket = self.socket.borrow_mut();
        let Some(socket) = socket.as_mut() else { return Poll::Ready(false) };
        self.listener.set(Some(cx.waker().clone()));
        socket.poll_receive_from(cx, buffer).map(|received| match received {
            Ok(_) => true,
            // An earlier datagram found no receiver; there may be one by now.
            Err(error) => error.kind() == std::io::ErrorKind::ConnectionRefused,
        })
    }

    /// Handles a received datagram.
    fn take(self: &Rc<Self>, message: &[u8]) {
        let counts = self.counts();
        if message.len() > usize::from(self.section().payload) {
            counts.too_big.add();
            return;
        }
        let Ok(answer) = read(message) else { return counts.invalid.add() };
        let round = self.open.borrow().get(&answer.id).cloned();
        let Some(round) = round else { return counts.outdated.add() };
        let id = answer.id;
        match find(answer, &round.name, round.kind) {
            // A guessed ID or a faulty server: the valid answer may still come.
            Err(Fault::OtherQuestion) => counts.invalid.add(),
            Err(Fault::Truncated) => {
                counts.truncated.add();
                self.open.borrow_mut().remove(&id);
                self.ask_over_tcp(&round);
                round.fail(Failure::Other);
            }
            found => {
                self.open.borrow_mut().remove(&id);
                self.conclude(&round, found);
            }
        }
    }

    /// Counts an answer and passes it to its round.
    pub(super) fn conclude(&self, round: &Round, answer: Result<AnswerRecords, Fault>) {
        let counts = self.counts();
        match &answer {
            Ok(found) => {
                counts.valid.add();
                if found.was_alias {
                    counts.cname.add();
                }
            }
            Err(Fault::Code(ResponseCode::NoSuchName)) => counts.nx.add(),
            Err(Fault::Code(ResponseCode::Refused)) => counts.refused.add(),
            Err(Fault::Code(_)) => counts.other.add(),
            Err(Fault::Empty) => counts.any_err.add(),
            Err(Fault::BrokenAlias) => counts.cname_error.add(),
            Err(Fault::Truncated) => counts.truncated.add(),
            Err(Fault::OtherQuestion) => counts.invalid.add(),
        }
        round.answer(self.index, answer);
    }
}

fn open_socket(address: &Address) -> std::io::Result<Datagram> {
    let any = match address {
        Address::Inet(to) if to.is_ipv6() => std::net::SocketAddr::from((std::net::Ipv6Addr::UNSPECIFIED, 0)),
        _ => std::net::SocketAddr::from((std::net::Ipv4Addr::UNSPECIFIED, 0)),
    };
    debug_assert!(Family::of(address) != Family::Unix);
    // The kernel chooses the port; a connected socket receives no datagrams of other senders.
    let socket = Datagram::bind(&Address::Inet(any))?;
    socket.connect(address)?;
    Ok(socket)
}

/// Receives answers while queries are pending, then closes the socket.
async fn listen(line: Rc<Line>) {
    let mut buffer = Buffer::with_capacity(usize::from(line.section().payload) + 1);
    let mut in_a_row = 0;
    while poll_fn(|cx| line.poll_next(cx, &mut buffer)).await {
        if !buffer.is_empty() {
            line.take(buffer.data());
        }
        buffer.clear();
        in_a_row += 1;
        if in_a_row == IN_A_ROW {
            in_a_row = 0;
            rt::yield_now().await;
        }
    }
    *line.socket.borrow_mut() = None;
    line.listener.take();
}
