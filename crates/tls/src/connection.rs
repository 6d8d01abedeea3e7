//! One connection: its handshake, then its records. Bytes in, bytes out; the caller performs the I/O. Must never keep a
//! buffer for bytes that have not arrived.
//!
//! rustls performs the handshake, and has the secrets afterwards; records are protected here ([`crate::record`]), in
//! the buffers that they arrive in, so that an idle connection holds only its keys.

use std::sync::Arc;

use base::buffer::Buffer;
use rustls::ExtractedSecrets;
use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::{ServerName, UnixTime};
use rustls::server::UnbufferedServerConnection;
use wire::client_hello::{self, Recognition};

use crate::client::{Client, ServerIdentity};
use crate::details::DetailSet;
use crate::events::{self, Assembly, Event};
use crate::failure::Failure;
use crate::handshake::{CompletedHandshake, Handshake, Peer, Progress, Secrets, info_of};
use crate::handshake_info::HandshakeInfo;
use crate::record::{self, Content, Protection, RecordError};
use crate::server::{Choice, Server};

pub use crate::record::{LARGEST, LARGEST_RECORD, OVERHEAD};

/// Maximum number of bytes of a handshake that wait for the rest of a message: a certificate message of 64 KB and its
/// records.
pub const LARGEST_FLIGHT: usize = 80 * 1024;

/// Minimum record size in bytes that a limit can set: smaller ones are more overhead than data.
const SMALLEST_LIMIT: u16 = 64;

/// The kind of content at the front of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordContent {
    /// An incomplete record.
    Part,
    /// Plain bytes, now at the front of the input, followed by bytes to discard.
    Data {
        /// Number of plain bytes.
        plain: usize,
        /// Number of bytes after them to discard.
        behind: usize,
    },
    /// A message for the transport only, already consumed.
    Own,
    /// The peer has closed its direction.
    End,
}

/// The progress of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HandshakeProgress {
    /// More input is needed.
    Part,
    /// More input is needed, but data can be sent or received already.
    Early,
    /// It is complete. The rest of the input is records, preceded by plain bytes of early data.
    Open {
        /// Number of plain bytes.
        plain: usize,
    },
}

impl HandshakeProgress {
    /// Whether the handshake is complete.
    pub fn is_open(self) -> bool {
        matches!(self, Self::Open { .. })
    }
}

/// One end of a connection.
pub struct Connection {
    state: State,
}

enum State {
    /// An incomplete ClientHello.
    Hello(Arc<Server>),
    /// Handshake in progress.
    Shaking(Box<Handshake>),
    /// Established.
    Open(Box<Open>),
    /// Failed, or refused from the start; with the information known by then.
    Failed(Option<Box<HandshakeInfo>>),
}

struct Open {
    sealing: Protection,
    opening: Protection,
    secrets: Secrets,
    assembly: Assembly,
    /// The peer has sent `close_notify`.
    ended: bool,
    /// This side has sent `close_notify`.
    closed: bool,
    /// Maximum number of bytes of data in a record.
    record: u16,
    info: Option<HandshakeInfo>,
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.state {
            State::Hello(_) => "Hello",
            State::Shaking(_) => "Shaking",
            State::Open(_) => "Open",
            State::Failed(_) => "Failed",
        })
    }
}

impl Connection {
    /// Creates the server side of a connection.
    pub fn of_server(server: Arc<Server>) -> Self {
        Self { state: State::Hello(server) }
    }

    /// Creates the client side of a connection. The name in `asked` is sent as SNI and, depending on the settings,
    /// verified.
    ///
    /// # Errors
    /// The ClientHello cannot be created with these settings.
    pub fn of_client(
        client: &Client,
        asked: impl Into<ServerIdentity>,
        alpn: Option<&[Vec<u8>]>,
    ) -> Result<Self, Failure> {
        let asked = asked.into();
        let config = client.config(&asked);
        let wants_early = config.enable_early_data;
        let ServerIdentity { name, protocol, .. } = asked;
        let server_name = match &name {
            ServerName::DnsName(name) => Some(name.as_ref().as_bytes().into()),
            _ => None,
        };
        let offered = protocol.clone().map(|only| vec![only]).or_else(|| alpn.map(<[_]>::to_vec));
        let peer = match offered {
            Some(protocols) => UnbufferedClientConnection::new_with_alpn(config, name, protocols),
            None => UnbufferedClientConnection::new(config, name),
        };
        let wanted = client.wanted();
        let info = HandshakeInfo { server_name, details: wanted.begin(), ..HandshakeInfo::default() };
        let with_secrets = wanted.has(DetailSet::SECRETS);
        let shaking = Handshake::new(Peer::Server(peer?), info, with_secrets, client.limits());
        let shaking = shaking.wanting_early(wants_early).expecting(protocol);
        Ok(Self { state: State::Shaking(Box::new(shaking)) })
    }

