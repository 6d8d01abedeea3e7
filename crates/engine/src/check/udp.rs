//! Checks by a datagram (`option udp-check`). Must never interpret an answer.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::task::Poll;
use std::time::Duration;

use live::health::{CheckStatus, Report};
use policy::program::{Proxy, Server, ServerAddress, ServerPort};
use rt::net::{DatagramSocket, ReceiveBatch, Transmit};

use super::connect::{inet_port, loopback};
use super::messages;
use crate::worker::Worker;

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
        Some(Ok((socket, to))) => match ask(&socket, to, contents, wait).await {
            Ok(true) => (CheckStatus::L7Ok, String::new()),
            Ok(false) if contents.is_empty() => (CheckStatus::L4Ok, String::new()),
            Ok(false) => (CheckStatus::L7Timeout, String::new()),
            Err(error) => (CheckStatus::L4Connection, messages::of_system(&error)),
        },
    };
    Report { status, code: None, took: rt::now().saturating_since(begun), info }
}

/// Opens a socket for the address that is checked. `None`: the server has none yet.
fn open(worker: &Worker, server: &Server) -> Option<io::Result<(DatagramSocket, SocketAddr)>> {
    let to = checked_address(worker, server)?;
    let route = worker.process.outgoing.route(server.serial).filter(|route| !route.blocked)?;
    Some(DatagramSocket::connect(to, &route.options, 1).map(|socket| (socket, to)))
}

/// Returns the address of UDP at which a server is checked. `None`: it has none yet.
fn checked_address(worker: &Worker, server: &Server) -> Option<SocketAddr> {
    let own = server.check.as_deref()?;
    let current = worker.process.outgoing.address(server);
    let orders = worker.process.checks.targets.check(server.serial);
    let ordered = orders.address.map(|ip| ServerAddress::Inet { ip, port: ServerPort::Exact(0) });
    let base = ordered.as_ref().or(own.address.as_ref()).unwrap_or(&current);
    let ServerAddress::Inet { ip, .. } = *base else { return None };
    let ip = if ip.is_unspecified() { loopback(ip) } else { ip };
    let port = orders.port.or(own.port).or_else(|| inet_port(base).filter(|port| *port > 0));
    Some(SocketAddr::new(ip, port.or_else(|| inet_port(&current))?))
}

/// Sends a datagram. Returns whether an answer came in time.
///
/// # Errors
/// The server, or a router, has rejected it.
async fn ask(socket: &DatagramSocket, destination: SocketAddr, contents: &[u8], wait: Duration) -> io::Result<bool> {
    let mut transmits = [Transmit { destination, source: None, ecn: None, contents, segment_size: None }];
    socket.try_send(&mut transmits);
    let mut timer = rt::Timer::new();
    timer.arm(Some(rt::now() + wait));
    let mut batch = ReceiveBatch::new();
    poll_fn(|cx| match socket.poll_receive(cx, &mut batch) {
        Poll::Ready(Err(error)) if error.kind() == io::ErrorKind::ResourceBusy => Poll::Ready(Ok(true)),
        Poll::Ready(received) => Poll::Ready(received.map(|()| true)),
        Poll::Pending => timer.poll_expired(cx).map(|()| Ok(false)),
    })
    .await
}
