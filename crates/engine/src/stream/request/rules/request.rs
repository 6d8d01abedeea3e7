//! Applies the results of rules to a request: it continues, waits, or ends. Must never evaluate a rule itself.

use expression::sample::Direction;
use policy::rule::{Rule, Wait};

use super::{Progress, Stop, wait};
use crate::script::{StreamAccess, Verdict};
use crate::stream::cache::{self, Help};
use crate::stream::client::Client;
use crate::stream::client::client_abort::{self, LEFT, unless_left};
use crate::stream::context::RequestContext;
use crate::stream::exchange::service_exchange;
use crate::stream::reply::ending::{AnswerTiming, Ending};
use crate::stream::reply::{Answer, answer, cut, finish, reply_error_unread, reply_unread};
use crate::stream::request::authorization::{self, Unauthorized};
use crate::stream::request::buffering::Intake;
use crate::stream::request::decompression::{self, Undecoded};
use crate::stream::request::evaluate::EvalContext;
use crate::stream::request::{actions, rules, script};
use crate::stream::server::persistence;
use crate::stream_state::failure::Failure;
use crate::stream_state::{Cause, StreamState};
use conn::h1::UnreadBody;

/// Result of rules for a request that does not simply continue.
enum RuleOutcome<'r> {
    /// It ends.
    Ends(Ending<'r>),
    /// It waits, and the rules continue at that position.
    Waits(Pause<'r>, Progress),
}

/// Condition that a request waits for.
enum Pause<'r> {
    /// The action of a rule.
    Rule(&'r Wait),
    /// The next event-loop iteration.
    Turn,
    /// A response stored in a cache's file.
    Disk,
    /// Sending the hints that a cache has for the client.
    Hints,
    /// The response to another request for the same object.
    Shared,
}

/// Reason why a request ends.
pub enum RequestEnd<'r> {
    /// A rule has ended it.
    Ended(Ending<'r>),
    /// Waiting has failed.
    Failed(Failure),
}

/// Runs `http-request` rules over a request, which waits whenever they require it.
///
/// # Errors
/// The request ends here.
pub async fn rule<'r>(context: &mut RequestContext<'_>, rules: &'r [Rule]) -> Result<(), RequestEnd<'r>> {
    match rules_of(context, rules, Progress::default()) {
        None => Ok(()),
        Some(RuleOutcome::Ends(ending)) => Err(RequestEnd::Ended(ending)),
        Some(RuleOutcome::Waits(pause, progress)) => rt::boxed(wait_and_resume(context, rules, pause, progress)).await,
    }
}

/// Runs the rules from their position. `None`: the request continues.
fn rules_of<'r>(context: &RequestContext<'_>, rules: &'r [Rule], mut progress: Progress) -> Option<RuleOutcome<'r>> {
    let state = &mut *context.state.borrow_mut();
    let behind = context.client.conn.behind();
    match rules::run_request(context.session, state, behind, rules, &mut progress) {
        // Only responses are stored.
        Stop::End | Stop::Store(_) => None,
        Stop::Wait(wait) => Some(RuleOutcome::Waits(Pause::Rule(wait), progress)),
        Stop::Yield => Some(RuleOutcome::Waits(Pause::Turn, progress)),
        Stop::Cache(Help::Answers) => Some(RuleOutcome::Ends(Ending::cached())),
        Stop::Cache(Help::Unsatisfied) => Some(RuleOutcome::Ends(Ending::unsatisfied())),
        Stop::Cache(Help::Reads) => Some(RuleOutcome::Waits(Pause::Disk, progress)),
        Stop::Cache(Help::Waits) => Some(RuleOutcome::Waits(Pause::Shared, progress)),
        Stop::Cache(_) => Some(RuleOutcome::Waits(Pause::Hints, progress)),
        Stop::Final(ended) => {
            let view = EvalContext::request(context.session, state).behind(behind);
            Some(RuleOutcome::Ends(answer::ending(view, ended)))
        }
    }
}

/// Waits as the rules require, and runs the remaining ones.
async fn wait_and_resume<'r>(
    context: &mut RequestContext<'_>,
    rules: &'r [Rule],
    mut pause: Pause<'r>,
    mut progress: Progress,
) -> Result<(), RequestEnd<'r>> {
    loop {
        match pause {
            Pause::Turn => rt::yield_now().await,
            Pause::Rule(wait @ (Wait::Script(_) | Wait::Agent(_))) => match run_action(context, wait).await {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(over) => {
                    context.state.borrow().rules.last_rule.set(progress.last_of(rules));
                    return Err(over);
                }
            },
            Pause::Rule(Wait::Decompressed(plan)) => {
                if let Err(error) = decompression::decompress(context, plan).await {
                    context.state.borrow().rules.last_rule.set(progress.last_of(rules));
                    return Err(match error {
                        Undecoded::Failed(failure) => RequestEnd::Failed(failure),
                        Undecoded::Unsupported => RequestEnd::Ended(Ending::unsupported_coding()),
                    });
                }
            }
            Pause::Rule(Wait::Authorization(rule)) => {
                if let Err(over) = rt::boxed(authorization::authorize(context, rule)).await {
                    context.state.borrow().rules.last_rule.set(progress.last_of(rules));
                    return Err(match over {
                        Unauthorized::Refused(ending) => RequestEnd::Ended(ending),
                        Unauthorized::Failed(failure) => RequestEnd::Failed(failure),
                    });
                }
            }
            Pause::Disk => {
                let Client { conn, timer, .. } = &mut *context.client;
                let mut read = std::pin::pin!(cache::read(context.session, timer, &context.state));
                let read = unless_left(context.session, conn, &context.state, |cx, _| read.as_mut().poll(cx)).await;
                let ending = match read.map_err(RequestEnd::Failed)? {
                    Help::Answers => Some(Ending::cached()),
                    Help::Unsatisfied => Some(Ending::unsatisfied()),
                    _ => None,
                };
                if let Some(ending) = ending {
                    context.state.borrow().rules.last_rule.set(progress.last_of(rules));
                    return Err(RequestEnd::Ended(ending));
                }
            }
            Pause::Shared => {
                if wait::share(context).await.map_err(RequestEnd::Failed)? == Help::Answers {
                    context.state.borrow().rules.last_rule.set(progress.last_of(rules));
                    return Err(RequestEnd::Ended(Ending::cached()));
                }
            }
            Pause::Hints => wait::send_hints(context).await.map_err(RequestEnd::Failed)?,
            Pause::Rule(wait) => {
                if let Err(failure) = wait::wait(context, wait).await {
                    context.state.borrow().rules.last_rule.set(progress.last_of(rules));
                    return Err(RequestEnd::Failed(failure));
                }
            }
        }
        match rules_of(context, rules, progress) {
            None => return Ok(()),
            Some(RuleOutcome::Ends(ending)) => return Err(RequestEnd::Ended(ending)),
            Some(RuleOutcome::Waits(further, from)) => (pause, progress) = (further, from),
        }
    }
}

