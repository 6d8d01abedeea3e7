//! A handshake in progress: passes rustls one record after the other, and collects its output. Extracts or inserts
//! early data. Must never pass a record that belongs after the handshake.

use std::sync::Arc;

use base::buffer::Buffer;
use rustls::client::{ClientConnectionData, UnbufferedClientConnection};
use rustls::kernel::KernelConnection;
use rustls::pki_types::{CertificateDer, UnixTime};
use rustls::server::{ServerConnectionData, UnbufferedServerConnection};
use rustls::unbuffered::{ConnectionState, EncodeError, EncryptError, UnbufferedStatus, WriteTraffic};
use rustls::{ExtractedSecrets, HandshakeKind};
use wire::client_hello::ClientHello;

use crate::capture::Capture;
use crate::details::listening;
use crate::early_data::EarlyData;
use crate::failure::Failure;
use crate::faults::Fault;
use crate::handshake_info::HandshakeInfo;
use crate::limits::RecordLimits;
use crate::record::{self, HEADER, LARGEST, OVERHEAD};
use crate::server::{Choice, Server};
use crate::verify::OfClients;

/// Number of bytes that a TLS 1.3 record adds to its data: the header, the tag, and the content type.
const ADDED: usize = HEADER + 16 + 1;
/// Size of a record with only the message "EndOfEarlyData" in bytes (RFC 8446, section 4.5).
const END_OF_EARLY_DATA: usize = ADDED + 4;

/// Maximum number of bytes of early data to a server, even if it accepts more: they are kept until it has accepted
/// them.
const MOST_EARLY: usize = 64 * 1024;

/// Messages of a client that may span several records (RFC 8446, section 4.4.2, and RFC 8879).
const CERTIFICATE: u8 = 11;
const COMPRESSED_CERTIFICATE: u8 = 25;

/// rustls's end of a connection.
pub(crate) enum Peer {
    Client(UnbufferedServerConnection),
    Server(UnbufferedClientConnection),
}

/// A handshake in progress.
pub(crate) struct Handshake {
    peer: Peer,
    /// Number of bytes at the front of the input that rustls has seen without consuming them.
    seen: usize,
    pub(crate) info: HandshakeInfo,
    /// The verifier that reports ignored errors of the client's certificate.
    judge: Option<Arc<OfClients>>,
    /// Whether the secrets of TLS 1.3 are kept.
    with_secrets: bool,
    pub(crate) limits: RecordLimits,
    early: Early,
}

/// The early data of a handshake.
#[derive(Default)]
struct Early {
    phase: Phase,
    /// From a client: received and unread bytes. To a server: the bytes sent.
    bytes: Vec<u8>,
    /// Its state as shared with the handshake info.
    shown: Option<Arc<EarlyData>>,
    /// To a server: the protocol of the data.
    protocol: Option<Vec<u8>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    /// No early data.
    #[default]
    Absent,
    /// Announced by a client, or to be sent to a server that advertised support in a previous session.
    Wanted,
    /// From a client: some was received. To a server: it may be sent until the server responds.
    Open,
    /// The server has responded.
    Answered,
    /// The server has accepted it.
    Accepted,
}

/// The progress of a handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Progress {
    /// More input is needed.
    Part,
    /// Early data can be exchanged.
    Early,
    /// The handshake is complete.
    Done,
}

/// The result of a complete handshake.
pub(crate) struct CompletedHandshake {
    pub(crate) extracted: ExtractedSecrets,
    pub(crate) secrets: Secrets,
    pub(crate) info: HandshakeInfo,
    /// Unread early data of a client.
    pub(crate) received: Vec<u8>,
    /// Early data that the server has rejected: to be sent again.
    pub(crate) refused: Vec<u8>,
}

/// The handle to the secrets after the handshake.
pub(crate) enum Secrets {
    OfServer(KernelConnection<ServerConnectionData>),
    OfClient(KernelConnection<ClientConnectionData>),
}

/// The result of one call of rustls.
enum CallResult {
    /// Call it again.
    Again,
    /// It needs more input.
    Starved,
    /// Early data may be sent.
    Held,
    /// The handshake is complete.
    Done,
}

/// Output to send as soon as rustls permits it.
enum Pending<'a> {
    Data(&'a [u8]),
    Goodbye,
}

