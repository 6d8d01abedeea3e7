//! The client's connection of a session: its timer, the number of requests served, and what follows after a request.
//! Must never read a request.

use base::moment::{Moment, WallTime};
use conn::downstream::Downstream;
use conn::ending::{CloseManner, Ending};
use conn::h1::{BodyEnd, Reuse};
use conn::transport::Transport;

use crate::session::Session;
use crate::session::task::StreamTask;
use crate::worker::SharedStreamState;

/// The client's side of a session.
pub struct Client {
    /// The connection.
    pub conn: Downstream,
    /// The session's one timer.
    pub timer: rt::Timer,
    /// Requests served before this one.
    pub served: u32,
    /// When the wait for this request began: at the accept, or at the end of the previous answer.
    pub since: Moment,
    /// Wall-clock time of `since`.
    pub since_date: WallTime,
    /// When the connection could carry its first request: earlier time does not count for that request.
    pub ready: Moment,
    /// The stream of the next request, if it has begun before that.
    pub(in crate::stream) begun: EarlyStream,
    /// The client has reset the request before it was evaluated.
    pub is_withdrawn: bool,
    /// A close-delimited answer (RFC 9112, section 6.3) or a tunnel has begun and is not complete.
    cut_short: bool,
    /// The next step on the connection after the request has ended.
    pub(in crate::stream) reuse: Reuse,
}

/// A stream that has begun before its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EarlyStream {
    /// There is none.
    #[default]
    Nothing,
    /// The selection of the protocol had to wait for more bytes after the first one.
    Early,
    /// The stream began in TCP mode: the first request continues it.
    Tcp,
}

impl Client {
    /// Creates the state of a client that was just accepted.
    pub fn new(session: &Session, transport: Transport) -> Self {
        Self {
            conn: Downstream::new(transport),
            timer: rt::Timer::new(),
            served: 0,
            since: session.accepted,
            since_date: session.accept_date(),
            ready: session.accepted,
            begun: EarlyStream::Nothing,
            is_withdrawn: false,
            cut_short: false,
            reuse: Reuse::Close,
        }
    }

    /// Creates the client of one stream on a multiplexed connection that has served that number of streams before.
    pub fn of_stream(conn: Downstream, served: u32) -> Self {
        let (now, date) = (rt::now(), rt::wall());
        Self {
            conn,
            timer: rt::Timer::new(),
            served,
            since: now,
            since_date: date,
            ready: now,
            begun: EarlyStream::Nothing,
            is_withdrawn: false,
            cut_short: false,
            reuse: Reuse::Close,
        }
    }

    /// Continues the connection with the next request, if it belongs to the request alone.
    pub fn keep(&mut self, end: BodyEnd) {
        self.reuse = Reuse::Again(end);
    }

    /// Ends the connection while the client may still be sending: the client receives the answer first.
    pub fn linger(&mut self) {
        self.reuse = Reuse::Linger;
    }

    /// Closes the connection once the client has received all written data: it has violated the protocol, and further
    /// input is refused.
    pub fn refuse_more(&mut self) {
        self.reuse = Reuse::Refuse;
    }

    /// Closes the connection immediately: the client has closed it or is to get no answer, or all input was read and
    /// the answer has been sent.
    pub fn drop_connection(&mut self) {
        self.reuse = Reuse::Drop;
    }

    /// Drops the connection without notifying the client (`silent-drop`).
    pub fn forget(&mut self, hops: Option<u8>) {
        self.conn.forget(hops);
        self.drop_connection();
    }

    /// Begins a close-delimited answer: until it is complete, dropping the connection resets it.
    pub fn begin_undelimited(&mut self) {
        self.cut_short = self.conn.is_connection();
        self.conn.set_resets(true);
    }

    /// Whether a close-delimited answer is in progress.
    pub fn is_undelimited(&self) -> bool {
        self.cut_short
    }

    /// Completes a close-delimited answer.
    pub fn complete_undelimited(&mut self) {
        if std::mem::take(&mut self.cut_short) {
            self.conn.set_resets(false);
        }
    }

    /// Ends the connection after an answer of that number of bytes, all of which were written. `is_read`: the request
    /// was read to its end.
    pub fn end_after(&mut self, sent: u64, is_read: bool) {
        /// Maximum length of an answer that is sent at once, regardless of the client's window (RFC 6928).
        const LITTLE: u64 = 8 << 10;
        self.complete_undelimited();
        if !is_read || !self.conn.is_settled() {
            self.linger();
        } else if self.served == 0 && sent <= LITTLE {
            // There is no unread input: closing cannot reset data in flight to the client.
            self.drop_connection();
        }
    }

    /// Ends the connection with a reset: the server has failed before the end of a tunnel.
    pub fn cut_short(&mut self) {
        self.cut_short = true;
    }

    /// Ends the connection. `None`: it is closed already.
    pub fn end(self) -> Option<Ending> {
        let manner = match self.reuse {
            Reuse::Drop => return None,
            _ if self.cut_short => CloseManner::Reset,
            Reuse::Linger => CloseManner::CloseWhileSending,
            Reuse::Refuse => CloseManner::Refuse,
            _ => CloseManner::Close,
        };
        self.conn.end(manner, rt::now())
    }

    /// Takes what follows on the connection. By default, it closes.
    pub(in crate::stream) fn finish(&mut self) -> Reuse {
        std::mem::take(&mut self.reuse)
    }

    /// Returns the state for the next request, and whether its stream began in TCP mode.
    pub fn begin(&mut self, session: &StreamTask) -> (SharedStreamState, bool) {
        let begun = self.begun;
        match self.take_begun(session) {
            Some(state) => (state, begun == EarlyStream::Tcp),
            None => (session.begin(), false),
        }
    }

    /// Takes the stream that has begun before its request, once.
    pub fn take_begun(&mut self, session: &StreamTask) -> Option<SharedStreamState> {
        if std::mem::take(&mut self.begun) == EarlyStream::Nothing { None } else { session.current() }
    }
}
