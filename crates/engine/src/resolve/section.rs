//! A `resolvers` section on the worker that serves it: its names, and the query rounds that resolve them. Must never change a
//! server itself.

use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base::moment::Moment;
use live::ServerPlace;
use policy::program::{AddressChoice, Resolvers};
use policy::resolve::Failure;
use rt::net::{Address, Datagram, Family};
use wire::dns::{AnswerRecords, Kind, Name};

use super::resolved_name::{Followed, Follower, Question};
use super::round::Round;
use super::state::{Line, Section};
use super::{apply, services};
use crate::worker::Worker;

/// Maximum number of names that requests may resolve in a section at a time, cached ones included.
const MOST_NAMES: usize = 4_096;
/// How long the result of the IPv6 route check is cached.
const ROUTE_KEPT: Duration = Duration::from_secs(30);
/// An IPv6 address outside this network (documentation prefix), for the route check; nothing is sent there.
const FAR: &str = "[2001:db8::1]:53";

impl Section {
    /// Creates a section without names.
    pub(super) fn new(worker: &Worker, index: usize, written: &Resolvers) -> Self {
        let (shared, written) = (&worker.process, Rc::new(written.clone()));
        let line = |number| Rc::new(Line::new(Arc::clone(shared), Rc::clone(&written), index, number));
        let lines = (0..written.nameservers.len()).map(line).collect();
        Self { written, lines, names: RefCell::default(), routes_ipv6: Cell::default() }
    }

    pub(super) fn written(&self) -> &Resolvers {
        &self.written
    }

    pub(super) fn line(&self, nameserver: usize) -> &Line {
        &self.lines[nameserver]
    }

    /// Returns the entry of a name, creating it if necessary; `None`: the limit is reached.
    pub(super) fn followed(&self, question: Question, of_request: bool) -> Option<Rc<Followed>> {
        let mut names = self.names.borrow_mut();
        if let Some(known) = names.get(&question) {
            return Some(Rc::clone(known));
        }
        if of_request && names.len() >= MOST_NAMES {
            let valid = self.written().hold.valid;
            names.retain(|_, followed| !followed.is_stale(valid));
            if names.len() >= MOST_NAMES {
                return None;
            }
        }
        let followed = Rc::new(Followed::new(question.clone()));
        names.insert(question, Rc::clone(&followed));
        Some(followed)
    }

    /// Starts resolving a name for a server.
    pub(super) fn attach(
        self: &Rc<Self>,
        worker: &Rc<Worker>,
        member: ServerPlace,
        name: &Name,
        choice: &AddressChoice,
    ) {
        let Some(followed) = self.followed(Question::new(name, choice), false) else { return };
        followed.followers.borrow_mut().push(Follower { member, place: None, follows_host: false });
        self.run(worker, &followed);
    }

    /// Stops resolving a name for a server.
    pub(super) fn detach(&self, member: ServerPlace, name: &Name, choice: &AddressChoice) {
        let question = Question::new(name, choice);
        let Some(followed) = self.names.borrow().get(&question).cloned() else { return };
        let is_left = {
            let mut followers = followed.followers.borrow_mut();
            followers.retain(|follower| follower.member != member);
            followers.is_empty()
        };
        if is_left {
            self.names.borrow_mut().remove(&question);
            followed.give_up();
        }
    }

    /// Resolves a followed name again at once.
    pub(super) fn hurry(&self, name: &Name, choice: &AddressChoice) {
        if let Some(followed) = self.names.borrow().get(&Question::new(name, choice)) {
            followed.hurry();
        }
    }

    /// Resolves a name now; starts its task if none runs.
    pub(super) fn run(self: &Rc<Self>, worker: &Rc<Worker>, followed: &Rc<Followed>) {
        followed.hurry();
        if !followed.is_running.replace(true) {
            let (section, worker, followed) = (Rc::clone(self), Rc::clone(worker), Rc::clone(followed));
            rt::spawn(rt::Class::Normal, rt::NO_TAG, async move { section.follow(&worker, &followed).await });
        }
    }

