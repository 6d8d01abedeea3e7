//! The frames of HTTP/3, on request streams and control streams of either side: for any bytes, in any pieces, the parts
//! are the same, all input is consumed, and memory is bounded. So do the beginnings of streams and datagrams of WebTransport.

use wire::h3::webtransport::{self, BeginningReader};
use wire::h3::{
    ControlFrame, ControlReader, Error, MessagePart, MessageReader, PeerStreams, Role, Scope, StreamType, TypeReader,
};

/// Maximum length of a field section in bytes.
const LONGEST: usize = 300;

/// A part that was read.
#[derive(Debug, PartialEq, Eq)]
enum Part {
    Head(Vec<u8>),
    Trailers(Vec<u8>),
    /// Consecutive parts of payload, joined.
    Data(Vec<u8>),
    Other(String),
}

/// Runs on one input: a byte that selects the side and the kind of stream, one that selects the size of pieces, and the
/// bytes of a peer; panics if a property is violated.
pub fn run(data: &[u8]) {
    let Some(([choice, step], bytes)) = data.split_first_chunk::<2>() else { return };
    let role = if choice & 1 == 0 { Role::Server } else { Role::Client };
    let read = match choice >> 1 & 3 {
        0 => request,
        1 => unidirectional,
        2 => session_stream,
        _ => return datagram(bytes),
    };
    let whole = read(role, bytes, bytes.len().max(1));
    let pieces = read(role, bytes, usize::from(*step).max(1));
    assert_eq!(whole, pieces, "pieces change the result");
}

/// Reads a request stream. An error is the last part, because the parts before it are valid.
fn request(role: Role, bytes: &[u8], step: usize) -> Vec<Part> {
    message(MessageReader::new(role, LONGEST), role, bytes, step)
}

/// Reads a bidirectional stream that may be one of a WebTransport session: of a client among requests, of a server nothing else.
fn session_stream(role: Role, bytes: &[u8], step: usize) -> Vec<Part> {
    if role == Role::Server {
        return message(MessageReader::with_sessions(role, LONGEST, true), role, bytes, step);
    }
    let mut reader = BeginningReader::new();
    for piece in bytes.chunks(step) {
        let mut input = piece;
        match reader.read(&mut input) {
            Ok(None) => assert!(input.is_empty()),
            Ok(Some(session)) => {
                assert!(session.is_multiple_of(4));
                return vec![Part::Other(format!("{session}"))];
            }
            Err(error) => return failed(Vec::new(), error),
        }
    }
    Vec::new()
}

/// Reads an HTTP Datagram. Its session comes back.
fn datagram(bytes: &[u8]) {
    let mut payload = bytes;
    let Ok(session) = webtransport::read_datagram(&mut payload) else { return };
    let mut written = Vec::new();
    webtransport::push_datagram(session, &mut written);
    assert!(written.len() <= bytes.len() - payload.len());
    written.extend_from_slice(payload);
    let mut again = &written[..];
    assert_eq!((webtransport::read_datagram(&mut again), again), (Ok(session), payload));
}

/// Reads a message, or the beginning of a stream of a session.
fn message(mut reader: MessageReader, role: Role, bytes: &[u8], step: usize) -> Vec<Part> {
    let mut parts = Vec::new();
    for piece in bytes.chunks(step) {
        let mut input = piece;
        loop {
            let part = match reader.next(&mut input) {
                Ok(None) => break,
                Ok(Some(part)) => part,
                Err(error) => return failed(parts, error),
            };
            let mut is_interim = false;
            match part {
                MessagePart::Head(section) => {
                    assert!(section.len() <= LONGEST);
                    is_interim = role == Role::Client && section.first() == Some(&1);
                    parts.push(Part::Head(section.to_vec()));
                }
                MessagePart::Trailers(section) => parts.push(Part::Trailers(section.to_vec())),
                MessagePart::Data(data) => match parts.last_mut() {
                    Some(Part::Data(before)) => before.extend_from_slice(data),
                    _ => parts.push(Part::Data(data.to_vec())),
                },
                MessagePart::StreamOf { session } => {
                    parts.push(Part::Other(format!("{session}")));
                    return parts;
                }
                other => parts.push(Part::Other(format!("{other:?}"))),
            }
            if is_interim {
                reader.note_interim();
            }
        }
        assert!(input.is_empty() && reader.held() <= LONGEST);
    }
    match reader.finish() {
        Ok(()) => parts,
        Err(error) => failed(parts, error),
    }
}

/// Reads a unidirectional stream.
fn unidirectional(role: Role, bytes: &[u8], step: usize) -> Vec<Part> {
    let mut streams = PeerStreams::new(role);
    let (mut kind, mut types, mut reader) = (None, TypeReader::default(), ControlReader::new(role));
    let mut parts = Vec::new();
    for piece in bytes.chunks(step) {
        let mut input = piece;
        if kind.is_none() {
            kind = types.read(&mut input);
            let Some(read) = kind else {
                assert!(input.is_empty());
                continue;
            };
            parts.push(Part::Other(format!("{read:?}")));
            if let Err(error) = streams.open(read) {
                assert_eq!(error.scope == Scope::Stream, matches!(read, StreamType::WebTransport | StreamType::Unknown(_)));
                return failed(parts, error);
            }
            assert!(streams.open(read).is_err() && streams.close(read).is_err());
        }
        if kind != Some(StreamType::Control) {
            return parts;
        }
        loop {
            match reader.next(&mut input) {
                Ok(None) => break,
                Ok(Some(frame)) => {
                    let is_settings = matches!(frame, ControlFrame::Settings(_));
                    assert_eq!(is_settings, parts.len() == 1, "settings come first, and once");
                    parts.push(Part::Other(format!("{frame:?}")));
                }
                Err(error) => return failed(parts, error),
            }
        }
        assert!(input.is_empty());
    }
    parts
}

fn failed(mut parts: Vec<Part>, error: Error) -> Vec<Part> {
    assert!(error.code.name().starts_with("H3_"));
    parts.push(Part::Other(format!("{error:?}")));
    parts
}
