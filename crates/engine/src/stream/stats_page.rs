//! Requests for the statistics page of a proxy: recognition, access, and permission to change servers. Must never build the page:
//! a service does.

use conn::h1::UnreadBody;
use policy::program::{Proxy, StatsPage};
use policy::running::is_account;
use wire::http::Head;

use crate::service::registry::PageRequest;
use crate::session::Session;
use crate::stream::client::Client;
use crate::stream::evaluate::EvalContext;
use crate::stream::request_target::origin_form;
use crate::stream::rules::request::{self as request_rules, RequestEnd};
use crate::stream::started_service::Started;
use crate::stream::{answer, serving};
use crate::stream_state::ServiceName;
use crate::worker::SharedStreamState;

/// Name of the page in log lines, in place of a server.
const SHOWN: &str = "<STATS>";

/// Whether a request is for the page of a proxy: a supported method, and a target that begins with its URI. URIs of its API
/// accept every method.
pub fn is_asked(page: &StatsPage, request: &Head) -> bool {
    let target = origin_form(request.target());
    page.is_at(target) && (matches!(request.method(), b"GET" | b"HEAD" | b"POST") || page.is_api_at(target))
}

/// Responds to a request for the page of `proxy`.
pub async fn answer(
    session: &Session,
    client: &mut Client,
    state: SharedStreamState,
    (proxy, page): (&Proxy, &StatsPage),
    body: UnreadBody,
) {
    state.borrow_mut().route.service = Some(ServiceName::Known(SHOWN));
    if let Err(over) = admit(session, client, &state, page).await {
        return request_rules::end(session, client, state, over, body).await;
    }
    let admin = {
        let state = state.borrow();
        let view = EvalContext::request(session, &state).behind(client.conn.behind());
        !page.admin.is_empty() && view.lend(|context| page.admin.iter().any(|condition| condition.holds(context)))
    };
    let request = PageRequest { proxy: proxy.index, admin };
    let service = {
        let state = state.borrow();
        session.worker.process.services.start_page(session, request, origin_form(state.request.target()))
    };
    serving::stream(session, client, state, Started { service, shown: ServiceName::Known(SHOWN), ruled: false }, body)
        .await;
}

/// Checks that a client may access the page.
///
/// # Errors
/// It may not; the response.
async fn admit<'r>(
    session: &Session,
    client: &mut Client,
    state: &SharedStreamState,
    page: &'r StatsPage,
) -> Result<(), RequestEnd<'r>> {
    request_rules::rule(session, client, state, &page.rules).await?;
    let state = state.borrow();
    if page.accounts.is_empty()
        || session.proxy().http.credentials(&state.request).is_some_and(|field| is_account(&page.accounts, field))
    {
        return Ok(());
    }
    Err(RequestEnd::Ended(answer::ending(EvalContext::request(session, &state), &page.challenge)))
}
