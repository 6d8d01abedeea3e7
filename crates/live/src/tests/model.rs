//! Random operations on one thread, each compared with a model that is too simple to be wrong: a list of queued
//! requests in order of arrival, searched from the front.

use super::*;

#[derive(Debug, Clone, Copy)]
struct ModelServer {
    served: u32,
    limit: u32,
    /// `minconn`: the limit depends on the load.
    least: Option<u32>,
    maxqueue: u32,
    admin: Admin,
    up: bool,
    weight: u32,
}

#[derive(Debug, Clone)]
struct ModelWaiter {
    name: usize,
    /// The server whose queue it is; `None`: the backend's.
    place: Option<usize>,
    /// Grants of that queue when it joined.
    joined_at: u32,
    before: QueuePositions,
}

#[derive(Debug, PartialEq, Eq)]
enum Expected {
    Slot(usize),
    Queued,
    Unavailable,
    QueueFull,
}

/// `balance first` over servers whose ids follow their index.
struct Model {
    servers: Vec<ModelServer>,
    waiting: Vec<ModelWaiter>,
    /// Name, server, positions.
    granted: Vec<(usize, usize, QueuePositions)>,
    /// By queue; the backend's is last.
    grants: Vec<u32>,
    fullconn: u32,
    /// A request that is not placed yet counts as load.
    arriving: u32,
    rung: Vec<usize>,
}

impl Model {
    fn new(plans: &[Plan], minconns: &[u32], fullconn: u32) -> Self {
        let unlimited = |limit: u32| if limit == 0 { u32::MAX } else { limit };
        let servers = plans.iter().zip(minconns).map(|(&Plan(weight, maxconn, maxqueue), &minconn)| ModelServer {
            served: 0,
            limit: unlimited(if minconn > 0 { maxconn.max(minconn) } else { maxconn }),
            least: (minconn > 0 && minconn < maxconn).then_some(minconn),
            maxqueue: unlimited(maxqueue),
            admin: Admin::Ready,
            up: true,
            weight,
        });
        let servers: Vec<ModelServer> = servers.collect();
        Self {
            grants: vec![0; servers.len() + 1],
            servers,
            fullconn,
            arriving: 0,
            waiting: Vec::new(),
            granted: Vec::new(),
            rung: Vec::new(),
        }
    }

    fn is_usable(&self, server: usize) -> bool {
        self.servers[server].up && self.servers[server].admin != Admin::Maintenance
    }

    fn takes_part(&self, server: usize) -> bool {
        let ModelServer { admin, weight, .. } = self.servers[server];
        self.is_usable(server) && admin != Admin::Drain && weight > 0
    }

    fn has_slot(&self, server: usize) -> bool {
        self.servers[server].served < self.limit(server)
    }

    fn limit(&self, server: usize) -> u32 {
        let ModelServer { limit, least, .. } = self.servers[server];
        let Some(least) = least else { return limit };
        let load = u64::from((self.held() + self.arriving).min(self.fullconn));
        least.max((load * u64::from(limit) / u64::from(self.fullconn)) as u32)
    }

    fn queue(&self, place: Option<usize>) -> usize {
        place.unwrap_or(self.servers.len())
    }

    fn assign(&mut self, name: usize, request: &PickContext) -> Expected {
        self.arriving = 1;
        self.settle();
        let placed = self.place(name, request);
        self.arriving = 0;
        placed
    }

    fn queued(&self, server: usize) -> u32 {
        self.waiting.iter().filter(|waiter| waiter.place == Some(server)).count() as u32
    }

    fn place(&mut self, name: usize, request: &PickContext) -> Expected {
        let &PickContext { server: wanted, exclude, prefer, .. } = request;
        let prefer = prefer.filter(|Preference { server, waiting }| {
            let near = self.queued(*server) < (*waiting).min(self.servers[*server].maxqueue);
            self.takes_part(*server) && (self.has_slot(*server) || near)
        });
        let wanted = wanted.filter(|server| self.is_usable(*server));
        let open = |server: &usize| self.takes_part(*server) && self.has_slot(*server);
        let by_balance = (0..self.servers.len()).filter(open).find(|server| exclude != Some(*server));
        let by_balance = by_balance.or(exclude.filter(|server| open(server)));
        let server = match wanted.or(prefer.map(|prefer| prefer.server)).or(by_balance) {
            Some(server) => server,
            None if !(0..self.servers.len()).any(|server| self.takes_part(server)) => return Expected::Unavailable,
            None => return self.join(name, None),
        };
        if self.has_slot(server) {
            self.servers[server].served += 1;
            return Expected::Slot(server);
        }
        if self.queued(server) >= self.servers[server].maxqueue {
            Expected::QueueFull
        } else {
            self.join(name, Some(server))
        }
    }

