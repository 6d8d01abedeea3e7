//! Forwards a request: its backend, the plan of its attempts, the straight path or the general one. Must never touch a body.

use conn::h1::UnreadBody;

use crate::session::Session;
use crate::stream::client::Client;
use crate::stream::client::keep_or_close::end_after;
use crate::stream::context::RequestContext;
use crate::stream::exchange::forward::{self, FAULT, Start};
use crate::stream::exchange::plan::{Plan, answered};
use crate::stream::exchange::straight;
use crate::stream::reply::{cut, finish};
use crate::stream::request::outgoing_head;
use crate::stream::request::route;
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::SharedStreamState;

/// Forwards a request to its backend, and the answer to the client. The parts of the context are parameters of their own: a future
/// that begins with a struct is copied as a whole when its caller stores it.
pub async fn dispatch(session: &Session, client: &mut Client, state: SharedStreamState, body: UnreadBody) {
    let context = RequestContext { session, client, state };
    let (route, mut context, body) = match route::at_once(&context) {
        Some(route) => (route, context, body),
        None => match route::boxed(context, body).await {
            Some(routed) => routed,
            None => return,
        },
    };
    if context.client.is_withdrawn {
        return withdraw(context);
    }
    let refused = match outgoing_head::change(context.session, route.features) {
        true => outgoing_head::pass(context.session, &mut context.client.conn, &context.state, route.proxy).await,
        false => None,
    };
    let plan = Plan::of(&context, route);
    let (mut start, mut place) = (Start::Nothing, None);
    if refused.is_none() && straight::suits(&context, &plan, &body) {
        match straight::pass(&mut context, &plan, &mut place).await {
            Ok(passed) => {
                let Some(target) = place else { return cut(context.session, context.state, FAULT) };
                let end = match passed.client_goes_on {
                    true => body.absent().ok(),
                    false => end_after(context.client, &context.state, true),
                };
                return answered(context, &plan, target, passed.link_is_reusable, end);
            }
            Err(reached) => start = reached,
        }
    }
    let arguments = (context, &plan, refused, start, &mut place, body);
    rt::boxed_with(arguments, |(context, plan, refused, start, place, body)| {
        forward::forward(context, plan, refused, start, place, body)
    })
    .await;
}

/// Ends a request that its client has reset before it was evaluated. As in HAProxy, it has no server.
#[cold]
fn withdraw(context: RequestContext<'_>) {
    finish(
        &context.state,
        Outcome::new(Cause::Client, Phase::Request),
        if context.client.conn.was_whole() { -1 } else { 400 },
    );
    context.conclude();
}
