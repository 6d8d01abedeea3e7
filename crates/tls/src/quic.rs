//! The handshake of a QUIC connection (RFC 9001): the messages of CRYPTO frames in, messages and keys out. The settings,
//! and the selection of a certificate, are those of connections over TCP. Must never know packets, frames or sockets.
//!
//! The ClientHello is collected until it is whole, because it decides the configuration that rustls gets. Once a
//! server has sent its last message, rustls' session is dropped: only the secrets of key updates remain.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs::cipher_suite::TLS13_AES_128_GCM_SHA256;
use rustls::pki_types::ServerName;
use rustls::quic::{ClientConnection, Connection, ServerConnection, Version};
use wire::client_hello::{Hello, extension};

use crate::client::{Client, ServerIdentity};
use crate::details::{DetailSet, listening};
use crate::early_data::EarlyData;
use crate::events;
use crate::failure::Failure;
use crate::handshake::{ignored_faults, info_of, note};
use crate::handshake_info::HandshakeInfo;
use crate::server::{Choice, Server};
use crate::verify::OfClients;

pub use rustls::Side;
pub use rustls::quic::{DirectionalKeys, HeaderProtectionKey, KeyChange, Keys, PacketKey, PacketKeySet, Secrets};

/// Maximum number of bytes of a ClientHello. Those with post-quantum key shares have about two thousand.
pub const LARGEST_HELLO: usize = 16 * 1024;
/// Length of a handshake message's header in bytes: type and length.
const HEADER: usize = 4;
/// The type of a ServerHello.
const SERVER_HELLO: u8 = 2;

/// One end of a handshake.
pub struct Session {
    state: State,
    info: HandshakeInfo,
    /// The verifier that reports ignored errors of the client's certificate.
    judge: Option<Arc<OfClients>>,
    /// Whether the secrets of TLS 1.3 are kept.
    with_secrets: bool,
    /// The transport parameters of the peer.
    parameters: Option<Box<[u8]>>,
}

enum State {
    /// An incomplete ClientHello.
    Hello { server: Arc<Server>, parameters: Vec<u8>, bytes: Vec<u8> },
    /// The handshake is in progress, or messages may follow it: session tickets of a server.
    Open(Box<Connection>),
    /// The handshake of a server is complete.
    Over,
    /// The handshake has failed.
    Failed,
}

/// Why a handshake failed.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The alert for the peer; `None`: its ClientHello is larger than [`LARGEST_HELLO`].
    pub alert: Option<u8>,
    pub failure: Failure,
}

/// Returns the keys of Initial packets of version 1 (RFC 9001, section 5.2). `None`: the cipher has no keys for QUIC.
pub fn initial_keys(destination: &[u8], side: Side) -> Option<Keys> {
    let suite = TLS13_AES_128_GCM_SHA256.tls13()?.quic_suite()?;
    Some(suite.keys(destination, side, Version::V1))
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.state {
            State::Hello { .. } => "Hello",
            State::Open(_) => "Open",
            State::Over => "Over",
            State::Failed => "Failed",
        })
    }
}

impl Session {
    /// Creates the server side of a handshake, which sends these transport parameters.
    pub fn of_server(server: Arc<Server>, parameters: Vec<u8>) -> Self {
        let with_secrets = server.wanted().has(DetailSet::SECRETS);
        let state = State::Hello { server, parameters, bytes: Vec::new() };
        Self { state, info: HandshakeInfo::default(), judge: None, with_secrets, parameters: None }
    }

