//! Establishment of QUIC connections, and runs that measure handshakes alone. Must never send a request.

use std::future::poll_fn;
use std::io;
use std::task::Poll;
use std::time::Duration;

use base::Moment;
use quic::{Direction, Event, StreamId};
use wire::h3::{ErrorCode, StreamType, push_stream_type};

use super::client::{Client, Times};
use super::failure::Failure;
use super::link::Open;
use super::load_run::Lane;
use super::quic_link::QuicLink;
use super::worker::Phase;
use crate::load::plan::Pace;

/// Time after which a handshake without an answer has failed; nothing reports that no program listens.
const LONGEST_HANDSHAKE: Duration = Duration::from_secs(10);
/// Time to wait for a session ticket after a handshake.
const LONGEST_WAIT: Duration = Duration::from_secs(1);
/// A reserved type of streams, which servers ignore (RFC 9114, section 6.2.3).
const RESERVED: StreamType = StreamType::Unknown(0x21);

impl Client {
    /// Opens a connection; returns `None`, and counts a failure, if that fails.
    pub(super) async fn open_quic(&mut self, lane: &Lane) -> Option<QuicLink> {
        match self.connect_quic(lane).await {
            Ok(link) => {
                self.connected();
                Some(link)
            }
            Err(failure) => {
                self.count_failure(&failure, lane, &Times::default());
                self.pause_after_failure().await;
                None
            }
        }
    }

    /// Starts a connection, and completes its handshake.
    async fn connect_quic(&mut self, lane: &Lane) -> Result<QuicLink, Failure> {
        if !self.is_reference() {
            self.worker.counters.borrow_mut().connections += 1;
        }
        let client = self.opener.secure().ok_or_else(|| Failure::Connect(io::ErrorKind::Unsupported.into()))?;
        let open = Open::new(&self.worker);
        let mut link = QuicLink::connect(self.worker.quic(), lane, client, open).map_err(Failure::Connect)?;
        let limit = rt::now() + self.course.plan.timeout.unwrap_or(LONGEST_HANDSHAKE);
        let shaken = poll_fn(|context| {
            loop {
                if let Poll::Ready(shaken) = link.poll_shaken(context, self.worker.quic()) {
                    return Poll::Ready(shaken);
                }
                let deadline = link.deadline().map_or(limit, |deadline| deadline.min(limit));
                self.timer.arm(Some(deadline));
                match self.poll_patience(context, false) {
                    // The connection has a deadline of its own.
                    Poll::Ready(Failure::Timeout) if rt::now() < limit => {}
                    Poll::Ready(failure) => return Poll::Ready(Err(failure)),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await;
        self.timer.arm(None);
        let resumed = match shaken {
            Ok(resumed) => resumed,
            Err(Failure::Timeout) if self.course.plan.timeout.is_none() => {
                let seconds = LONGEST_HANDSHAKE.as_secs();
                let silent = || io::Error::other(format!("no handshake of QUIC within {seconds} s"));
                return Err(Failure::Connect(link.send_error().unwrap_or_else(silent)));
            }
            Err(failure) => return Err(failure),
        };
        if !lane.reference {
            let counters = &mut *self.worker.counters.borrow_mut();
            counters.handshakes += 1;
            counters.resumed += u64::from(resumed);
        }
        Ok(link)
    }

    /// Makes connections that only complete a handshake.
    pub(super) async fn shake_quic_hands(&mut self, lane: &Lane) {
        let think = self.course.plan.think;
        let paced = self.worker.pacer(self.lane).is_some();
        while self.worker.phase() == Phase::Running && (self.is_reference() || self.worker.take_request()) {
            let due = if paced { self.await_turn().await } else { Some(Moment::ZERO) };
            let Some(due) = due else { return };
            let begun = if matches!(lane.pace, Pace::Constant(_)) { due } else { rt::read_clock() };
            let mut times = Times { begun: Some(begun), ..Times::default() };
            match self.connect_quic(lane).await {
                Ok(link) => {
                    self.connected();
                    times.last_byte = Some(rt::read_clock());
                    self.count_answer(0, &times, true);
                    self.end_handshake(link).await;
                }
                Err(failure) => {
                    self.count_failure(&failure, lane, &times);
                    self.return_request();
                    if matches!(failure, Failure::Connect(_)) {
                        self.pause_after_failure().await;
                    }
                }
            }
            if !think.is_zero() && !self.is_reference() && self.worker.phase() == Phase::Running {
                self.worker.idle_until(rt::now() + think).await;
            }
        }
    }

    /// Closes a connection after its handshake. If sessions are resumed, it waits for the server's ticket: that was sent
    /// before the server acknowledges a stream.
    async fn end_handshake(&mut self, mut link: QuicLink) {
        if self.course.plan.tls.reuse {
            let stream = link.connection.open(Direction::Unidirectional);
            if let Some(stream) = stream {
                self.await_acknowledgement(&mut link, stream).await;
            }
        }
        poll_fn(|context| {
            link.close(context, self.worker.quic(), ErrorCode::NoError);
            Poll::Ready(())
        })
        .await;
        self.count_packets(&link);
    }

    /// Sends and ends a stream of a reserved type, and waits until the server has received it.
    async fn await_acknowledgement(&mut self, link: &mut QuicLink, stream: StreamId) {
        let mut bytes = Vec::new();
        push_stream_type(RESERVED, &mut bytes);
        if link.connection.write(stream, &bytes).is_err() || link.connection.finish(stream).is_err() {
            return;
        }
        let limit = rt::now() + LONGEST_WAIT;
        poll_fn(|context| {
            loop {
                if link.receive(context, self.worker.quic()).is_err() {
                    return Poll::Ready(());
                }
                while let Some(event) = link.connection.poll_event() {
                    match event {
                        Event::Finished(id) | Event::Stopped(id, _) if id == stream => return Poll::Ready(()),
                        Event::Closed(_) => return Poll::Ready(()),
                        _ => {}
                    }
                }
                if link.send(context, self.worker.quic()).is_err() {
                    return Poll::Ready(());
                }
                let deadline = link.deadline().map_or(limit, |deadline| deadline.min(limit));
                self.timer.arm(Some(deadline));
                match self.poll_patience(context, true) {
                    Poll::Ready(Failure::Timeout) if rt::now() < limit => {}
                    Poll::Ready(_) => return Poll::Ready(()),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await;
        self.timer.arm(None);
    }

    /// Counts the packets of a connection that has ended.
    pub(super) fn count_packets(&self, link: &QuicLink) {
        if !self.is_reference() {
            let statistics = link.connection.statistics();
            let counters = &mut *self.worker.counters.borrow_mut();
            counters.packets += statistics.sent_packets;
            counters.lost_packets += statistics.lost_packets;
        }
    }
}
