//! How a client's connection ends: what was written to it arrives, or the client sees that it does not. Owns the connection
//! from there on, and the limits of the wait; must never know time: moments are arguments.
//!
//! A socket that is closed with unread input, or that gets input after it was closed, answers with a reset, and the kernel drops
//! what it has not sent by then (RFC 9112, section 9.6). So an ending sends what is left, shuts down the direction to the client, and
//! reads and drops what the client still sends, until the client has closed its direction as well, or a limit is reached.

use std::task::{Context, Poll};
use std::time::Duration;

use base::moment::Moment;

use crate::transport::Transport;

/// Bytes of input that one ending drops at most.
const MOST_DROPPED: u64 = 1 << 30;
/// How long one may last at least, whatever the client does.
const BASE: Duration = Duration::from_secs(30);
/// Bytes of input that extend this by a second.
const DROPPED_A_SECOND: u64 = 1 << 20;
/// Bytes that the client's kernel acknowledges which extend it by a second.
const TAKEN_A_SECOND: u64 = 4 << 10;
/// How long a client that has got everything may be silent before the connection is closed.
const SILENCE: Duration = Duration::from_secs(2);
/// How often it is looked whether the client has got everything.
const LOOK: Duration = Duration::from_secs(1);
/// The end of a direction takes the place of a byte, and says nothing that the client needs.
const END: usize = 1;
/// How often it is looked, at first, where the connection is closed then.
const FIRST_LOOK: Duration = Duration::from_millis(5);

/// The end that a client is to see.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Manner {
    /// An orderly one: the client has got everything that it was promised, or sees from the message that it has not.
    Close,
    /// An orderly one of a client that may still be sending.
    CloseWhileSending,
    /// An orderly one of a client at fault: once what was written has arrived, what the client still sends is refused.
    Refuse,
    /// A reset, once what was written has arrived: what the end of the connection would delimit was cut off.
    Reset,
}

/// A connection that is ending. It is closed when this is dropped.
#[derive(Debug)]
pub struct Ending {
    transport: Transport,
    resets: bool,
    refuses: bool,
    began: Moment,
    /// When the client was last seen to send or to take something.
    moved: Moment,
    dropped: u64,
    taken: u64,
    /// Bytes that the client's kernel had not acknowledged at the last look.
    unacknowledged: usize,
    looks: u32,
}

impl Ending {
    /// Begins to end a connection. `None`: nothing has to be waited for, and it is closed.
    pub fn begin(mut transport: Transport, manner: Manner, now: Moment) -> Option<Self> {
        let (resets, refuses) = (manner == Manner::Reset, manner == Manner::Refuse);
        if resets {
            // Whatever drops it from here on resets it.
            transport.set_resets(true);
            transport.give_up_write();
        } else {
            let is_read = manner == Manner::Close && (transport.is_quiet() || transport.is_clean());
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
            // Else the reset that answers unread input would come before the end.
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

    /// Sends what is left, and drops what the client sends. Ready where the client has closed its direction, or the connection has
    /// failed, or too much was dropped.
    pub fn poll(&mut self, cx: &mut Context<'_>, now: Moment) -> Poll<()> {
        while self.dropped < MOST_DROPPED {
            match self.transport.poll_drop_input(cx) {
                Poll::Ready(Ok(count @ 1..)) => {
                    self.moved = now;
                    self.dropped += count as u64;
                }
                // What is to be reset waits for the client to take the rest.
                Poll::Ready(Ok(_)) if self.resets => return Poll::Pending,
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return Poll::Pending,
            }
        }
        Poll::Ready(())
    }

    /// Looks how far the client is: when to look again, or `None` where nothing more is waited for. `patience` is how long a client
    /// may take nothing of what it has not got.
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
