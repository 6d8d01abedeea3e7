//! Checks by a datagram (`option udp-check`). Must never interpret an answer.

use std::borrow::Cow;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::Poll;
use std::time::Duration;

use live::health::{CheckStatus, Report};
use policy::program::{Proxy, Server};
use rt::net::{DatagramSocket, ReceiveBatch, Transmit};

use super::address::checked_address;
use super::messages;
use crate::worker::Worker;
use wire::proxy_protocol::EncoderV2;

/// Time to wait for a rejection or an answer without `timeout check`.
const WAIT: Duration = Duration::from_secs(1);

/// Sends the datagram to a server and waits for an answer or a rejection, at most for `bound`. A server that rejects it is down. One that is
/// silent is down only if the datagram has contents, since no service answers an empty one.
pub(super) async fn check(worker: &Worker, proxy: &Proxy, server: &Server, contents: &[u8], bound: Duration) -> Report {
    let begun = rt::now();
    let wait = proxy.timeouts.check.unwrap_or(WAIT).min(bound);
    let (status, info) = match open(worker, server) {
        None => (CheckStatus::SocketError, String::new()),
        Some(Err(error)) => (CheckStatus::SocketError, messages::of_refusal(&error)),
        Some(Ok((socket, to))) => match ask(&socket, to, &marked(server, contents), wait).await {
            Ok(true) => (CheckStatus::L7Ok, String::new()),
            Ok(false) if contents.is_empty() => (CheckStatus::L4Ok, String::new()),
            Ok(false) => (CheckStatus::L7Timeout, String::new()),
            Err(error) => (CheckStatus::L4Connection, messages::of_system(&error)),
        },
    };
    Report { status, code: None, took: rt::now().saturating_since(begun), info }
}

/// Returns a datagram with the PROXY header that the server expects in front of it: that of a connection of Weir's own.
fn marked<'c>(server: &Server, contents: &'c [u8]) -> Cow<'c, [u8]> {
    if server.connecting.header.is_none() {
        return Cow::Borrowed(contents);
    }
    let mut header = rt::buffer();
    // A buffer holds a header without addresses.
    let _ = EncoderV2::begin(None, &mut header).finish(false, |_| {});
    Cow::Owned([header.data(), contents].concat())
}

/// Opens a socket for the address that is checked. `None`: the server has none yet.
fn open(worker: &Worker, server: &Server) -> Option<io::Result<(DatagramSocket, SocketAddr)>> {
    let to = checked_address(worker, server, server.check.as_deref()?, None, None)?.inet()?;
    let route = worker.process.outgoing.route(server.serial).filter(|route| !route.blocked)?;
    Some(DatagramSocket::connect(to, &route.options, 1).map(|socket| (socket, to)))
}

/// Sends a datagram. Returns whether an answer came in time.
///
/// # Errors
/// The server, or a router, has rejected it.
async fn ask(socket: &DatagramSocket, destination: SocketAddr, contents: &[u8], wait: Duration) -> io::Result<bool> {
    let mut transmits = [Transmit { destination, source: None, ecn: None, contents, segment_size: None }];
    if socket.try_send(&mut transmits) == 0 || socket.counts().unsent > 0 {
        return Err(socket.counts().last_error.map_or(io::ErrorKind::WouldBlock.into(), io::Error::from_raw_os_error));
    }
    let mut timer = rt::Timer::new();
    timer.arm(Some(rt::now() + wait));
    let mut batch = ReceiveBatch::new();
    poll_fn(|cx| {
        loop {
            match socket.poll_receive(cx, &mut batch) {
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Ready(Ok(())) if batch.iter().any(|found| found.peer.port() == destination.port()) => {
                    return Poll::Ready(Ok(true));
                }
                // It was sent before the socket was connected.
                Poll::Ready(Ok(())) => {}
                Poll::Pending => return timer.poll_expired(cx).map(|()| Ok(false)),
            }
        }
    })
    .await
}
