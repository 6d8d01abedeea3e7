//! Requests for the statistics page of a proxy: recognition, access, and permission to change servers. Must never build the page:
//! a service does.

use conn::h1::UnreadBody;
use policy::program::{Proxy, StatsPage};
use policy::running::is_account;
use wire::http::Head;

use crate::service::registry::PageRequest;
use crate::stream::context::RequestContext;
use crate::stream::exchange::service_exchange;
use crate::stream::exchange::started_service::StartedService;
use crate::stream::reply::answer;
use crate::stream::request::evaluate::EvalContext;
use crate::stream::request::request_target::origin_form;
use crate::stream::request::rules::request as request_rules;
use crate::stream::request::rules::request::RequestEnd;
use crate::stream_state::ServiceName;

/// Name of the page in log lines, in place of a server.
const SHOWN: &str = "<STATS>";

/// Whether a request is for the page of a proxy: a supported method, and a target that begins with its URI. URIs of its API
/// accept every method.
pub fn is_asked(page: &StatsPage, request: &Head) -> bool {
    let target = origin_form(request.target());
    page.is_at(target) && (matches!(request.method(), b"GET" | b"HEAD" | b"POST") || page.is_api_at(target))
}

/// Responds to a request for the page of `proxy`.
pub async fn answer(mut context: RequestContext<'_>, proxy: &Proxy, page: &StatsPage, body: UnreadBody) {
    context.state.borrow_mut().route.service = Some(ServiceName::Known(SHOWN));
    if let Err(over) = admit(&mut context, page).await {
        return request_rules::end(context, over, body).await;
    }
    let admin = {
        let state = context.state.borrow();
        let view = EvalContext::request(context.session, &state).behind(context.client.conn.behind());
        !page.admin.is_empty() && view.lend(|context| page.admin.iter().any(|condition| condition.holds(context)))
    };
    let request = PageRequest { proxy: proxy.index, admin };
    let service = {
        let state = context.state.borrow();
        context.session.worker.process.services.start_page(
            context.session,
            request,
            origin_form(state.request.target()),
        )
    };
    service_exchange::stream(context, StartedService { service, shown: ServiceName::Known(SHOWN), ruled: false }, body)
        .await;
}

/// Checks that a client may access the page.
///
/// # Errors
/// It may not; the response.
async fn admit<'r>(context: &mut RequestContext<'_>, page: &'r StatsPage) -> Result<(), RequestEnd<'r>> {
    request_rules::rule(context, &page.rules).await?;
    let state = context.state.borrow();
    if page.accounts.is_empty()
        || context
            .session
            .proxy()
            .http
            .credentials(&state.request)
            .is_some_and(|field| is_account(&page.accounts, field))
    {
        return Ok(());
    }
    Err(RequestEnd::Ended(answer::ending(EvalContext::request(context.session, &state), &page.challenge)))
}