    fn join(&mut self, name: usize, place: Option<usize>) -> Expected {
        let joined_at = self.grants[self.queue(place)];
        self.waiting.push(ModelWaiter { name, place, joined_at, before: QueuePositions::default() });
        Expected::Queued
    }

    fn positions(&self, waiter: &ModelWaiter) -> QueuePositions {
        let passed = self.grants[self.queue(waiter.place)] - waiter.joined_at + 1;
        let mut positions = waiter.before;
        *if waiter.place.is_some() { &mut positions.server } else { &mut positions.backend } += passed;
        positions
    }

    /// Assigns free slots until no queued request could take one.
    fn settle(&mut self) {
        for server in 0..self.servers.len() {
            while self.has_slot(server) {
                let mine = |waiter: &ModelWaiter| match waiter.place {
                    Some(place) => place == server,
                    None => self.takes_part(server),
                };
                let Some(index) = self.waiting.iter().position(mine) else { break };
                let waiter = self.waiting.remove(index);
                let positions = self.positions(&waiter);
                let queue = self.queue(waiter.place);
                self.grants[queue] += 1;
                self.servers[server].served += 1;
                self.granted.push((waiter.name, server, positions));
                self.rung.push(waiter.name);
            }
        }
    }

    fn release(&mut self, server: usize) {
        self.servers[server].served -= 1;
        self.settle();
    }

    fn give_up(&mut self, name: usize) {
        self.waiting.retain(|waiter| waiter.name != name);
        if let Some(index) = self.granted.iter().position(|granted| granted.0 == name) {
            let (_, server, _) = self.granted.remove(index);
            self.release(server);
        }
    }

    fn disable(&mut self, server: usize) {
        for index in 0..self.waiting.len() {
            if self.waiting[index].place == Some(server) {
                let before = self.positions(&self.waiting[index]);
                let joined_at = self.grants[self.servers.len()];
                let name = self.waiting[index].name;
                self.waiting[index] = ModelWaiter { name, place: None, joined_at, before };
            }
        }
    }

    fn held(&self) -> u32 {
        // Slots granted but not taken count as served.
        self.servers.iter().map(|server| server.served).sum::<u32>() + self.waiting.len() as u32
    }
}

/// The real state and the model.
struct Pair {
    state: Arc<ProxyState>,
    model: Model,
    slots: Vec<ServerSlot>,
    tickets: Vec<(usize, QueueTicket, Arc<Bell>, Waker)>,
    names: usize,
}

impl Pair {
    fn new(plans: &[Plan], minconns: &[u32], fullconn: u32) -> Self {
        let mut proxy = plan(BalanceSpec::First, plans);
        proxy.fullconn = fullconn;
        for (server, minconn) in proxy.servers.iter_mut().zip(minconns) {
            follow_load(server, *minconn);
        }
        Self {
            state: state_of(proxy),
            model: Model::new(plans, minconns, fullconn),
            slots: Vec::new(),
            tickets: Vec::new(),
            names: 0,
        }
    }

    fn step(&mut self, dice: &mut Dice) {
        let servers = self.model.servers.len();
        match dice.below(20) {
            0..6 => self.assign(dice),
            6..11 if !self.slots.is_empty() => self.release(dice),
            11..14 if !self.tickets.is_empty() => self.poll(dice),
            14..16 if !self.tickets.is_empty() => {
                let (name, ticket, ..) = self.tickets.swap_remove(dice.below(self.tickets.len()));
                drop(ticket);
                self.model.give_up(name);
            }
            16 => {
                let (server, limit) = (dice.below(servers), dice.below(4) as u32);
                self.state.set_maxconn(server, (limit > 0).then_some(limit));
                let ModelServer { limit: bound, least, .. } = &mut self.model.servers[server];
                *bound = if limit > 0 { limit.max(least.unwrap_or(0)) } else { u32::MAX };
                self.model.settle();
            }
            17 => {
                let (server, weight) = (dice.below(servers), dice.below(3) as u32);
                self.state.set_weight(server, weight);
                self.model.servers[server].weight = weight;
                self.model.settle();
            }
            18 => {
                let server = dice.below(servers);
                let mut changed = self.model.servers[server];
                if dice.below(3) == 0 {
                    changed.up = dice.below(3) > 0;
                    set_up(&self.state, server, changed.up, Moment::ZERO);
                } else {
                    let was_out = changed.admin == Admin::Maintenance;
                    changed.admin = [Admin::Ready, Admin::Ready, Admin::Drain, Admin::Maintenance][dice.below(4)];
                    self.state.set_admin(server, changed.admin, Moment::ZERO);
                    // An unchecked server is up after a maintenance.
                    changed.up |= was_out && changed.admin != Admin::Maintenance;
                }
                self.model.servers[server] = changed;
                if !self.model.is_usable(server) {
                    self.model.disable(server);
                }
                self.model.settle();
            }
            _ => {}
        }
    }

