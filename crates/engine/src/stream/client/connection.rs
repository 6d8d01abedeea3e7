//! The client's connection of a session: its timer, the requests served, and what follows after a request. Must never read a
//! request.

use base::moment::{Moment, WallTime};
use conn::downstream::Downstream;
use conn::ending::{Ending, Manner};
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
    /// When the wait for this request began: the accept, or the end of the previous answer.
    pub since: Moment,
    /// The same on the wall clock.
    pub since_date: WallTime,
    /// When the connection could carry its first request: what came before does not count against that one's time.
    pub ready: Moment,
    /// The stream of the next request, where it has begun before.
    pub(in crate::stream) begun: Begun,
    /// The client has reset the request before it was looked at.
    pub is_withdrawn: bool,
    /// A close-delimited answer (RFC 9112, section 6.3) or a tunnel has begun and is not complete.
    cut_short: bool,
    /// What follows on the connection once the request has ended.
    pub(in crate::stream) reuse: Reuse,
}

/// Stream that has begun before its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Begun {
    /// None.
    #[default]
    Nothing,
    /// The choice of the protocol has waited for more after its first byte.
    Early,
    /// It began in TCP mode: the first request goes on with it.
    Tcp,
}

impl Client {
    /// A client that has just been accepted.
    pub fn new(session: &Session, transport: Transport) -> Self {
        Self {
            conn: Downstream::new(transport),
            timer: rt::Timer::new(),
            served: 0,
            since: session.accepted,
            since_date: session.accept_date(),
            ready: session.accepted,
            begun: Begun::Nothing,
            is_withdrawn: false,
            cut_short: false,
            reuse: Reuse::Close,
        }
    }

    /// The client of one stream of a connection that carries several; the connection has served that many before.
    pub fn of_stream(conn: Downstream, served: u32) -> Self {
        let (now, date) = (rt::now(), rt::wall());
        Self {
            conn,
            timer: rt::Timer::new(),
            served,
            since: now,
            since_date: date,
            ready: now,
            begun: Begun::Nothing,
            is_withdrawn: false,
            cut_short: false,
            reuse: Reuse::Close,
        }
    }

    /// The connection goes on with the next request, where it is the request's own.
    pub fn keep(&mut self, end: BodyEnd) {
        self.reuse = Reuse::Again(end);
    }

    /// The connection ends, but the client may still be sending: it gets the answer first.
    pub fn linger(&mut self) {
        self.reuse = Reuse::Linger;
    }

    /// Closes the connection once the client has got what was written: it has broken the protocol, and what it still sends is refused.
    pub fn refuse_more(&mut self) {
        self.reuse = Reuse::Refuse;
    }

    /// Closes the connection at once: the client has closed it or is to get no answer, or all input was read and the answer is on
    /// its way.
    pub fn drop_connection(&mut self) {
        self.reuse = Reuse::Drop;
    }

    /// Makes the end invisible to the client (`silent-drop`).
    pub fn forget(&mut self, hops: Option<u8>) {
        self.conn.forget(hops);
        self.drop_connection();
    }

    /// Begins a close-delimited answer: until it is complete, dropping the connection resets it.
    pub fn begin_undelimited(&mut self) {
        self.cut_short = self.conn.is_connection();
        self.conn.set_resets(true);
    }

    /// Whether a close-delimited answer is on its way.
    pub fn is_undelimited(&self) -> bool {
        self.cut_short
    }

    /// Completes a close-delimited answer.
    pub fn complete_undelimited(&mut self) {
        if std::mem::take(&mut self.cut_short) {
            self.conn.set_resets(false);
        }
    }

    /// The connection ends after an answer, all of which was written: it had that many bytes. `is_read`: the request was read to its
    /// end.
    pub fn end_after(&mut self, sent: u64, is_read: bool) {
        /// An answer that leaves at once, whatever the client's window is (RFC 6928).
        const LITTLE: u64 = 8 << 10;
        self.complete_undelimited();
        if !is_read || !self.conn.is_settled() {
            self.linger();
        } else if self.served == 0 && sent <= LITTLE {
            // Nothing unread: closing cannot reset what is on its way to the client.
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
            _ if self.cut_short => Manner::Reset,
            Reuse::Linger => Manner::CloseWhileSending,
            Reuse::Refuse => Manner::Refuse,
            _ => Manner::Close,
        };
        self.conn.end(manner, rt::now())
    }

    /// What follows on the connection. Unless the request's end has said so, it closes.
    pub(in crate::stream) fn finish(&mut self) -> Reuse {
        std::mem::take(&mut self.reuse)
    }

    /// The state of the next request, and whether its stream began in TCP mode.
    pub fn begin(&mut self, session: &StreamTask) -> (SharedStreamState, bool) {
        let begun = self.begun;
        match self.take_begun(session) {
            Some(state) => (state, begun == Begun::Tcp),
            None => (session.begin(), false),
        }
    }

    /// Takes the stream that has begun before, once.
    pub fn take_begun(&mut self, session: &StreamTask) -> Option<SharedStreamState> {
        if std::mem::take(&mut self.begun) == Begun::Nothing { None } else { session.current() }
    }
}
