//! An endpoint: the connections of one address on one worker. Takes datagrams apart, finds their connection, and answers
//! those that need none: version negotiation, Retry, stateless resets (RFC 9000, sections 5.2, 6, 8.1 and 10.3). Must
//! never own a connection.

use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use base::moment::{Moment, WallTime};
use bytes::BytesMut;
use quinn_proto::{
    ClientConfig, ConnectError, ConnectionId, ConnectionIdGenerator, DatagramEvent, EndpointConfig, EndpointEvent,
    NoneTokenStore, ServerConfig,
};
use tls::{Failure, HandshakeInfo, ServerIdentity};

use crate::cid::{self, Generator, HandshakeIds, Id, LastId, Place};
use crate::closed::Closed;
use crate::connection::{Connection, Handshake};
use crate::crypto::{ClientSide, ServerSide, VERSION};
use crate::endpoint_counts::EndpointCounts;
use crate::failures::Failures;
use crate::half_open::HalfOpen;
use crate::handle::{Handle, Input};
use crate::secrets::Secrets;
use crate::time::{Calendar, Clock};
use crate::transmit::{Datagram, Transmit, mark};
use crate::transport::Transport;

/// Maximum number of new connections of which a decision is awaited.
const MOST_UNDECIDED: usize = 1_024;
/// Maximum number of bytes of datagrams that wait for such a decision: of one connection, and of all.
const WAITING: [u64; 2] = [16 * 1024, 1 << 20];
/// Largest datagram that is accepted, in bytes.
const LARGEST: u16 = 1_472;

/// The settings of an endpoint.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The worker and the process, as connection ids contain them.
    pub place: Place,
    pub secrets: Secrets,
    /// Random bytes.
    pub seed: [u8; 32],
    pub clock: Clock,
    /// Whether the socket forbids fragmentation, so that larger datagrams may be tried.
    pub may_discover_mtu: bool,
}

/// The settings of connections of clients.
#[derive(Debug, Clone)]
pub struct ServerSettings {
    pub tls: Arc<tls::Server>,
    pub transport: Transport,
    /// The count of connections of the process whose handshake is in progress.
    pub half_open: Arc<HalfOpen>,
    /// That number of them, from which on clients have to confirm their address (`tune.quic.fe.sec.retry-threshold`).
    pub retry_threshold: usize,
    /// `quic-force-retry`
    pub forces_retry: bool,
}

/// A server to connect to.
#[derive(Debug, Clone)]
pub struct Target {
    pub peer: SocketAddr,
    pub tls: Arc<tls::Client>,
    pub identity: ServerIdentity,
    /// The protocols to offer; `None`: those of the settings.
    pub alpn: Option<Vec<Vec<u8>>>,
}

/// The result of receiving a datagram.
#[derive(Debug)]
pub enum Received {
    /// It was dropped.
    Nothing,
    /// It is answered; no connection is involved.
    Answer(Transmit),
    /// It is for a connection.
    Input(Handle, Input),
    /// It begins a connection, which is to be accepted, refused, retried or ignored.
    Incoming(Incoming),
}

/// A connection that a client begins. Every one has to be passed back to its endpoint.
#[derive(Debug)]
pub struct Incoming {
    inner: Box<quinn_proto::Incoming>,
    /// The id that its packets are sent to.
    id: Option<Id>,
    /// Whether its first packet has a token.
    has_token: bool,
}

impl Incoming {
    /// Returns the address of the client, which may be forged unless it was validated.
    pub fn peer(&self) -> SocketAddr {
        self.inner.remote_address()
    }

    /// Returns the address that it was sent to.
    pub fn local(&self) -> Option<IpAddr> {
        self.inner.local_ip()
    }

    /// Whether the client has proved that it receives datagrams at its address.
    pub fn is_validated(&self) -> bool {
        self.inner.remote_address_validated()
    }

    /// Whether a Retry packet may be sent: the client has not got one before.
    pub fn may_retry(&self) -> bool {
        self.inner.may_retry()
    }

