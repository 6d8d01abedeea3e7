//! Leases of tokens: requests them from the store for the keys in use, several keys with each command, and applies the answers. Must
//! never apply an answer before that of an earlier request.

use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use base::Moment;
use config::spec::LogLevel;
use live::lease::{Ask, Grant, Limit, REFRESH};
use wire::resp::OwnedReply;

use super::client::{Client, Failure, Pending};
use super::fault::Fault;
use super::script;
use crate::worker::Worker;

/// How often urgent keys are looked for.
const TICK: Duration = Duration::from_millis(10);
/// How often the node reports itself.
const PRESENCE: Duration = Duration::from_millis(500);
/// Keys of one command.
const KEYS: usize = 64;
/// Maximum number of keys that are requested at a time, and of commands without an answer.
const MOST_KEYS: usize = 4_096;
const MOST_FLIGHTS: usize = 256;
/// Minimum interval between log lines about keys with other data.
const PAUSE: Duration = Duration::from_secs(60);

/// A command without an answer.
enum Flight {
    /// The node has reported itself at this time.
    Presence(Pending, Moment),
    Take(Pending, Batch),
    /// The script is being loaded again; the requests that were refused without it.
    Load(Pending, Option<Batch>),
}

/// Requests of tokens of one limit.
struct Batch {
    /// Index of the limit.
    limit: usize,
    asks: Vec<Ask>,
    /// The script was loaded for it.
    is_repeated: bool,
}

impl Flight {
    fn pending(&mut self) -> &mut Pending {
        match self {
            Self::Presence(pending, _) | Self::Take(pending, _) | Self::Load(pending, _) => pending,
        }
    }
}

/// Requests leases for the limits of a store until the process ends.
pub(super) async fn keep(worker: Rc<Worker>, index: usize, client: Arc<Client>, node: u64) {
    let limits = worker.process.live.limits.of_store(index).map(|(limit, _)| limit).collect();
    let mut leases = Leases {
        worker,
        client,
        limits,
        node,
        flights: Vec::new(),
        timer: rt::Timer::new(),
        refresh: rt::now(),
        presence: rt::now() + PRESENCE,
        warned: None,
    };
    poll_fn(|cx| leases.poll_end(cx)).await;
}

/// The state of requesting.
struct Leases {
    worker: Rc<Worker>,
    client: Arc<Client>,
    /// Indices of the limits.
    limits: Vec<usize>,
    node: u64,
    flights: Vec<Flight>,
    timer: rt::Timer,
    /// Next time at which all keys in use are looked at.
    refresh: Moment,
    /// Next time at which the node reports itself.
    presence: Moment,
    /// Time of the last warning.
    warned: Option<Moment>,
}

