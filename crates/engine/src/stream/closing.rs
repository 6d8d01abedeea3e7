//! The end of a client's connection: waits until what was written has arrived. Must never decide how the connection ends.

use std::cell::Cell;
use std::task::Poll;
use std::time::Duration;

use conn::ending::Ending;

use crate::session::Session;
use crate::stream::client::Client;

/// Connections of a worker that wait at most. Others are closed at once: their clients get the end as well, but may lose what they have
/// not received yet.
const MOST: usize = 4096;
/// How long a client may take nothing of what it has not got, where no timeout says it.
pub const PATIENCE: Duration = Duration::from_secs(10);

thread_local! {
    static WAITING: Cell<usize> = const { Cell::new(0) };
}

/// One of those that wait.
struct Place(());

impl Place {
    /// `None`: there are as many as there may be, or memory is scarce.
    fn take() -> Option<Self> {
        let count = WAITING.get();
        if count >= MOST || rt::memory_is_scarce() {
            return None;
        }
        WAITING.set(count + 1);
        Some(Self(()))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        WAITING.set(WAITING.get().saturating_sub(1));
    }
}

/// Ends the connection of a client whose last request has ended. `None`: it is closed; else the wait for its end.
pub fn begin(session: &Session, client: Client) -> Option<rt::Recycled<impl Future<Output = ()> + use<>>> {
    let ending = client.end()?;
    let place = Place::take()?;
    let timeouts = &session.proxy().timeouts;
    let patience = timeouts.client_fin.or(timeouts.client).unwrap_or(PATIENCE);
    Some(rt::boxed(wait(ending, patience, place)))
}

async fn wait(mut ending: Ending, patience: Duration, _place: Place) {
    let mut timer = rt::Timer::new();
    std::future::poll_fn(|cx| {
        loop {
            if rt::memory_is_scarce() || ending.poll(cx, rt::now()).is_ready() {
                return Poll::Ready(());
            }
            let Some(next) = ending.look(rt::now(), patience) else { return Poll::Ready(()) };
            timer.arm(Some(next));
            if timer.poll_expired(cx).is_pending() {
                return Poll::Pending;
            }
        }
    })
    .await;
}
