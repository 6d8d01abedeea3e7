//! Checks passwords hashed by crypt(3) before expressions need them: slow hashes are computed on a helper thread, while the
//! request waits. Must never decide the consequence of a wrong password.

use std::sync::Arc;

use conn::downstream::Downstream;
use policy::program::Proxy;
use policy::running::{PasswordTrial, trials};

use crate::session::Session;
use crate::stream::client::client_abort::unless_left;
use crate::stream_state::failure::Failure;
use crate::stream_state::{Cause, Outcome, Phase};
use crate::worker::SharedStreamState;

/// Whether a request may have to wait for a check, by an inexpensive test.
pub fn may_wait(state: &SharedStreamState, proxy: &Proxy) -> bool {
    let says = |name: &[u8]| state.borrow().request.contains(name);
    !proxy.slow_userlists.is_empty() && (says(b"authorization") || says(b"proxy-authorization"))
}

/// Checks name and password of a request, for each user list that a proxy's expressions use.
///
/// # Errors
/// Too many checks are queued, or the client has disconnected.
pub async fn check(
    session: &Session,
    client: &mut Downstream,
    state: &SharedStreamState,
    proxy: &Proxy,
) -> Result<(), Failure> {
    let shared = &session.worker.process;
    let unknown = {
        let state = state.borrow();
        let Some(field) = session.proxy().http.credentials(&state.request) else { return Ok(()) };
        trials(&session.generation().program, &shared.live, &proxy.slow_userlists, field)
    };
    for PasswordTrial { hidden, password, proof } in unknown {
        let hidden = Arc::clone(&hidden);
        let mut checked = std::pin::pin!(shared.helpers.run(move || hidden.is(&password)));
        match unless_left(session, client, state, |cx, _| checked.as_mut().poll(cx)).await? {
            Some(true) => shared.live.passwords.learn(proof),
            Some(false) => {}
            None => {
                return Err(Failure {
                    outcome: Outcome::new(Cause::Resource, Phase::Request),
                    status: 503,
                    page: true,
                });
            }
        }
    }
    Ok(())
}
