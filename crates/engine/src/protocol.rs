//! The protocol of a client's connection: which one it speaks by `proto`, by ALPN and by its first bytes, what it grants to clients
//! with several streams, and how these are counted. It is known before a request is parsed. Must never read or wait.

use std::cell::Cell;

use config::spec::Http2ErrorsSpec;
use conn::glitches::GlitchLimits;
use conn::h1::HeadLimits;
use conn::h2;
use conn::h3;
use conn::multiplexed::{self, Beginning, ClientTerms, HttpCounts};
use conn::qmux;
use live::counters::{BackCounters, FrontCounters, Http2Counters, QuicCounters};
use policy::program::{Global, Http2Limits, MuxProtocol};

use crate::quic_counts;

/// The unidirectional streams that HTTP/3 needs: control, and both of QPACK (RFC 9114, section 6.2).
pub const UNIDIRECTIONAL: u32 = 3;

/// Protocol of a client's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    /// Bytes (`mode tcp`).
    Tcp,
    /// HTTP/1: one request after the other.
    Http1,
    /// HTTP with several streams at a time.
    Multiplexed(multiplexed::Protocol),
}

/// Protocols that a connection in HTTP mode may begin in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expected {
    /// HTTP/1: `proto h1`, or the only one that is left with `option disable-h2-upgrade`.
    Http1,
    /// The one that `proto` or ALPN says.
    Multiplexed(multiplexed::Protocol),
    /// HTTP/1, or HTTP/2 where the connection begins with its preface.
    Either,
}

/// The protocol that the first bytes of a connection begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Choice {
    /// That one.
    Known(Protocol),
    /// They may begin that one: more bytes are needed.
    Open(multiplexed::Protocol),
    /// None that is expected.
    Refused,
}

impl Expected {
    /// Returns what is expected by `proto`, which takes precedence, and by the protocol that ALPN has agreed on. `upgrades`: a
    /// preface is looked for where neither says anything.
    pub fn by(proto: Option<MuxProtocol>, alpn: Option<&[u8]>, upgrades: bool) -> Self {
        match proto {
            Some(MuxProtocol::Http1) => Self::Http1,
            Some(MuxProtocol::Http2) => Self::Multiplexed(multiplexed::Protocol::H2),
            Some(MuxProtocol::Qmux) => Self::Multiplexed(multiplexed::Protocol::Qmux),
            _ => match alpn.and_then(multiplexed::Protocol::named) {
                Some(agreed) => Self::Multiplexed(agreed),
                None if upgrades => Self::Either,
                None => Self::Http1,
            },
        }
    }

    /// Returns the protocol of a connection that begins before the client has sent anything.
    pub fn at_once(self) -> Option<Protocol> {
        (self == Self::Multiplexed(multiplexed::Protocol::Qmux))
            .then_some(Protocol::Multiplexed(multiplexed::Protocol::Qmux))
    }

    /// Chooses by the first bytes of a connection. Without any, the connection has ended.
    #[inline]
    pub fn choose(self, bytes: &[u8]) -> Choice {
        let (protocol, other) = match self {
            Self::Http1 => return Choice::Known(Protocol::Http1),
            Self::Multiplexed(protocol) => (protocol, Choice::Refused),
            Self::Either => (multiplexed::Protocol::H2, Choice::Known(Protocol::Http1)),
        };
        match protocol.compare(bytes) {
            Beginning::Whole => Choice::Known(Protocol::Multiplexed(protocol)),
            Beginning::Part if !bytes.is_empty() => Choice::Open(protocol),
            Beginning::Part | Beginning::Other => other,
        }
    }

    /// Chooses once no further bytes come in time: those of an unfinished preface are an unfinished request of HTTP/1.
    pub fn give_up(self) -> Choice {
        match self {
            Self::Http1 | Self::Either => Choice::Known(Protocol::Http1),
            Self::Multiplexed(_) => Choice::Refused,
        }
    }
}

/// Protocol of connections that carry requests to where they were opened from (reverse HTTP).
pub const REVERSED: multiplexed::Protocol = multiplexed::Protocol::H2;

/// Limits of the clients of a frontend, whatever their protocol.
#[derive(Debug, Clone, Copy)]
pub struct Grant {
    /// Streams at a time.
    pub streams: usize,
    /// Limits of a head.
    pub head: HeadLimits,
    /// `option accept-unsafe-violations-in-http-request`.
    pub accept_unsafe: bool,
    /// `webtransport`.
    pub webtransport: bool,
}

/// Returns the streams at a time that the configuration grants to a client.
pub fn streams(protocol: multiplexed::Protocol, global: &Global) -> usize {
    match protocol {
        multiplexed::Protocol::H2 => global.http2.streams,
        multiplexed::Protocol::H3 | multiplexed::Protocol::Qmux => global.quic.streams.concurrent as usize,
    }
}

