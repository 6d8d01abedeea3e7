//! Reloads and stops while connections of QMux are open: a connection stays with its process, as one of HTTP/2. Clients connect to
//! UNIX sockets, without TLS.

use crate::reload::Service;
use crate::support::{DEFAULTS, Folder, Running, connect_unix, wait_until};
use base::Moment;
use quic::qmux::{Connection, Settings};
use quic::stream::{Part, ReadError};
use quic::{Closed, Direction, Event, StreamId};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use wire::h3::{self, ControlFrame, ControlReader, MessagePart, MessageReader, Role, StreamType, TypeReader};

const SETTINGS: Settings = Settings {
    idle_timeout: Duration::ZERO,
    max_bidirectional: 0,
    max_unidirectional: 3,
    window: 1_000_000,
    stream_window: 100_000,
};

/// A connection of a client.
struct Client {
    stream: UnixStream,
    machine: Connection,
    /// The server's control stream, once it is open, and its GOAWAY frames.
    control: Option<StreamId>,
    name: TypeReader,
    is_named: bool,
    reader: ControlReader,
    departures: Vec<u64>,
    closed: Option<Closed>,
}

impl Client {
    fn connect(socket: &Path) -> Self {
        let mut client = Self {
            stream: connect_unix(socket),
            machine: Connection::new(false, SETTINGS, Moment::ZERO),
            control: None,
            name: TypeReader::default(),
            is_named: false,
            reader: ControlReader::new(Role::Client),
            departures: Vec::new(),
            closed: None,
        };
        client.until(|client| client.machine.is_ready());
        let mut bytes = Vec::new();
        h3::push_stream_type(StreamType::Control, &mut bytes);
        h3::push_settings(&h3::Settings::default(), &mut bytes);
        let own = client.machine.open(Direction::Unidirectional).expect("a stream");
        assert_eq!(client.machine.write(own, &bytes), Ok(bytes.len()));
        client
    }

    /// Sends what there is, and receives, until something is true or the connection has ended.
    fn until(&mut self, is_done: impl Fn(&Self) -> bool) {
        loop {
            let bytes = self.machine.output().to_vec();
            // A server that has closed the connection reads no more.
            if !bytes.is_empty() && self.stream.write_all(&bytes).is_ok() {
                self.machine.note_sent(Moment::ZERO, bytes.len());
            }
            if is_done(self) || self.closed.is_some() {
                return;
            }
            let mut space = [0; 4096];
            match self.stream.read(&mut space).expect("bytes, or the end") {
                0 => self.machine.end_input(),
                count => self.machine.receive(Moment::ZERO, &space[..count]),
            }
            while let Some(event) = self.machine.poll_event() {
                self.note(event);
            }
        }
    }

    fn note(&mut self, event: Event) {
        match event {
            Event::Closed(closed) => self.closed = Some(closed),
            Event::StreamsOpened(Direction::Unidirectional) => {
                self.control = self.machine.accept(Direction::Unidirectional);
                self.read_control();
            }
            Event::Readable(id) if self.control == Some(id) => self.read_control(),
            _ => {}
        }
    }

    /// Reads the server's control stream, the only one that it opens.
    fn read_control(&mut self) {
        let Some(control) = self.control else { return };
        while let Ok(Part::Chunk(bytes)) = self.machine.read(control, usize::MAX) {
            let mut input = &bytes[..];
            if !self.is_named {
                let kind = self.name.read(&mut input);
                assert!(kind.is_none_or(|kind| kind == StreamType::Control), "{kind:?}");
                self.is_named = kind.is_some();
            }
            while let Some(frame) = self.reader.next(&mut input).expect("valid frames") {
                if let ControlFrame::GoAway(next) = frame {
                    self.departures.push(next);
                }
            }
        }
    }

    /// Sends a request. Returns its stream.
    fn send(&mut self, path: &str) -> StreamId {
        let id = self.machine.open(Direction::Bidirectional).expect("a stream");
        let bytes = crate::quic_client::request(path);
        assert_eq!(self.machine.write(id, &bytes), Ok(bytes.len()));
        self.machine.finish(id).expect("open");
        self.until(|_| true);
        id
    }