    /// Whether the handshake is complete.
    pub fn is_open(&self) -> bool {
        matches!(self.state, State::Open(_))
    }

    /// Whether data can be sent or received before the handshake is complete (RFC 8446, section 2.3).
    pub fn is_early(&self) -> bool {
        matches!(&self.state, State::Shaking(shaking) if shaking.is_early())
    }

    /// Returns a client's unread early data; `None`: the handshake is complete, or this side is the client.
    pub fn early_data(&mut self) -> Option<&mut Vec<u8>> {
        match &mut self.state {
            State::Shaking(shaking) => shaking.received(),
            _ => None,
        }
    }

    /// Returns the protocol of early data sent to a server, if it depends on the result of the handshake.
    pub fn early_protocol(&self) -> Option<&[u8]> {
        match &self.state {
            State::Shaking(shaking) => shaking.early_protocol(),
            _ => None,
        }
    }

    /// Continues the handshake as far as the input permits. Output is appended to `out`, also on failure.
    ///
    /// # Errors
    /// The handshake failed; nothing but `out` may be sent on the connection.
    pub fn shake(&mut self, input: &mut Buffer, out: &mut Vec<u8>) -> Result<HandshakeProgress, Failure> {
        if let State::Hello(server) = &self.state {
            match choose(server, input.data(), out) {
                Ok(None) => return Ok(HandshakeProgress::Part),
                Ok(Some(shaking)) => self.state = State::Shaking(Box::new(shaking)),
                Err(failure) => {
                    let info = HandshakeInfo { failure: Some(Box::new(failure.clone())), ..HandshakeInfo::default() };
                    self.state = State::Failed(Some(Box::new(info)));
                    return Err(failure);
                }
            }
        }
        let State::Shaking(shaking) = &mut self.state else {
            return Ok(if self.is_open() { HandshakeProgress::Open { plain: 0 } } else { HandshakeProgress::Part });
        };
        match shaking.advance(input, out) {
            Ok(Progress::Part) => Ok(HandshakeProgress::Part),
            Ok(Progress::Early) => Ok(HandshakeProgress::Early),
            Ok(Progress::Done) => {
                let State::Shaking(shaking) = std::mem::replace(&mut self.state, State::Failed(None)) else {
                    return Ok(HandshakeProgress::Part);
                };
                let (open, received) = Open::new(*shaking, out)?;
                self.state = State::Open(Box::new(open));
                put_in_front(input, &received);
                Ok(HandshakeProgress::Open { plain: received.len() })
            }
            Err(failure) => {
                let info = shaking.failed(failure.clone());
                self.state = State::Failed(Some(Box::new(info)));
                Err(failure)
            }
        }
    }

    /// Like [`Self::send`], before the handshake is complete. `input` is the received part of the handshake. Returns
    /// the number of bytes sent; 0: the handshake must complete first.
    ///
    /// # Errors
    /// The connection has failed.
    pub fn send_early(
        &mut self,
        input: &mut Buffer,
        pieces: [&[u8]; 2],
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, Failure> {
        let State::Shaking(shaking) = &mut self.state else { return Err(Failure::Message) };
        shaking.send(input, pieces, most, out)
    }

    /// Like [`Self::close`], before the handshake is complete. The handshake does not continue after that.
    pub fn close_early(&mut self, input: &mut Buffer, out: &mut Vec<u8>) {
        if let State::Shaking(shaking) = &mut self.state {
            shaking.close(input, out);
        }
    }

    /// Returns the information from the handshake, once.
    pub fn take_handshake_info(&mut self) -> Option<HandshakeInfo> {
        match &mut self.state {
            State::Open(open) => open.info.take(),
            State::Shaking(shaking) => Some(shaking.early_facts()),
            State::Failed(info) => info.take().map(|info| *info),
            _ => None,
        }
    }

    /// Opens the record at the front of the input, if it is complete. Any response is appended to `out`.
    ///
    /// # Errors
    /// The connection has failed; the alert is in `out`.
    pub fn receive(&mut self, input: &mut Buffer, out: &mut Vec<u8>) -> Result<RecordContent, Failure> {
        let State::Open(open) = &mut self.state else { return Err(Failure::Message) };
        let received = open.receive(input, out);
        if let Err(failure) = &received {
            if let Some(number) = events::alert_of(failure) {
                open.alert(number, out);
            }
            self.state = State::Failed(None);
        }
        received
    }

    /// Appends one record with the first bytes of both pieces, as many as a record can carry but at most `most`.
    /// Returns the number of bytes.
    ///
    /// # Errors
    /// The connection is not open, or has been closed by [`Self::close`].
    pub fn send(&mut self, pieces: [&[u8]; 2], most: usize, out: &mut Vec<u8>) -> Result<usize, Failure> {
        let State::Open(open) = &mut self.state else { return Err(Failure::Message) };
        if open.closed {
            return Err(Failure::Message);
        }
        if open.sealing.is_worn() {
            open.renew_own_key(out)?;
        }
        let most = most.clamp(1, usize::from(open.record));
        let first = pieces[0].len().min(most);
        let second = pieces[1].len().min(most - first);
        let sealed = open.sealing.seal(Content::Data, [&pieces[0][..first], &pieces[1][..second]], out);
        if sealed { Ok(first + second) } else { Err(Failure::Keys) }
    }

    /// Closes this side's direction (`close_notify`), once.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        if let State::Open(open) = &mut self.state
            && !std::mem::replace(&mut open.closed, true)
        {
            open.sealing.seal(Content::Alert, [&events::CLOSE_NOTIFY, &[]], out);
        }
    }

