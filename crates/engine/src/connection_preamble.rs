//! What a connection to a server begins with: the request to a SOCKS4 proxy and its answer, then the PROXY header. Must
//! never read a byte of the server's.

use conn::transport::Transport;
use std::io::IoSlice;
use std::net::{IpAddr, SocketAddrV4};
use std::task::{Context, Poll};

use base::buffer::Buffer;
use policy::program::Server;
use rt::net::Address;
use wire::socks4;

/// The proxy refused, or the connection broke.
pub struct Failed;

/// A beginning under way.
pub struct Greeting {
    /// The request to a SOCKS4 proxy.
    request: [u8; socks4::REQUEST],
    step: HandshakeStep,
    /// Bytes of what is being written that were taken.
    sent: usize,
    /// What came of the proxy's answer: never more than that.
    answer: Buffer,
    /// Something follows the header at once.
    followed: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum HandshakeStep {
    Ask,
    Await,
    Header,
    Impossible,
}

impl Greeting {
    /// For a connection that is to reach `destination`. `followed`: a request follows at once, and may go out together
    /// with it.
    pub fn new(destination: &Address, server: &Server, followed: bool) -> Self {
        Self::through(destination, server.connecting.socks4.is_some(), followed)
    }

    /// The same for a connection that goes through a SOCKS4 proxy if `proxied`.
    pub fn through(destination: &Address, proxied: bool, followed: bool) -> Self {
        let (request, step) = match (proxied, ipv4(destination)) {
            (false, _) => ([0; socks4::REQUEST], HandshakeStep::Header),
            (true, Some(destination)) => (socks4::request(destination), HandshakeStep::Ask),
            // Version 4 knows no other addresses.
            (true, None) => ([0; socks4::REQUEST], HandshakeStep::Impossible),
        };
        Self { request, step, sent: 0, answer: Buffer::with_capacity(socks4::ANSWER), followed }
    }

    /// Goes on.
    pub fn poll(&mut self, cx: &mut Context<'_>, stream: &mut Transport, header: &[u8]) -> Poll<Result<(), Failed>> {
        loop {
            match self.step {
                HandshakeStep::Impossible => return Poll::Ready(Err(Failed)),
                HandshakeStep::Ask => {
                    let request = self.request;
                    std::task::ready!(self.write(cx, stream, &request, false))?;
                    self.step = HandshakeStep::Await;
                }
                HandshakeStep::Await => match socks4::answer(self.answer.data()) {
                    Err(_) => return Poll::Ready(Err(Failed)),
                    Ok(Some(())) => self.step = HandshakeStep::Header,
                    Ok(None) => match std::task::ready!(stream.poll_read(cx, &mut self.answer)) {
                        Ok(1..) => {}
                        Ok(0) | Err(_) => return Poll::Ready(Err(Failed)),
                    },
                },
                HandshakeStep::Header => return self.write(cx, stream, header, self.followed),
            }
        }
    }

    fn write(
        &mut self,
        cx: &mut Context<'_>,
        stream: &mut Transport,
        bytes: &[u8],
        more: bool,
    ) -> Poll<Result<(), Failed>> {
        while self.sent < bytes.len() {
            let rest = [IoSlice::new(&bytes[self.sent..])];
            match std::task::ready!(stream.poll_write_slices(cx, &rest, more)) {
                Ok(written) => self.sent += written,
                Err(_) => return Poll::Ready(Err(Failed)),
            }
        }
        self.sent = 0;
        Poll::Ready(Ok(()))
    }
}

fn ipv4(address: &Address) -> Option<SocketAddrV4> {
    let address = address.inet()?;
    match address.ip() {
        IpAddr::V4(ip) => Some(SocketAddrV4::new(ip, address.port())),
        IpAddr::V6(ip) => ip.to_ipv4_mapped().map(|ip| SocketAddrV4::new(ip, address.port())),
    }
}