impl Handshake {
    pub(crate) fn new(peer: Peer, info: HandshakeInfo, with_secrets: bool, limits: RecordLimits) -> Self {
        Self { peer, seen: 0, info, judge: None, with_secrets, limits, early: Early::default() }
    }

    /// Sets the verifier that reports ignored errors of the client's certificate.
    pub(crate) fn judged(self, judge: Option<Arc<OfClients>>) -> Self {
        Self { judge, ..self }
    }

    /// Enables early data: of a client that has announced some, or for a server, if that accepts some.
    pub(crate) fn wanting_early(mut self, wants: bool) -> Self {
        if wants {
            self.early.phase = Phase::Wanted;
        }
        self
    }

    /// Sets the protocol of early data to the server.
    pub(crate) fn expecting(mut self, protocol: Option<Vec<u8>>) -> Self {
        self.early.protocol = protocol;
        self
    }

    /// Returns the protocol of early data sent to the server.
    pub(crate) fn early_protocol(&self) -> Option<&[u8]> {
        self.early.protocol.as_deref().filter(|_| self.is_early())
    }

    fn is_handshaking(&self) -> bool {
        match &self.peer {
            Peer::Client(peer) => peer.is_handshaking(),
            Peer::Server(peer) => peer.is_handshaking(),
        }
    }

    /// Whether bytes may be read from a client, or were sent to a server, before the handshake is complete. Early data
    /// of a client without a negotiated protocol waits until then (configuration manual, "allow-0rtt").
    pub(crate) fn is_early(&self) -> bool {
        match &self.peer {
            Peer::Client(peer) => self.early.phase == Phase::Open && peer.alpn_protocol().is_some(),
            Peer::Server(_) => matches!(self.early.phase, Phase::Open | Phase::Answered | Phase::Accepted),
        }
    }

    /// Returns received and unread early data.
    pub(crate) fn received(&mut self) -> Option<&mut Vec<u8>> {
        matches!(self.peer, Peer::Client(_)).then_some(&mut self.early.bytes)
    }

    /// Returns the information available at the time of early data.
    pub(crate) fn early_facts(&mut self) -> HandshakeInfo {
        let mut info = self.info.clone();
        if let Peer::Client(peer) = &self.peer {
            note(peer, &mut info);
            self.judge_peer(&mut info);
            let shown = self.early.shown.get_or_insert_with(Arc::default);
            info.early = Some(Arc::clone(shown));
        }
        info
    }

    fn judge_peer(&self, info: &mut HandshakeInfo) {
        if let Some(judge) = &self.judge {
            info.faults = ignored_faults(judge, &info.peer);
        }
    }

    /// Calls rustls once. Its output is appended to `out`, and so is `say` if rustls permits it.
    fn call(
        &mut self,
        input: &mut Buffer,
        out: &mut Vec<u8>,
        holds: bool,
        say: &mut Option<Pending<'_>>,
    ) -> Result<CallResult, Failure> {
        let shown = &mut input.data_mut()[..self.seen];
        let begin = out.len();
        let (peer, early) = (&mut self.peer, &mut self.early);
        let ((discard, step), fault) = listening(&mut self.info.details, self.with_secrets, || match peer {
            Peer::Client(peer) => server_step(peer.process_tls_records(shown), out, say, early),
            Peer::Server(peer) => client_step(peer.process_tls_records(shown), out, say, holds),
        });
        self.info.faults.extend(fault);
        let said = &out[begin.min(out.len())..];
        if let Some(details) = &mut self.info.details {
            details.note_record(said);
        }
        // No other response of a client to a server is that short.
        if self.early.phase == Phase::Answered && said.len() == END_OF_EARLY_DATA && said[0] == 23 {
            self.early.phase = Phase::Accepted;
        }
        input.consume(discard);
        self.seen -= discard;
        step
    }

    /// Returns the length of the next complete record that rustls has not seen, if there is one.
    fn unseen_record(&self, input: &Buffer) -> Result<Option<usize>, Failure> {
        let unseen = &input.data()[self.seen..];
        Ok(record::record_length(unseen)?.filter(|length| unseen.len() >= *length))
    }

