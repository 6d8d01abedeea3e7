//! `show quic` (management manual, section 9.3): the QUIC connections of each worker. Must never block a worker: its
//! connections are read in batches.

use std::fmt::Write as _;
use std::rc::Rc;

use base::Key;
use config::spec::RuntimeLevel;
use conn::quic::StreamView;
use engine::quic_connections::{QuicConnection, QuicKey};
use engine::worker::Worker;

use super::super::call::Anonymization;
use super::super::{Call, Command, Disconnected, Pending, Run};
use super::sessions::id_of;

pub(super) const TABLE: &[Command<Worker>] = &[Command::new(
    "show quic",
    "show quic [help|<format>] [<filter>]",
    "display quic connections status",
    Run::Gradual(show_quic),
)
.at(RuntimeLevel::Operator)];

/// Connections per batch.
const BATCH: usize = 50;
/// Maximum number of streams that are shown of a connection.
const MOST_STREAMS: usize = 1_000;

const HELP: &str = "Usage: show quic [help|<format>] [<filter>]
Dumps information about QUIC connections. Available output formats:
  oneline    dump a single, netstat-like line per connection (default)
  stream     dump a list of streams, one per line, sorted by connection
  full       dump all known information about each connection
  <levels>*  only dump certain information, defined by a comma-delimited list
             of levels among 'tp', 'sock', 'pktns', 'cc', or 'mux'
  help       display this help
Available output filters:
  all        dump all connections
  clo        dump frontend closing connections
  be         dump backend connections
  <id>       dump only the connection matching this identifier (0x...)
Without any argument, active frontend connections are dumped using the oneline format.
";

const HEADER: &str = "# conn/frontend                     state   in_flight infl_p lost_p         Local Address           \
                      Foreign Address      local & remote CIDs\n";

/// The parts of a connection's description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Levels {
    parameters: bool,
    socket: bool,
    packets: bool,
    congestion: bool,
    streams: bool,
}

impl Levels {
    const ALL: Self = Self { parameters: true, socket: true, packets: true, congestion: true, streams: true };

    /// Parses a list of levels.
    fn read(list: &str) -> Result<Self, &'static str> {
        let mut levels = Self::default();
        for (at, level) in list.split(',').enumerate() {
            let level = match level {
                "tp" => &mut levels.parameters,
                "sock" => &mut levels.socket,
                "pktns" => &mut levels.packets,
                "cc" => &mut levels.congestion,
                "mux" => &mut levels.streams,
                _ if at == 0 => return Err("Invalid argument, use 'help' for more options."),
                _ => return Err("Invalid field, use 'help' for more options."),
            };
            *level = true;
        }
        Ok(levels)
    }
}

/// The form of the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Oneline,
    Streams,
    Levels(Levels),
}

/// The connections that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Filter {
    Active,
    All,
    Closing,
    ToServers,
    One(u64),
}

impl Filter {
    fn read(word: &str) -> Result<Option<Self>, &'static str> {
        Ok(Some(match word {
            "all" => Self::All,
            "clo" => Self::Closing,
            "be" => Self::ToServers,
            _ => match word.strip_prefix("0x") {
                None => return Ok(None),
                Some(digits) => match u64::from_str_radix(digits, 16) {
                    Ok(id) => Self::One(id),
                    Err(_) => return Err("Invalid quic_conn pointer."),
                },
            },
        }))
    }

    /// Whether a connection is shown.
    fn admits(self, id: u64, to_server: bool, is_closing: bool) -> bool {
        match self {
            Self::Active => !to_server && !is_closing,
            Self::All => true,
            Self::Closing => !to_server && is_closing,
            Self::ToServers => to_server,
            Self::One(one) => one == id,
        }
    }
}

/// The arguments of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct QuicQuery {
    format: Format,
    filter: Filter,
}

impl QuicQuery {
    /// Parses the words after the command.
    ///
    /// # Errors
    /// The answer to invalid arguments, or the help.
    fn read(words: &[String]) -> Result<Self, &'static str> {
        let mut words = words.iter().map(String::as_str);
        let mut query = Self { format: Format::Oneline, filter: Filter::Active };
        let Some(first) = words.next() else { return Ok(query) };
        let filter = match first {
            "help" => return Err(HELP),
            "oneline" => words.next(),
            "stream" => {
                query.format = Format::Streams;
                words.next()
            }
            "full" => {
                query.format = Format::Levels(Levels::ALL);
                words.next()
            }
            other => {
                if let Some(filter) = Filter::read(other)? {
                    // A connection that is named is described whole.
                    let is_one = matches!(filter, Filter::One(_));
                    let format = if is_one { Format::Levels(Levels::ALL) } else { Format::Oneline };
                    return Ok(Self { format, filter });
                }
                query.format = Format::Levels(Levels::read(other)?);
                words.next()
            }
        };
        if let Some(filter) = filter {
            query.filter = Filter::read(filter)?.ok_or("Invalid argument, use 'help' for more options.")?;
        }
        Ok(query)
    }
}