    /// Resolves a name while servers follow it; once if only requests use it.
    async fn follow(self: Rc<Self>, worker: &Rc<Worker>, followed: &Rc<Followed>) {
        loop {
            followed.begin();
            let outcome = self.resolve(&followed.question).await;
            self.conclude(worker, followed, outcome);
            followed.end();
            followed.sleep(rt::now() + self.written().interval).await;
            if worker.process.is_stopping() || followed.is_done() {
                break;
            }
        }
        followed.is_running.set(false);
        // Wakes tasks that began to wait after the last resolution.
        followed.end();
    }

    /// Records the result of a resolution, and applies it to the servers.
    fn conclude(
        self: &Rc<Self>,
        worker: &Rc<Worker>,
        followed: &Followed,
        outcome: Result<(AnswerRecords, usize), Failure>,
    ) {
        let now = rt::now();
        let (hold, is_service) = (self.written().hold, followed.question.name.is_service());
        {
            let mut known = followed.known.borrow_mut();
            known.ended = Some((now, outcome.is_ok()));
            match &outcome {
                Ok((found, _)) => {
                    known.valid = now;
                    known.addresses.note(&found.addresses, now, hold.obsolete);
                    known.services.note(&found.services, &found.additional, now, hold.obsolete);
                }
                Err(failure) if failure.is_outlived(&hold, known.valid, now) => return,
                Err(_) => {
                    known.addresses.clear();
                    known.services.clear();
                }
            }
        }
        match outcome {
            _ if is_service => services::follow(self, worker, followed),
            Ok((_, nameserver)) => apply::apply_answer(self, worker, followed, nameserver),
            Err(failure) => apply::lost(worker, followed, failure),
        }
    }

    /// Queries a name until there is a valid answer, or all retries have failed.
    async fn resolve(&self, question: &Question) -> Result<(AnswerRecords, usize), Failure> {
        let written = self.written();
        let (first, second) = match question.name.is_service() {
            true => (Kind::Srv, None),
            false => question.choice().kinds(written.families, self.routes_ipv6()),
        };
        let mut failure = Failure::Timeout;
        for left in (0..written.retries).rev() {
            let next = rt::now() + written.retry;
            failure = match self.ask(&question.name, first, next).await {
                // The name may have addresses of the other family.
                Err(failure) if failure != Failure::Timeout && second.is_some() => {
                    let kind = second.unwrap_or(first);
                    match self.ask(&question.name, kind, rt::now() + written.retry).await {
                        Ok(found) => return Ok(found),
                        Err(Failure::Timeout) => failure,
                        Err(other) => other,
                    }
                }
                Ok(found) => return Ok(found),
                Err(failure) => failure,
            };
            if left > 0 {
                rt::sleep_until(next).await;
            }
        }
        Err(failure)
    }

    /// Returns the TXT records of a name, with retries.
    pub(super) async fn texts(&self, name: &Name) -> Vec<Vec<u8>> {
        for _ in 0..self.written().retries.max(1) {
            match self.ask(name, Kind::Txt, rt::now() + self.written().retry).await {
                Ok((found, _)) => return found.texts,
                Err(Failure::Timeout) => {}
                Err(_) => break,
            }
        }
        Vec::new()
    }

    /// Sends a query to all name servers at once.
    async fn ask(&self, name: &Name, kind: Kind, deadline: Moment) -> Result<(AnswerRecords, usize), Failure> {
        let round = Rc::new(Round::new(name.clone(), kind));
        for line in &self.lines {
            line.ask(&round);
        }
        let outcome = round.outcome(deadline).await;
        for line in &self.lines {
            line.close(&round, matches!(outcome, Err(Failure::Timeout)));
        }
        outcome
    }

    /// Whether this machine has an IPv6 route; the result is cached.
    fn routes_ipv6(&self) -> bool {
        let now = rt::now();
        if let Some((routes, since)) = self.routes_ipv6.get()
            && now.saturating_since(since) < ROUTE_KEPT
        {
            return routes;
        }
        let far = FAR.parse::<SocketAddr>().ok();
        let routes = far.is_some_and(|far| {
            Datagram::unconnected(Family::Inet6).is_ok_and(|socket| socket.connect(&Address::Inet(far)).is_ok())
        });
        self.routes_ipv6.set(Some((routes, now)));
        routes
    }
}