    /// Whether it has a token that proves nothing: another server's, or an invented one.
    fn has_invalid_token(&self) -> bool {
        self.has_token && !self.is_validated()
    }
}

/// Why a new connection was not accepted.
#[derive(Debug)]
pub struct Refusal {
    /// The answer to send.
    pub answer: Option<Transmit>,
    pub reason: Closed,
    /// The information on its handshake, if that has failed.
    pub info: Option<Box<HandshakeInfo>>,
}

/// Why a connection to a server could not begin.
#[derive(Debug, Clone, PartialEq)]
pub enum ConnectFailure {
    /// No connection can be made to such an address.
    Address,
    /// The handshake cannot begin with the settings.
    Handshake(Failure),
}

/// The state of an endpoint for clients.
struct Serving {
    failures: Arc<Failures>,
    half_open: Arc<HalfOpen>,
    retry_threshold: usize,
    forces_retry: bool,
}

/// Whether a datagram is one that only servers send: Version Negotiation or Retry. They are not authenticated, and the library ends
/// the connection of a client that seems to send one.
fn is_of_server(datagram: &[u8]) -> bool {
    let [first, version @ ..] = datagram.first_chunk::<5>().unwrap_or(&[0; 5]);
    first & 0x80 != 0 && (*version == [0; 4] || *version == VERSION.to_be_bytes() && first & 0x30 == 0x30)
}

/// Whether an Initial packet has a token (RFC 9000, section 17.2.2).
fn has_token(datagram: &[u8]) -> bool {
    let after_id = |at: usize| datagram.get(at).map(|length| at + 1 + usize::from(*length));
    let at = after_id(5).and_then(after_id);
    // The length is an integer of 1 to 8 bytes. One that is 0 may have any size.
    let Some((first, rest)) = at.and_then(|at| datagram.get(at..)).and_then(<[u8]>::split_first) else { return false };
    let more = (1_usize << (first >> 6)) - 1;
    first & 0x3f != 0 || rest.iter().take(more).any(|byte| *byte != 0)
}

/// The connections of one address on one worker.
pub struct Endpoint {
    inner: quinn_proto::Endpoint,
    clock: Clock,
    calendar: Arc<Calendar>,
    secrets: Secrets,
    serving: Option<Serving>,
    /// Whether its connections are those of clients.
    is_server: bool,
    /// Makes the ids that servers see in the first datagrams of connections to them.
    initial_ids: Arc<Mutex<Generator>>,
    counts: EndpointCounts,
    /// The id that was made last.
    last_id: LastId,
}

impl std::fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Endpoint").field("connections", &self.connections()).finish_non_exhaustive()
    }
}

impl Endpoint {
    /// Creates an endpoint. Without settings for clients it only connects to servers.
    pub fn new(settings: Settings, server: Option<ServerSettings>) -> Self {
        let Settings { place, secrets, seed, clock, may_discover_mtu } = settings;
        let mut config = EndpointConfig::new(Arc::clone(&secrets.reset));
        let last_id = LastId::default();
        let reported = last_id.clone();
        config.cid_generator(move || Box::new(Generator::new(place, &seed).reporting(reported.clone())));
        config.supported_versions(vec![VERSION]).rng_seed(Some(seed));
        // The size is permitted.
        let _ = config.max_udp_payload_size(LARGEST);
        let inner = quinn_proto::Endpoint::new(Arc::new(config), None, may_discover_mtu, None);
        let other = seed.map(|byte| !byte);
        let initial_ids = Arc::new(Mutex::new(Generator::new(Place::default(), &other)));
        let (calendar, counts) = (Arc::default(), EndpointCounts::default());
        let is_server = server.is_some();
        let mut own = Self { inner, clock, calendar, secrets, serving: None, is_server, initial_ids, counts, last_id };
        own.serve(server);
        own
    }

