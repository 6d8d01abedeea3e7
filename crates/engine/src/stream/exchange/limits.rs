//! Events that end an exchange prematurely: timeouts, and a client that disconnects. Must never move a byte.

use std::task::{Context, Poll};

use base::moment::Moment;
use config::spec::RetryOn;
use conn::flow::FlowStep;
use conn::upstream::Upstream;
use rt::net::Hangup;

use super::{Answer, BULK_PAUSE, End, Exchange, Upload};
use crate::stream::client::activity::{Activity, WATCH_AFTER};
use crate::stream_state::{Cause, Outcome, Phase};

/// Returns since when a side is inactive that has to send something (`reads`) or to accept something (`writes`);
/// `None`: neither.
fn silence(reads: bool, writes: bool, side: &Activity) -> Option<Moment> {
    match (reads, writes) {
        (_, true) => Some(side.takes_nothing_since()),
        (true, false) => Some(side.silent_since()),
        (false, false) => None,
    }
}

/// Returns the earlier of two times, either of which may be missing.
#[inline]
fn earlier(one: Option<Moment>, other: Option<Moment>) -> Option<Moment> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

impl Exchange<'_> {
    /// Checks the timeouts and the client's connection, and arms the timer for the next deadline.
    pub(super) fn poll_limits(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        loop {
            let now = rt::now();
            let mut next: Option<Moment> = None;
            if let Some(deadline) = self.client_deadline() {
                if now >= deadline {
                    return Poll::Ready(self.client_expired());
                }
                next = earlier(next, Some(deadline));
            }
            if let Some(limit) = self.terms.server
                && let Some(silent) = self.server_silent_since()
            {
                let deadline = silent + limit;
                if now >= deadline {
                    return self.expire(cx);
                }
                next = earlier(next, Some(deadline));
            }
            if self.has_special_waits() {
                match self.poll_special_waits(cx, now) {
                    Ok(deadline) => next = earlier(next, deadline),
                    Err(polled) => return polled,
                }
            }
            if self.reply.progress != Answer::Done && !self.request.half_closed {
                let watch = self.began + WATCH_AFTER;
                if now >= watch || self.client.conn.is_watched() {
                    if let Poll::Ready(hangup) = self.client.conn.poll_closed(cx)
                        && let Some(end) = self.client_gone(hangup)
                    {
                        return Poll::Ready(end);
                    }
                } else {
                    next = earlier(next, Some(watch));
                }
            }
            self.client.timer.arm(next);
            if self.client.timer.poll_expired(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Whether a wait is pending that few exchanges have.
    #[inline]
    fn has_special_waits(&self) -> bool {
        self.terms.hedge_at.is_some()
            | self.race.is_some()
            | self.rules.inspecting.is_some()
            | self.rules.paused.is_some()
            | (self.request.step == FlowStep::Held)
            | (self.reply.step == FlowStep::Held)
            | self.reply.message.is_bulk()
            | self.request.body.is_bulk()
    }

    /// Checks the waits that few exchanges have, and returns the next deadline among them.
    ///
    /// # Errors
    /// One of them is over: the error is the result of the exchange's poll.
    #[cold]
    fn poll_special_waits(&mut self, cx: &mut Context<'_>, now: Moment) -> Result<Option<Moment>, Poll<End>> {
        let overdue = self.overdue_at();
        if overdue.is_some_and(|moment| now >= moment) {
            self.terms.hedge_at = None;
            return Err(Poll::Ready(End::Overdue));
        }
        // A running action wakes the task itself.
        let inspecting = self.rules.inspecting.filter(|_| self.rules.running.is_none());
        let inspecting = inspecting.or_else(|| self.rules.paused.as_ref()?.deadline());
        let resumes = earlier(earlier(self.rival_deadline(), self.held_until()), inspecting);
        if resumes.is_some_and(|moment| now >= moment) {
            return Err(self.poll(cx));
        }
        let mut next = earlier(overdue, resumes);
        if self.reply.message.is_bulk() {
            let deadline = self.server_side.last_read() + BULK_PAUSE;
            if now >= deadline {
                self.reply.message.lower_mark(&mut self.upstream);
                return Err(self.poll(cx));
            }
            next = earlier(next, Some(deadline));
        }
        if self.request.body.is_bulk() {
            let deadline = self.client_side.last_read() + BULK_PAUSE;
            if now >= deadline {
                self.request.body.lower_mark(&mut self.client.conn);
                return Err(self.poll(cx));
            }
            next = earlier(next, Some(deadline));
        }
        Ok(next)
    }

    /// Returns when the first direction resumes that a filter holds back.
    fn held_until(&self) -> Option<Moment> {
        let up = if self.request.step == FlowStep::Held { self.request.body.held_until() } else { None };
        let down = if self.reply.step == FlowStep::Held { self.reply.message.held_until() } else { None };
        earlier(up, down)
    }

    /// Returns when the client's timeout expires, if the exchange waits for it.
    fn client_deadline(&self) -> Option<Moment> {
        let reads = self.request.progress != Upload::Done && self.request.step == FlowStep::AwaitsSource;
        let writes = match self.reply.progress {
            Answer::Awaited => self.reply.message.is_queued(),
            Answer::Flowing => self.reply.step == FlowStep::AwaitsSink,
            Answer::Done => false,
        };
        // The rest of an upload has the client's own time once the answer is complete.
        let is_clients = writes || self.reply.progress == Answer::Done;
        let limit = if is_clients { self.terms.client } else { self.terms.upload };
        limit.and_then(|limit| Some(silence(reads, writes, &self.client_side)? + limit))
    }

    /// Returns since when the server is inactive, if the exchange waits for it.
    fn server_silent_since(&self) -> Option<Moment> {
        if self.rules.running.is_some() || self.rules.paused.as_ref().is_some_and(|paused| !paused.awaits_server()) {
            // The wait is for Weir itself.
            return None;
        }
        let writes = self.writes_to_server();
        // As in HAProxy: a server without the complete request may wait for the rest, even in the middle of its answer.
        let reads = self.request.progress != Upload::Flowing
            && match self.reply.progress {
                Answer::Awaited => !self.reply.message.is_queued(),
                Answer::Flowing => self.reply.step == FlowStep::AwaitsSource,
                Answer::Done => false,
            };
        silence(reads, writes, &self.server_side)
    }

    /// Whether the server does not accept the rest of the request.
    fn writes_to_server(&self) -> bool {
        self.request.progress == Upload::Flowing && self.request.step == FlowStep::AwaitsSink
    }

    fn client_expired(&self) -> End {
        let (phase, status) = match self.reply.progress {
            Answer::Awaited => (Phase::Headers, 400),
            Answer::Flowing => (self.flowing_phase(), 0),
            Answer::Done => (Phase::Last, 0),
        };
        End::Failed { outcome: Outcome::new(Cause::ClientTimeout, phase), status, page: status > 0 }
    }

    pub(super) fn server_expired(&self) -> End {
        let (phase, status) = match self.reply.progress {
            Answer::Awaited if self.retries(RetryOn::RESPONSE_TIMEOUT) => return End::Retry { bad_answer: false },
            // As in HAProxy: it is the connection that has failed.
            Answer::Awaited if self.writes_to_server() => {
                return End::Failed { outcome: Outcome::new(Cause::Server, Phase::Headers), status: 502, page: true };
            }
            Answer::Awaited => (Phase::Headers, 504),
            Answer::Flowing | Answer::Done => (Phase::Data, 0),
        };
        End::Failed { outcome: Outcome::new(Cause::ServerTimeout, phase), status, page: status > 0 }
    }

    /// Returns the phase of an answer whose client fails.
    pub(super) fn flowing_phase(&self) -> Phase {
        if self.reply.message.has_come() { Phase::Last } else { Phase::Data }
    }

    /// Closes the sending direction of the server's connection, if it is exclusive to this request.
    #[cold]
    fn pass_half_close(&mut self) {
        self.reusable = false;
        if let Upstream::H1(transport) = &mut self.upstream {
            // The read direction reports a failed connection.
            let _ = transport.shutdown_write();
        }
    }

    /// Handles that the client has closed its sending direction or has disconnected.
    fn client_gone(&mut self, hangup: Hangup) -> Option<End> {
        let awaited = self.reply.progress == Answer::Awaited;
        let phase = match hangup {
            // The flow of an incomplete request body reports the truncation.
            Hangup::PeerClosed if matches!(self.request.progress, Upload::Flowing | Upload::Halted) => return None,
            Hangup::PeerClosed if !self.terms.abort_on_close => {
                self.request.half_closed = true;
                return None;
            }
            // The server decides when a close-delimited answer ends, the client when its request does.
            Hangup::PeerClosed if self.client.is_undelimited() && self.request.progress == Upload::Done => {
                self.request.half_closed = true;
                self.pass_half_close();
                return None;
            }
            Hangup::PeerClosed if awaited => Phase::Headers,
            Hangup::PeerClosed | Hangup::Error => self.flowing_phase(),
        };
        let status = if awaited { 400 } else { 0 };
        Some(End::Failed { outcome: Outcome::new(Cause::Client, phase), status, page: status > 0 })
    }
}