    /// Creates the client side of a handshake, which sends these transport parameters. The name in `asked` is sent as
    /// SNI and, depending on the settings, verified.
    ///
    /// # Errors
    /// The ClientHello cannot be created with these settings.
    pub fn of_client(
        client: &Client,
        asked: ServerIdentity,
        alpn: Option<&[Vec<u8>]>,
        parameters: Vec<u8>,
    ) -> Result<Self, Failure> {
        let config = client.config(&asked);
        let ServerIdentity { name, protocol, .. } = asked;
        let server_name = match &name {
            ServerName::DnsName(name) => Some(name.as_ref().as_bytes().into()),
            _ => None,
        };
        let offered = protocol.map(|only| vec![only]).or_else(|| alpn.map(<[_]>::to_vec));
        let offered = offered.unwrap_or_else(|| config.alpn_protocols.clone());
        let wanted = client.wanted();
        let with_secrets = wanted.has(DetailSet::SECRETS);
        let mut info = HandshakeInfo { server_name, details: wanted.begin(), ..HandshakeInfo::default() };
        let (made, _) = listening(&mut info.details, with_secrets, || {
            ClientConnection::new_with_alpn(config, Version::V1, name, parameters, offered)
        });
        let connection = Box::new(Connection::Client(made?));
        let mut session = Self { state: State::Open(connection), info, judge: None, with_secrets, parameters: None };
        if session.early_keys().is_some() {
            session.info.early = Some(Arc::default());
        }
        Ok(session)
    }

    /// Processes the next bytes of the peer's messages, all of one encryption level.
    ///
    /// # Errors
    /// The handshake failed: the connection is to be closed with the alert.
    pub fn read(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let result = match &mut self.state {
            State::Hello { bytes: hello, .. } => {
                hello.extend_from_slice(bytes);
                self.read_hello()
            }
            State::Open(_) => self.process(bytes),
            // A client sends nothing after its handshake (RFC 9001, section 6, has no KeyUpdate).
            State::Over => Err(Refusal { alert: Some(events::UNEXPECTED_MESSAGE), failure: Failure::Message }),
            State::Failed => Err(Refusal { alert: Some(events::INTERNAL_ERROR), failure: Failure::Message }),
        };
        if let Err(refusal) = &result {
            self.fail(refusal.failure.clone());
        }
        result
    }

    /// Selects the configuration once the ClientHello is whole.
    fn read_hello(&mut self) -> Result<(), Refusal> {
        let State::Hello { server, parameters, bytes } = &mut self.state else { return Ok(()) };
        let Some(&[kind, high, middle, low]) = bytes.first_chunk::<HEADER>() else { return Ok(()) };
        if kind != events::CLIENT_HELLO {
            return Err(Refusal { alert: Some(events::UNEXPECTED_MESSAGE), failure: Failure::NotTls });
        }
        let length = HEADER + u32::from_be_bytes([0, high, middle, low]) as usize;
        if length > LARGEST_HELLO {
            return Err(Refusal { alert: None, failure: Failure::TooLarge });
        }
        let Some(message) = bytes.get(..length) else { return Ok(()) };
        let Some(hello) = Hello::of(message).and_then(|hello| hello.client()) else {
            return Err(Refusal { alert: Some(events::DECODE_ERROR), failure: Failure::NotTls });
        };
        let Some(choice) = server.choose(&hello) else {
            self.info.server_name = hello.server_name().map(Into::into);
            return Err(Refusal { alert: Some(events::UNRECOGNIZED_NAME), failure: Failure::UnknownName });
        };
        let sends_early = hello.extension(extension::EARLY_DATA).is_some();
        self.info = info_of(server, &choice, &hello);
        let Choice { config, judge, .. } = choice;
        let connection = ServerConnection::new(config, Version::V1, std::mem::take(parameters))
            .map_err(|error| Refusal { alert: Some(events::INTERNAL_ERROR), failure: error.into() })?;
        let bytes = std::mem::take(bytes);
        self.judge = judge;
        self.state = State::Open(Box::new(Connection::Server(connection)));
        self.process(&bytes)?;
        if sends_early && self.early_keys().is_some() {
            self.info.early = Some(Arc::default());
        }
        Ok(())
    }

    /// Passes bytes to rustls.
    fn process(&mut self, bytes: &[u8]) -> Result<(), Refusal> {
        let State::Open(connection) = &mut self.state else { return Ok(()) };
        if let (Some(details), Connection::Client(_)) = (&mut self.info.details, &**connection) {
            details.note_record(&record_of(bytes));
        }
        let was_handshaking = connection.is_handshaking();
        let (result, fault) = listening(&mut self.info.details, self.with_secrets, || connection.read_hs(bytes));
        self.info.faults.extend(fault);
        if let Err(error) = result {
            note(connection, &mut self.info);
            let alert = connection.alert().map_or(events::INTERNAL_ERROR, u8::from);
            return Err(Refusal { alert: Some(alert), failure: error.into() });
        }
        if was_handshaking {
            self.advance();
        }
        Ok(())
    }

