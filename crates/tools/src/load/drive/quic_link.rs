//! A QUIC connection of the load with a UDP socket of its own, as those of different clients have: its handshake, its
//! datagrams and its deadlines. Must never know the content of its streams.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use base::Moment;
use conn::quic::{TimedConnection, TimedEndpoint};
use quic::cid::Place;
use quic::endpoint::{ConnectFailure, Settings, Target};
use quic::{Closed, Datagram, Endpoint, Event, Received};
use rt::net::{BindOptions, DatagramSocket, Ecn, ReceiveBatch, Transmit};
use tls::{Client, asked_name};
use wire::h3::ErrorCode;

use super::failure::Failure;
use super::link::Open;
use super::load_run::Lane;
use super::quic_settings::{QuicSettings, random_bytes};

/// Datagrams that are sent at once.
const BATCH: usize = 10;
/// Batches of datagrams that are received at once.
const MOST_BATCHES: usize = 16;

/// Bytes that the kernel had no room for.
struct Unsent {
    transmit: quic::Transmit,
    bytes: Vec<u8>,
}

/// A connection and the number of its requests.
pub(super) struct QuicLink {
    pub(super) connection: TimedConnection,
    pub(super) asked: u64,
    endpoint: TimedEndpoint,
    socket: DatagramSocket,
    unsent: Option<Unsent>,
    /// Counts the connection as open.
    _open: Open,
}

impl QuicLink {
    /// Starts a connection.
    ///
    /// # Errors
    /// There is no socket, or the settings do not permit the connection.
    pub(super) fn connect(
        settings: &QuicSettings,
        lane: &Lane,
        client: &Arc<Client>,
        open: Open,
    ) -> io::Result<QuicLink> {
        let peer = lane.address.inet().ok_or(io::ErrorKind::InvalidInput)?;
        let any = match peer {
            SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
            SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        };
        let socket = DatagramSocket::bind(any, &BindOptions::default())?;
        let of_endpoint = Settings {
            place: Place::default(),
            secrets: settings.secrets.clone(),
            seed: random_bytes(),
            clock: settings.clock,
            may_discover_mtu: true,
        };
        let mut endpoint = TimedEndpoint::new(Endpoint::new(of_endpoint, None));
        let identity = asked_name(lane.secure.as_deref(), Some(peer.ip()));
        let target = Target { peer, tls: Arc::clone(client), identity, alpn: None };
        let connected = endpoint.connect(target, &settings.transport);
        let (_, connection) = connected.map_err(|failure| match failure {
            ConnectFailure::Address => io::Error::from(io::ErrorKind::AddrNotAvailable),
            ConnectFailure::Handshake(failure) => io::Error::other(format!("TLS: {failure:?}")),
        })?;
        Ok(Self { connection, asked: 0, endpoint, socket, unsent: None, _open: open })
    }

    /// Receives datagrams that have arrived, [`MOST_BATCHES`] at most, and processes deadlines that have passed. The task is woken
    /// again if there are more. Returns whether there were datagrams.
    ///
    /// # Errors
    /// Those of the socket.
    pub(super) fn receive(&mut self, context: &mut Context<'_>, settings: &QuicSettings) -> io::Result<bool> {
        let (mut batch, mut received) = (ReceiveBatch::new(), false);
        let out = &mut *settings.out.borrow_mut();
        for count in 1.. {
            let Poll::Ready(result) = self.socket.poll_receive(context, &mut batch) else { break };
            result?;
            received = true;
            for message in batch.iter() {
                let (peer, local) = (message.peer, message.local_ip);
                let ecn = message.ecn.map_or(0, Ecn::bits);
                for bytes in message.iter() {
                    let datagram = Datagram { bytes, peer, local, ecn };
                    match self.endpoint.receive(&datagram, out) {
                        Received::Input(_, input) => self.connection.receive(input),
                        Received::Incoming(incoming) => self.endpoint.ignore(incoming),
                        // A client answers no unknown connection.
                        Received::Nothing | Received::Answer(_) => {}
                    }
                }
            }
            if count == MOST_BATCHES {
                // A server that sends faster than it is read leaves no time to other connections.
                context.waker().wake_by_ref();
                break;
            }
        }
        self.connection.expire();
        self.endpoint.settle(&mut self.connection);
        Ok(received)
    }

