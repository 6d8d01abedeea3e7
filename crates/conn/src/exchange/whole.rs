//! Messages that are complete when they begin to be forwarded: they are passed on in one step, between two streams
//! without a buffer. Must never pass on a part of one: what does not fit into the step flows.

use std::task::{Context, Poll};

use base::buffer::Buffer;

use crate::flow::{BodyDelimiter, ByteSink, Flow, FlowError, FlowProgress, FlowStep};
use crate::h2::{Request, Stream};
use crate::upstream::Upstream;

/// Passes on an answer that a server's stream has received whole, to the client's stream. Returns false if it has to
/// flow.
pub(super) fn pass_answer(flow: &mut Flow, request: &Request, stream: &Stream, moved: &mut FlowProgress) -> bool {
    let Some((head, end)) = flow.untouched() else { return false };
    let length = head.len();
    let Some(payload) = stream.pass_whole(request, head, end) else { return false };
    flow.note_passed(length, payload, moved);
    true
}

/// Writes an answer whose body was received after its head to a client. Returns false if it has to flow, from its
/// current state.
pub(super) fn send_answer(
    cx: &mut Context<'_>,
    flow: &mut Flow,
    client: &mut impl ByteSink,
    moved: &mut FlowProgress,
) -> Result<bool, FlowError> {
    let closes = flow.closes;
    let Some((head, body)) = flow.at_hand() else { return Ok(false) };
    match client.poll_write(cx, head, body, closes) {
        Poll::Pending => return Ok(false),
        Poll::Ready(Err(error)) => return Err(FlowError::Write(error)),
        Poll::Ready(Ok(written)) => moved.written += written,
    }
    Ok(flow.note_flushed())
}

/// Passes on a request without a body to a server's stream, with its end. Returns false if it has to flow.
pub(super) fn send_alone(flow: &mut Flow, request: &Request, moved: &mut FlowProgress) -> bool {
    let Some((head, BodyDelimiter::Length(0))) = flow.untouched() else { return false };
    let Some(written) = request.write_alone(head) else { return false };
    moved.written += written;
    flow.note_flushed()
}

/// Passes on a request without a body. `None`: it has to flow, from its current state.
pub(super) fn send_request(
    cx: &mut Context<'_>,
    flow: &mut Flow,
    upstream: &mut Upstream<'_>,
    moved: &mut FlowProgress,
) -> Option<Result<FlowStep, FlowError>> {
    let (head, BodyDelimiter::Length(0)) = flow.untouched()? else { return None };
    let nothing = &mut Buffer::empty();
    let written = match upstream {
        Upstream::H1(transport) => transport.poll_write(cx, head, nothing, false),
        Upstream::H2(request) => request.poll_write(cx, head, nothing, false),
        Upstream::H3(request) => request.poll_write(cx, head, nothing, false),
        Upstream::Fcgi(connection) => connection.poll_write(cx, head, nothing, false),
        Upstream::FcgiShare(request) => request.poll_write(cx, head, nothing, false),
        Upstream::Service(_) => return None,
    };
    match written {
        Poll::Pending => return Some(Ok(FlowStep::AwaitsSink)),
        Poll::Ready(Err(error)) => return Some(Err(FlowError::Write(error))),
        Poll::Ready(Ok(written)) => moved.written += written,
    }
    flow.note_flushed().then_some(Ok(FlowStep::Finished))
}
