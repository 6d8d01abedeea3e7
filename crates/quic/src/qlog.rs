//! Traces of connections in the form of qlog 0.3 (draft-ietf-quic-qlog-main-schema, draft-ietf-quic-qlog-quic-events; JSON
//! text sequences, RFC 7464). They have what can be seen outside of the library: datagrams without the packets in them,
//! measurements, losses, and the states of the connection. Must never write a file.

use std::fmt::{self, Write as _};
use std::net::SocketAddr;

use base::moment::{Moment, WallTime};

use crate::closed::Closed;
use crate::connection::{Connection, Event};
use crate::statistics::Statistics;
use crate::transmit::Transmit;

/// Size in bytes from which records are taken together.
const CHUNK: usize = 32 * 1024;
/// Maximum number of records about lost packets at a time.
const MOST_LOST: u64 = 64;

/// The connection that a trace describes.
#[derive(Debug, Clone)]
pub struct Subject {
    /// Text that names it for a reader.
    pub title: String,
    /// Whether Weir is the server.
    pub is_server: bool,
    /// The addresses of this side and of the peer.
    pub addresses: [SocketAddr; 2],
}

/// The trace of a connection: records that wait to be taken.
#[derive(Debug)]
pub struct Trace {
    begun: Moment,
    text: String,
    /// The state that the records so far describe.
    known: Statistics,
    is_closed: bool,
}

/// A string as it is written in JSON.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_char('"')?;
        for letter in self.0.chars() {
            match letter {
                '"' | '\\' => write!(f, "\\{letter}")?,
                control if control.is_control() => write!(f, "\\u{:04x}", u32::from(control))?,
                other => f.write_char(other)?,
            }
        }
        f.write_char('"')
    }
}

impl Trace {
    /// Begins with a connection that exists since now.
    pub fn new(subject: &Subject, now: Moment, wall: WallTime) -> Self {
        let mut trace = Self { begun: now, text: String::new(), known: Statistics::default(), is_closed: false };
        let vantage = if subject.is_server { "server" } else { "client" };
        let since = i128::from(wall.seconds) * 1_000 + i128::from(wall.nanos / 1_000_000);
        let _ = writeln!(
            trace.text,
            "\u{1e}{{\"qlog_version\":\"0.3\",\"qlog_format\":\"JSON-SEQ\",\"title\":{},\"trace\":{{\"vantage_point\":{{\"name\":\
             \"weir\",\"type\":\"{vantage}\"}},\"common_fields\":{{\"time_format\":\"relative\",\"reference_time\":{since}}}}}}}",
            Quoted(&subject.title)
        );
        let [own, peer] = subject.addresses;
        // The client's address is the source.
        let [source, destination] = if subject.is_server { [peer, own] } else { [own, peer] };
        let version = if source.is_ipv6() { "v6" } else { "v4" };
        trace.record(
            now,
            "connectivity:connection_started",
            format_args!(
                "\"ip_version\":\"{version}\",\"src_ip\":\"{}\",\"src_port\":{},\"dst_ip\":\"{}\",\"dst_port\":{}",
                source.ip(),
                source.port(),
                destination.ip(),
                destination.port()
            ),
        );
        trace
    }

    /// Appends a record; `data` are the members of its object.
    fn record(&mut self, now: Moment, name: &str, data: fmt::Arguments<'_>) {
        let micros = now.saturating_since(self.begun).as_micros();
        let (millis, rest) = (micros / 1_000, micros % 1_000);
        let _ = writeln!(self.text, "\u{1e}{{\"time\":{millis}.{rest:03},\"name\":\"{name}\",\"data\":{{{data}}}}}");
    }

    /// Records the datagrams that the connection has received since the last call, and what they have changed.
    pub fn note_received(&mut self, now: Moment, connection: &Connection) {
        self.note_arrivals(now, connection.statistics());
    }

