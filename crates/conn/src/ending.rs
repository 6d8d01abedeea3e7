//! Lingering close of a client's connection: bytes written to the client arrive, or the client detects that they do
//! not. Owns the connection from there on, and the limits of the wait; must never know time: moments are arguments.
//!
//! If a socket is closed with unread input, or receives input after it was closed, the kernel answers with a reset and
//! drops the bytes that it has not sent by then (RFC 9112, section 9.6). So an ending sends the bytes that are left,
//! shuts down the direction to the client, and reads and drops further input until the client has closed its direction
//! as well, or a limit is reached.

use std::task::{Context, Poll};
use std::time::Duration;

use base::moment::Moment;

use crate::transport::Transport;

/// The most bytes of input that one ending drops.
const MOST_DROPPED: u64 = 1 << 30;
/// The time allowed for any ending, independent of the client's progress.
const BASE: Duration = Duration::from_secs(30);
/// Bytes of input that extend this time by a second.
const DROPPED_A_SECOND: u64 = 1 << 20;
/// Bytes acknowledged by the client's kernel that extend this time by a second.
const TAKEN_A_SECOND: u64 = 4 << 10;
/// How long a client that has received everything may be silent before the connection is closed.
const SILENCE: Duration = Duration::from_secs(2);
/// Interval of the checks whether the client has received everything.
const LOOK: Duration = Duration::from_secs(1);
/// The FIN takes one sequence number, and carries no data that the client needs.
const END: usize = 1;
/// The first interval of these checks for endings that close the connection as soon as everything is acknowledged.
const FIRST_LOOK: Duration = Duration::from_millis(5);

/// How the client is to see the end of the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloseManner {
    /// An orderly close: the client has received everything promised, or detects from the message that it has not.
    Close,
    /// An orderly close for a client that may still be sending.
    CloseWhileSending,
    /// An orderly close for a client at fault: after the bytes written have arrived, further input is refused.
    Refuse,
    /// A reset, once the bytes written have arrived, because a body delimited by the close was truncated.
    Reset,
}

/// A connection that is ending. It is closed when this is dropped.
#[derive(Debug)]
pub struct Ending {
    transport: Transport,
    resets: bool,
    refuses: bool,
    began: Moment,
    /// When the client last sent bytes or acknowledged some.
    moved: Moment,
    dropped: u64,
    taken: u64,
    /// Bytes that the client's kernel had not acknowledged at the last check.
    unacknowledged: usize,
    looks: u32,
}

impl Ending {
    /// Begins to end a connection. `None`: there is nothing to wait for, and it is closed.
    pub fn begin(mut transport: Transport, manner: CloseManner, now: Moment) -> Option<Self> {
        let (resets, refuses) = (manner == CloseManner::Reset, manner == CloseManner::Refuse);
        if resets {
            // From here on, dropping the transport resets the connection.
            transport.set_resets(true);
            transport.give_up_write();
        } else {
            let is_read = manner == CloseManner::Close && (transport.is_quiet() || transport.is_clean());
            if is_read && transport.unsent() == 0 {
                return None;
            }
            if transport.end().is_err() || (is_read && transport.unsent() == 0) {
                return None;
            }
        }
        let unacknowledged = transport.unacknowledged();
        if resets && unacknowledged == 0 {
            return None;
        }
        if refuses && unacknowledged <= END {
            // Otherwise the reset caused by unread input would arrive before the end.
            transport.drop_received();
            return None;
        }
        Some(Self {
            transport,
            resets,
            refuses,
            began: now,
            moved: now,
            dropped: 0,
            taken: 0,
            unacknowledged,
            looks: 0,
        })
    }

    /// Sends the bytes that are left, and drops input. Ready if the client has closed its direction, the connection has
    /// failed, or the limit of dropped bytes is reached.
    pub fn poll(&mut self, cx: &mut Context<'_>, now: Moment) -> Poll<()> {
        while self.dropped < MOST_DROPPED {
            match self.transport.poll_drop_input(cx) {
                Poll::Ready(Ok(count @ 1..)) => {
                    self.moved = now;
                    self.dropped += count as u64;
                }
                // A connection to be reset waits until the client has received the rest.
                Poll::Ready(Ok(_)) if self.resets => return Poll::Pending,
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }

    /// Checks the client's progress. Returns when to check again, or `None` if nothing more is waited for. `patience`
    /// is how long a client may acknowledge nothing while bytes are outstanding.
    pub fn look(&mut self, now: Moment, patience: Duration) -> Option<Moment> {
        let unacknowledged = self.transport.unacknowledged();
        if unacknowledged < self.unacknowledged {
            self.taken += (self.unacknowledged - unacknowledged) as u64;
            self.moved = now;
        }
        self.unacknowledged = unacknowledged;
        self.looks = self.looks.saturating_add(1);
        if unacknowledged == 0 && self.resets || unacknowledged <= END && self.refuses {
            return None;
        }
        let earned = self.dropped / DROPPED_A_SECOND + self.taken / TAKEN_A_SECOND;
        let last = self.began + BASE + Duration::from_secs(earned);
        let silent = self.moved + if unacknowledged == 0 { SILENCE } else { patience };
        let deadline = last.min(silent);
        if now >= deadline {
            return None;
        }
        let pause =
            if self.resets || self.refuses { (FIRST_LOOK * 2_u32.pow(self.looks.min(8))).min(LOOK) } else { LOOK };
        Some(deadline.min(now + pause))
    }
}