fn show_quic<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let query = match QuicQuery::read(call.words.get(2..).unwrap_or_default()) {
            Ok(query) => query,
            Err(sentence) => {
                call.refuse(sentence);
                return Ok(());
            }
        };
        if query.format == Format::Oneline {
            call.answer.push(HEADER);
        }
        for worker in 0..call.state.process.workers() {
            show_worker(call, worker, query).await?;
        }
        Ok(())
    })
}

/// Shows the connections of a worker.
async fn show_worker(call: &mut Call<'_, Worker>, number: usize, query: QuicQuery) -> Result<(), Disconnected> {
    let mut from = None;
    let hiding = call.conversation.anonymous;
    loop {
        let batch = engine::on_one_worker(number, move |worker| describe(worker, query, from, hiding)).await;
        let Some((text, last)) = batch else { return Ok(()) };
        call.answer.push(text);
        call.answer.relieve().await?;
        match last {
            Some(last) => from = Some(last),
            None => return Ok(()),
        }
    }
}

/// Set in the identifier of a connection to a server; that of a client's is the one of its session.
const TO_SERVER: u64 = 1 << 63;

/// Returns the identifier of a connection, unique over all workers.
fn identifier(worker: usize, key: QuicKey) -> u64 {
    match key {
        QuicKey::Client(tag) => id_of(worker, Key::from_bits(tag)),
        QuicKey::Server(number) => TO_SERVER | id_of(worker, Key::from_bits(number)),
    }
}

/// Returns the text of a batch of connections after `from`, and the key to continue after.
fn describe(
    worker: &Rc<Worker>,
    query: QuicQuery,
    from: Option<QuicKey>,
    hiding: Anonymization,
) -> (String, Option<QuicKey>) {
    let mut text = String::new();
    let connections = worker.quic.after(from, BATCH);
    let last = if connections.len() < BATCH { None } else { connections.last().map(|(key, _)| *key) };
    for (key, connection) in connections {
        let (id, to_server) = (identifier(worker.id, key), matches!(key, QuicKey::Server(_)));
        if query.filter.admits(id, to_server, connection.observer.is_closed()) {
            let shown = Shown { id, worker: worker.id, connection: &connection, hiding };
            match query.format {
                Format::Oneline => shown.line(&mut text),
                Format::Streams => shown.streams(&mut text),
                Format::Levels(levels) => shown.levels(levels, &mut text),
            }
        }
    }
    (text, last)
}

/// A connection that is shown.
struct Shown<'c> {
    id: u64,
    worker: usize,
    connection: &'c QuicConnection,
    hiding: Anonymization,
}

impl Shown<'_> {
    /// Returns the local and the peer's address.
    fn addresses(&self) -> [String; 2] {
        let addresses = self.connection.observer.addresses();
        addresses.map(|address| self.hiding.address(&address.to_string()).into_owned())
    }

    /// Appends a line. The library does not expose the bytes in flight nor the connection IDs.
    fn line(&self, text: &mut String) {
        let observer = &self.connection.observer;
        let state = match (observer.is_closed(), observer.is_handshaking()) {
            (true, _) => "CLOSE",
            (false, true) => "HDSHK",
            (false, false) => "ESTAB",
        };
        let [local, foreign] = self.addresses();
        let mut name = self.hiding.name(self.connection.proxy()).into_owned();
        if let Some(server) = self.connection.server() {
            name.push('/');
            name.push_str(&self.hiding.name(server));
        }
        let _ = writeln!(
            text,
            "{:#x}[{:02}]/{name:<16} {state:<7} {:>9} {:>6} {:>6} {local:>23} {foreign:>23} - -",
            self.id,
            self.worker,
            "-",
            "-",
            observer.statistics().lost_packets,
        );
    }

    /// Appends a line for each request stream.
    fn streams(&self, text: &mut String) {
        let (views, all) = self.connection.observer.streams(MOST_STREAMS).unwrap_or_default();
        for view in &views {
            let released = if view.is_released { " -- released --" } else { "" };
            let _ = writeln!(
                text,
                "{:#x}.{:04x}: {:#04x} rxb={}{released}",
                self.id,
                view.id,
                closed_sides(view),
                view.unread
            );
        }
        if all > views.len() {
            let _ = writeln!(text, "{:#x}: {} more streams", self.id, all - views.len());
        }
    }

    /// Appends a description.
    fn levels(&self, levels: Levels, text: &mut String) {
        let (observer, limits) = (&self.connection.observer, self.connection.limits());
        let statistics = observer.statistics();
        let _ = writeln!(text, "* {:#x}[{:02}]: scid=- dcid=-", self.id, self.worker);
        if levels.parameters {
            let _ = writeln!(
                text,
                "  loc. TPs:\n    midle_timeout={}ms\n    md={} msd_bidi_r={} ms_bidi={}",
                limits.idle_timeout.unwrap_or_default().as_millis(),
                limits.connection_window,
                limits.stream_window,
                limits.streams,
            );
        }
        let streams = observer.streams(MOST_STREAMS);
        let state = if observer.is_closed() { "closing" } else { "opened" };
        let carried = if streams.is_some() { "ready" } else { "null" };
        let _ = writeln!(text, "  st={state:<16} mux={carried:<41}");
        if levels.socket {
            let [local, foreign] = self.addresses();
            let _ = writeln!(text, "  local_addr={local} foreign_addr={foreign} mtu={}", statistics.mtu);
        }
        if levels.packets {
            let _ = writeln!(
                text,
                "  rx.bytes={} rx.dgrams={} tx.bytes={} tx.dgrams={}",
                statistics.received_bytes,
                statistics.received_datagrams,
                statistics.sent_bytes,
                statistics.sent_datagrams
            );
        }
        if levels.congestion {
            let _ = writeln!(
                text,
                "  srtt={:<5} rttmin={:<5}\n  cwnd={:<17} congestion_events={}\n  sentbytes={:<12} sentpkts={:<5}\n  \
                 lostpkts={:<13} lostbytes={}",
                statistics.rtt.as_millis(),
                statistics.min_rtt.as_millis(),
                statistics.window,
                statistics.congestion_events,
                statistics.sent_bytes,
                statistics.sent_packets,
                statistics.lost_packets,
                statistics.lost_bytes
            );
        }
        if levels.streams
            && let Some((views, all)) = streams
        {
            let open = views.iter().filter(|view| !view.is_released).count();
            let _ = writeln!(text, "  qcc: sc={all} hreq={open}");
            for view in &views {
                let state = ["OPN", "HCR", "HCL", "CLO"][usize::from(closed_sides(view))];
                let _ = writeln!(text, "    qcs id={} st={state} rxb={}", view.id, view.unread);
            }
        }
        text.push('\n');
    }
}