    /// Passes rustls one record after the other, so that it never sees one that belongs after the handshake.
    pub(crate) fn advance(&mut self, input: &mut Buffer, out: &mut Vec<u8>) -> Result<Progress, Failure> {
        if self.early.phase == Phase::Open && matches!(self.peer, Peer::Server(_)) {
            // Until the server responds, more early data may be sent.
            if self.unseen_record(input)?.is_none() {
                return Ok(Progress::Early);
            }
            self.early.phase = Phase::Answered;
        }
        // The length of the record that rustls saw last, if it saw nothing else.
        let mut alone = None;
        loop {
            let holds = self.early.phase == Phase::Wanted;
            let result = self.call(input, out, holds, &mut None);
            if matches!(result, Ok(CallResult::Starved | CallResult::Done))
                && self.is_refused_record(input, alone.take())
            {
                input.consume(self.seen);
                self.seen = 0;
            }
            match result {
                Ok(CallResult::Again) => {}
                Ok(CallResult::Held) => {
                    self.early.phase = Phase::Open;
                    return Ok(Progress::Early);
                }
                Ok(CallResult::Done) if !self.is_handshaking() => return Ok(Progress::Done),
                Ok(CallResult::Done | CallResult::Starved) => match self.unseen_record(input)? {
                    Some(length) => {
                        if let Some(details) = &mut self.info.details {
                            details.note_record(&input.data()[self.seen..][..length]);
                        }
                        alone = (self.seen == 0).then_some(length);
                        self.seen += length;
                    }
                    None => return Ok(if self.is_early() { Progress::Early } else { Progress::Part }),
                },
                Err(failure) => {
                    // rustls has an alert for the error: one record. The result of that call is known already.
                    let _ = self.call(input, out, false, &mut None);
                    return Err(failure);
                }
            }
        }
    }

    /// Whether the record that rustls has seen alone, and not consumed, is early data that this side rejects: rustls
    /// skips it on each call, and counts it each time. Other records are consumed immediately, unless they begin a
    /// message that continues in the next one: such a record was decrypted in place.
    fn is_refused_record(&self, input: &Buffer, alone: Option<usize>) -> bool {
        if self.early.phase != Phase::Wanted || alone != Some(self.seen) || !matches!(self.peer, Peer::Client(_)) {
            return false;
        }
        let record = &input.data()[..self.seen];
        let (Some(23), Some(plain)) = (record.first(), record.get(HEADER..)) else { return false };
        let begins_message = match plain {
            [CERTIFICATE | COMPRESSED_CERTIFICATE, high, middle, low, ..] => {
                let length = u32::from_be_bytes([0, *high, *middle, *low]) as usize;
                length + 4 > plain.len() - (ADDED - HEADER)
            }
            _ => false,
        };
        !begins_message
    }

    /// Sends output before the handshake is complete. False: not possible now.
    fn say(&mut self, input: &mut Buffer, out: &mut Vec<u8>, say: Pending<'_>) -> Result<bool, Failure> {
        let mut say = Some(say);
        let holds = self.early.phase == Phase::Open;
        loop {
            match self.call(input, out, holds, &mut say)? {
                _ if say.is_none() => return Ok(true),
                CallResult::Again => {}
                CallResult::Held | CallResult::Starved | CallResult::Done => return Ok(false),
            }
        }
    }

