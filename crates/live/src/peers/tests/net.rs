//! Nodes, the connections between them, and time. Must never interpret bytes.

use super::super::*;
use crate::table::StickTable;
use crate::table::{Table, TableKey};
use base::moment::Moment;
use config::span::Span;
use config::spec::{DataKind, ServerKeySpec, StoreSpec, TableKeySpec, TableSpec};
use expression::pattern::Key;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use wire::peers::{Hello, Status};

/// Maximum number of bytes in transit.
const PIPE: usize = 16_384;

pub(super) fn store(kind: DataKind, elements: u32, period: u32) -> StoreSpec {
    StoreSpec { kind, elements, period }
}

/// A table with these settings.
pub(super) fn table(key: TableKeySpec, size: u32, expire: Option<u32>, stores: Vec<StoreSpec>) -> StickTable {
    let written = TableSpec {
        span: Span::default(),
        key,
        size,
        expire,
        nopurge: false,
        recv_only: false,
        write_to: None,
        server_key: ServerKeySpec::Name,
        byte_rate_factor: 1,
        store: stores,
        peers: None,
    };
    StickTable { shared: true, ..StickTable::new("t", None, &written) }
}

pub(super) fn counters(size: u32) -> StickTable {
    table(TableKeySpec::Integer, size, Some(100_000), vec![store(DataKind::Gpc0, 1, 0)])
}

pub(super) struct Node {
    pub(super) section: Section,
    pub(super) table: Arc<Table>,
    /// The table of sums.
    pub(super) sum: Option<Arc<Table>>,
    /// Its clock is ahead by this time.
    pub(super) ahead: Duration,
    /// Bytes that it has sent.
    pub(super) sent: usize,
}

impl Node {
    pub(super) fn bump(&self, key: u32, now: Moment) {
        self.table.upsert(&TableKey::integer(key), now, |entry| entry.add(DataKind::Gpc0, 0, 1)).unwrap();
    }

    /// Returns the sum of a counter over all nodes.
    pub(super) fn total(&self, key: u32, kind: DataKind, now: Moment) -> Option<u64> {
        let sum = self.sum.as_ref()?;
        sum.find(&TableKey::integer(key), now + self.ahead, |entry| entry.get(kind, 0).unwrap())
    }

    pub(super) fn count(&self, key: u32, now: Moment) -> Option<u64> {
        self.table.find(&TableKey::integer(key), now, |entry| entry.get(DataKind::Gpc0, 0).unwrap())
    }
}

/// Both directions of a connection between two nodes.
struct Link {
    ends: [(usize, Ticket); 2],
    /// The bytes in transit to each end.
    bytes: [Vec<u8>; 2],
}

pub(super) struct Net {
    pub(super) now: Moment,
    pub(super) nodes: Vec<Node>,
    links: Vec<Link>,
    /// Pairs of nodes that cannot reach each other.
    pub(super) cut: BTreeSet<(usize, usize)>,
    /// Of each thousand connections, that many are lost at every step.
    pub(super) loss: u64,
    /// The time between two steps.
    pub(super) step: Duration,
    random: u64,
}

/// A section of `names`, one of which is its own.
pub(super) fn section(names: &[&str], own: usize, shards: &[u32], plan: &StickTable, now: Moment, older: bool) -> Node {
    let parts = shards.iter().copied().max().unwrap_or(0);
    let others = names.iter().enumerate().filter(|(at, _)| *at != own);
    let remotes = others.map(|(at, name)| Remote { name: (*name).into(), shard: shards.get(at).copied().unwrap_or(0) });
    let tables = [StickTable { shards: parts, ..plan.clone() }];
    node(names[own], remotes.collect(), &tables, own as u64, now, older)
}

/// A node that sums a table over `names`, one of which is its own. `process` distinguishes its processes.
pub(super) fn summing(names: &[&str], own: usize, plans: &[StickTable], process: u64, now: Moment) -> Node {
    let others = names.iter().enumerate().filter(|(at, _)| *at != own);
    let remotes = others.map(|(_, name)| Remote { name: (*name).into(), shard: 0 });
    node(names[own], remotes.collect(), plans, process, now, false)
}

/// A node with these peers. The tables are `t`, and if there are two `t.agg`.
pub(super) fn node(
    name: &str,
    remotes: Vec<Remote>,
    plans: &[StickTable],
    process: u64,
    now: Moment,
    older: bool,
) -> Node {
    let create = |(plan, name): (&StickTable, &str)| Shared {
        name: name.into(),
        table: Arc::new(Table::new(plan.clone(), Key::new(process))),
        write_to: None,
        role: Role::Plain,
    };
    let mut tables: Vec<Shared> = plans.iter().zip(["t", "t.agg"]).map(create).collect();
    Shared::assign_roles(&mut tables);
    let (table, sum) = (Arc::clone(&tables[0].table), tables.get(1).map(|shared| Arc::clone(&shared.table)));
    let setting = Setting {
        name: "p".into(),
        local: name.into(),
        remotes,
        tables,
        updates: 200,
        limit: 16_384,
        pid: 1 + process as u32,
        process,
    };
    Node { section: Section::new(setting, now, older), table, sum, ahead: Duration::ZERO, sent: 0 }
}

impl Net {
    pub(super) fn new(names: &[&str], plan: &StickTable) -> Self {
        let now = Moment::ZERO + Duration::from_secs(1_000);
        Self::of((0..names.len()).map(|own| section(names, own, &[], plan, now, false)).collect(), now)
    }

