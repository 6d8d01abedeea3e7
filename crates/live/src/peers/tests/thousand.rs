//! A thousand nodes around three that sum, under loss, partitions and clock skew.

use super::super::*;
use super::net::{Net, node, store, table};
use crate::table::{StickTable, TableKey};
use base::moment::Moment;
use config::spec::{DataKind, TableKeySpec};
use std::time::Duration;

const NODES: usize = 1_000;
const HUBS: usize = 3;
const KEYS: u32 = 3;

/// The tables of a node that sums, or that receives sums.
fn plans(sums: bool) -> [StickTable; 2] {
    let stores = || vec![store(DataKind::Gpc0, 1, 0), store(DataKind::HttpReqRate, 1, 3_600_000)];
    let plan = || table(TableKeySpec::Integer, 100, Some(10_000_000), stores());
    [plan(), StickTable { summed: sums, recv_only: !sums, ..plan() }]
}

fn name(node: usize) -> String {
    if node < HUBS { format!("hub{node}") } else { format!("n{node}") }
}

/// The nodes, each with a clock of its own.
fn star(now: Moment) -> Vec<super::net::Node> {
    let remotes = |own: usize, all: usize| {
        (0..all).filter(|at| *at != own).map(|at| Remote { name: name(at).into(), shard: 0 }).collect::<Vec<_>>()
    };
    let create = |own: usize| {
        let is_hub = own < HUBS;
        let ahead = Duration::from_millis(own as u64 * 7_919 % 600_000);
        let remotes = remotes(own, if is_hub { NODES } else { HUBS });
        let mut found = node(&name(own), remotes, &plans(is_hub), own as u64 + 1, now + ahead, false);
        found.ahead = ahead;
        found
    };
    (0..NODES).map(create).collect()
}

#[test]
fn a_thousand_nodes_agree_on_the_sums() {
    let now = Moment::ZERO + Duration::from_secs(1_000);
    let mut net = Net::of(star(now), now);
    (net.step, net.loss) = (Duration::from_millis(250), 2);
    let mut totals = [0; KEYS as usize];
    let mut count = |net: &Net, round: u64| {
        for (at, node) in net.nodes.iter().enumerate() {
            let (key, times) = ((at as u32 + round as u32) % KEYS, 1 + (at as u64 * 31 + round) % 5);
            let change = |entry: &mut crate::table::EntryMut<'_>| {
                entry.add(DataKind::Gpc0, 0, times);
                entry.add(DataKind::HttpReqRate, 0, times);
            };
            node.table.upsert(&TableKey::integer(key), net.now + node.ahead, change).unwrap();
            totals[key as usize] += times;
        }
    };
    net.run(Duration::from_secs(8));
    count(&net, 0);
    net.run(Duration::from_secs(2));
    // Each hub loses a part of the nodes, one loses the other hubs.
    net.cut.extend((HUBS..NODES).map(|at| (at % HUBS, at)).chain([(0, 1), (0, 2)]));
    count(&net, 1);
    net.run(Duration::from_secs(8));
    net.cut.clear();
    count(&net, 2);
    net.run(Duration::from_secs(4));
    net.loss = 0;
    let agree = |net: &Net| {
        net.nodes.iter().all(|node| {
            (0..KEYS).all(|key| {
                let total = Some(totals[key as usize]);
                let get = |kind| node.total(key, kind, net.now);
                get(DataKind::Gpc0) == total && get(DataKind::HttpReqRate) == total
            })
        })
    };
    net.until(agree);
    net.run(Duration::from_secs(10));
    assert!(agree(&net), "the sums remain");
    let origins = net.nodes[0].sum.as_ref().unwrap().origins(&TableKey::integer(0), net.now);
    assert_eq!(origins, NODES);
}