impl Leases {
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
                    // Later ones keep their order.
                    let flight = self.flights.remove(at);
                    self.land(flight, answer);
                }
            }
        }
    }

    fn land(&mut self, flight: Flight, answer: Result<OwnedReply, Failure>) {
        // Without an answer the epoch ends, and the state of all keys with it.
        let Ok(answer) = answer else { return };
        match flight {
            Flight::Presence(_, sent) => self.note_nodes(&answer, sent),
            Flight::Take(_, batch) if answer.is_error("NOSCRIPT") && !batch.is_repeated => self.load(Some(batch)),
            Flight::Take(_, batch) => self.settle(&batch, &answer),
            Flight::Load(_, batch) => match (answer.error(), batch) {
                (Some(error), _) => self.client.complain(Fault::refused("SCRIPT LOAD", error)),
                (None, Some(batch)) => self.send(Batch { is_repeated: true, ..batch }),
                (None, None) => {}
            },
        }
    }

    /// Loads the script again, after a restart of the server for instance.
    fn load(&mut self, batch: Option<Batch>) {
        match self.client.send(&[b"SCRIPT", b"LOAD", script::TEXT]) {
            Ok(pending) => self.flights.push(Flight::Load(pending, batch)),
            Err(_) => batch.iter().for_each(|batch| self.restore(batch)),
        }
    }

    /// Takes back requests that were not sent.
    fn restore(&self, batch: &Batch) {
        let Some(limit) = self.limit(batch.limit) else { return };
        batch.asks.iter().for_each(|ask| limit.restore(ask));
    }

    fn note_nodes(&mut self, answer: &OwnedReply, sent: Moment) {
        if answer.is_error("NOSCRIPT") {
            return self.load(None);
        }
        let took = rt::now().saturating_since(sent);
        self.client.counts.round_trip.store(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Relaxed);
        match (answer.error(), script::nodes(answer)) {
            (Some(error), _) => self.client.complain(Fault::refused("EVALSHA", error)),
            (None, Err(fault)) => self.client.complain(fault),
            (None, Ok(nodes)) => {
                self.limits.iter().filter_map(|index| self.limit(*index)).for_each(|one| one.standing.set_nodes(nodes));
            }
        }
    }

    fn limit(&self, index: usize) -> Option<&Limit> {
        self.worker.process.live.limits.get(index)
    }

    fn settle(&mut self, batch: &Batch, answer: &OwnedReply) {
        let asks = &batch.asks;
        if let Some(error) = answer.error() {
            return self.client.complain(Fault::refused("EVALSHA", error));
        }
        let Some(grants) = script::grants(answer, asks.len()) else {
            return self.client.complain(Fault::Unexpected { command: "EVALSHA" });
        };
        let Some(limit) = self.limit(batch.limit) else { return };
        let now = rt::now();
        asks.iter().zip(&grants).for_each(|(ask, grant)| limit.settle(ask, *grant, now));
        if let Some((ask, _)) = asks.iter().zip(&grants).find(|(_, grant)| **grant == Grant::Foreign) {
            let (store, limit) = (&self.client.plan.name, &limit.plan.name);
            let key = String::from_utf8_lossy(&ask.key).replace(char::is_control, "");
            self.warn(&format!("Store {store}: key '{key}' of limit {limit} holds other data, its limit is lost."));
        }
    }

    /// Logs a warning, unless another one was logged in the last minute.
    fn warn(&mut self, text: &str) {
        let now = rt::now();
        if self.warned.is_none_or(|at| now.saturating_since(at) >= PAUSE) {
            self.warned = Some(now);
            self.worker.logger.message(None, LogLevel::Warning, text);
        }
    }

    /// Requests what is due.
    fn tick(&mut self, now: Moment) {
        if !self.client.is_ready() || self.flights.len() >= MOST_FLIGHTS {
            return;
        }
        let is_due = now >= self.refresh;
        if is_due {
            self.refresh = now + REFRESH;
        }
        if now >= self.presence {
            self.presence = now + PRESENCE;
            let command = script::presence(&self.client, self.node);
            if let Some(pending) = self.command(&command) {
                self.flights.push(Flight::Presence(pending, now));
            }
        }
        let delay = self.delay();
        let mut asks = Vec::new();
        for at in 0..self.limits.len() {
            let index = self.limits[at];
            let Some(limit) = self.limit(index) else { continue };
            limit.ask_urgent(now, delay, MOST_KEYS, &mut asks);
            if is_due {
                limit.ask_due(now, delay, MOST_KEYS, &mut asks);
            }
            while !asks.is_empty() {
                let rest = asks.split_off(asks.len().min(KEYS));
                let asks = std::mem::replace(&mut asks, rest);
                self.send(Batch { limit: index, asks, is_repeated: false });
            }
        }
    }

    /// Returns the time that an answer takes.
    fn delay(&self) -> Duration {
        Duration::from_micros(self.client.counts.round_trip.load(Relaxed))
    }

    fn command(&self, command: &[Vec<u8>]) -> Option<Pending> {
        let arguments: Vec<&[u8]> = command.iter().map(Vec::as_slice).collect();
        self.client.send(&arguments).ok()
    }

    /// Requests tokens. Without space in the queue, the next request of each key has its debt.
    fn send(&mut self, batch: Batch) {
        let Some(limit) = self.limit(batch.limit) else { return };
        match self.command(&script::take(&self.client, limit, self.delay(), &batch.asks)) {
            Some(pending) => self.flights.push(Flight::Take(pending, batch)),
            None => self.restore(&batch),
        }
    }
}
