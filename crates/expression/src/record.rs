//! The values of a log line: plain data that the engine fills in before a format is rendered. Must never contain
//! anything that has to be looked up later.

use base::moment::{Moment, WallTime};
use config::spec::LogStep;
use std::net::SocketAddr;

/// One end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Endpoint {
    /// No connection, or unknown: printed as "-".
    #[default]
    Absent,
    /// An address with its port.
    Inet(SocketAddr),
    /// A UNIX socket, printed as "unix", with its substitute for a port: the identifier of the listening socket for a
    /// client, 0 for a server.
    Unix(u32),
}

impl Endpoint {
    /// Creates a client or a destination: without an address it is the UNIX socket with that identifier.
    pub fn client(address: Option<SocketAddr>, listener: u32) -> Self {
        address.map_or(Self::Unix(listener), Self::Inet)
    }
}

impl From<SocketAddr> for Endpoint {
    fn from(address: SocketAddr) -> Self {
        Self::Inet(address)
    }
}

/// The step of a transaction at which a line is written: `%OG`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Origin {
    #[default]
    Unspecified,
    SessionError,
    SessionKilled,
    Accept,
    Request,
    Connect,
    Response,
    Close,
    /// A rule (`do-log`).
    Rule(LogStep),
}

impl Origin {
    /// The step's name in a log profile.
    pub const fn step(self) -> LogStep {
        match self {
            Self::Unspecified => LogStep::Any,
            Self::SessionError | Self::SessionKilled => LogStep::Error,
            Self::Accept => LogStep::Accept,
            Self::Request => LogStep::Request,
            Self::Connect => LogStep::Connect,
            Self::Response => LogStep::Response,
            Self::Close => LogStep::Close,
            Self::Rule(step) => step,
        }
    }

    /// The name in the manual.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Unspecified => "unspec",
            Self::SessionError => "sess_error",
            Self::SessionKilled => "sess_killed",
            Self::Accept => "txn_accept",
            Self::Request => "txn_request",
            Self::Connect => "txn_connect",
            Self::Response => "txn_response",
            Self::Close => "txn_close",
            Self::Rule(step) => LogStep::NAMES[step as usize].0,
        }
    }
}

/// The points in time of a stream; `None`: not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Timings {
    /// The connection was accepted, or the previous response on it ended.
    pub start: Moment,
    /// The handshakes of the lower layers (TLS, PROXY protocol) were completed; `None` without handshakes.
    pub handshake: Option<Moment>,
    /// The first byte of the request was received; never in TCP mode.
    pub first_byte: Option<Moment>,
    /// The request head was complete; never in TCP mode.
    pub request: Option<Moment>,
    /// The queues were left: a slot of a server was available.
    pub queued: Option<Moment>,
    /// The connection to the server was established.
    pub connected: Option<Moment>,
    /// The response head was complete; never in TCP mode.
    pub response: Option<Moment>,
}

impl Timings {
    /// Computes the log's timers for a stream that ends, or whose line is written, at `end`. Every point is truncated
    /// to whole milliseconds since the start before points are subtracted, so that the timers add up to the totals.
    pub fn timers(&self, end: Moment) -> Timers {
        let at = |point: Option<Moment>| point.map(|moment| moment.millis_since(self.start) as i64);
        let total = end.millis_since(self.start) as i64;
        let mut reached = 0;
        let mut step = |point: Option<Moment>| match at(point) {
            Some(millis) => {
                let took = (millis - reached).max(0);
                reached = reached.max(millis);
                took
            }
            None => -1,
        };
        let handshake = step(self.handshake).max(0);
        let idle = step(self.first_byte);
        let request = step(self.request);
        let queue = step(self.queued);
        let connect = step(self.connected);
        let response = step(self.response);
        let answering = if self.first_byte.is_some() { self.response } else { self.connected };
        let data = if answering.is_some() { (total - reached).max(0) } else { -1 };
        let active = (total - handshake - idle.max(0)).max(0);
        Timers { handshake, idle, request, queue, connect, response, data, active, total }
    }

    /// Computes the times that statistics average, in milliseconds: `Tw`, `Tc`, `Tr`, `Tt`, as [`Timings::timers`] does; 0 for a point
    /// that was not reached.
    #[inline]
    pub fn averaged(&self, end: Moment) -> [u64; 4] {
        let at = |point: Option<Moment>| point.map_or(0, |moment| moment.millis_since(self.start));
        let latest = [self.handshake, self.first_byte, self.request].into_iter().flatten().max();
        let mut reached = at(latest);
        let mut step = |point: Option<Moment>| {
            let millis = at(point).max(reached);
            millis - std::mem::replace(&mut reached, millis)
        };
        [step(self.queued), step(self.connected), step(self.response), end.millis_since(self.start)]
    }
}