/// Returns what clients of that protocol are granted.
pub fn client_terms(protocol: multiplexed::Protocol, global: &Global, grant: &Grant) -> ClientTerms {
    match protocol {
        multiplexed::Protocol::H2 => ClientTerms::H2(h2::Terms {
            max_streams: grant.streams,
            accept_unsafe: grant.accept_unsafe,
            ..http2_terms(&global.http2, global.glitches.http2_clients, global, grant.head)
        }),
        multiplexed::Protocol::H3 => ClientTerms::H3(http3_terms(global, grant)),
        multiplexed::Protocol::Qmux => {
            ClientTerms::Qmux(http3_terms(global, &Grant { webtransport: false, ..*grant }), qmux_settings(global))
        }
    }
}

/// Returns what a connection of HTTP/2 grants by the limits of its side, and the number of glitches that it permits.
pub fn http2_terms(limits: &Http2Limits, threshold: Option<u32>, global: &Global, head: HeadLimits) -> h2::Terms {
    h2::Terms {
        max_streams: limits.streams,
        window: limits.window,
        shared_window: limits.shared_window,
        table_size: limits.table_size,
        max_total: limits.total,
        extends: limits.extends,
        max_head: head.max_head,
        max_fields: head.max_fields,
        accept_unsafe: false,
        glitches: GlitchLimits { threshold: threshold.unwrap_or(0), usage: global.glitches.usage },
        budget: if threshold.is_none() { h2::BUDGET } else { 0 },
    }
}

/// Returns what a connection of HTTP/3 grants.
fn http3_terms(global: &Global, grant: &Grant) -> h3::Terms {
    let threshold = global.quic.glitches;
    h3::Terms {
        max_streams: grant.streams,
        max_total: global.quic.streams.total,
        max_head: grant.head.max_head,
        max_fields: grant.head.max_fields,
        extends: global.http2.extends,
        webtransport: grant.webtransport,
        accept_unsafe: grant.accept_unsafe,
        glitches: GlitchLimits { threshold, usage: global.glitches.usage },
        budget: if threshold == 0 { h2::BUDGET } else { 0 },
    }
}

/// Returns the settings of a client's connection of QMux: those of QUIC.
fn qmux_settings(global: &Global) -> qmux::Settings {
    let limits = &global.quic;
    qmux::Settings {
        idle_timeout: limits.idle_timeout.unwrap_or_default(),
        max_bidirectional: limits.streams.concurrent.min(h3::INITIAL_STREAMS),
        max_unidirectional: UNIDIRECTIONAL,
        window: limits.streams.connection_window,
        stream_window: limits.streams.stream_window,
    }
}

/// Returns the number of log lines about requests that became no streams (`tune.h2.log-errors`).
pub fn error_lines(counts: &HttpCounts, global: &Global) -> u32 {
    let faults = counts.faults();
    match counts {
        HttpCounts::H2(_) => match global.streams.logged_errors {
            Http2ErrorsSpec::None => 0,
            Http2ErrorsSpec::Connection => faults.fatal,
            Http2ErrorsSpec::Stream => faults.fatal + faults.malformed,
        },
        // There is no such setting for HTTP/3.
        HttpCounts::H3(_) => 0,
    }
}

/// Guard that counts an open HTTP/2 connection and its streams.
pub struct Http2Connection<'a> {
    counters: &'a Http2Counters,
    streams: Cell<u32>,
}

impl<'a> Http2Connection<'a> {
    /// Counts a connection that begins.
    pub fn new(counters: &'a Http2Counters) -> Self {
        counters.open_connections.increment();
        counters.connections.increment();
        Self { counters, streams: Cell::new(0) }
    }

    /// Adds the events of the connection. Glitches are counted where their consequences are handled.
    pub fn count(&self, counts: &h2::Counts) {
        let counters = self.counters;
        let rows = [
            (&counters.headers_received, counts.headers),
            (&counters.data_received, counts.data),
            (&counters.settings_received, counts.settings),
            (&counters.resets_received, counts.resets),
            (&counters.departures_received, counts.departures),
            (&counters.connection_errors, counts.connection_errors),
            (&counters.stream_errors, counts.stream_errors),
            (&counters.resets_sent, counts.resets_sent),
            (&counters.departures_sent, counts.departures_sent),
            (&counters.open_streams, counts.streams),
            (&counters.streams, counts.streams),
            (&counters.stream_stalls, counts.stream_stalls),
            (&counters.connection_stalls, counts.connection_stalls),
        ];
        rows.iter().filter(|(_, count)| *count > 0).for_each(|(sum, count)| sum.add(u64::from(*count)));
        let open = self.streams.get() + counts.streams;
        let ended = counts.ended.min(open);
        counters.open_streams.subtract(u64::from(ended));
        self.streams.set(open - ended);
    }
}

impl Drop for Http2Connection<'_> {
    fn drop(&mut self) {
        self.counters.open_connections.subtract(1);
        self.counters.open_streams.subtract(u64::from(self.streams.get()));
    }
}

/// Counters of an HTTP/3 connection.
pub struct Http3Connection<'a>(&'a QuicCounters);

impl<'a> Http3Connection<'a> {
    /// Counts a connection that begins.
    pub fn new(counters: &'a QuicCounters) -> Self {
        counters.connections.increment();
        Self(counters)
    }