    fn note_arrivals(&mut self, now: Moment, next: Statistics) {
        let count = next.received_datagrams - self.known.received_datagrams;
        let bytes = next.received_bytes - self.known.received_bytes;
        if count > 0 {
            let name = "transport:datagrams_received";
            self.record(now, name, format_args!("\"count\":{count},\"raw\":[{{\"length\":{bytes}}}]"));
        }
        self.note_changes(now, next);
    }

    /// Records a batch of datagrams that was sent.
    pub fn note_sent(&mut self, now: Moment, transmit: &Transmit, connection: &Connection) {
        let segment = if transmit.segment == 0 { transmit.size } else { transmit.segment.min(transmit.size) };
        let count = transmit.size.div_ceil(segment.max(1));
        let lengths = (0..count).map(|at| segment.min(transmit.size - at * segment));
        let mut raw = String::new();
        for length in lengths {
            let comma = if raw.is_empty() { "" } else { "," };
            let _ = write!(raw, "{comma}{{\"length\":{length}}}");
        }
        self.record(now, "transport:datagrams_sent", format_args!("\"count\":{count},\"raw\":[{raw}]"));
        self.note_changes(now, connection.statistics());
    }

    /// Records what has changed since the last record.
    fn note_changes(&mut self, now: Moment, next: Statistics) {
        let known = std::mem::replace(&mut self.known, next);
        // Counts of a path begin anew with another path.
        let lost = next.lost_packets.saturating_sub(known.lost_packets);
        for _ in 0..lost.min(MOST_LOST) {
            self.record(now, "recovery:packet_lost", format_args!(""));
        }
        if next.congestion_events > known.congestion_events {
            self.record(now, "recovery:congestion_state_updated", format_args!("\"new\":\"recovery\""));
        }
        if next.mtu != known.mtu {
            self.record(now, "connectivity:mtu_updated", format_args!("\"old\":{},\"new\":{}", known.mtu, next.mtu));
        }
        if (next.rtt, next.min_rtt, next.window) != (known.rtt, known.min_rtt, known.window) {
            let [rtt, least] = [next.rtt, next.min_rtt].map(|time| time.as_secs_f64() * 1_000.0);
            let window = next.window;
            let data = format_args!("\"min_rtt\":{least:.3},\"smoothed_rtt\":{rtt:.3},\"congestion_window\":{window}");
            self.record(now, "recovery:metrics_updated", data);
        }
    }

    /// Records an event of the connection.
    pub fn note_event(&mut self, now: Moment, event: &Event) {
        match event {
            Event::Connected => {
                let name = "connectivity:connection_state_updated";
                self.record(now, name, format_args!("\"new\":\"handshake_complete\""));
            }
            Event::Closed(closed) => self.note_closed(now, closed),
            Event::Stopped(id, code) => {
                let (name, id) = ("transport:stream_state_updated", id.number());
                let data = format_args!(
                    "\"stream_id\":{id},\"new\":\"reset_received\",\"stream_side\":\"sending\",\"error_code\":{code}"
                );
                self.record(now, name, data);
            }
            Event::Finished(id) => {
                let (name, id) = ("transport:stream_state_updated", id.number());
                let data = format_args!("\"stream_id\":{id},\"new\":\"data_received\",\"stream_side\":\"sending\"");
                self.record(now, name, data);
            }
            Event::Hello
            | Event::StreamsOpened(_)
            | Event::Readable(_)
            | Event::Writable(_)
            | Event::Messages
            | Event::StreamsAvailable(_) => {}
        }
    }