/// Returns the sides that have ended: 1 for the peer's, 2 for Weir's.
fn closed_sides(view: &StreamView) -> u8 {
    u8::from(view.is_ended) | u8::from(view.is_complete) << 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_parsed_as_haproxy_does() {
        let read = |text: &str| {
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            QuicQuery::read(&words)
        };
        let levels = Levels { parameters: true, congestion: true, ..Levels::default() };
        let (all, invalid) = (Format::Levels(Levels::ALL), "Invalid argument, use 'help' for more options.");
        let rows = [
            ("", Ok((Format::Oneline, Filter::Active))),
            ("oneline clo", Ok((Format::Oneline, Filter::Closing))),
            ("all", Ok((Format::Oneline, Filter::All))),
            ("be", Ok((Format::Oneline, Filter::ToServers))),
            ("0x10", Ok((all, Filter::One(16)))),
            ("oneline 0x10", Ok((Format::Oneline, Filter::One(16)))),
            ("full all", Ok((all, Filter::All))),
            ("stream", Ok((Format::Streams, Filter::Active))),
            ("tp,cc be", Ok((Format::Levels(levels), Filter::ToServers))),
            ("oneline all x", Ok((Format::Oneline, Filter::All))),
            ("help x", Err(HELP)),
            ("foo", Err(invalid)),
            ("tp bar", Err(invalid)),
            ("tp,foo", Err("Invalid field, use 'help' for more options.")),
            ("0xzz", Err("Invalid quic_conn pointer.")),
        ];
        for (text, expected) in rows {
            let expected = expected.map(|(format, filter)| QuicQuery { format, filter });
            assert_eq!(read(text), expected, "{text}");
        }
    }

    #[test]
    fn the_header_is_haproxys() {
        assert_eq!(HEADER.find("state"), Some(36));
        assert_eq!(HEADER.find("Foreign Address"), Some(100));
        assert_eq!(HEADER.find("local & remote CIDs"), Some(121));
    }

    #[test]
    fn filters_select_by_state_and_id() {
        let rows = [
            (Filter::Active, [true, false, false, false]),
            (Filter::All, [true, true, true, true]),
            (Filter::Closing, [false, true, false, false]),
            (Filter::ToServers, [false, false, true, true]),
            (Filter::One(7), [true, true, true, true]),
            (Filter::One(8), [false, false, false, false]),
        ];
        let states = [(false, false), (false, true), (true, false), (true, true)];
        for (filter, expected) in rows {
            let admits = states.map(|(to_server, is_closing)| filter.admits(7, to_server, is_closing));
            assert_eq!(admits, expected, "{filter:?}");
        }
    }

    /// The number of a connection to a server may be that of a session.
    #[test]
    fn identifiers_differ_by_the_peer_and_the_worker() {
        let rows = [(0, QuicKey::Client(1)), (0, QuicKey::Server(1)), (1, QuicKey::Server(1))];
        let ids = rows.map(|(worker, key)| identifier(worker, key));
        assert_eq!(ids, [0x1_0000_0000_0001, 0x8001_0000_0000_0001, 0x8002_0000_0000_0001]);
    }
}
