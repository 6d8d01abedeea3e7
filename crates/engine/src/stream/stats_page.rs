//! Requests for the statistics page of a proxy: which they are, who may see it, and who may change servers there. Must never
//! make the page: a service does.

use conn::h1::UnreadBody;
use policy::program::{Proxy, StatsPage};
use policy::running::is_account;
use wire::http::Head;

use crate::service::registry::PageRequest;
use crate::session::Session;
use crate::stream::evaluate::EvalContext;
use crate::stream::http::Client;
use crate::stream::request::origin_form;
use crate::stream::ruling::{self, Over};
use crate::stream::serving::Started;
use crate::stream::{answer, serving};
use crate::worker::SharedFacts;

/// How the page is named in place of a server.
const SHOWN: &str = "<STATS>";

/// Whether a request is for the page of a proxy: a method that the page knows, and a target that begins as its address.
pub fn is_asked(page: &StatsPage, request: &Head) -> bool {
    matches!(request.method(), b"GET" | b"HEAD" | b"POST") && page.is_at(origin_form(request.target()))
}

/// Answers a request for the page of `proxy`.
pub async fn answer(
    session: &Session,
    client: &mut Client,
    facts: SharedFacts,
    (proxy, page): (&Proxy, &StatsPage),
    body: UnreadBody,
) {
    facts.borrow_mut().service = Some(SHOWN.into());
    if let Err(over) = admit(session, client, &facts, page).await {
        return ruling::end(session, client, facts, over, body).await;
    }
    let admin = {
        let facts = facts.borrow();
        let view = EvalContext::request(session, &facts).behind(client.conn.behind());
        !page.admin.is_empty() && view.lend(|context| page.admin.iter().any(|condition| condition.holds(context)))
    };
    let request = PageRequest { proxy: proxy.index, admin };
    let service = session.worker.process.services.start_page(session, request);
    serving::stream(session, client, facts, Started { service, shown: SHOWN.into(), ruled: false }, body).await;
}

/// Whether a client may see the page.
///
/// # Errors
/// It may not: the answer.
async fn admit<'r>(
    session: &Session,
    client: &mut Client,
    facts: &SharedFacts,
    page: &'r StatsPage,
) -> Result<(), Over<'r>> {
    ruling::rule(session, client, facts, &page.rules).await?;
    let facts = facts.borrow();
    if page.accounts.is_empty()
        || session.proxy().http.credentials(&facts.request).is_some_and(|field| is_account(&page.accounts, field))
    {
        return Ok(());
    }
    Err(Over::Ended(answer::ending(EvalContext::request(session, &facts), &page.challenge)))
}
