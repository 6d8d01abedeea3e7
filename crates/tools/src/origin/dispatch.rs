//! Hands connections to workers, and starts serving them there. Must never read a byte of one.

use std::rc::Rc;
use std::sync::Arc;

use conn::transport;
use rt::net::OwnedSocket;
use rt::{Class, LoadGuard};

use super::capacity::CapacitySlot;
use super::connection;
use super::offload::{self, Protocol};
use super::worker::{Worker, on_this};

/// Minimum difference in connections for which a worker hands one over: otherwise the transfer costs more than it
/// balances.
const UNEVEN: u32 = 2;

/// Protocols of a listening address.
#[derive(Debug, Clone)]
pub struct Offer {
    pub tls: Option<Arc<tls::Server>>,
    pub protocol: Protocol,
}

impl Worker {
    /// Serves a connection on this worker, or on the least loaded one if the difference is large.
    pub fn dispatch(self: &Rc<Self>, socket: OwnedSocket, offer: Offer, place: CapacitySlot) {
        let here = rt::worker();
        let workers = rt::workers();
        if workers == 1 {
            return self.serve(socket, offer, place, None);
        }
        let idlest = (0..workers as rt::WorkerId).min_by_key(|worker| rt::load_of(*worker)).unwrap_or(here);
        let chosen = if rt::load_of(idlest).saturating_add(UNEVEN) < rt::load() { idlest } else { here };
        let load = Some(LoadGuard::on(chosen));
        if chosen == here {
            self.serve(socket, offer, place, load);
        } else {
            rt::post(chosen, Box::new(move || on_this(|worker| worker.serve(socket, offer, place, load))));
        }
    }

    fn serve(
        self: &Rc<Self>,
        socket: OwnedSocket,
        Offer { tls, protocol }: Offer,
        slot: CapacitySlot,
        load: Option<LoadGuard>,
    ) {
        let worker = Rc::clone(self);
        rt::spawn(Class::Normal, 0, async move {
            let _held = (slot, load);
            let _watch = worker.watch_stop().await;
            let transport = match tls {
                None => transport::accept(socket),
                Some(server) => transport::accept_tls(socket, &server),
            };
            match protocol {
                Protocol::Http => connection::serve(worker, transport).await,
                Protocol::Fcgi | Protocol::Spop => rt::boxed(offload::serve(worker, transport, protocol)).await,
            }
        });
    }
}
