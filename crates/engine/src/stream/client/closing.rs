//! The end of a client's connection: waits until all written data has been acknowledged. Must never decide how the
//! connection ends.

use std::cell::Cell;
use std::task::Poll;
use std::time::Duration;

use conn::ending::Ending;

use crate::session::Session;
use crate::stream::client::Client;

/// Maximum number of lingering connections per worker. Others are closed immediately: their clients see the end as
/// well, but may lose data that they have not received yet.
const MOST: usize = 4096;
/// Maximum time for which a client may make no progress with the data that it has not received, if no timeout is
/// configured.
pub const PATIENCE: Duration = Duration::from_secs(10);

thread_local! {
    static WAITING: Cell<usize> = const { Cell::new(0) };
}

/// Slot of a lingering connection.
struct Place(());

impl Place {
    /// Takes a slot. `None`: the limit is reached, or memory is scarce.
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

/// Ends the connection of a client after its last request. `None`: it is closed already; otherwise the future that
/// waits for its end.
pub fn begin(session: &Session, client: Client) -> Option<rt::Recycled<impl Future<Output = ()> + use<>>> {
    let ending = client.end()?;
    let place = Place::take()?;
    let patience = session.proxy().timeouts.client_closing().unwrap_or(PATIENCE);
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
