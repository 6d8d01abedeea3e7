//! What is known of a stream: who, what, when, how it ends. Facts live outside the future that serves the stream, so
//! that they outlive a panic in it. Must never decide anything.

use base::moment::WallTime;
use policy::live::Counts;
use policy::log_format::{Endpoint, Timings};
use wire::http::Head;

/// Who or what ended a stream (configuration manual, section 8.5, first character).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum Cause {
    #[default]
    Normal,
    Client,
    Server,
    Proxy,
    Local,
    Resource,
    Internal,
    ClientTimeout,
    ServerTimeout,
    Killed,
}

impl Cause {
    /// The character in the log.
    pub const fn letter(self) -> u8 {
        match self {
            Self::Normal => b'-',
            Self::Client => b'C',
            Self::Server => b'S',
            Self::Proxy => b'P',
            Self::Local => b'L',
            Self::Resource => b'R',
            Self::Internal => b'I',
            Self::ClientTimeout => b'c',
            Self::ServerTimeout => b's',
            Self::Killed => b'K',
        }
    }
}

/// What a stream was doing when it ended (configuration manual, section 8.5, second character).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs)]
pub enum Phase {
    #[default]
    Done,
    Request,
    Queue,
    Connect,
    Headers,
    Data,
    Last,
}

impl Phase {
    /// The character in the log.
    pub const fn letter(self) -> u8 {
        match self {
            Self::Done => b'-',
            Self::Request => b'R',
            Self::Queue => b'Q',
            Self::Connect => b'C',
            Self::Headers => b'H',
            Self::Data => b'D',
            Self::Last => b'L',
        }
    }
}

/// How a stream ended: error and termination state in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Outcome {
    /// Who or what.
    pub cause: Cause,
    /// When.
    pub phase: Phase,
}

impl Outcome {
    /// Cause and phase.
    pub const fn new(cause: Cause, phase: Phase) -> Self {
        Self { cause, phase }
    }

    /// The four characters of the log; the last two tell of persistence cookies.
    pub const fn letters(self) -> [u8; 4] {
        [self.cause.letter(), self.phase.letter(), b'-', b'-']
    }
}

/// The facts of one stream. Recycled: `clear` keeps the heads' capacity.
#[derive(Default)]
pub struct Facts {
    /// The request's head; empty in TCP mode.
    pub request: Head,
    /// The answer's head.
    pub response: Head,
    /// The request's head was parsed whole.
    pub has_request: bool,
    /// Its line was written before its end.
    pub logged: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// The status that the client got; -1 when none.
    pub status: i32,
    /// When things happened.
    pub timings: Timings,
    /// The wall clock at `timings.start`.
    pub start_date: WallTime,
    /// Index of the backend's proxy.
    pub backend: Option<usize>,
    /// Index of the server in its backend.
    pub server: Option<usize>,
    /// Where the connection to the server comes from, if the log wants to know.
    pub backend_source: Endpoint,
    /// Connection attempts that failed before the last one.
    pub retries: u32,
    /// The last attempt went to another server.
    pub redispatched: bool,
    /// Requests processed before this one in the server's queue.
    pub server_queue: u32,
    /// Requests processed before this one in the backend's queue.
    pub backend_queue: u32,
    /// Load of backend and server when the stream gave back its place, before the next one in the queue got it.
    pub counts: Option<Counts>,
    /// Bytes from the client.
    pub bytes_in: u64,
    /// Bytes from the server to the client, head and body.
    pub bytes_out: u64,
    /// Of `bytes_in`, those that the statistics have counted.
    pub counted_in: u64,
    /// Of `bytes_out`, likewise.
    pub counted_out: u64,
}

impl Facts {
    /// What was taken for a request was none.
    pub fn forget_request(&mut self) {
        self.request.clear();
        self.has_request = false;
        self.timings.request = None;
        self.backend = None;
    }

    /// What a server answered does not count.
    pub fn forget_answer(&mut self) {
        self.response.clear();
        self.timings.response = None;
        self.status = -1;
    }

    /// Forgets the stream and keeps the capacity.
    pub fn clear(&mut self) {
        self.request.clear();
        self.response.clear();
        let (request, response) = (std::mem::take(&mut self.request), std::mem::take(&mut self.response));
        *self = Self { request, response, status: -1, ..Self::default() };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outcomes_print_as_the_manual_says() {
        for (cause, phase, text) in [
            (Cause::Normal, Phase::Done, b"----"),
            (Cause::Server, Phase::Headers, b"SH--"),
            (Cause::ServerTimeout, Phase::Queue, b"sQ--"),
            (Cause::ClientTimeout, Phase::Request, b"cR--"),
            (Cause::Proxy, Phase::Data, b"PD--"),
            (Cause::Client, Phase::Connect, b"CC--"),
            (Cause::Local, Phase::Last, b"LL--"),
            (Cause::Resource, Phase::Connect, b"RC--"),
            (Cause::Internal, Phase::Done, b"I---"),
            (Cause::Killed, Phase::Data, b"KD--"),
        ] {
            assert_eq!(&Outcome::new(cause, phase).letters(), text);
        }
    }
}