    pub(super) fn of(nodes: Vec<Node>, now: Moment) -> Self {
        let step = Duration::from_millis(20);
        Self { now, nodes, links: Vec::new(), cut: BTreeSet::new(), loss: 0, step, random: 7 }
    }

    /// The time of a node's clock.
    fn time(&self, node: usize) -> Moment {
        self.now + self.nodes[node].ahead
    }

    fn random(&mut self) -> u64 {
        self.random = self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.random >> 33
    }

    /// Returns the node of a node's peer.
    fn node(&self, from: usize, peer: usize) -> Option<usize> {
        let setting = self.nodes[from].section.setting();
        let name = setting.remotes.get(peer).map_or(&setting.local, |remote| &remote.name);
        // Of two nodes with the same name the later one listens.
        self.nodes.iter().rposition(|node| node.section.setting().local == *name).filter(|at| *at != from)
    }

    pub(super) fn is_cut(&self, one: usize, other: usize) -> bool {
        self.cut.contains(&(one.min(other), one.max(other)))
    }

    /// Begins the calls that are due.
    pub(super) fn calls(&mut self) -> Vec<(usize, Ticket, Hello)> {
        let mut calls = Vec::new();
        for from in 0..self.nodes.len() {
            for peer in 0..=self.nodes[from].section.local() {
                let now = self.time(from);
                if self.nodes[from].section.call_at(peer).is_some_and(|at| at <= now) {
                    let random = self.random();
                    let (ticket, hello) = self.nodes[from].section.call(peer, now, random).unwrap();
                    calls.push((from, ticket, hello));
                }
            }
        }
        calls
    }

    pub(super) fn deliver(&mut self, from: usize, ticket: Ticket, hello: &Hello) -> Option<Status> {
        let to = self.node(from, ticket.peer).filter(|to| !self.is_cut(from, *to));
        let Some(to) = to else {
            let (random, now) = (self.random(), self.time(from));
            self.nodes[from].section.ended(ticket, now, random);
            return None;
        };
        let (here, there) = (self.time(from), self.time(to));
        let answer = self.nodes[to].section.greeted(hello, there);
        let status = answer.err().unwrap_or(Status::Succeeded);
        if self.nodes[from].section.answered(ticket, status, here) {
            self.links.push(Link { ends: [(from, ticket), (to, answer.unwrap())], bytes: [Vec::new(), Vec::new()] });
        } else if let Ok(ticket) = answer {
            let random = self.random();
            self.nodes[to].section.ended(ticket, there, random);
        }
        Some(status)
    }

    /// Advances the simulation: calls, messages, time.
    pub(super) fn turn(&mut self) {
        let calls = self.calls();
        for (from, ticket, _) in &calls {
            self.nodes[*from].section.reached(*ticket);
        }
        for (from, ticket, hello) in calls {
            self.deliver(from, ticket, &hello);
        }
        let mut links = std::mem::take(&mut self.links);
        links.retain_mut(|link| {
            let lives = (self.loss == 0 || self.random() % 1_000 >= self.loss) && self.speak(link);
            if !lives {
                for (node, ticket) in link.ends {
                    let (random, now) = (self.random(), self.time(node));
                    self.nodes[node].section.ended(ticket, now, random);
                }
            }
            lives
        });
        self.links = links;
        for at in 0..self.nodes.len() {
            let (random, now) = (self.random(), self.time(at));
            self.nodes[at].section.tick(now, random);
            self.nodes[at].section.sum(now);
        }
        self.now = self.now + self.step;
    }

    /// Sends and receives on both sides. False: the connection was closed.
    fn speak(&mut self, link: &mut Link) -> bool {
        let is_cut = self.is_cut(link.ends[0].0, link.ends[1].0);
        for side in 0..2 {
            let (node, ticket) = link.ends[side];
            let now = self.time(node);
            let node = &mut self.nodes[node];
            let pipe = &mut link.bytes[1 - side];
            if pipe.len() < PIPE {
                let before = pipe.len();
                if node.section.say(ticket, pipe, now, PIPE).is_err() {
                    return false;
                }
                node.sent += pipe.len() - before;
            }
        }
        if is_cut {
            return true;
        }
        for side in 0..2 {
            let (node, ticket) = link.ends[side];
            let now = self.time(node);
            match self.nodes[node].section.hear(ticket, &link.bytes[side], now) {
                ReceiveResult::Taken(taken) => drop(link.bytes[side].drain(..taken)),
                ReceiveResult::End(_) => return false,
            }
        }
        true
    }

    /// Advances until the condition holds, for at most a minute.
    pub(super) fn until(&mut self, mut done: impl FnMut(&Self) -> bool) {
        for _ in 0..3_000 {
            if done(self) {
                return;
            }
            self.turn();
        }
        let states: Vec<SectionStatus> = self.nodes.iter().take(4).map(|node| node.section.status()).collect();
        panic!("it never is: {states:#?}");
    }

    pub(super) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        while self.now < end {
            self.turn();
        }
    }

    pub(super) fn links(&self) -> usize {
        self.links.len()
    }

    /// Removes a node and the bytes that it has sent.
    pub(super) fn kill(&mut self, node: usize) {
        for other in 0..self.nodes.len() {
            self.cut.insert((node.min(other), node.max(other)));
        }
        let links = std::mem::take(&mut self.links);
        for link in links {
            if link.ends.iter().any(|(at, _)| *at == node) {
                for (at, ticket) in link.ends {
                    let now = self.time(at);
                    self.nodes[at].section.ended(ticket, now, 0);
                }
            } else {
                self.links.push(link);
            }
        }
    }
}
