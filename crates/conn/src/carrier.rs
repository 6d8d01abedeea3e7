//! The carrier of requests to a server and of its answers: a connection of its own, or one stream of a multiplexed
//! connection. Must never choose one.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use rt::LocalBox;
use rt::net::{Address, SocketQuery};
use tls::HandshakeInfo;
use wire::h1::{self, Edits, Overflow};
use wire::http::Head;

use crate::fcgi;
use crate::h2;
use crate::h3;
use crate::transport::Transport;

/// The connection, or share of one, that carries a request.
pub enum Carrier {
    /// A connection of HTTP/1, or in TCP mode: one request after the other.
    Own(Transport),
    /// A request of HTTP/2.
    H2(h2::Request),
    /// A request of HTTP/3.
    H3(h3::Request),
    /// A connection of FastCGI: one request after the other.
    Fcgi(LocalBox<fcgi::Connection>),
    /// A request of FastCGI on a multiplexed connection.
    FcgiShare(Box<fcgi::Request>),
}

/// The use of a multiplexed connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SharedUse {
    /// The major version of HTTP; 1 for another protocol.
    pub major: u32,
    /// The number of the server's glitches.
    pub glitches: u32,
    /// The number of requests in progress.
    pub open: usize,
    /// The number of requests that may be in progress at a time.
    pub limit: usize,
}

impl SharedUse {
    pub(crate) fn of_h2(shared: &h2::Requests) -> Self {
        Self { major: 2, glitches: shared.glitches(), open: shared.open(), limit: shared.limit() }
    }

    pub(crate) fn of_h3(shared: &h3::Requests) -> Self {
        Self { major: 3, glitches: shared.glitches(), open: shared.open(), limit: shared.limit() }
    }

    pub(crate) fn of_fcgi(shared: &fcgi::Requests) -> Self {
        Self { major: 1, glitches: 0, open: shared.open(), limit: shared.limit() }
    }
}

/// How the head of a request is written for a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestFormat {
    /// As text (RFC 9112); the body may be chunked.
    H1,
    /// As frames of a stream that has no number yet (RFC 9113).
    H2,
    /// As frames of a QUIC stream (RFC 9114).
    H3,
    /// As records with parameters, which are built from the head elsewhere (FastCGI).
    Fcgi,
}

impl RequestFormat {
    /// Whether a body without a length is chunked.
    pub fn has_chunks(self) -> bool {
        self == Self::H1
    }

    /// Encodes a head.
    ///
    /// # Errors
    /// It does not fit.
    pub(crate) fn encode(self, head: &Head, edits: &Edits<'_>, out: &mut Buffer) -> Result<(), Overflow> {
        match self {
            Self::H1 => h1::encode_request(head, edits, out),
            Self::H2 => wire::h2::encode_request(0, head, edits, out),
            Self::H3 => wire::h3::encode_request(head, edits, out),
            // FastCGI parameters contain more than the head.
            Self::Fcgi => Err(Overflow),
        }
    }
}

/// Matches on the variants.
macro_rules! on {
    ($carrier:expr, $own:ident => $alone:expr, $stream:ident => $several:expr, $fcgi:ident => $records:expr,
        $share:ident => $shared:expr) => {
        match $carrier {
            Self::Own($own) => $alone,
            Self::H2($stream) => $several,
            Self::H3($stream) => $several,
            Self::Fcgi($fcgi) => $records,
            Self::FcgiShare($share) => $shared,
        }
    };
}

impl Carrier {
    /// The connection, if the request owns it and its bytes are the stream's own: for TCP mode and tunnels.
    pub fn transport(&mut self) -> Option<&mut Transport> {
        on!(self, own => Some(own), _stream => None, _fcgi => None, _share => None)
    }

    /// The connection, if the request owns it and no request is in progress on it.
    pub fn into_transport(self) -> Option<Transport> {
        on!(self, own => Some(own), _stream => None, fcgi => fcgi.into_inner().into_transport(), _share => None)
    }

    /// The format of request heads.
    pub fn request_format(&self) -> RequestFormat {
        match self {
            Self::Own(_) => RequestFormat::H1,
            Self::H2(_) => RequestFormat::H2,
            Self::H3(_) => RequestFormat::H3,
            Self::Fcgi(_) | Self::FcgiShare(_) => RequestFormat::Fcgi,
        }
    }

    /// The use of the multiplexed connection that carries the request.
    pub fn shared(&self) -> Option<SharedUse> {
        match self {
            Self::Own(_) | Self::Fcgi(_) => None,
            Self::H2(request) => Some(SharedUse::of_h2(request.requests())),
            Self::H3(request) => Some(SharedUse::of_h3(request.requests())),
            Self::FcgiShare(request) => Some(SharedUse::of_fcgi(request.requests())),
        }
    }

