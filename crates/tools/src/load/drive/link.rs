//! A connection of the load, from its first packet, with or without TLS. Must never interpret its requests.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use conn::transport::{self, Opening, Transport};
use rt::net::ConnectOptions;
use tls::{Client, Connection, asked_name};

use super::failure::{Failure, insecure};
use super::load_run::{Lane, LoadRun};
use super::worker::Worker;
use crate::load::plan::Protocol;

/// Requests longer than this may need several segments: the last one must not wait for an acknowledgement.
const ONE_SEGMENT: usize = 1000;

/// A connection and the number of its requests.
pub(super) struct Link {
    pub(super) transport: Transport,
    pub(super) asked: u64,
    /// Nothing was sent yet: the first write shows whether the connection was established.
    pub(super) fresh: bool,
    /// The TLS handshake is not complete.
    shaking: bool,
    /// Counts the connection as open.
    _open: Open,
}

/// Guard that counts a connection as open.
pub(super) struct Open(Rc<Worker>);

impl Open {
    pub(super) fn new(worker: &Rc<Worker>) -> Self {
        worker.open.set(worker.open.get() + 1);
        Self(Rc::clone(worker))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.open.set(self.0.open.get() - 1);
    }
}

/// Opens the connections of one slot.
pub(super) struct Opener {
    options: ConnectOptions,
    /// TLS client: with session resumption, one per slot.
    secure: Option<Arc<Client>>,
}

impl Opener {
    pub(super) fn new(course: &LoadRun, lane: &Lane, secure: Option<Arc<Client>>) -> Self {
        let options = ConnectOptions {
            nodelay: lane.protocol != Protocol::Http1
                || lane.requests.iter().any(|request| request.bytes.len() > ONE_SEGMENT),
            delay_acknowledgement: course.plan.send_with_handshake,
            ..ConnectOptions::default()
        };
        Self { options, secure }
    }

    /// Returns the TLS client of `https://` URLs.
    pub(super) fn secure(&self) -> Option<&Arc<Client>> {
        self.secure.as_ref()
    }

    /// Starts a connection.
    pub(super) fn connect(&self, lane: &Lane) -> io::Result<Opening> {
        transport::connect(&lane.address, &self.options)
    }

    /// Wraps a started connection. `fresh`: it may not be established yet.
    pub(super) fn link(&self, lane: &Lane, transport: Transport, fresh: bool, open: Open) -> io::Result<Link> {
        let mut transport = transport;
        if let Some((client, name)) = self.secure.as_ref().zip(lane.secure.as_ref()) {
            let name = asked_name(Some(name), lane.address.inet().map(|address| address.ip()));
            let connection = Connection::of_client(client, name, None);
            let connection = connection.map_err(|failure| io::Error::other(format!("TLS: {failure:?}")))?;
            transport = transport.with_tls(connection);
            transport.begin_tls(&[]);
        }
        Ok(Link { shaking: transport.is_tls(), transport, asked: 0, fresh, _open: open })
    }
}

impl Link {
    /// Whether the peer has closed the connection while it was idle, or sent unsolicited data.
    pub(super) fn is_spent(&mut self) -> bool {
        !(self.fresh || self.transport.is_clean() || self.transport.is_tls() && self.transport.settle())
    }

    /// Ready when the TLS handshake is complete, if there is one.
    pub(super) fn poll_shaken(
        &mut self,
        context: &mut Context<'_>,
        worker: &Worker,
        lane: &Lane,
    ) -> Poll<Result<(), Failure>> {
        if !self.shaking {
            return Poll::Ready(Ok(()));
        }
        ready!(self.transport.poll_handshake(context)).map_err(insecure)?;
        self.shaking = false;
        let Some(facts) = self.transport.handshake_info() else { return Poll::Ready(Ok(())) };
        if !lane.reference {
            let counters = &mut *worker.counters.borrow_mut();
            counters.handshakes += 1;
            counters.resumed += u64::from(facts.resumed);
        }
        if lane.protocol != Protocol::Http1 && facts.alpn.as_deref() != Some(b"h2") {
            return Poll::Ready(Err(Failure::NoH2));
        }
        Poll::Ready(Ok(()))
    }
}
