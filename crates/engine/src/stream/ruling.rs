//! What the rules of a proxy mean for a request: that it goes on, waits, or ends here. Must never evaluate a rule itself.

use conn::flow::{Flow, Trailers};
use policy::program::Proxy;
use policy::rule::Wait;

use crate::session::Session;
use crate::stream::answer::{self, Ending, Manner};
use crate::stream::buffering::Missing;
use crate::stream::dispatch::{cut, start_body};
use crate::stream::evaluate::View;
use crate::stream::http::Client;
use crate::stream::refuse::{fail_with, finish, refuse};
use crate::stream::request::Next;
use crate::stream::rules::{self, Progress, Stop};
use crate::stream::screening::missed;
use crate::stream::waiting;
use crate::worker::SharedFacts;

/// What the rules of a proxy make of a request that does not just go on.
pub enum Ruled<'r> {
    /// It ends.
    Ends(Ending),
    /// It waits, and the rules go on from there.
    Waits(&'r Wait, Progress),
}

/// Why a request does not go on.
pub enum Over {
    /// A rule has ended it.
    Ended(Ending),
    /// What it waited for did not come.
    Missed(Missing),
}

/// Runs the `http-request` rules of a proxy from where they are. `None`: the request goes on.
pub fn rules_of<'r>(
    session: &Session,
    client: &Client,
    facts: &SharedFacts,
    proxy: &'r Proxy,
    mut progress: Progress,
) -> Option<Ruled<'r>> {
    if proxy.rules.http_request.is_empty() {
        return None;
    }
    let facts = &mut *facts.borrow_mut();
    let behind = client.input.data();
    match rules::run_request(session, &client.stream, facts, behind, &proxy.rules.http_request, &mut progress) {
        Stop::End => None,
        Stop::Wait(wait) => Some(Ruled::Waits(wait, progress)),
        Stop::Final(ended) => {
            let view = View::request(session, &client.stream, facts).behind(behind);
            Some(Ruled::Ends(answer::ending(view, ended)))
        }
    }
}

/// Lets a request wait as often as its rules say so, and runs the rest of them.
///
/// # Errors
/// The request ends here.
pub async fn obey(
    session: &Session,
    client: &mut Client,
    facts: &SharedFacts,
    proxy: &Proxy,
    mut ruled: Ruled<'_>,
) -> Result<(), Over> {
    loop {
        match ruled {
            Ruled::Ends(ending) => return Err(Over::Ended(ending)),
            Ruled::Waits(wait, progress) => {
                if let Err(missed) = waiting::wait(session, client, facts, wait).await {
                    facts.borrow().last_rule.set(progress.last_of(&proxy.rules.http_request));
                    return Err(Over::Missed(missed));
                }
                match rules_of(session, client, facts, proxy, progress) {
                    Some(further) => ruled = further,
                    None => return Ok(()),
                }
            }
        }
    }
}

/// Answers a request that does not go on, or ends its connection.
pub async fn end(session: &Session, client: &mut Client, facts: SharedFacts, over: Over) -> Next {
    let ending = match over {
        Over::Ended(ending) => ending,
        Over::Missed(missing) => return missed(session, client, facts, missing).await,
    };
    {
        let facts = &mut *facts.borrow_mut();
        (facts.denied, facts.failed) = (ending.denied, ending.failed);
        let answers = matches!(ending.manner, Manner::Prompt | Manner::Late);
        facts.blamed = ending.challenged || ending.denied && answers;
        if ending.failed {
            facts.timings.request = None;
        }
    }
    match ending.manner {
        Manner::Prompt => {}
        Manner::Late => {
            let backend = facts.borrow().backend;
            let proxy = backend.map_or(session.proxy(), |index| session.worker.proxy(index));
            waiting::tarpit(client, &facts, proxy).await;
        }
        Manner::Never => return cut(session, facts, ending.outcome),
        Manner::Silent(hops) => {
            // What the system does not let happen quietly happens all the same.
            let _ = client.stream.forget(hops);
            return cut(session, facts, ending.outcome);
        }
    }
    finish(&facts, ending.outcome, i32::from(ending.status));
    let mut body = Flow::idle();
    match start_body(client, &facts, false, Trailers::Pass, &mut body) {
        Ok(()) => fail_with(session, client, facts, ending.status, ending.page, body).await,
        Err(_) => refuse(session, client, facts, 400).await,
    }
}