    /// Whether the peer has closed its direction.
    pub fn has_ended(&self) -> bool {
        matches!(&self.state, State::Open(open) if open.ended)
    }
}

/// Whether the input is an HTTP request instead of a ClientHello.
fn is_http(input: &[u8]) -> bool {
    [&b"GET "[..], b"POST ", b"HEAD ", b"PUT "].iter().any(|method| input.starts_with(method))
}

/// Inserts plain bytes before the records.
fn put_in_front(input: &mut Buffer, plain: &[u8]) {
    if plain.is_empty() {
        return;
    }
    let mut larger = Buffer::with_capacity(LARGEST_FLIGHT.max(plain.len() + input.len()));
    let fits = larger.push(plain) && larger.push(input.data());
    debug_assert!(fits, "it is made for both");
    *input = larger;
}

/// Selects the certificate and settings for a ClientHello. `None`: it is incomplete.
fn choose(server: &Arc<Server>, input: &[u8], out: &mut Vec<u8>) -> Result<Option<Handshake>, Failure> {
    let joined;
    let message = match client_hello::message(input) {
        Recognition::Part if input.len() >= LARGEST_FLIGHT => return Err(Failure::NotTls),
        Recognition::Part => return Ok(None),
        Recognition::Other if is_http(input) => return Err(Failure::Http),
        Recognition::Other => return Err(Failure::NotTls),
        Recognition::Whole(client_hello::Message::Contiguous(message)) => message,
        Recognition::Whole(client_hello::Message::Fragmented(fragments)) => {
            joined = fragments.pieces().collect::<Vec<_>>().concat();
            &joined
        }
    };
    let hello = client_hello::Hello::of(message).and_then(|hello| hello.client());
    let Some(hello) = hello else {
        out.extend_from_slice(&events::plain_alert(events::DECODE_ERROR));
        return Err(Failure::NotTls);
    };
    let Some(choice) = server.choose(&hello) else {
        out.extend_from_slice(&events::plain_alert(events::UNRECOGNIZED_NAME));
        return Err(Failure::UnknownName);
    };
    let with_secrets = server.wanted().has(DetailSet::SECRETS);
    let info = info_of(server, &choice, &hello);
    let Choice { config, judge, limits, .. } = choice;
    let peer = Peer::Client(UnbufferedServerConnection::new(config)?);
    let sends_early = hello.extension(client_hello::extension::EARLY_DATA).is_some();
    Ok(Some(Handshake::new(peer, info, with_secrets, limits).judged(judge).wanting_early(sends_early)))
}

impl Open {
    /// Converts a complete handshake, and returns a client's unread early data. Early data that the server has rejected
    /// is appended to `out` again: the server has not processed it.
    fn new(shaking: Handshake, out: &mut Vec<u8>) -> Result<(Self, Vec<u8>), Failure> {
        let limits = shaking.limits;
        let CompletedHandshake { extracted: ExtractedSecrets { tx, rx }, secrets, info, received, refused } =
            shaking.finish()?;
        let is_tls13 = info.is_tls13();
        let protection = |(sequence, secrets)| Protection::new(&secrets, sequence, is_tls13).ok_or(Failure::Keys);
        let mut open = Self {
            sealing: protection(tx)?,
            opening: protection(rx)?,
            secrets,
            assembly: Assembly::new(limits.key_updates),
            ended: false,
            closed: false,
            record: match limits.record {
                0 => LARGEST as u16,
                most => most.clamp(SMALLEST_LIMIT, LARGEST as u16),
            },
            info: Some(info),
        };
        for part in refused.chunks(usize::from(open.record)) {
            if !open.sealing.seal(Content::Data, [part, &[]], out) {
                return Err(Failure::Keys);
            }
        }
        Ok((open, received))
    }