/// The timers of section 8.4, in milliseconds; -1: the point was not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timers {
    /// `Th`: handshakes of the lower layers.
    pub handshake: i64,
    /// `Ti`: waiting for the request's first byte.
    pub idle: i64,
    /// `TR`: receiving the request head.
    pub request: i64,
    /// `Tw`: waiting in queues.
    pub queue: i64,
    /// `Tc`: connecting to the server, retries included.
    pub connect: i64,
    /// `Tr`: waiting for the response head.
    pub response: i64,
    /// `Td`: transferring the response.
    pub data: i64,
    /// `Ta`: from the request's first byte to the end.
    pub active: i64,
    /// `Tt`: from the start to the end.
    pub total: i64,
}

impl Default for Timers {
    /// A connection on which nothing has happened yet.
    fn default() -> Self {
        Timings::default().timers(Moment::ZERO)
    }
}

impl Timers {
    /// `Tq` = `Th` + `Ti` + `TR`; -1 if one of them is.
    pub const fn query(&self) -> i64 {
        if self.handshake < 0 || self.idle < 0 || self.request < 0 {
            return -1;
        }
        self.handshake + self.idle + self.request
    }

    /// `Tu`: the total as perceived by the user, without the idle time.
    pub const fn user(&self) -> i64 {
        if self.idle < 0 { self.total } else { self.total - self.idle }
    }
}

/// One event to be logged. Fields with a default in [`Record::default`] need not be set where they do not apply.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Record<'a> {
    /// The client as accepted.
    pub client: Endpoint,
    /// The address that the client connected to.
    pub destination: Endpoint,
    /// The source address of the connection to the server.
    pub backend_source: Endpoint,
    /// The server's address.
    pub server_address: Endpoint,
    /// The frontend's name.
    pub frontend: &'a str,
    /// The client uses TLS: `%ft` ends in "~".
    pub tls_frontend: bool,
    /// The `bind` line's name, or its number.
    pub bind_name: &'a str,
    /// The backend's name; the frontend's before one is selected.
    pub backend: &'a str,
    /// The server's name, "<NOSRV>" or "<STATS>".
    pub server: &'a str,
    /// When the connection was accepted, or became ready for another request.
    pub accept_date: WallTime,
    /// When the first byte of the request was received; the accept date in TCP mode.
    pub request_date: WallTime,
    /// UTC offset of local time at these dates, in seconds.
    pub local_offset: i32,
    pub timers: Timers,
    /// The line is written before the end (`option logasap`): totals and byte counts get a "+".
    pub partial: bool,
    /// Status sent to the client; -1 if none, 0 in TCP mode.
    pub status: i32,
    /// Bytes sent to the client, including the head.
    pub bytes_to_client: u64,
    /// Bytes received from the client, including the head.
    pub bytes_from_client: u64,
    /// Termination state (section 8.5); `%ts` prints the first two characters.
    pub termination: [u8; 4],
    /// The request's method; empty: no valid request was received, which prints as "<BADREQ>".
    pub method: &'a [u8],
    /// The request's target as received.
    pub target: &'a [u8],
    /// The request's version: "HTTP/1.1".
    pub version: &'a [u8],
    /// `tune.http.logurilen`: maximum length of the printed request line in bytes; HAProxy's default is 1023.
    pub request_limit: usize,
    /// `capture request header`: one entry per declared capture, in order.
    pub request_captures: &'a [Option<&'a [u8]>],
    /// `capture response header`, likewise.
    pub response_captures: &'a [Option<&'a [u8]>],
    /// `capture cookie` in the request: "name=value".
    pub request_cookie: Option<&'a [u8]>,
    /// `capture cookie` in the response.
    pub response_cookie: Option<&'a [u8]>,
    /// `unique-id-format`'s result.
    pub unique_id: Option<&'a [u8]>,
    /// Connections of the process.
    pub actconn: u32,
    /// Connections of the frontend.
    pub feconn: u32,
    /// Streams of the backend, including queued ones.
    pub beconn: u32,
    /// Streams on the server.
    pub srv_conn: u32,
    /// Repeated connection attempts.
    pub retries: u32,
    /// The last attempt was redispatched to another server: `%rc` gets a "+".
    pub redispatched: bool,
    /// Requests processed before this one in the server's queue.
    pub server_queue: u32,
    /// Requests processed before this one in the backend's queue.
    pub backend_queue: u32,
    /// The process id.
    pub pid: u32,
    /// The host's name.
    pub hostname: &'a str,
    /// Lines that the frontend logged before.
    pub log_counter: u32,
    /// Requests (HTTP) or sessions (TCP) of the process before.
    pub request_counter: u32,
    /// TLS version of the client's connection.
    pub tls_version: Option<&'a str>,
    /// TLS cipher suite of the client's connection.
    pub tls_cipher: Option<&'a str>,
    /// The step at which the line is written.
    pub origin: Origin,
}

