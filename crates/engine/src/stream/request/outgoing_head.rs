//! A request's head before it is sent to a server or a service: the fields that proxies add, and the filters that process it.
//! Must never choose a server.

use conn::downstream::Downstream;
use expression::sample::Direction;
use policy::program::{Features, Proxy};
use wire::http::{Framing, Head, Version};

use crate::session::Session;
use crate::stream::client::client_abort::unless_left;
use crate::stream::exchange::filter::{self, HeadRefused};
use crate::stream::record::{instrumentation, otel};
use crate::stream::request::forwarded;
use crate::stream_state::failure::{Failure, FilterRejection};
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::SharedStreamState;

/// A scripted filter has rejected the request.
const REFUSED: Failure = Failure { outcome: Outcome::new(Cause::Proxy, Phase::Request), status: 400, page: true };
/// A scripted filter has ended the stream.
const ENDED: Failure = Failure { outcome: Outcome::new(Cause::Local, Phase::Request), ..REFUSED };

/// Whether [`pass`] may change the head of a request, or reject the request.
#[inline]
pub(in crate::stream) fn change(session: &Session, features: Features) -> bool {
    const USED: Features = Features::FIELDS.with(Features::SPANS).with(Features::FILTERS).with(Features::RULES);
    features.have(USED) || session.tls().is_some_and(tls::HandshakeInfo::is_early)
}

/// Adds the fields that the proxies add, and passes the head to scripted filters. Returns the reason if the request was
/// rejected.
pub(in crate::stream) async fn pass(
    session: &Session,
    client: &mut Downstream,
    state: &SharedStreamState,
    proxy: &Proxy,
) -> Option<FilterRejection> {
    forwarded::add(session, proxy, state);
    if let Some(name) = &proxy.http.send_name_header {
        state.borrow_mut().request.remove_all(name);
    }
    otel::prepare(&mut state.borrow_mut());
    instrumentation::prepare(session, state);
    let is_scripted = filter::are_scripted(state.borrow().filters.as_ref());
    if is_scripted { rt::boxed(pass_scripts(session, client, state)).await } else { None }
}

/// Passes the head of a request that a service answers to the filters. Returns the reason if the request was rejected.
pub(in crate::stream) async fn pass_to_service(
    session: &Session,
    client: &mut Downstream,
    state: &SharedStreamState,
) -> Option<FilterRejection> {
    let filters = state.borrow().filters.clone()?;
    if filter::are_scripted(Some(&filters)) {
        return rt::boxed(pass_scripts(session, client, state)).await;
    }
    filter::negotiate(session, &filters, state);
    filter::service_head(&filters, state);
    None
}

/// Passes the head to scripted filters. Returns the reason if one of them rejects the request or ends the stream.
async fn pass_scripts(
    session: &Session,
    client: &mut Downstream,
    state: &SharedStreamState,
) -> Option<FilterRejection> {
    let filters = state.borrow().filters.clone()?;
    filter::negotiate(session, &filters, state);
    let passed =
        unless_left(session, client, state, |cx, _| filter::poll_head(cx, &filters, state, Direction::Request));
    let passed = match passed.await {
        Ok(passed) => passed,
        Err(left) => return Some(left.into()),
    };
    Some(match passed.err()? {
        HeadRefused::Refused => REFUSED.into(),
        HeadRefused::Ended(None) => ENDED.into(),
        HeadRefused::Ended(Some((status, text))) => {
            FilterRejection { failure: Failure { status: status.into(), ..ENDED }, text: Some(text) }
        }
    })
}

/// Whether a request is the last one on its server connection: a rule has requested that (`set-header connection close`), or it
/// has a chunked body in HTTP/1.0, which does not define transfer codings (RFC 9112, section 6.1).
pub(in crate::stream) fn asks_for_a_last_one(request: &Head) -> bool {
    request.asks_to_close() || request.version() == Version::Http10 && request.framing == Framing::Chunked
}
