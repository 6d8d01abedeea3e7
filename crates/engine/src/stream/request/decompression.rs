//! `http-request decompress-body`, Weir's own: waits for a request's body and removes its content codings in the buffer, so that
//! rules, agents and the server get the same bytes. Must never decode without a bound, and never let a body pass that it could
//! not decode.

use policy::rule::Decompression;
use wire::http::Head;

use crate::decoding::{self, DecodeError};
use crate::stream::context::RequestContext;
use crate::stream::request::buffering;
use crate::stream_state::failure::Failure;
use crate::stream_state::{Cause, Outcome, Phase};

/// Fields that do not apply to a decoded body (RFC 9530 and RFC 3230; the last one of RFC 2616).
const OF_THE_CODED: [&[u8]; 5] = [b"content-encoding", b"content-digest", b"repr-digest", b"digest", b"content-md5"];

/// Reason why a request ends.
pub enum Undecoded {
    /// It ends like any other failed request.
    Failed(Failure),
    /// A coding is not supported: 415.
    Unsupported,
}

/// Waits for a request's body and removes its content codings. A request without any continues at once.
///
/// # Errors
/// The body is not received, cannot be decoded, or exceeds the limit.
pub async fn decompress(context: &mut RequestContext<'_>, plan: &Decompression) -> Result<(), Undecoded> {
    let codings = {
        let request = &context.state.borrow().request;
        if !request.framing.has_body() {
            return Ok(());
        }
        decoding::codings(request.all(b"content-encoding")).map_err(undecoded)?
    };
    if codings.is_empty() {
        return Ok(());
    }
    let global = &context.session.generation().program.global;
    let large = global.large_bufsize.filter(|_| plan.large);
    let deadline = match plan.limit {
        Some(limit) => Some(rt::now() + limit),
        None => {
            let backend = context.state.borrow().route.backend;
            let proxy = backend.map_or(context.session.proxy(), |index| context.session.proxy_at(index));
            buffering::deadline(context, proxy)
        }
    };
    buffering::wait_until(context, deadline, 0, large).await.map_err(Undecoded::Failed)?;
    let framing = context.state.borrow().request.framing;
    let ended = context.client.conn.has_ended();
    // An incomplete body has filled the buffer.
    let (length, payload) = match context.client.conn.behind().whole(framing, ended) {
        Ok(whole) => whole.ok_or_else(|| undecoded(DecodeError::TooLarge))?,
        Err(_) => return Err(undecoded(DecodeError::Malformed)),
    };
    let limit = plan.bound(payload.len(), global.bufsize);
    if limit > global.bufsize && rt::memory_is_scarce() {
        return Err(failed(Cause::Resource, 503));
    }
    let decoded = match &*payload {
        // An empty body has no coding.
        [] => Vec::new(),
        payload => decoding::decode(&codings, payload, limit).map_err(undecoded)?,
    };
    context.client.conn.replace_body(length, &decoded);
    let state = &mut *context.state.borrow_mut();
    set_decoded_length(&mut state.request, decoded.len() as u64);
    // The received bytes are counted as received.
    state.accounting.bytes.bytes_in += (length as u64).saturating_sub(state.accounting.early_body);
    state.accounting.early_body = decoded.len() as u64;
    state.accounting.replaced_body = Some(decoded.len() as u64);
    Ok(())
}

/// Changes the head of a request whose body was decoded.
fn set_decoded_length(head: &mut Head, length: u64) {
    for name in OF_THE_CODED {
        head.remove_all(name);
    }
    head.frame_with_length(length);
}

fn undecoded(error: DecodeError) -> Undecoded {
    match error {
        DecodeError::Unsupported => Undecoded::Unsupported,
        DecodeError::Malformed => failed(Cause::Proxy, 400),
        DecodeError::TooLarge => failed(Cause::Proxy, 413),
    }
}

fn failed(cause: Cause, status: i32) -> Undecoded {
    Undecoded::Failed(Failure { outcome: Outcome::new(cause, Phase::Request), status, page: true })
}