    /// Sends what the connection has to send. If the kernel has no room, the rest is sent later.
    ///
    /// # Errors
    /// Those of the socket.
    pub(super) fn send(&mut self, context: &mut Context<'_>, settings: &QuicSettings) -> io::Result<()> {
        if let Some(mut unsent) = self.unsent.take() {
            let left = self.pass(context, &unsent.transmit, &unsent.bytes)?;
            if left > 0 {
                unsent.bytes.drain(..unsent.bytes.len() - left);
                self.unsent = Some(unsent);
                return Ok(());
            }
        }
        let out = &mut *settings.out.borrow_mut();
        let most = self.socket.most_segments().min(BATCH);
        while let Some(transmit) = self.connection.transmit(most, out) {
            let left = self.pass(context, &transmit, &out[..transmit.size])?;
            if left > 0 {
                self.unsent = Some(Unsent { transmit, bytes: out[transmit.size - left..transmit.size].to_vec() });
                break;
            }
        }
        self.endpoint.settle(&mut self.connection);
        Ok(())
    }

    /// Passes datagrams to the kernel. Returns the number of bytes that it had no room for.
    fn pass(&self, context: &mut Context<'_>, transmit: &quic::Transmit, bytes: &[u8]) -> io::Result<usize> {
        let mut batches = [Transmit {
            destination: transmit.to,
            source: transmit.from,
            ecn: Ecn::from_bits(transmit.ecn),
            contents: bytes,
            segment_size: Some(transmit.segment).filter(|segment| *segment < bytes.len()),
        }];
        match self.socket.poll_send(context, &mut batches) {
            Poll::Ready(result) => result.map(|_| 0),
            Poll::Pending => Ok(batches[0].contents.len()),
        }
    }

    /// Returns the last error because of which the system has not sent a datagram.
    pub(super) fn send_error(&self) -> Option<io::Error> {
        self.socket.counts().last_error.map(io::Error::from_raw_os_error)
    }

    /// Returns the time of the next deadline, which is later than the worker's iteration.
    pub(super) fn deadline(&mut self) -> Option<Moment> {
        self.connection.deadline()
    }

    /// Ready when the handshake is complete: returns whether it resumed a session.
    pub(super) fn poll_shaken(
        &mut self,
        context: &mut Context<'_>,
        settings: &QuicSettings,
    ) -> Poll<Result<bool, Failure>> {
        if let Err(error) = self.receive(context, settings) {
            return Poll::Ready(Err(Failure::Connect(error)));
        }
        while let Some(event) = self.connection.poll_event() {
            match event {
                Event::Connected => return Poll::Ready(self.check_protocol()),
                Event::Closed(closed) => return Poll::Ready(Err(refusal(&closed))),
                // Streams are looked for after the handshake.
                _ => {}
            }
        }
        match self.send(context, settings) {
            Ok(()) => Poll::Pending,
            Err(error) => Poll::Ready(Err(Failure::Connect(error))),
        }
    }

    fn check_protocol(&mut self) -> Result<bool, Failure> {
        let info = self.connection.handshake_info();
        if info.as_ref().is_none_or(|info| info.alpn.as_deref() != Some(b"h3")) {
            let why = "the server has not agreed on HTTP/3 by ALPN";
            return Err(Failure::Connect(io::Error::other(why)));
        }
        Ok(info.is_some_and(|info| info.resumed))
    }

    /// Closes the connection, with one attempt to inform the server. What is to be sent before is sent first.
    pub(super) fn close(&mut self, context: &mut Context<'_>, settings: &QuicSettings, code: ErrorCode) {
        // The server detects the end of the connection by its own timeout if this fails.
        let _ = self.send(context, settings);
        self.connection.close(code.number(), &[]);
        let _ = self.send(context, settings);
    }
}

/// Returns the failure of a connection whose handshake was not completed.
fn refusal(closed: &Closed) -> Failure {
    Failure::Connect(io::Error::other(describe(closed)))
}

