//! A tunnel: two byte flows between two streams, each with its own end. Owns the half-closes; must never know timeouts.

use std::task::Context;

use base::buffer::Buffer;
use base::moment::Moment;
use wire::http::Framing;

use crate::carrier::Carrier;
use crate::downstream::{Downstream, with_client};
use crate::flow::{ByteSink, ByteSource, Flow, FlowError, FlowProgress, FlowStep};
use crate::h2;
use crate::h3;
use crate::transport::Transport;

/// One end of a tunnel: a connection, or a stream of one.
pub trait TunnelEnd: ByteSource + ByteSink {
    /// Ends this side's direction: nothing more is sent.
    fn end(&mut self);
}

impl TunnelEnd for Transport {
    fn end(&mut self) {
        // If it was closed already, the other direction reports that.
        let _ = self.shutdown_write();
    }
}

impl TunnelEnd for h2::Stream {
    fn end(&mut self) {
        self.complete(None);
    }
}

impl TunnelEnd for h3::Stream {
    fn end(&mut self) {
        self.complete(None);
    }
}

impl TunnelEnd for h3::Request {
    fn end(&mut self) {
        self.complete(None);
    }
}

impl TunnelEnd for h2::Request {
    fn end(&mut self) {
        self.complete(None);
    }
}

/// A side of the proxy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The peer that connected to Weir.
    Client,
    /// The peer that Weir connected to.
    Server,
}

/// Both directions of a tunnel.
pub struct Duplex {
    /// From the client to the server.
    pub up: Flow,
    /// From the server to the client.
    pub down: Flow,
    /// Whether the end of `up` was forwarded.
    up_closed: bool,
    /// Whether the end of `down` was forwarded.
    down_closed: bool,
}

/// The result of a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplexStep {
    /// Both directions have ended.
    Finished,
    /// The budget of this event-loop iteration is used up; there is more to do.
    Exhausted,
    /// Waits for either side.
    Waits,
}

impl Duplex {
    /// Creates a tunnel. `client_input` and `server_input` were read before it began and are forwarded first; `head` is
    /// sent to the client before `server_input`.
    ///
    /// # Errors
    /// Never for plain bytes; the type is that of [`Flow::start`].
    pub fn new(client_input: Buffer, head: Buffer, server_input: Buffer) -> Result<Self, FlowError> {
        let (mut up, mut down) = (Flow::idle(), Flow::idle());
        up.start(client_input, Framing::UntilClose, false)?;
        if !head.is_empty() {
            *down.head_mut() = head;
        }
        down.start(server_input, Framing::UntilClose, false)?;
        Ok(Self { up, down, up_closed: false, down_closed: false })
    }

    /// Whether the client has closed its direction.
    pub fn client_ended(&self) -> bool {
        self.up.source_ended()
    }

    /// Whether the server has closed its direction.
    pub fn server_ended(&self) -> bool {
        self.down.source_ended()
    }

    /// Whether bytes wait to be written to that side.
    pub fn writes_to(&self, side: Side) -> bool {
        match side {
            Side::Client => !self.down.is_flushed(),
            Side::Server => !self.up.is_flushed(),
        }
    }

    /// The earliest time at which a direction that is held back continues; `None`: neither is held back.
    pub fn held_until(&self) -> Option<Moment> {
        match (self.up.held_until(), self.down.held_until()) {
            (Some(up), Some(down)) => Some(up.min(down)),
            (up, down) => up.or(down),
        }
    }

    /// Moves as many bytes as possible, in both directions.
    ///
    /// # Errors
    /// The source side of the direction that failed, and the error; both streams should be dropped.
    pub fn poll(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut impl TunnelEnd,
        server: &mut impl TunnelEnd,
        moved_up: &mut FlowProgress,
        moved_down: &mut FlowProgress,
    ) -> Result<DuplexStep, (Side, FlowError)> {
        let up = poll_direction(cx, &mut self.up, &mut self.up_closed, client, server, moved_up)
            .map_err(|error| (Side::Client, error))?;
        let down = poll_direction(cx, &mut self.down, &mut self.down_closed, server, client, moved_down)
            .map_err(|error| (Side::Server, error))?;
        Ok(match (up, down) {
            (FlowStep::Finished, FlowStep::Finished) => DuplexStep::Finished,
            (FlowStep::Exhausted, _) | (_, FlowStep::Exhausted) => DuplexStep::Exhausted,
            _ => DuplexStep::Waits,
        })
    }
}

impl Duplex {
    /// As [`Duplex::poll`], for any kinds of ends.
    ///
    /// # Errors
    /// As [`Duplex::poll`].
    pub fn poll_between(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Downstream,
        server: &mut Carrier,
        moved_up: &mut FlowProgress,
        moved_down: &mut FlowProgress,
    ) -> Result<DuplexStep, (Side, FlowError)> {
        match server {
            Carrier::Own(server) => with_client!(client, end => self.poll(cx, end, server, moved_up, moved_down)),
            Carrier::H2(server) => with_client!(client, end => self.poll(cx, end, server, moved_up, moved_down)),
            Carrier::H3(server) => with_client!(client, end => self.poll(cx, end, server, moved_up, moved_down)),
            // An application's answer cannot open a tunnel.
            Carrier::Fcgi(_) | Carrier::FcgiShare(_) => Err((Side::Server, FlowError::Truncated)),
        }
    }

    /// Moves as many bytes as possible from the client to the server only: the server's direction has not begun.
    ///
    /// # Errors
    /// The flow's error; both streams should be dropped.
    pub fn poll_up(
        &mut self,
        cx: &mut Context<'_>,
        client: &mut Transport,
        server: &mut Transport,
        moved: &mut FlowProgress,
    ) -> Result<FlowStep, FlowError> {
        poll_direction(cx, &mut self.up, &mut self.up_closed, client, server, moved)
    }
}

fn poll_direction(
    cx: &mut Context<'_>,
    flow: &mut Flow,
    closed: &mut bool,
    source: &mut impl ByteSource,
    sink: &mut impl TunnelEnd,
    moved: &mut FlowProgress,
) -> Result<FlowStep, FlowError> {
    if *closed {
        return Ok(FlowStep::Finished);
    }
    let step = flow.poll(cx, source, sink, moved)?;
    if step == FlowStep::Finished {
        *closed = true;
        sink.end();
    }
    Ok(step)
}