    /// Sets the settings of connections of clients that begin from now on. `None`: there are no more.
    pub fn serve(&mut self, server: Option<ServerSettings>) {
        let Some(ServerSettings { tls, transport, half_open, retry_threshold, forces_retry }) = server else {
            self.inner.set_server_config(None);
            self.serving = None;
            return;
        };
        let failures = Arc::new(Failures::default());
        let crypto = ServerSide::new(tls, Arc::clone(&failures));
        let mut config = ServerConfig::new(Arc::new(crypto), Arc::clone(&self.secrets.tokens));
        let [each, all] = WAITING;
        config
            .transport_config(transport.0)
            .time_source(Arc::<Calendar>::clone(&self.calendar))
            .max_incoming(MOST_UNDECIDED)
            .incoming_buffer_size(each)
            .incoming_buffer_size_total(all);
        self.inner.set_server_config(Some(Arc::new(config)));
        self.serving = Some(Serving { failures, half_open, retry_threshold, forces_retry });
    }

    /// Processes a datagram. The bytes of an answer are in `out`, which is cleared first.
    pub fn receive(&mut self, now: Moment, wall: WallTime, datagram: &Datagram<'_>, out: &mut Vec<u8>) -> Received {
        self.calendar.set(wall);
        out.clear();
        let Datagram { bytes, peer, local, ecn } = *datagram;
        if self.is_server && is_of_server(bytes) {
            self.counts.note_dropped(bytes);
            return Received::Nothing;
        }
        let event = self.inner.handle(self.clock.instant(now), peer, local, mark(ecn), BytesMut::from(bytes), out);
        match event {
            None => {
                self.counts.note_dropped(bytes);
                Received::Nothing
            }
            Some(DatagramEvent::Response(transmit)) => {
                self.counts.note_answer(bytes, out);
                Received::Answer(Transmit::of(&transmit))
            }
            Some(DatagramEvent::ConnectionEvent(handle, event)) => Received::Input(Handle(handle), Input(event)),
            Some(DatagramEvent::NewConnection(incoming)) => {
                let (id, has_token) = (cid::of_handshake(bytes), has_token(bytes));
                Received::Incoming(Incoming { inner: Box::new(incoming), id, has_token })
            }
        }
    }

    /// Whether the client has to confirm its address before its connection is accepted: by the settings, because many
    /// handshakes are in progress and other processes would accept the token, or because its token is invalid, so that an
    /// invented one costs no handshake (RFC 9000, section 8.1.3).
    pub fn wants_retry(&self, incoming: &Incoming) -> bool {
        let Some(serving) = &self.serving else { return false };
        let is_busy = self.secrets.are_shared() && serving.half_open.count() >= serving.retry_threshold;
        let is_doubtful = serving.forces_retry || is_busy || incoming.has_token;
        is_doubtful && !incoming.is_validated() && incoming.may_retry()
    }

    /// Accepts a connection. `out` is cleared, and has the bytes of the answer if there is one.
    ///
    /// # Errors
    /// Its first datagram is invalid, or its handshake has failed already.
    pub fn accept(
        &mut self,
        incoming: Incoming,
        now: Moment,
        out: &mut Vec<u8>,
    ) -> Result<(Handle, Connection), Box<Refusal>> {
        out.clear();
        self.counts.valid_tokens += u64::from(incoming.is_validated());
        let failures = self.serving.as_ref().map(|serving| &serving.failures);
        // Connections that failed later have reported for themselves.
        let _ = failures.map(|failures| failures.take());
        match self.inner.accept(*incoming.inner, self.clock.instant(now), out, None) {
            Ok((handle, connection)) => {
                // The first id of a connection is made when it is accepted.
                let ids = incoming.id.map(|chosen| HandshakeIds { chosen, own: self.last_id.get() });
                let guard = self.serving.as_ref().map(|serving| serving.half_open.enter());
                let handshake = guard.map(|guard| Box::new(Handshake { ids, _guard: guard }));
                let handle = Handle(handle);
                Ok((handle, Connection::new(connection, handle, self.clock, handshake)))
            }
            Err(error) => Err(Box::new(Refusal {
                answer: error.response.as_ref().map(Transmit::of),
                reason: Closed::of(&error.cause),
                info: failures.and_then(|failures| failures.take()),
            })),
        }
    }

