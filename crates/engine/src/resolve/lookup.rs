//! DNS lookups for requests (`do-resolve`): passes the query to the worker that serves the section, and waits for the result.
//! Must never keep a request waiting when that worker has dropped the query.

use std::net::IpAddr;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use policy::program::AddressChoice;
use wire::dns::Name;

use super::Section;
use super::resolved_name::Question;
use crate::worker::Worker;

/// Result slot that two workers share.
#[derive(Default)]
struct LookupSlot {
    /// Outer `None`: pending; inner `None`: not found.
    ip: Option<Option<IpAddr>>,
    waker: Option<Waker>,
}

/// The resolving worker's side; dropping it without a result reports "not found".
struct Finder(Arc<Mutex<LookupSlot>>);

fn lock(found: &Mutex<LookupSlot>) -> MutexGuard<'_, LookupSlot> {
    found.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Finder {
    fn find(&self, ip: Option<IpAddr>) {
        lock(&self.0).ip.get_or_insert(ip);
    }
}

impl Drop for Finder {
    fn drop(&mut self) {
        let waker = {
            let mut found = lock(&self.0);
            found.ip.get_or_insert(None);
            found.waker.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// Resolves a name with the name servers of a section; without `asked`, only from known answers. `None`: there is no address, or
/// the lookup failed.
pub async fn lookup(
    worker: &Worker,
    index: usize,
    name: Name,
    prefers_ipv4: Option<bool>,
    asked: bool,
) -> Option<IpAddr> {
    let found = Arc::new(Mutex::new(LookupSlot::default()));
    let finder = Finder(Arc::clone(&found));
    let number = index % worker.process.workers();
    let job = move |worker: &Rc<Worker>| {
        let Some(section) = worker.sections.borrow().get(&index).cloned() else { return };
        let worker = Rc::clone(worker);
        rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
            finder.find(section.find(&worker, &name, prefers_ipv4.unwrap_or(false), asked).await);
        });
    };
    rt::post(number as rt::WorkerId, Box::new(move || crate::on_worker(job)));
    std::future::poll_fn(|cx| {
        let mut found = lock(&found);
        match found.ip.take() {
            Some(ip) => Poll::Ready(ip),
            None => {
                found.waker = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    })
    .await
}

/// Returns the TXT records of a name, queried now; empty if there are none or the lookup failed.
pub(crate) async fn texts(worker: &Worker, index: usize, name: Name) -> Vec<Vec<u8>> {
    let found = Arc::new(Mutex::new((None, None::<Waker>)));
    let (filler, number) = (Arc::clone(&found), index % worker.process.workers());
    let job = move |worker: &Rc<Worker>| {
        let section = worker.sections.borrow().get(&index).cloned();
        rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
            let texts = match section {
                Some(section) => section.texts(&name).await,
                None => Vec::new(),
            };
            let waker = {
                let mut filled = filler.lock().unwrap_or_else(PoisonError::into_inner);
                filled.0 = Some(texts);
                filled.1.take()
            };
            if let Some(waker) = waker {
                waker.wake();
            }
        });
    };
    rt::post(number as rt::WorkerId, Box::new(move || crate::on_worker(job)));
    std::future::poll_fn(|cx| {
        let mut found = found.lock().unwrap_or_else(PoisonError::into_inner);
        match found.0.take() {
            Some(texts) => Poll::Ready(texts),
            None => {
                found.1 = Some(cx.waker().clone());
                Poll::Pending
            }
        }
    })
    .await
}

impl Section {
    /// Returns the address of a name: the known one if it is younger than `hold valid`, else a new one if `asked`.
    async fn find(self: Rc<Self>, worker: &Rc<Worker>, name: &Name, prefers_ipv4: bool, asked: bool) -> Option<IpAddr> {
        if name.is_service() || worker.process.is_stopping() {
            return None;
        }
        let choice = AddressChoice { prefers_ipv4, allows_duplicates: true, ..AddressChoice::default() };
        let followed = self.followed(Question::new(name, &choice), true)?;
        let written = self.written();
        let ended = followed.known.borrow().ended;
        match ended.map(|(ended, good)| (rt::now().saturating_since(ended), good)) {
            Some((age, true)) if age < written.hold.valid => {}
            // A failed result is not cached: the name is queried again.
            _ if !asked => return None,
            _ => {
                self.run(worker, &followed);
                followed.ended().await;
            }
        }
        let known = followed.known.borrow();
        match known.ended {
            Some((_, true)) => known.addresses.choose(&choice, None, |_| false),
            _ => None,
        }
    }
}