    /// Records what a step of the handshake has decided.
    fn advance(&mut self) {
        let State::Open(connection) = &self.state else { return };
        if self.parameters.is_none() {
            self.parameters = connection.quic_transport_parameters().map(Into::into);
        }
        note(connection, &mut self.info);
        if connection.is_handshaking() {
            return;
        }
        if let Some(judge) = self.judge.take() {
            self.info.faults = ignored_faults(&judge, &self.info.peer);
        }
        if let Some(early) = &self.info.early {
            early.conclude(true);
        }
    }

    /// Ends the handshake without success.
    fn fail(&mut self, failure: Failure) {
        self.state = State::Failed;
        self.info.failure = Some(Box::new(failure));
        if let Some(early) = &self.info.early {
            early.conclude(false);
        }
    }

    /// Appends messages of one encryption level for the peer. Returns new keys, which protect what follows; to be
    /// called until there are neither messages nor keys.
    pub fn write(&mut self, out: &mut Vec<u8>) -> Option<KeyChange> {
        let State::Open(connection) = &mut self.state else { return None };
        let begin = out.len();
        let (change, _) = listening(&mut self.info.details, self.with_secrets, || connection.write_hs(out));
        let is_server = matches!(&**connection, Connection::Server(_));
        if let (Some(details), true, Some(&SERVER_HELLO)) = (&mut self.info.details, is_server, out.get(begin)) {
            details.note_record(&record_of(&out[begin..]));
        }
        if is_server && change.is_none() && !connection.is_handshaking() {
            // The tickets are written. Nothing else follows.
            self.state = State::Over;
        }
        change
    }

    /// Returns the keys of early data: on the server side if it is accepted, on the client side if a session permits
    /// some.
    pub fn early_keys(&self) -> Option<DirectionalKeys> {
        let State::Open(connection) = &self.state else { return None };
        // Without the parameters of the former connection nothing may be sent.
        let is_known =
            matches!(&**connection, Connection::Server(_)) || connection.quic_transport_parameters().is_some();
        connection.zero_rtt_keys().filter(|_| is_known)
    }

    /// Whether the server has accepted early data. `None`: this side is the server.
    pub fn is_early_accepted(&self) -> Option<bool> {
        match &self.state {
            State::Open(connection) => match &**connection {
                Connection::Client(connection) => Some(connection.is_early_data_accepted()),
                Connection::Server(_) => None,
            },
            _ => None,
        }
    }

    /// Returns the transport parameters of the peer, encoded. A client that resumes a session has those of the former
    /// connection until the server's arrive.
    pub fn peer_parameters(&self) -> Option<&[u8]> {
        match &self.state {
            State::Open(connection) => connection.quic_transport_parameters(),
            _ => self.parameters.as_deref(),
        }
    }

    /// Whether the handshake is in progress, or has failed.
    pub fn is_handshaking(&self) -> bool {
        match &self.state {
            State::Open(connection) => connection.is_handshaking(),
            State::Over => false,
            State::Hello { .. } | State::Failed => true,
        }
    }

    /// Whether the messages so far have decided the protocol (ALPN): on the server side, once the ClientHello was read.
    pub fn has_decided(&self) -> bool {
        self.info.alpn.is_some() || !self.is_handshaking()
    }

    /// Returns the information available at this time.
    pub fn info(&self) -> &HandshakeInfo {
        &self.info
    }

    /// Takes the information; the session keeps nothing of it.
    pub fn take_info(&mut self) -> HandshakeInfo {
        std::mem::take(&mut self.info)
    }

    /// Returns the state of early data, if some was received or sent.
    pub fn early_data(&self) -> Option<&Arc<EarlyData>> {
        self.info.early.as_ref()
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // Only the first conclusion counts.
        if let Some(early) = &self.info.early {
            early.conclude(false);
        }
    }
}

/// Returns a message in a record, as details are read from.
fn record_of(message: &[u8]) -> Vec<u8> {
    let length = (message.len().min(usize::from(u16::MAX)) as u16).to_be_bytes();
    [&[22, 3, 3, length[0], length[1]], message].concat()
}