/// Returns the failure of an established connection.
pub(super) fn loss(closed: &Closed) -> Failure {
    match closed {
        Closed::TimedOut => Failure::Timeout,
        Closed::Transport { .. } => Failure::InvalidH3(describe(closed)),
        _ => Failure::Reset(Some(io::Error::other(describe(closed)))),
    }
}

/// Returns the name of a code of HTTP/3.
pub(super) fn code_name(code: u64) -> String {
    ErrorCode::of(code).map_or_else(|| format!("code {code:#x}"), |code| code.name().to_owned())
}

/// Describes the end of a connection.
fn describe(closed: &Closed) -> String {
    if let Some(alert) = closed.alert() {
        let side =
            if matches!(closed, Closed::Transport { .. }) { "this side has sent" } else { "the server has sent" };
        return format!("no handshake of TLS: {side} alert {alert}");
    }
    match closed {
        Closed::ByPeer { code, reason } => format!("closed by the server: {}{}", code_name(*code), quoted(reason)),
        Closed::PeerTransport { code, reason } => {
            format!("closed by the server: {}{}", transport_code(*code), quoted(reason))
        }
        Closed::Transport { code, reason } => {
            format!("the server violates QUIC: {}{}", transport_code(*code), quoted(reason.as_bytes()))
        }
        Closed::Reset => "the server does not know the connection (stateless reset)".to_owned(),
        Closed::TimedOut => "nothing came in time".to_owned(),
        Closed::Version => "the server does not speak QUIC version 1".to_owned(),
        Closed::Local => "closed here".to_owned(),
    }
}

/// Returns the reason of a close, if there is one.
fn quoted(reason: &[u8]) -> String {
    if reason.is_empty() { String::new() } else { format!(" ({})", reason.escape_ascii()) }
}

/// Returns the name of a code of QUIC (RFC 9000, section 20.1).
fn transport_code(code: u64) -> String {
    const NAMES: [&str; 17] = [
        "NO_ERROR",
        "INTERNAL_ERROR",
        "CONNECTION_REFUSED",
        "FLOW_CONTROL_ERROR",
        "STREAM_LIMIT_ERROR",
        "STREAM_STATE_ERROR",
        "FINAL_SIZE_ERROR",
        "FRAME_ENCODING_ERROR",
        "TRANSPORT_PARAMETER_ERROR",
        "CONNECTION_ID_LIMIT_ERROR",
        "PROTOCOL_VIOLATION",
        "INVALID_TOKEN",
        "APPLICATION_ERROR",
        "CRYPTO_BUFFER_EXCEEDED",
        "KEY_UPDATE_ERROR",
        "AEAD_LIMIT_REACHED",
        "NO_VIABLE_PATH",
    ];
    let name = usize::try_from(code).ok().and_then(|code| NAMES.get(code));
    name.map_or_else(|| format!("code {code:#x}"), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_of_connections_are_described_and_classified() {
        let by_peer = |code, reason: &[u8]| Closed::ByPeer { code, reason: reason.into() };
        let rows = [
            (by_peer(0x107, b""), "closed by the server: H3_EXCESSIVE_LOAD"),
            (by_peer(0x99, b"no\n"), "closed by the server: code 0x99 (no\\n)"),
            (
                Closed::PeerTransport { code: 2, reason: b"busy".as_slice().into() },
                "closed by the server: CONNECTION_REFUSED (busy)",
            ),
            (
                Closed::PeerTransport { code: 0x178, reason: [].into() },
                "no handshake of TLS: the server has sent alert 120",
            ),
            (Closed::Transport { code: 0x12a, reason: "".into() }, "no handshake of TLS: this side has sent alert 42"),
            (Closed::Transport { code: 7, reason: "".into() }, "the server violates QUIC: FRAME_ENCODING_ERROR"),
        ];
        for (closed, expected) in rows {
            assert_eq!(describe(&closed), expected);
        }
        assert!(matches!(loss(&by_peer(0x100, b"")), Failure::Reset(Some(_))));
        assert!(matches!(loss(&Closed::TimedOut), Failure::Timeout));
        assert!(matches!(loss(&Closed::Transport { code: 7, reason: "".into() }), Failure::InvalidH3(_)));
        assert!(matches!(refusal(&Closed::Version), Failure::Connect(_)));
    }
}
