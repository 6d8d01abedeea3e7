//! Slots of servers that several nodes share (`maxconn-store`): reports what this node holds and needs, several servers with each command,
//! and applies the answers. Must never report a server again before its answer.

pub mod script;

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::Moment;
use config::spec::LogLevel;
use live::lease::slots::{Claim, SlotGrant, StoreState, TICK};
use wire::resp::OwnedReply;

use super::client::{Client, Failure, Pending};
use super::fault::Fault;
use crate::worker::Worker;

/// Servers of one command.
const SERVERS: usize = 64;
/// Maximum number of commands without an answer.
const MOST_FLIGHTS: usize = 256;
/// Minimum interval between log lines about keys with other data.
const PAUSE: Duration = Duration::from_secs(60);

/// A command without an answer.
enum Flight {
    Claim(Pending, Batch),
    /// The script is being loaded; the claims that were refused without it.
    Load(Pending, Batch),
}

/// Claims of several servers.
struct Batch {
    /// Their indices.
    servers: Vec<usize>,
    claims: Vec<Claim>,
    /// The script was loaded for it.
    is_repeated: bool,
}

impl Flight {
    fn pending(&mut self) -> &mut Pending {
        match self {
            Self::Claim(pending, _) | Self::Load(pending, _) => pending,
        }
    }
}

/// Leases the slots of a store's servers until the process ends.
pub(super) async fn keep(worker: Rc<Worker>, index: usize, client: Arc<Client>, node: u64) {
    let servers = worker.process.live.slots.of_store(index).map(|(server, _)| server).collect();
    let timer = rt::Timer::new();
    let mut slots = Slots { worker, client, servers, node, flights: Vec::new(), timer, warned: None };
    poll_fn(|cx| slots.poll_end(cx)).await;
}

/// The state of leasing.
struct Slots {
    worker: Rc<Worker>,
    client: Arc<Client>,
    /// Indices of the servers.
    servers: Vec<usize>,
    node: u64,
    flights: Vec<Flight>,
    timer: rt::Timer,
    /// Time of the last warning.
    warned: Option<Moment>,
}

impl Slots {
    /// Never ready.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.poll_flights(cx);
        loop {
            let now = rt::now();
            if self.timer.deadline().is_none_or(|deadline| deadline <= now) {
                self.tick(now);
                self.timer.arm(Some(now + TICK));
                // Registers the task for the answers.
                self.poll_flights(cx);
            }
            if self.timer.poll_expired(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Applies the answers that have arrived.
    fn poll_flights(&mut self, cx: &mut Context<'_>) {
        let mut at = 0;
        while let Some(flight) = self.flights.get_mut(at) {
            match Pin::new(flight.pending()).poll(cx) {
                Poll::Pending => at += 1,
                Poll::Ready(answer) => {
                    let flight = self.flights.swap_remove(at);
                    self.land(flight, answer);
                }
            }
        }
    }

    fn land(&mut self, flight: Flight, answer: Result<OwnedReply, Failure>) {
        match (flight, answer) {
            (Flight::Claim(_, batch) | Flight::Load(_, batch), Err(_)) => self.forget(&batch),
            (Flight::Claim(_, batch), Ok(answer)) if answer.is_error("NOSCRIPT") && !batch.is_repeated => {
                match self.client.send(&[b"SCRIPT", b"LOAD", script::TEXT]) {
                    Ok(pending) => self.flights.push(Flight::Load(pending, batch)),
                    Err(_) => self.forget(&batch),
                }
            }
            (Flight::Claim(_, batch), Ok(answer)) => self.settle(&batch, &answer),
            (Flight::Load(_, batch), Ok(answer)) => match answer.error() {
                Some(error) => self.complain(&batch, Fault::refused("SCRIPT LOAD", error)),
                None => self.send(Batch { is_repeated: true, ..batch }),
            },
        }
    }

    /// Ends claims without an answer.
    fn forget(&self, batch: &Batch) {
        let slots = &self.worker.process.live.slots;
        batch.servers.iter().zip(&batch.claims).for_each(|(server, claim)| {
            if let Some(server) = slots.get(*server) {
                server.forget(claim);
            }
        });
    }

    fn complain(&self, batch: &Batch, fault: Fault) {
        self.client.complain(fault);
        self.forget(batch);
    }

    fn settle(&mut self, batch: &Batch, answer: &OwnedReply) {
        if let Some(error) = answer.error() {
            return self.complain(batch, Fault::refused("EVALSHA", error));
        }
        let Some(grants) = script::grants(answer, batch.claims.len()) else {
            return self.complain(batch, Fault::Unexpected { command: "EVALSHA" });
        };
        let (process, now) = (Arc::clone(&self.worker.process), rt::now());
        for ((index, claim), grant) in batch.servers.iter().zip(&batch.claims).zip(grants) {
            let Some(server) = process.live.slots.get(*index) else { continue };
            let Some(proxy) = process.live.proxies.get(server.plan.proxy) else { continue };
            server.settle(proxy, claim, grant, now);
            if grant == SlotGrant::Foreign {
                self.warn(&server.plan.name);
            }
        }
    }

    /// Logs that a key has other data, unless another one was logged in the last minute.
    fn warn(&mut self, server: &str) {
        let now = rt::now();
        if self.warned.is_none_or(|at| now.saturating_since(at) >= PAUSE) {
            self.warned = Some(now);
            let store = &self.client.plan.name;
            let text = format!("Store {store}: the key of server {server} holds other data, its slots are lost.");
            self.worker.logger.message(None, LogLevel::Warning, &text);
        }
    }

    /// Applies what has changed, and reports what is due.
    fn tick(&mut self, now: Moment) {
        let state = match (self.client.is_ready(), self.client.fault()) {
            (true, _) => StoreState::Ready,
            (false, None) => StoreState::Untried,
            (false, Some(_)) => StoreState::Lost,
        };
        let process = Arc::clone(&self.worker.process);
        let (mut servers, mut claims) = (Vec::new(), Vec::new());
        let is_leaving = process.is_stopping();
        for at in 0..self.servers.len() {
            let index = self.servers[at];
            let Some(server) = process.live.slots.get(index) else { continue };
            let Some(proxy) = process.live.proxies.get(server.plan.proxy) else { continue };
            if let Some(claim) = server.tick(proxy, state, now, is_leaving) {
                servers.push(index);
                claims.push(claim);
            }
            if servers.len() == SERVERS {
                let (servers, claims) = (std::mem::take(&mut servers), std::mem::take(&mut claims));
                self.send(Batch { servers, claims, is_repeated: false });
            }
        }
        if !servers.is_empty() {
            self.send(Batch { servers, claims, is_repeated: false });
        }
    }

    /// Reports servers.
    fn send(&mut self, batch: Batch) {
        let slots = &self.worker.process.live.slots;
        let names = batch.servers.iter().filter_map(|index| slots.get(*index)).map(|server| &server.plan.name);
        let keys: Vec<_> = names.map(|name| self.client.key(format!("slots:{name}").as_bytes())).collect();
        let arguments = script::arguments(&keys, self.node, &batch.claims);
        let mut command: Vec<&[u8]> = vec![b"EVALSHA", script::digest().as_bytes()];
        command.extend(arguments.iter().map(Vec::as_slice));
        let pending = if self.flights.len() < MOST_FLIGHTS { self.client.send(&command).ok() } else { None };
        match pending {
            Some(pending) => self.flights.push(Flight::Claim(pending, batch)),
            None => self.forget(&batch),
        }
    }
}