    fn receive(&mut self, input: &mut Buffer, out: &mut Vec<u8>) -> Result<RecordContent, Failure> {
        if self.ended {
            return Ok(RecordContent::End);
        }
        let Some(length) = record::record_length(input.data())? else { return Ok(RecordContent::Part) };
        if input.len() < length {
            return Ok(RecordContent::Part);
        }
        let (content, plain) = self.opening.open(&mut input.data_mut()[..length])?;
        if content == Content::Data && self.assembly.is_empty() {
            let behind = length - plain.end;
            input.consume(plain.start);
            // A record may be empty.
            return Ok(match plain.len() {
                0 => {
                    input.consume(behind);
                    RecordContent::Own
                }
                plain => RecordContent::Data { plain, behind },
            });
        }
        let event = events::read(content, &input.data()[plain], &mut self.assembly);
        input.consume(length);
        self.handle(event?, out)
    }

    fn handle(&mut self, event: Event, out: &mut Vec<u8>) -> Result<RecordContent, Failure> {
        match event {
            Event::CloseNotify => {
                self.ended = true;
                Ok(RecordContent::End)
            }
            Event::Alert(number) => Err(Failure::Alert(number)),
            Event::Warning => Ok(RecordContent::Own),
            Event::Messages => {
                while let Some((kind, message)) = self.assembly.next()? {
                    self.message(kind, &message, out)?;
                }
                Ok(RecordContent::Own)
            }
        }
    }

    /// Handles a post-handshake message (RFC 8446, section 4.6).
    fn message(&mut self, kind: u8, message: &[u8], out: &mut Vec<u8>) -> Result<(), Failure> {
        if !self.opening.is_tls13() {
            // Renegotiation is refused on both sides; a peer may continue without (RFC 5246, section 7.2.2).
            if matches!(kind, events::HELLO_REQUEST | events::CLIENT_HELLO) {
                self.sealing.seal(Content::Alert, [&events::NO_RENEGOTIATION, &[]], out);
                return Ok(());
            }
            return Err(Failure::Record(RecordError::Unexpected));
        }
        match (kind, &mut self.secrets) {
            (events::NEW_SESSION_TICKET, Secrets::OfClient(secrets)) => Ok(secrets.handle_new_session_ticket(message)?),
            (events::KEY_UPDATE, secrets) => {
                let [wanted @ 0..=1] = message else { return Err(Failure::Message) };
                // It must be the last message of its record: the following ones use the new key.
                if !self.assembly.is_empty() || !self.assembly.may_update(UnixTime::now().as_secs()) {
                    return Err(Failure::Record(RecordError::Unexpected));
                }
                let (sequence, fresh) = match secrets {
                    Secrets::OfServer(secrets) => secrets.update_rx_secret()?,
                    Secrets::OfClient(secrets) => secrets.update_rx_secret()?,
                };
                self.opening = Protection::new(&fresh, sequence, true).ok_or(Failure::Keys)?;
                if *wanted == 1 { self.renew_own_key(out) } else { Ok(()) }
            }
            _ => Err(Failure::Record(RecordError::Unexpected)),
        }
    }

    /// Announces a new key for this side's records (KeyUpdate), and switches to it.
    fn renew_own_key(&mut self, out: &mut Vec<u8>) -> Result<(), Failure> {
        if !self.sealing.seal(Content::Handshake, [&events::UPDATE_NOT_REQUESTED, &[]], out) {
            return Err(Failure::Keys);
        }
        let (sequence, fresh) = match &mut self.secrets {
            Secrets::OfServer(secrets) => secrets.update_tx_secret()?,
            Secrets::OfClient(secrets) => secrets.update_tx_secret()?,
        };
        self.sealing = Protection::new(&fresh, sequence, true).ok_or(Failure::Keys)?;
        Ok(())
    }

    fn alert(&mut self, number: u8, out: &mut Vec<u8>) {
        self.sealing.seal(Content::Alert, [&[2, number], &[]], out);
    }
}