    /// The result of the connection's TLS handshake.
    pub fn handshake_info(&self) -> Option<&Arc<HandshakeInfo>> {
        on!(self, own => own.handshake_info(), stream => stream.about().tls.get(), fcgi => fcgi.transport().handshake_info(), share => share.about().tls.get())
    }

    /// Whether the handshake of the connection is not complete, so that what is sent is early data.
    pub fn is_early(&self) -> bool {
        on!(self, own => !own.is_whole(), stream => stream.requests().is_early(), fcgi => !fcgi.transport().is_whole(), share => share.requests().is_early())
    }

    /// The protocol of early data, while the handshake of a new connection is not complete.
    pub fn early_protocol(&self) -> Option<&[u8]> {
        on!(self, own => own.early_protocol(), _stream => None, _fcgi => None, _share => None)
    }

    /// Queries about the socket of the connection, valid as long as the socket exists.
    pub fn socket(&self) -> SocketQuery {
        on!(self, own => own.socket(), stream => stream.about().socket, fcgi => fcgi.transport().socket(), share => share.about().socket)
    }

    /// Returns the local address of the connection. A system call.
    ///
    /// # Errors
    /// The socket's.
    pub fn local_address(&self) -> io::Result<Address> {
        on!(self, own => own.local_address(), stream => stream.about().local_address(), fcgi => fcgi.transport().local_address(), share => share.about().local_address())
    }

    /// The connection's file descriptor, if the request owns the connection.
    pub fn descriptor(&self) -> Option<i32> {
        on!(self, own => Some(own.number()), _stream => None, fcgi => Some(fcgi.transport().number()), _share => None)
    }

    /// Makes closing the connection reset it, if the request owns it.
    pub fn set_linger_zero(&mut self) {
        on!(self, own => drop(own.set_linger_zero()), _stream => {}, fcgi => drop(fcgi.transport_mut().set_linger_zero()), _share => {});
    }

    /// Prepares the carrier for another request, after a complete answer. Returns false if only the end of the
    /// connection can follow.
    pub fn renew(&mut self) -> bool {
        on!(self, own => own.is_clean(), stream => stream.renew(), fcgi => fcgi.renew(), share => share.renew())
    }

    /// Whether the protocol lets another request follow the one that was answered, now or after [`Self::poll_rest`].
    /// Does not wait.
    pub fn may_follow(&mut self) -> bool {
        on!(self, _own => true, _stream => true, fcgi => fcgi.may_rest(), _share => true)
    }

    /// Whether another request may follow now, given that [`Self::may_follow`] was true.
    pub fn is_at_rest(&mut self) -> bool {
        on!(self, _own => true, _stream => true, fcgi => fcgi.is_at_rest(), _share => true)
    }

    /// Waits for the end of the request after its answer was forwarded. Ready with whether another request may follow.
    pub fn poll_rest(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        on!(self, _own => { let _ = cx; Poll::Ready(true) }, _stream => Poll::Ready(true), fcgi => fcgi.poll_rest(cx), _share => Poll::Ready(true))
    }

    /// Lets no other request begin on the multiplexed connection.
    pub fn retire(&self) {
        on!(self, _own => {}, stream => stream.requests().close(), _fcgi => {}, share => share.requests().close());
    }

    /// Aborts the request before its answer has ended.
    pub fn abort(&mut self) {
        on!(self, _own => {}, _stream => {}, fcgi => fcgi.abort(), share => share.abort());
    }

    /// Takes the messages that a FastCGI application has written to standard error.
    pub fn take_errors(&mut self) -> Vec<Vec<u8>> {
        on!(self, _own => Vec::new(), _stream => Vec::new(), fcgi => fcgi.take_errors(), share => share.take_errors())
    }

    /// Switches a connection that the request owns to FastCGI. `fresh`: it was just opened.
    pub fn into_fcgi(self, options: fcgi::Options, fresh: bool) -> Self {
        match self {
            Self::Own(transport) if fresh => Self::Fcgi(LocalBox::new(fcgi::Connection::new(transport, options))),
            Self::Own(transport) => Self::Fcgi(LocalBox::new(fcgi::Connection::resume(transport, options))),
            other => other,
        }
    }

    /// Ready on an event that an idle carrier must not have: input, its end, or that its multiplexed connection closes.
    pub fn poll_disturbed(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        on!(self, own => own.poll_readable(cx), stream => {
            let _ = cx;
            if stream.requests().is_closing() { Poll::Ready(()) } else { Poll::Pending }
        }, fcgi => fcgi.transport_mut().poll_readable(cx), share => {
            if share.requests().is_closing() { Poll::Ready(()) } else { Poll::Pending }
        })
    }
}
