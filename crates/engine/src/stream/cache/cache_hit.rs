//! Stored responses that are sent with one write: the request is complete, and nothing processes the response's body. A
//! response that the client accepts only in part, or that a rule has replaced, continues as an exchange. Must never wait.

use std::io::IoSlice;
use std::task::Poll;

use base::buffer::Buffer;
use conn::buffered_body::BufferedBody;
use conn::exchange::{Answer, ForwardTerms, Heads};
use conn::h1::UnreadBody;
use wire::http::Method;

use crate::session::Session;
use crate::stream::cache::stored_response::StoredResponse;
use crate::stream::client::Client;
use crate::stream::context::RequestContext;
use crate::stream::exchange::{ServiceProgress, expose, finish_rules};
use crate::stream::record::tracing;
use crate::stream::reply::answer::ending;
use crate::stream::reply::keeps_client;
use crate::stream::request::evaluate::EvalContext;
use crate::stream::request::rules::{Progress, Stop, run_response};
use crate::stream::stages;
use crate::stream_state::StreamState;
use crate::worker::SharedStreamState;

/// Maximum length of a body in bytes: it fits into the socket buffer of a client that reads.
const MOST: u64 = 16 * 1024;

/// Maximum number of slices of a body.
const PIECES: usize = 8;

/// Answers a request with a stored response.
///
/// # Errors
/// The response has to continue as an exchange, from this state.
pub(in crate::stream) async fn answer(
    context: &mut RequestContext<'_>,
    stored: &mut StoredResponse,
    body: &UnreadBody,
) -> Result<(), ServiceProgress> {
    if !is_prompt(context.session, context.client, &context.state.borrow(), stored, body) {
        return Err(ServiceProgress::Nothing);
    }
    let (head, left) = begin(context, stored)?;
    write(context.client, &context.state, stored, head, left).await
}

/// Whether the response can be sent with one write: the request has no body, nothing processes the response's body, and no rule
/// waits.
fn is_prompt(
    session: &Session,
    client: &Client,
    state: &StreamState,
    stored: &StoredResponse,
    body: &UnreadBody,
) -> bool {
    let frontend = session.proxy();
    let backend = state.route.backend.map(|index| session.proxy_at(index));
    body.is_absent()
        && state.filters.is_none()
        && state.client_method() == Method::Get
        && stored.left() <= MOST
        && client.conn.takes_slices()
        && frontend.rules.spoe.is_none()
        && [Some(frontend), backend].into_iter().flatten().all(|proxy| proxy.rules.let_answers_go_on())
}

/// Encodes the head of the response. Returns it and the length of the body that follows.
fn begin(context: &RequestContext<'_>, stored: &mut StoredResponse) -> Result<(Buffer, u64), ServiceProgress> {
    let state = &mut *context.state.borrow_mut();
    stored.head(&state.request, &mut state.response);
    let status = state.response.status();
    stages::answer_received(context.session, state, status);
    pass_rules(context.session, state)?;
    state.answer.status = i32::from(state.response.status());
    tracing::answered(context.session, state);
    let onward = ForwardTerms {
        for_head_alone: false,
        tunnel: false,
        uncoded: true,
        served_here: true,
        ends_apart: false,
        keep_client: keeps_client(context.session, &state.request),
        spelling: context.session.proxy().http.client_spelling.as_deref(),
    };
    let format = context.client.conn.head_format();
    let plan = Answer::plan(format, &state.request, &state.response, &onward);
    let Some(left) = plan.unchanged().filter(|_| plan.keep_client) else { return Err(ServiceProgress::Ruled) };
    let heads = Heads { request: &state.request, response: &state.response };
    let mut head = rt::buffer();
    if Answer::encode_head(format, heads, &plan, &onward, &mut head).is_err() {
        return Err(ServiceProgress::Ruled);
    }
    state.accounting.bytes.received += head.len() as u64;
    Ok((head, left))
}

/// Runs the response rules over the head.
fn pass_rules(session: &Session, state: &mut StreamState) -> Result<(), ServiceProgress> {
    let frontend = session.proxy();
    let backend = state.route.backend.filter(|index| *index != frontend.index).map(|index| session.proxy_at(index));
    let mut head = std::mem::take(&mut state.response);
    let sets = backend.into_iter().chain([frontend]).map(|proxy| &proxy.rules.http_response);
    let ended = sets.filter(|rules| !rules.is_empty()).find_map(|rules| {
        let mut progress = Progress::default();
        loop {
            match run_response(session, state, &mut head, BufferedBody::NONE, rules, &mut progress) {
                // The rules are few: other tasks are served after them.
                Stop::Yield => {}
                Stop::Final(ended) => return Some(ended),
                // `let_answers_go_on` excludes rules that wait.
                Stop::End | Stop::Cache(_) | Stop::Store(_) | Stop::Wait(_) => return None,
            }
        }
    });
    let ended = ended.map(|ended| {
        let view = EvalContext::response(session, state, &head);
        Box::new(ending(view, ended).into_owned())
    });
    state.response = head;
    let ended = match ended {
        Some(ending) => {
            (state.rules.denied, state.rules.failed) = (ending.denied, ending.failed);
            Some(ending)
        }
        None => expose(session, state).or_else(|| finish_rules(session, state)),
    };
    ended.map_or(Ok(()), |ending| Err(ServiceProgress::Replaced(ending)))
}

/// Writes head and body, as far as the client accepts them now.
async fn write(
    client: &mut Client,
    state: &SharedStreamState,
    stored: &mut StoredResponse,
    mut head: Buffer,
    left: u64,
) -> Result<(), ServiceProgress> {
    let written = {
        let mut slices = [IoSlice::new(&[]); 1 + PIECES];
        slices[0] = IoSlice::new(head.data());
        let lent = if left > 0 { stored.lend(&mut slices[1..]) } else { 0 };
        std::future::poll_fn(|cx| match client.conn.poll_write_slices(cx, &slices[..=lent]) {
            Poll::Ready(Ok(written)) => Poll::Ready(written),
            // The exchange gets the same error again.
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Ready(0),
        })
        .await
    };
    let of_head = written.min(head.len());
    let of_body = written - of_head;
    head.consume(of_head);
    stored.skip(of_body);
    let left = left.saturating_sub(of_body as u64);
    let bytes = &mut state.borrow_mut().accounting.bytes;
    bytes.bytes_out += written as u64;
    bytes.received += of_body as u64;
    if head.is_empty() && left == 0 { Ok(()) } else { Err(ServiceProgress::Sent { head, left }) }
}