    /// Refuses a connection: the client is informed. `out` is cleared, and gets the bytes.
    pub fn refuse(&mut self, incoming: Incoming, out: &mut Vec<u8>) -> Transmit {
        out.clear();
        Transmit::of(&self.inner.refuse(*incoming.inner, out))
    }

    /// Requests that the client confirms its address (RFC 9000, section 8.1.2). `out` is cleared, and gets the bytes.
    ///
    /// # Errors
    /// The client has confirmed it: the connection is returned.
    pub fn retry(&mut self, incoming: Incoming, out: &mut Vec<u8>) -> Result<Transmit, Incoming> {
        out.clear();
        let has_invalid_token = incoming.has_invalid_token();
        let Incoming { inner, id, has_token } = incoming;
        match self.inner.retry(*inner, out) {
            Ok(transmit) => {
                self.counts.retries_sent += 1;
                self.counts.invalid_tokens += u64::from(has_invalid_token);
                Ok(Transmit::of(&transmit))
            }
            Err(error) => Err(Incoming { inner: Box::new(error.into_incoming()), id, has_token }),
        }
    }

    /// Drops a connection without an answer.
    pub fn ignore(&mut self, incoming: Incoming) {
        self.counts.dropped += 1;
        self.inner.ignore(*incoming.inner);
    }

    /// Begins a connection to a server.
    ///
    /// # Errors
    /// The address or the settings do not permit it.
    pub fn connect(
        &mut self,
        now: Moment,
        target: Target,
        transport: &Transport,
    ) -> Result<(Handle, Connection), ConnectFailure> {
        let Target { peer, tls, identity, alpn } = target;
        let side = Arc::new(ClientSide { tls, identity, alpn, failure: Mutex::default() });
        let mut config = ClientConfig::new(Arc::<ClientSide>::clone(&side));
        let ids = Arc::clone(&self.initial_ids);
        config
            .transport_config(Arc::clone(&transport.0))
            .token_store(Arc::new(NoneTokenStore))
            .initial_dst_cid_provider(Arc::new(move || initial_id(&ids)))
            .version(VERSION);
        match self.inner.connect(self.clock.instant(now), config, peer, "") {
            Ok((handle, connection)) => {
                let handle = Handle(handle);
                Ok((handle, Connection::new(connection, handle, self.clock, None)))
            }
            Err(ConnectError::InvalidServerName(_)) => {
                let failure = side.failure.lock().unwrap_or_else(PoisonError::into_inner).take();
                Err(ConnectFailure::Handshake(failure.unwrap_or(Failure::Message)))
            }
            Err(_) => Err(ConnectFailure::Address),
        }
    }

    /// Exchanges connection ids and the like with a connection: after its datagrams and deadlines, and before it is dropped.
    /// False: it is over, and forgotten here.
    pub fn settle(&mut self, connection: &mut Connection) -> bool {
        while let Some(event) = connection.poll_endpoint_event() {
            if let Some(answer) = self.inner.handle_event(connection.handle().0, event) {
                connection.receive(Input(answer));
            }
        }
        !connection.is_forgotten()
    }

    /// Forgets a connection that was dropped before [`Self::settle`] reported its end.
    pub fn forget(&mut self, handle: Handle) {
        self.inner.handle_event(handle.0, EndpointEvent::drained());
    }

    /// Returns the counts since this was called before.
    pub fn take_counts(&mut self) -> EndpointCounts {
        std::mem::take(&mut self.counts)
    }

    /// Returns the number of connections, those that are closing included.
    pub fn connections(&self) -> usize {
        self.inner.open_connections()
    }
}

/// Makes the id of a server's end of a new connection: random, because the server replaces it.
fn initial_id(ids: &Mutex<Generator>) -> ConnectionId {
    let mut ids = ids.lock().unwrap_or_else(PoisonError::into_inner);
    // The first two bytes of each are the same; those of two ids differ.
    let bytes: Vec<u8> = (0..3).flat_map(|_| ids.generate_cid()[2..].to_vec()).collect();
    ConnectionId::new(&bytes)
}