    fn assign(&mut self, dice: &mut Dice) {
        let servers = self.model.servers.len();
        let mut maybe = |one_in: usize| (dice.below(one_in) == 0).then(|| dice.below(servers));
        let (wanted, exclude, prefer) = (maybe(3), maybe(4), maybe(4));
        let prefer = prefer.map(|server| Preference { server, waiting: dice.below(3) as u32 });
        let request = PickContext { server: wanted, exclude, prefer, ..ANY };
        self.names += 1;
        let found = match self.state.assign(&request) {
            Assignment::Slot(slot) => {
                let server = slot.server();
                self.slots.push(slot);
                Expected::Slot(server)
            }
            Assignment::Queued(ticket) => {
                let (bell, waker) = Bell::new();
                self.tickets.push((self.names, ticket, bell, waker));
                let (_, ticket, _, waker) = self.tickets.last_mut().unwrap();
                assert!(poll(ticket, waker).is_none());
                Expected::Queued
            }
            Assignment::Unavailable => Expected::Unavailable,
            Assignment::QueueFull => Expected::QueueFull,
        };
        assert_eq!(found, self.model.assign(self.names, &request));
    }

    fn release(&mut self, dice: &mut Dice) {
        let slot = self.slots.swap_remove(dice.below(self.slots.len()));
        let server = slot.server();
        let counts = Counts { beconn: self.model.held() - 1, srv_conn: self.model.servers[server].served - 1 };
        assert_eq!(slot.release(), counts);
        self.model.release(server);
    }

    fn poll(&mut self, dice: &mut Dice) {
        let index = dice.below(self.tickets.len());
        let (name, ticket, _, waker) = &mut self.tickets[index];
        let name = *name;
        let found = poll(ticket, waker);
        let expected = self.model.granted.iter().position(|granted| granted.0 == name);
        assert_eq!(found.is_some(), expected.is_some());
        if let (Some(slot), Some(granted)) = (found, expected) {
            let (_, server, positions) = self.model.granted.swap_remove(granted);
            assert_eq!((slot.server(), ticket.positions()), (server, positions));
            self.slots.push(slot);
            self.tickets.swap_remove(index);
        }
    }

    fn compare(&mut self) {
        for (name, ticket, bell, _) in &self.tickets {
            assert_eq!(bell.rings(), self.model.rung.iter().filter(|rung| *rung == name).count(), "bell of {name}");
            if let Some(waiter) = self.model.waiting.iter().find(|waiter| waiter.name == *name) {
                assert_eq!((ticket.server(), ticket.positions()), (waiter.place, self.model.positions(waiter)));
            }
        }
        for (index, server) in self.model.servers.iter().enumerate() {
            let counts = Counts { beconn: self.model.held(), srv_conn: server.served };
            assert_eq!(self.state.counts(Some(index)), counts);
            let load = self.state.load(index).unwrap().0;
            assert_eq!((load.queued, load.limit), (self.model.queued(index), self.model.limit(index)));
        }
    }
}

#[test]
fn random_operations_agree_with_the_model() {
    for seed in 0..400 {
        let mut dice = Dice(seed);
        let plans: Vec<Plan> =
            (0..1 + dice.below(4)).map(|_| Plan(1, dice.below(6) as u32, dice.below(4) as u32)).collect();
        // Every second run has limits that depend on the load.
        let minconns: Vec<u32> = plans.iter().map(|_| dice.below(4) as u32 * (seed % 2) as u32).collect();
        let fullconn = 1 + dice.below(12) as u32;
        let mut pair = Pair::new(&plans, &minconns, fullconn);
        let run = std::panic::AssertUnwindSafe(|| {
            for _ in 0..200 {
                pair.step(&mut dice);
                pair.compare();
            }
            pair.slots.clear();
            pair.tickets.clear();
            assert_eq!(pair.state.counts(Some(0)), Counts::default());
        });
        if let Err(panic) = std::panic::catch_unwind(run) {
            eprintln!("with seed {seed}, servers {plans:?}, minconn {minconns:?}, fullconn {fullconn}");
            std::panic::resume_unwind(panic);
        }
    }
}
