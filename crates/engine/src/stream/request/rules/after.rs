//! `http-after-response` rules, which run on every response to the client and cannot wait. Must never send a response itself.

use std::cell::RefCell;
use std::task::{Context, Poll, Waker};

use conn::buffered_body::BufferedBody;
use expression::sample::Direction;
use policy::rule::{Final, ScriptCall, Wait};
use wire::http::Head;

use super::{RuleRun, Stop, finish_response};
use crate::script::StreamAccess;
use crate::session::Session;
use crate::stream::request::script;
use crate::stream_state::StreamState;

/// Whether there are `http-after-response` rules.
pub fn has_rules_after(session: &Session, state: &StreamState) -> bool {
    let backend = state.route.backend.map(|index| session.proxy_at(index));
    backend.into_iter().chain([session.proxy()]).any(|proxy| !proxy.rules.http_after_response.is_empty())
}

/// Runs the `http-after-response` rules of both proxies over a response head. A returned [`Final`] replaces the response.
pub fn run_after<'s>(session: &'s Session, state: &StreamState, head: &mut Head) -> Option<&'s Final> {
    let frontend = session.proxy();
    let backend =
        state.route.backend.map(|index| session.proxy_at(index)).filter(|proxy| proxy.index != frontend.index);
    backend.into_iter().chain([frontend]).find_map(|proxy| {
        let rules = &proxy.rules.http_after_response;
        if rules.is_empty() {
            return None;
        }
        let mut course = RuleRun::new(session, rules);
        loop {
            return match finish_response(&mut course, state, head, BufferedBody::NONE) {
                Stop::Final(ended) => Some(ended),
                Stop::Wait(Wait::Script(call)) => match run_at_once(session, state, head, call) {
                    Ok(true) => continue,
                    Ok(false) => None,
                    Err(ended) => Some(ended),
                },
                // No other action of these rules can wait, and none concerns a cache.
                Stop::End | Stop::Wait(_) | Stop::Yield | Stop::Cache(_) | Stop::Store(_) => None,
            };
        }
    })
}

/// Runs a script action that cannot wait; if it does, it fails.
fn run_at_once(
    session: &Session,
    state: &StreamState,
    head: &mut Head,
    call: &ScriptCall,
) -> Result<bool, &'static Final> {
    let action = session.worker.process.services.begin_action(call.number, &call.arguments);
    let mut action = action.ok_or(&script::FAILED)?;
    let head = RefCell::new(head);
    let access = StreamAccess::of_answer(session, state, &head);
    match action.poll(&mut Context::from_waker(Waker::noop()), &access) {
        Poll::Ready(verdict) => script::effect_of(&verdict, Direction::Response),
        Poll::Pending => Err(&script::FAILED),
    }
}