    /// Adds the events of the connection. Glitches are counted where their consequences are handled.
    pub fn count(&self, counts: &h3::Counts) {
        quic_counts::add_http3(self.0, counts);
    }
}

/// A multiplexed connection, in the counters of its protocol.
pub enum CountedConnection<'a> {
    /// HTTP/2.
    H2(Http2Connection<'a>),
    /// HTTP/3.
    H3(Http3Connection<'a>),
}

impl<'a> CountedConnection<'a> {
    /// Counts a client's connection that begins, and removes it from those of HTTP/1.
    pub fn begin(counters: &'a FrontCounters, protocol: multiplexed::Protocol) -> Self {
        counters.front.protocol.connections.subtract(1);
        match protocol {
            multiplexed::Protocol::H2 => Self::H2(Http2Connection::new(&counters.front_http2)),
            multiplexed::Protocol::H3 | multiplexed::Protocol::Qmux => {
                Self::H3(Http3Connection::new(counters.front_quic.used()))
            }
        }
    }

    /// Counts a connection to a server that begins.
    pub fn to_server(counters: &'a BackCounters, protocol: multiplexed::Protocol) -> Self {
        match protocol {
            multiplexed::Protocol::H2 => Self::H2(Http2Connection::new(&counters.http2)),
            multiplexed::Protocol::H3 | multiplexed::Protocol::Qmux => {
                Self::H3(Http3Connection::new(counters.quic.used()))
            }
        }
    }

    /// Adds a peer's glitches.
    pub fn count_glitches(&self, glitches: u32) {
        let all = match self {
            Self::H2(connection) => &connection.counters.glitches,
            Self::H3(connection) => &connection.0.glitches,
        };
        all.add(glitches.into());
    }

    /// Adds the counts of a connection of QMux that has ended.
    pub fn count_end(&self, counts: &qmux::EndCounts) {
        if let Self::H3(connection) = self {
            quic_counts::add_end(connection.0, counts);
        }
    }

    /// Adds the events of the connection.
    pub fn count(&self, counts: &HttpCounts) {
        match (self, counts) {
            (Self::H2(connection), HttpCounts::H2(counts)) => connection.count(counts),
            (Self::H3(connection), HttpCounts::H3(counts)) => connection.count(counts),
            // The counts are those of the connection's protocol.
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const H2: Protocol = Protocol::Multiplexed(multiplexed::Protocol::H2);
    const PREFACE: &[u8] = wire::h2::PREFACE;

    #[test]
    fn proto_takes_precedence_over_alpn_and_both_over_the_first_bytes() {
        use Expected::{Either, Http1, Multiplexed};
        let multiplexed = Multiplexed(multiplexed::Protocol::H2);
        let (h1, h2) = (Some(MuxProtocol::Http1), Some(MuxProtocol::Http2));
        let alpns: [Option<&[u8]>; 4] = [None, Some(b"http/1.1"), Some(b"h2"), Some(b"other")];
        for (proto, upgrades, expected) in [
            (None, true, [Either, Either, multiplexed, Either]),
            (None, false, [Http1, Http1, multiplexed, Http1]),
            (h1, true, [Http1; 4]),
            (h1, false, [Http1; 4]),
            (h2, true, [multiplexed; 4]),
            (h2, false, [multiplexed; 4]),
        ] {
            let found = alpns.map(|alpn| Expected::by(proto, alpn, upgrades));
            assert_eq!(found, expected, "{proto:?} {upgrades}");
        }
    }

    #[test]
    fn a_preface_is_recognised_at_its_last_byte_and_nothing_else_before() {
        let multiplexed = Expected::Multiplexed(multiplexed::Protocol::H2);
        let known = |protocol| Choice::Known(protocol);
        let rows = [(Expected::Either, known(Protocol::Http1)), (multiplexed, Choice::Refused)];
        for (expected, other) in rows {
            assert_eq!(expected.choose(b""), other);
            assert_eq!(expected.give_up(), other);
            for length in 1..PREFACE.len() {
                assert_eq!(expected.choose(&PREFACE[..length]), Choice::Open(multiplexed::Protocol::H2), "{length}");
            }
            assert_eq!(expected.choose(PREFACE), known(H2));
            assert_eq!(expected.choose(&[PREFACE, b"\0\0\0\x04"].concat()), known(H2));
            for at in 0..PREFACE.len() {
                let mut broken = PREFACE.to_vec();
                broken[at] ^= 0x20;
                for length in at + 1..=PREFACE.len() {
                    assert_eq!(expected.choose(&broken[..length]), other, "{at} {length}");
                }
            }
            for bytes in ["GET / HTTP/1.1\r\n\r\n", "P\r\n", "\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\u{16}\u{3}\u{1}"]
            {
                assert_eq!(expected.choose(bytes.as_bytes()), other, "{bytes:?}");
            }
        }
        for bytes in [b"", &PREFACE[..3], PREFACE, b"GET"] {
            assert_eq!(Expected::Http1.choose(bytes), known(Protocol::Http1));
        }
    }
}