/// Runs a script action or an SPOE agent. Returns whether further rules are evaluated.
async fn run_action(context: &mut RequestContext<'_>, wait: &Wait) -> Result<bool, RequestEnd<'static>> {
    let action = actions::begin(context.session, wait);
    let verdict = match action {
        None => Verdict::Fail,
        Some(mut action) => {
            let (mut has_waited, mut intake) = (false, Intake::default());
            let acted = unless_left(context.session, &mut context.client.conn, &context.state, |cx, conn| {
                let access =
                    StreamAccess::of_message(context.session, &context.state, Direction::Request, conn.behind());
                let acted = action.poll(cx, &access).map(Ok);
                if acted.is_ready() {
                    return acted;
                }
                has_waited = true;
                // A script may read the body, so the rest of it is received in parallel.
                intake.poll(cx, conn, &context.state).map(|()| Err(LEFT))
            })
            .await;
            if has_waited {
                // As with `pause` and `do-resolve`, time spent in scripts and agents is part of the request time.
                client_abort::note_wait(&context.state);
            }
            acted.and_then(|acted| acted).map_err(RequestEnd::Failed)?
        }
    };
    script::effect_of(&verdict, Direction::Request).map_err(|ended| {
        let state = context.state.borrow();
        RequestEnd::Ended(script::end(EvalContext::request(context.session, &state), verdict, ended))
    })
}

/// Responds to a request that ends, or closes its connection.
pub async fn end(mut context: RequestContext<'_>, over: RequestEnd<'_>, body: UnreadBody) {
    let ending = match over {
        RequestEnd::Ended(ending) => ending,
        RequestEnd::Failed(failure) => {
            return rt::boxed(reply_error_unread(context, failure, body)).await;
        }
    };
    note(&mut context.state.borrow_mut(), &ending);
    match ending.manner {
        AnswerTiming::Prompt => {}
        AnswerTiming::Late => {
            let backend = context.state.borrow().route.backend;
            let proxy = backend.map_or(context.session.proxy(), |index| context.session.proxy_at(index));
            rt::boxed(wait::tarpit(&mut context, proxy)).await;
        }
        AnswerTiming::Streamed(number) => return rt::boxed(service_exchange::serve(context, number, body)).await,
        AnswerTiming::Never => {
            context.client.conn.end_connection();
            return cut(context.session, context.state, ending.outcome);
        }
        AnswerTiming::Cached => {
            let stored = cache::take_hit(context.session, &mut context.state.borrow_mut());
            let arguments = (context, stored, body);
            return rt::boxed_with(arguments, |(context, stored, body)| {
                service_exchange::stored(context, stored, body)
            })
            .await;
        }
        AnswerTiming::Silent(hops) => {
            // If the system does not permit a silent drop, the connection is closed anyway.
            context.client.forget(hops);
            return cut(context.session, context.state, ending.outcome);
        }
    }
    if ending.denied {
        persistence::note_cookie(&context);
    }
    finish(&context.state, ending.outcome, i32::from(ending.status));
    reply_unread(context, Answer::new(ending.status, ending.text), body).await;
}

/// Ends a request whose rules exceed their cost limit.
pub async fn exhausted(context: RequestContext<'_>, body: UnreadBody) {
    let ending = Ending::exhausted(EvalContext::request(context.session, &context.state.borrow()));
    end(context, RequestEnd::Ended(ending), body).await;
}

/// Records the outcome of a request.
fn note(state: &mut StreamState, ending: &Ending<'_>) {
    (state.rules.denied, state.rules.failed) = (ending.denied, ending.failed);
    let answers = matches!(ending.manner, AnswerTiming::Prompt | AnswerTiming::Late);
    state.accounting.tracked.blamed = ending.challenged || ending.denied && answers;
    if !answers || ending.outcome.cause == Cause::Local {
        // HAProxy evaluates cookies after the rules, or if they reject a request with a response.
        state.captures.borrow_mut().cookie.clear();
    }
    if ending.failed {
        state.timings.request = None;
    }
}