    /// Returns the payload of an answer.
    fn answer(&mut self, id: StreamId) -> String {
        let (mut reader, mut payload) = (MessageReader::new(Role::Client, 65_536), Vec::new());
        loop {
            match self.machine.read(id, usize::MAX) {
                Ok(Part::Chunk(bytes)) => {
                    let mut input = &bytes[..];
                    while let Some(part) = reader.next(&mut input).expect("valid frames") {
                        if let MessagePart::Data(data) = part {
                            payload.extend_from_slice(data);
                        }
                    }
                }
                Ok(Part::End) => return String::from_utf8(payload).expect("text"),
                Err(ReadError::Blocked) if self.closed.is_none() => {
                    let received = std::cell::Cell::new(false);
                    self.until(|_| received.replace(true));
                }
                Err(error) => panic!("{error:?}: {:?}", self.closed),
            }
        }
    }

    fn get(&mut self, path: &str) -> String {
        let id = self.send(path);
        self.answer(id)
    }

    /// Reads to the end of the connection. Returns how the server has closed it.
    fn end(&mut self) -> Option<&Closed> {
        self.until(|_| false);
        self.closed.as_ref()
    }
}

/// A frontend whose answers are `name`.
fn frontend(folder: &Folder, name: &str) -> String {
    format!(
        "frontend web\n    bind {} proto qmux\n    \
         http-request return status 200 content-type text/plain string {name}\n",
        folder.path("qmux").display()
    )
}

/// Starts a process that answers `name`, and replaces `older`.
fn start(folder: &Folder, name: &str, global: &str, older: Option<&Running>) -> Running {
    let api = folder.path("api").display().to_string();
    let global =
        format!("global\n    expose-experimental-directives\n    stats socket {api} expose-fd listeners\n{global}");
    let file = folder.write(&format!("{name}.cfg"), &format!("{global}{DEFAULTS}{}", frontend(folder, name)));
    let running = match older {
        None => Running::weir(&["-db", "-f", &file]),
        Some(older) => Running::weir(&["-db", "-f", &file, "-x", &api, "-sf", &older.id().to_string()]),
    };
    wait_until("the process serves", || Client::connect(&folder.path("qmux")).get("/") == name);
    running
}

/// A reload in place leaves connections and their requests alone: they are served as their configuration says, and new ones by the
/// new one.
#[test]
fn a_reload_in_place_keeps_connections() {
    let folder = Folder::new();
    let socket = folder.path("qmux");
    let global = "    expose-experimental-directives\n";
    let sections = |name: &str| format!("{}    bind 127.0.0.1:PORT\n", frontend(&folder, name));
    let [one, two] = ["one", "two"].map(sections);
    let service = Service::start_with(global, &one, folder);
    let worker = service.worker();
    let mut client = Client::connect(&socket);
    assert_eq!(client.get("/"), "one");
    service.write(&format!("{global}    tune.quic.fe.max-idle-timeout 20s\n"), &two);
    let waiting = client.send("/");
    let answer = service.reload();
    assert!(answer.starts_with("Success=1\n") && answer.contains("Reloaded in place"), "{answer}");
    assert_eq!(client.answer(waiting), "one");
    assert_eq!(client.get("/"), "one");
    assert_eq!(Client::connect(&socket).get("/"), "two");
    assert_eq!(service.worker(), worker);
    assert_eq!((client.departures.as_slice(), &client.closed), (&[][..], &None));
}

/// A process that is replaced goes on serving its connections.
#[test]
fn a_connection_stays_with_the_process_that_is_replaced() {
    let folder = Folder::new();
    let spread = "    close-spread-time infinite\n";
    let old = start(&folder, "one", spread, None);
    let mut client = Client::connect(&folder.path("qmux"));
    assert_eq!(client.get("/"), "one");
    let waiting = client.send("/");
    let _new = start(&folder, "two", spread, Some(&old));
    assert_eq!(client.answer(waiting), "one");
    for _ in 0..3 {
        assert_eq!(client.get("/"), "one");
    }
    assert!(client.departures.is_empty(), "{:?}", client.departures);
    // Its last connection ends.
    drop(client);
    assert_eq!(old.finish().code(), Some(0));
}

/// A soft stop sends GOAWAY without a limit, then one with the identifier after that of the last request, and closes the connection.
#[test]
fn a_soft_stop_announces_the_end() {
    let folder = Folder::new();
    let old = start(&folder, "one", "", None);
    let mut client = Client::connect(&folder.path("qmux"));
    for _ in 0..2 {
        assert_eq!(client.get("/"), "one");
    }
    old.send(Signal::USR1);
    let closed = client.end().cloned();
    assert!(matches!(closed, Some(Closed::ByPeer { code: 0x100, .. })), "{closed:?}");
    assert_eq!(client.departures, [(1 << 62) - 4, 8]);
    assert_eq!(old.finish().code(), Some(0));
}