    /// Appends one record with the first bytes of both pieces, at most `most`: early data to a server, or data to a
    /// client before it has finished. Returns the number of bytes; 0: the handshake must complete first.
    pub(crate) fn send(
        &mut self,
        input: &mut Buffer,
        pieces: [&[u8]; 2],
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<usize, Failure> {
        let most = most.clamp(1, LARGEST);
        let first = pieces[0].len().min(most);
        let second = pieces[1].len().min(most - first);
        let bytes = [&pieces[0][..first], &pieces[1][..second]].concat();
        match self.peer {
            Peer::Client(_) if self.is_early() => {
                let said = self.say(input, out, Pending::Data(&bytes))?;
                Ok(if said { bytes.len() } else { 0 })
            }
            Peer::Server(_)
                if self.early.phase == Phase::Open && self.early.bytes.len() + bytes.len() <= MOST_EARLY =>
            {
                let begin = out.len();
                self.say(input, out, Pending::Data(&bytes))?;
                // The server may accept less than that.
                let taken = (out.len() - begin).saturating_sub(ADDED);
                self.early.bytes.extend_from_slice(&bytes[..taken]);
                Ok(taken)
            }
            _ => Ok(0),
        }
    }

    /// Closes the direction to a client.
    pub(crate) fn close(&mut self, input: &mut Buffer, out: &mut Vec<u8>) {
        if self.is_early() && matches!(self.peer, Peer::Client(_)) {
            // If it cannot be sent, the client sees the end of the connection.
            let _ = self.say(input, out, Pending::Goodbye);
        }
    }

    /// Returns the information on a failed handshake.
    pub(crate) fn failed(&mut self, failure: Failure) -> HandshakeInfo {
        let mut info = std::mem::take(&mut self.info);
        match &self.peer {
            Peer::Client(peer) => note(peer, &mut info),
            Peer::Server(peer) => note(peer, &mut info),
        }
        info.failure = Some(Box::new(failure));
        info
    }

    /// Completes the handshake.
    pub(crate) fn finish(mut self) -> Result<CompletedHandshake, Failure> {
        let mut info = std::mem::take(&mut self.info);
        let Early { phase, bytes, shown, protocol } = std::mem::take(&mut self.early);
        let judge = self.judge.take();
        let is_client = matches!(self.peer, Peer::Client(_));
        let (extracted, secrets) = match self.peer {
            Peer::Client(peer) => {
                note(&peer, &mut info);
                let (extracted, kernel) = peer.dangerous_into_kernel_connection()?;
                (extracted, Secrets::OfServer(kernel))
            }
            Peer::Server(peer) => {
                note(&peer, &mut info);
                let (extracted, kernel) = peer.dangerous_into_kernel_connection()?;
                (extracted, Secrets::OfClient(kernel))
            }
        };
        if let Some(judge) = judge {
            info.faults = ignored_faults(&judge, &info.peer);
        }
        let (mut received, mut refused) = (Vec::new(), Vec::new());
        if is_client {
            // Early data that was not read before the end of the handshake is ordinary data.
            info.early = match (phase, shown) {
                (Phase::Open, None) => Some(Arc::new(EarlyData::over())),
                (_, shown) => shown,
            };
            received = bytes;
        } else if !bytes.is_empty() {
            info.early = Some(Arc::new(EarlyData::over()));
            if phase != Phase::Accepted {
                // Under another protocol the data would have another meaning.
                if protocol.is_some_and(|protocol| info.alpn.as_deref() != Some(&protocol)) {
                    return Err(Failure::OtherProtocol);
                }
                refused = bytes;
            }
        }
        Ok(CompletedHandshake { extracted, secrets, info, received, refused })
    }
}

/// Returns what is known of a handshake once the ClientHello has been read.
pub(crate) fn info_of(server: &Server, choice: &Choice, hello: &ClientHello<'_>) -> HandshakeInfo {
    let wanted = server.wanted();
    let mut details = wanted.begin();
    if let Some(details) = &mut details {
        details.note_client(hello, wanted);
    }
    let kept = (choice.capture > 0).then(|| Arc::new(Capture::of(hello.version, hello, choice.capture)));
    HandshakeInfo {
        server_name: choice.name.clone(),
        own: Some(Arc::clone(&choice.certificate)),
        hello: kept,
        authorities: choice.authorities.clone(),
        details,
        ..HandshakeInfo::default()
    }
}

/// Returns the ignored errors of a client's certificate: verified again, since a resumed session contains only the
/// certificate.
pub(crate) fn ignored_faults(judge: &OfClients, peer: &[Box<[u8]>]) -> Vec<Fault> {
    let mut certificates = peer.iter().map(|one| CertificateDer::from(&**one));
    let Some(own) = certificates.next() else { return Vec::new() };
    let behind: Vec<_> = certificates.collect();
    judge.judge(&own, &behind, UnixTime::now()).unwrap_or_default()
}

/// Records the results of the handshake.
pub(crate) fn note(common: &rustls::CommonState, info: &mut HandshakeInfo) {
    info.version = common.protocol_version();
    info.suite = common.negotiated_cipher_suite().map(|suite| suite.suite());
    info.group = common.negotiated_key_exchange_group().map(|group| group.name());
    info.alpn = common.alpn_protocol().map(Into::into);
    info.resumed = common.handshake_kind() == Some(HandshakeKind::Resumed);
    info.peer = common.peer_certificates().unwrap_or_default().iter().map(|one| one.as_ref().into()).collect();
}

/// Appends the output of `write` to a buffer that is large enough for one record with `length` bytes of data.
fn append<E>(
    out: &mut Vec<u8>,
    length: usize,
    write: impl FnOnce(&mut [u8]) -> Result<usize, E>,
) -> Result<(), Failure> {
    let begin = out.len();
    out.resize(begin + length + OVERHEAD, 0);
    let written = write(&mut out[begin..]);
    out.truncate(begin + written.as_ref().copied().unwrap_or_default());
    written.map(drop).map_err(|_| Failure::Keys)
}

fn traffic<Data>(traffic: &mut WriteTraffic<'_, Data>, say: &Pending<'_>, out: &mut Vec<u8>) -> Result<(), Failure> {
    match say {
        Pending::Data(bytes) => append::<EncryptError>(out, bytes.len(), |out| traffic.encrypt(bytes, out)),
        Pending::Goodbye => append::<EncryptError>(out, 2, |out| traffic.queue_close_notify(out)),
    }
}

type Status<'c, 'i, Data> = UnbufferedStatus<'c, 'i, Data>;

/// Handles one state of the server side. Returns the number of bytes to discard.
fn server_step(
    status: Status<'_, '_, ServerConnectionData>,
    out: &mut Vec<u8>,
    say: &mut Option<Pending<'_>>,
    early: &mut Early,
) -> (usize, Result<CallResult, Failure>) {
    let UnbufferedStatus { discard, state } = status;
    match state {
        Ok(ConnectionState::ReadEarlyData(mut data)) => {
            early.phase = Phase::Open;
            let mut step = Ok(CallResult::Again);
            // The amount is limited by the settings.
            while let Some(record) = data.next_record() {
                match record {
                    Ok(record) => early.bytes.extend_from_slice(record.payload),
                    Err(error) => step = Err(error.into()),
                }
            }
            (discard, step)
        }
        state => step(UnbufferedStatus { discard, state }, out, say),
    }
}

/// Handles one state of the client side. With `holds` it stops when early data may be sent.
fn client_step(
    status: Status<'_, '_, ClientConnectionData>,
    out: &mut Vec<u8>,
    say: &mut Option<Pending<'_>>,
    holds: bool,
) -> (usize, Result<CallResult, Failure>) {
    let UnbufferedStatus { discard, state } = status;
    match state {
        Ok(ConnectionState::TransmitTlsData(mut data)) if holds => {
            let Some(mut early) = data.may_encrypt_early_data() else {
                data.done();
                return (discard, Ok(CallResult::Again));
            };
            let said = match say.take() {
                Some(Pending::Data(bytes)) => append(out, bytes.len(), |out| early.encrypt(bytes, out)),
                _ => Ok(()),
            };
            (discard, said.map(|()| CallResult::Held))
        }
        state => step(UnbufferedStatus { discard, state }, out, say),
    }
}

/// Handles one state common to both sides. Returns the number of bytes to discard.
fn step<Data>(
    status: Status<'_, '_, Data>,
    out: &mut Vec<u8>,
    say: &mut Option<Pending<'_>>,
) -> (usize, Result<CallResult, Failure>) {
    let UnbufferedStatus { discard, state } = status;
    let step = match state {
        Err(error) => Err(error.into()),
        Ok(ConnectionState::EncodeTlsData(mut data)) => {
            let begin = out.len();
            let mut written = data.encode(&mut []);
            if let Err(EncodeError::InsufficientSize(needed)) = &written {
                out.resize(begin + needed.required_size, 0);
                written = data.encode(&mut out[begin..]);
            }
            match written {
                Ok(length) => {
                    out.truncate(begin + length);
                    Ok(CallResult::Again)
                }
                Err(_) => Err(Failure::Message),
            }
        }
        Ok(ConnectionState::TransmitTlsData(data)) => {
            data.done();
            Ok(CallResult::Again)
        }
        Ok(ConnectionState::BlockedHandshake) => Ok(CallResult::Starved),
        Ok(ConnectionState::WriteTraffic(mut writer)) => match say.take() {
            Some(say) => traffic(&mut writer, &say, out).map(|()| CallResult::Done),
            None => Ok(CallResult::Done),
        },
        Ok(ConnectionState::PeerClosed | ConnectionState::Closed) => Err(Failure::Alert(0)),
        // rustls never sees data records.
        Ok(_) => Err(Failure::Message),
    };
    (discard, step)
}