impl Default for Record<'_> {
    fn default() -> Self {
        Self {
            client: Endpoint::Absent,
            destination: Endpoint::Absent,
            backend_source: Endpoint::Absent,
            server_address: Endpoint::Absent,
            frontend: "",
            tls_frontend: false,
            bind_name: "",
            backend: "",
            server: "<NOSRV>",
            accept_date: WallTime::default(),
            request_date: WallTime::default(),
            local_offset: 0,
            timers: Timers::default(),
            partial: false,
            status: 0,
            bytes_to_client: 0,
            bytes_from_client: 0,
            termination: *b"----",
            method: b"",
            target: b"",
            version: b"",
            request_limit: 1023,
            request_captures: &[],
            response_captures: &[],
            request_cookie: None,
            response_cookie: None,
            unique_id: None,
            actconn: 0,
            feconn: 0,
            beconn: 0,
            srv_conn: 0,
            retries: 0,
            redispatched: false,
            server_queue: 0,
            backend_queue: 0,
            pid: 0,
            hostname: "",
            log_counter: 0,
            request_counter: 0,
            tls_version: None,
            tls_cipher: None,
            origin: Origin::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Moment {
        Moment::from_nanos(millis * 1_000_000)
    }

    /// Points in milliseconds after the start: first byte, request, queued, connected, response; the end; then Th Ti TR
    /// Tw Tc Tr Td Ta Tt Tu Tq. Checked against HAProxy with scripted delays.
    #[test]
    fn timers_follow_section_8_4() {
        type Case = (&'static str, [i64; 5], u64, [i64; 11]);
        let cases: &[Case] = &[
            ("whole request", [70, 114, 114, 114, 215], 265, [0, 70, 44, 0, 0, 101, 50, 195, 265, 195, 114]),
            ("second request", [250, 280, 280, 280, 381], 431, [0, 250, 30, 0, 0, 101, 50, 181, 431, 181, 280]),
            ("nothing came", [-1, -1, -1, -1, -1], 801, [0, -1, -1, -1, -1, -1, -1, 801, 801, 801, -1]),
            ("half a head", [100, -1, -1, -1, -1], 900, [0, 100, -1, -1, -1, -1, -1, 800, 900, 800, -1]),
            ("no server", [100, 100, -1, -1, -1], 100, [0, 100, 0, -1, -1, -1, -1, 0, 100, 0, 100]),
            ("refused", [100, 100, 100, -1, -1], 701, [0, 100, 0, 0, -1, -1, -1, 601, 701, 601, 100]),
            ("server silent", [100, 100, 100, 100, -1], 902, [0, 100, 0, 0, 0, -1, -1, 802, 902, 802, 100]),
            ("queued", [0, 0, 1230, 1237, 1240], 1300, [0, 0, 0, 1230, 7, 3, 60, 1300, 1300, 1300, 0]),
            ("TCP", [-1, -1, 0, 0, -1], 370, [0, -1, -1, 0, 0, -1, 370, 370, 370, 370, -1]),
            ("TCP refused", [-1, -1, 0, -1, -1], 600, [0, -1, -1, 0, -1, -1, -1, 600, 600, 600, -1]),
        ];
        for (name, points, end, wanted) in cases {
            let [first_byte, request, queued, connected, response] =
                points.map(|millis| u64::try_from(millis).ok().map(|millis| ms(1000 + millis)));
            let timings =
                Timings { start: ms(1000), handshake: None, first_byte, request, queued, connected, response };
            let t = timings.timers(ms(1000 + end));
            let averaged = [t.queue, t.connect, t.response, t.total].map(|millis| millis.max(0) as u64);
            assert_eq!((name, timings.averaged(ms(1000 + end))), (name, averaged));
            let got = [t.handshake, t.idle, t.request, t.queue, t.connect, t.response, t.data, t.active, t.total];
            assert_eq!((name, &got), (name, &wanted[..9].try_into().expect("nine")));
            assert_eq!((name, t.user(), t.query()), (name, wanted[9], wanted[10]));
        }
    }

    #[test]
    fn a_handshake_is_neither_idle_nor_active_time() {
        let timings = Timings { start: ms(0), handshake: Some(ms(30)), first_byte: Some(ms(50)), ..Timings::default() };
        let timers = timings.timers(ms(100));
        assert_eq!((timers.handshake, timers.idle, timers.active, timers.total), (30, 20, 50, 100));
    }

    #[test]
    fn fractions_of_a_millisecond_do_not_make_the_sum_differ_from_the_total() {
        let at = |micros: u64| Some(Moment::from_nanos(micros * 1_000));
        let timings = Timings {
            start: ms(0),
            handshake: None,
            first_byte: at(900),
            request: at(1_800),
            queued: at(2_700),
            connected: at(3_600),
            response: at(4_500),
        };
        let t = timings.timers(Moment::from_nanos(5_400_000));
        assert_eq!(t.idle + t.request + t.queue + t.connect + t.response + t.data, t.total);
    }
}