    /// Records the end of the connection, once.
    pub fn note_closed(&mut self, now: Moment, closed: &Closed) {
        if std::mem::replace(&mut self.is_closed, true) {
            return;
        }
        let text = |reason: &[u8]| Quoted(&String::from_utf8_lossy(reason)).to_string();
        let data = match closed {
            Closed::ByPeer { code, reason } => {
                format!("\"owner\":\"remote\",\"application_code\":{code},\"reason\":{}", text(reason))
            }
            Closed::PeerTransport { code, reason } => {
                format!("\"owner\":\"remote\",\"connection_code\":{code},\"reason\":{}", text(reason))
            }
            Closed::Transport { code, reason } => {
                format!("\"owner\":\"local\",\"connection_code\":{code},\"reason\":{}", Quoted(reason))
            }
            Closed::Reset => "\"owner\":\"remote\",\"trigger\":\"stateless_reset\"".to_owned(),
            Closed::TimedOut => "\"owner\":\"local\",\"trigger\":\"idle_timeout\"".to_owned(),
            Closed::Version => "\"owner\":\"local\",\"trigger\":\"version_mismatch\"".to_owned(),
            Closed::Local => "\"owner\":\"local\",\"trigger\":\"application\"".to_owned(),
        };
        self.record(now, "connectivity:connection_closed", format_args!("{data}"));
    }

    /// Returns whole records, once they are enough to be written together.
    pub fn take_chunk(&mut self) -> Option<String> {
        (self.text.len() >= CHUNK).then(|| std::mem::take(&mut self.text))
    }

    /// Returns the records that were not taken.
    pub fn take_rest(&mut self) -> String {
        std::mem::take(&mut self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(title: &str) -> Trace {
        let addresses = ["10.0.0.1:443".parse().unwrap(), "10.0.9.1:5000".parse().unwrap()];
        let subject = Subject { title: title.to_owned(), is_server: true, addresses };
        let mut trace = Trace::new(&subject, Moment::ZERO, WallTime { seconds: 1, nanos: 0 });
        trace.take_rest();
        trace
    }

    /// Returns the names of the records, and their data.
    fn records(trace: &mut Trace) -> Vec<String> {
        let text = trace.take_rest();
        let of = |line: &str| line.split_once("\"name\":").map(|(_, rest)| rest.trim_end_matches('}').to_owned());
        text.lines().filter_map(of).collect()
    }

    #[test]
    fn titles_are_text_of_json() {
        let addresses = ["10.0.0.1:443".parse().unwrap(), "10.0.9.1:5000".parse().unwrap()];
        let subject = Subject { title: "a\"b\\c\n".to_owned(), is_server: false, addresses };
        let mut trace = Trace::new(&subject, Moment::ZERO, WallTime { seconds: 1, nanos: 0 });
        let text = trace.take_rest();
        assert!(text.contains(r#""title":"a\"b\\c\u000a","#), "{text}");
        assert!(text.contains(r#""src_ip":"10.0.0.1","src_port":443"#), "{text}");
    }

    #[test]
    fn the_end_is_recorded_once() {
        let mut trace = trace("");
        trace.note_closed(Moment::ZERO, &Closed::TimedOut);
        trace.note_closed(Moment::ZERO, &Closed::Local);
        let expected = r#""connectivity:connection_closed","data":{"owner":"local","trigger":"idle_timeout""#;
        assert_eq!(records(&mut trace), [expected]);
    }

    #[test]
    fn arrivals_and_losses_are_recorded_as_differences() {
        let mut trace = trace("");
        let first = Statistics { received_datagrams: 2, received_bytes: 700, ..Statistics::default() };
        let second = Statistics { received_datagrams: 3, received_bytes: 800, lost_packets: 2, ..first };
        // Losses of another path are counted anew.
        let third = Statistics { lost_packets: 1, ..second };
        trace.note_arrivals(Moment::ZERO, first);
        trace.note_arrivals(Moment::ZERO, second);
        trace.note_arrivals(Moment::ZERO, third);
        trace.note_arrivals(Moment::ZERO, Statistics { lost_packets: 500, ..third });
        let found = records(&mut trace);
        let lost = found.iter().filter(|record| record.contains("packet_lost")).count();
        assert_eq!(lost as u64, 2 + MOST_LOST);
        let lengths: Vec<_> = found.iter().filter(|record| record.contains("received")).collect();
        let of = |count: u8, bytes: u16| {
            format!("\"transport:datagrams_received\",\"data\":{{\"count\":{count},\"raw\":[{{\"length\":{bytes}}}]")
        };
        assert_eq!(lengths, [&of(2, 700), &of(1, 100)]);
    }
}
