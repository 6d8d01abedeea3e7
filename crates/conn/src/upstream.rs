//! The server's end of an exchange: the connection or stream to a server, or a service inside the process. Must never
//! choose one.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use rt::net::Hangup;
use tls::HandshakeInfo;
use wire::http::Fields;

use crate::carrier::{Carrier, SharedUse};
use crate::fcgi;
use crate::flow::{ByteSink, ByteSource};
use crate::h2;
use crate::h3;
use crate::service::{Payload, Service};
use crate::transport::Transport;

/// The origin of an answer.
pub enum Upstream<'a> {
    /// A server over HTTP/1.
    H1(&'a mut Transport),
    /// A server over HTTP/2.
    H2(&'a mut h2::Request),
    /// A server over HTTP/3.
    H3(&'a mut h3::Request),
    /// A FastCGI application.
    Fcgi(&'a mut fcgi::Connection),
    /// A FastCGI application, on a multiplexed connection.
    FcgiShare(&'a mut fcgi::Request),
    /// A service of this process.
    Service(&'a mut dyn Service),
}

impl<'a> Upstream<'a> {
    /// A server, over the carrier of the request.
    pub fn of(carrier: &'a mut Carrier) -> Self {
        match carrier {
            Carrier::Own(transport) => Self::H1(transport),
            Carrier::H2(request) => Self::H2(request),
            Carrier::H3(request) => Self::H3(request),
            Carrier::Fcgi(connection) => Self::Fcgi(connection),
            Carrier::FcgiShare(request) => Self::FcgiShare(request),
        }
    }

    /// Whether bodies are received in a coding of the connection (HTTP/1); otherwise only payload is.
    pub fn is_coded(&self) -> bool {
        matches!(self, Self::H1(_))
    }

    /// Whether it is a FastCGI application.
    pub fn is_application(&self) -> bool {
        matches!(self, Self::Fcgi(_) | Self::FcgiShare(_))
    }

    /// Whether it is an application that has sent its whole answer.
    pub(crate) fn application_has_answered(&self) -> bool {
        match self {
            Self::Fcgi(connection) => connection.has_answered(),
            Self::FcgiShare(request) => request.has_answered(),
            Self::H1(_) | Self::H2(_) | Self::H3(_) | Self::Service(_) => false,
        }
    }

    /// Whether the end of the answer, whose head was taken, is still to be signalled separately from its payload.
    pub fn ends_apart(&self) -> bool {
        match self {
            Self::H2(request) => !request.has_ended(),
            Self::H3(request) => !request.has_ended(),
            Self::Fcgi(_) | Self::FcgiShare(_) => !self.application_has_answered(),
            Self::H1(_) | Self::Service(_) => false,
        }
    }

    /// Whether it is a service of this process.
    pub fn is_service(&self) -> bool {
        matches!(self, Self::Service(_))
    }

    /// Ready when a read may return something, so that a buffer is worth taking. Does not read.
    pub(crate) fn poll_readable(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        match self {
            Self::H1(transport) => transport.poll_readable(cx),
            Self::Fcgi(connection) => connection.poll_readable(cx),
            Self::H2(_) | Self::H3(_) | Self::FcgiShare(_) | Self::Service(_) => Poll::Ready(()),
        }
    }

    /// Reads the next bytes: those of HTTP/1, or payload; 0 is the end.
    ///
    /// # Errors
    /// The connection's, or that of a service that failed.
    pub(crate) fn poll_read(&mut self, cx: &mut Context<'_>, buffer: &mut Buffer) -> Poll<io::Result<usize>> {
        match self {
            Self::H1(transport) => transport.poll_read(cx, buffer),
            Self::H2(request) => request.poll_read(cx, buffer),
            Self::H3(request) => request.poll_read(cx, buffer),
            Self::Fcgi(connection) => connection.poll_read(cx, buffer),
            Self::FcgiShare(request) => request.poll_read(cx, buffer),
            Self::Service(service) => Payload(&mut **service).poll_read(cx, buffer),
        }
    }

    /// Whether the last read has completed something; for frames received in parts, a whole frame.
    pub fn completes(&mut self) -> bool {
        match self {
            Self::H1(_) | Self::Service(_) => true,
            Self::H2(request) => request.completes(),
            Self::H3(request) => request.completes(),
            Self::Fcgi(connection) => connection.completes(),
            Self::FcgiShare(request) => request.completes(),
        }
    }

    /// Sends a whole request without a body.
    ///
    /// # Errors
    /// The connection's.
    pub fn poll_send(&mut self, cx: &mut Context<'_>, head: &mut Buffer) -> Poll<io::Result<()>> {
        while !head.is_empty() {
            std::task::ready!(self.poll_write(cx, head, &mut Buffer::empty()))?;
        }
        self.complete(None);
        Poll::Ready(Ok(()))
    }

    /// Writes an encoded head and payload after it.
    ///
    /// # Errors
    /// The connection's.
    pub(crate) fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        head: &mut Buffer,
        body: &mut Buffer,
    ) -> Poll<io::Result<usize>> {
        match self {
            Self::H1(transport) => ByteSink::poll_write(&mut **transport, cx, head, body, false),
            Self::H2(request) => ByteSink::poll_write(&mut **request, cx, head, body, false),
            Self::H3(request) => ByteSink::poll_write(&mut **request, cx, head, body, false),
            Self::Fcgi(connection) => ByteSink::poll_write(&mut **connection, cx, head, body, false),
            Self::FcgiShare(request) => ByteSink::poll_write(&mut **request, cx, head, body, false),
            Self::Service(_) => Poll::Ready(Err(io::ErrorKind::Unsupported.into())),
        }
    }

    /// Ready when the server, which has answered, needs no more of the request. To be asked while nothing of the request waits to be
    /// written.
    ///
    /// # Errors
    /// The connection was reset.
    pub fn poll_stopped(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self {
            Self::H1(transport) => transport.poll_hangup(cx).map(|hangup| match hangup {
                Hangup::PeerClosed => Ok(()),
                Hangup::Error => Err(io::ErrorKind::ConnectionReset.into()),
            }),
            Self::H2(request) => request.poll_stopped(cx).map(Ok),
            Self::H3(request) => request.poll_stopped(cx).map(Ok),
            // The application may read on until it has ended the request.
            Self::Fcgi(_) | Self::FcgiShare(_) if self.application_has_answered() => Poll::Ready(Ok(())),
            Self::Fcgi(_) | Self::FcgiShare(_) => Poll::Pending,
            Self::Service(_) => Poll::Pending,
        }
    }

    /// Takes the trailers after the payload of a multiplexed answer, once a read has returned its end.
    pub(crate) fn take_trailers(&mut self) -> Option<Box<Fields>> {
        match self {
            Self::H2(request) => request.take_trailers(),
            Self::H3(request) => request.take_trailers(),
            _ => None,
        }
    }

    /// Whether the server has signalled that it has not processed the request: it can be sent again, even if it is not
    /// idempotent.
    pub fn is_refused(&self) -> bool {
        match self {
            Self::H2(request) => request.is_refused(),
            Self::H3(request) => request.is_refused(),
            Self::Fcgi(connection) => connection.is_refused(),
            Self::FcgiShare(request) => request.is_refused(),
            Self::H1(transport) => transport.has_refused_early(),
            Self::Service(_) => false,
        }
    }

    /// Returns why the connection has ended before its handshake was complete, if the request was sent on it.
    pub fn unshaken(&self) -> Option<h3::Unshaken> {
        match self {
            Self::H3(request) => request.requests().unshaken(),
            _ => None,
        }
    }

    /// The use of the multiplexed connection that carries the request.
    pub fn shared(&self) -> Option<SharedUse> {
        match self {
            Self::H2(request) => Some(SharedUse::of_h2(request.requests())),
            Self::H3(request) => Some(SharedUse::of_h3(request.requests())),
            Self::FcgiShare(request) => Some(SharedUse::of_fcgi(request.requests())),
            Self::H1(_) | Self::Fcgi(_) | Self::Service(_) => None,
        }
    }

    /// Takes the messages that a FastCGI application has written to standard error.
    pub fn take_errors(&mut self) -> Vec<Vec<u8>> {
        match self {
            Self::Fcgi(connection) => connection.take_errors(),
            Self::FcgiShare(request) => request.take_errors(),
            Self::H1(_) | Self::H2(_) | Self::H3(_) | Self::Service(_) => Vec::new(),
        }
    }

    /// The result of the TLS handshake of the request's connection, once that is complete.
    pub fn handshake_info(&self) -> Option<&Arc<HandshakeInfo>> {
        match self {
            Self::H1(transport) => transport.handshake_info(),
            Self::Fcgi(connection) => connection.transport().handshake_info(),
            Self::H2(request) => request.about().tls.get(),
            Self::H3(request) => request.about().tls.get(),
            Self::FcgiShare(request) => request.about().tls.get(),
            Self::Service(_) => None,
        }
    }

    /// Whether the connection is multiplexed.
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::H2(_) | Self::H3(_) | Self::FcgiShare(_))
    }

    /// Marks the request as one for another protocol. `is_possible`: false with a body, which extended CONNECT cannot carry.
    pub fn extend(&mut self, is_possible: bool) {
        match self {
            Self::H2(request) => request.extend(is_possible),
            Self::H3(request) => request.extend(is_possible),
            _ => {}
        }
    }

    /// Marks the request as one for a WebTransport session, which other protocols than HTTP/3 cannot carry.
    pub fn begin_session(&mut self) {
        match self {
            Self::H2(request) => request.extend(false),
            Self::H3(request) => request.begin_session(),
            _ => {}
        }
    }

    /// Whether a tunnel over it is a stream of HTTP/2 or HTTP/3.
    pub fn is_stream(&self) -> bool {
        matches!(self, Self::H2(_) | Self::H3(_))
    }

    /// Marks the request as completely written. `trailers` are for protocols that send them separately from the body.
    pub(crate) fn complete(&mut self, trailers: Option<&Fields>) {
        match self {
            Self::H1(_) => {}
            Self::H2(request) => request.complete(trailers),
            Self::H3(request) => request.complete(trailers),
            // CGI has no trailers.
            Self::Fcgi(connection) => connection.finish_request(),
            Self::FcgiShare(request) => request.finish_request(),
            Self::Service(service) => service.end_request(),
        }
    }
}
