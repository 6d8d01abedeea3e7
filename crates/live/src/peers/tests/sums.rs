//! Sums over nodes: a full mesh, restarts, expiry, faults of configuration.

use super::super::*;
use super::net::{Net, Node, store, summing, table};
use crate::table::{StickTable, TableKey};
use base::moment::Moment;
use config::spec::{DataKind, TableKeySpec};
use std::time::Duration;
use wire::peers::{Definition, Hello, KeyKind, definition};

const NAMES: [&str; 3] = ["a", "b", "c"];
const LIFE: Duration = Duration::from_secs(100);
const PERIOD: u32 = 60_000;

/// The tables `t` and `t.agg`.
fn plans() -> [StickTable; 2] {
    let stores = || {
        vec![
            store(DataKind::Gpc0, 1, 0),
            store(DataKind::ConnCur, 1, 0),
            store(DataKind::HttpReqRate, 1, PERIOD),
            store(DataKind::BytesInCnt, 1, 0),
            store(DataKind::GpcRate, 3, PERIOD),
        ]
    };
    let plan = |stores| table(TableKeySpec::Integer, 10_000, Some(LIFE.as_millis() as u32), stores);
    [plan(stores()), StickTable { summed: true, ..plan(stores()) }]
}

fn start() -> Moment {
    Moment::ZERO + Duration::from_secs(1_000)
}

/// A full mesh, connected.
fn mesh() -> Net {
    let nodes = (0..NAMES.len()).map(|own| summing(&NAMES, own, &plans(), own as u64 + 1, start()));
    let mut net = Net::of(nodes.collect(), start());
    net.until(|net| net.links() == 3 && net.nodes.iter().all(is_settled));
    net
}

/// Whether a node has learned everything.
fn is_settled(node: &Node) -> bool {
    let peers = node.section.status().peers;
    let known = |peer: &PeerStatus| peer.tables[0].sum == Some(OriginStatus::Known);
    node.section.is_complete() && peers.iter().filter(|peer| !peer.local).all(known)
}

/// Counts `times` events of every kind.
fn count(node: &Node, key: u32, times: u64, now: Moment) {
    let add = |entry: &mut crate::table::EntryMut<'_>| {
        entry.add(DataKind::Gpc0, 0, times);
        entry.add(DataKind::ConnCur, 0, times);
        entry.add(DataKind::HttpReqRate, 0, times);
        entry.add(DataKind::BytesInCnt, 0, times << 32);
        entry.add(DataKind::GpcRate, 2, times);
    };
    node.table.upsert(&TableKey::integer(key), now, add).unwrap();
}

/// The sum of each kind.
fn sums(node: &Node, key: u32, now: Moment) -> Option<[u64; 5]> {
    let read = |entry: crate::table::EntryView<'_>| {
        let get = |kind, element| entry.get(kind, element).unwrap();
        [
            get(DataKind::Gpc0, 0),
            get(DataKind::ConnCur, 0),
            get(DataKind::HttpReqRate, 0),
            get(DataKind::BytesInCnt, 0) >> 32,
            get(DataKind::GpcRate, 2),
        ]
    };
    node.sum.as_ref().unwrap().find(&TableKey::integer(key), now, read)
}

fn all_have(net: &Net, key: u32, total: Option<[u64; 5]>) -> bool {
    net.nodes.iter().all(|node| sums(node, key, net.now) == total)
}

#[test]
fn every_node_has_the_sum_of_all_nodes() {
    let mut net = mesh();
    for (node, times) in [(0, 1), (1, 20), (2, 300)] {
        count(&net.nodes[node], 7, times, net.now);
    }
    net.until(|net| all_have(net, 7, Some([321; 5])));
    for node in 0..3 {
        assert_eq!(net.nodes[node].count(7, net.now), Some([1, 20, 300][node]), "own values are not overwritten");
    }
    // A node that begins later receives the values of each other one.
    net.kill(2);
    net.nodes[2] = summing(&NAMES, 2, &plans(), 3, net.now);
    net.cut.clear();
    count(&net.nodes[0], 8, 1, net.now);
    net.until(|net| is_settled(&net.nodes[2]) && sums(&net.nodes[2], 7, net.now).is_some());
    assert_eq!(sums(&net.nodes[2], 8, net.now), Some([1; 5]));
    assert_eq!(sums(&net.nodes[2], 7, net.now), Some([21; 5]));
}

#[test]
fn nothing_but_changes_of_own_values_is_sent() {
    let mut net = mesh();
    net.run(Duration::from_secs(10));
    let sent = |net: &Net| net.nodes.iter().map(|node| node.sent).sum::<usize>();
    let before = sent(&net);
    net.run(Duration::from_secs(3));
    let idle = sent(&net) - before;
    let before = sent(&net);
    for key in 0..10 {
        count(&net.nodes[0], key, 1, net.now);
    }
    net.run(Duration::from_secs(3));
    let bytes = sent(&net) - before - idle;
    // Ten entries to two peers, and acknowledgements: nothing comes back, and no sums are sent.
    assert!((600..900).contains(&bytes), "{bytes} bytes");
}

#[test]
fn values_of_a_former_process_are_replaced() {
    let mut net = mesh();
    count(&net.nodes[0], 1, 5, net.now);
    count(&net.nodes[1], 1, 100, net.now);
    count(&net.nodes[1], 2, 100, net.now);
    net.until(|net| all_have(net, 1, Some([105; 5])) && all_have(net, 2, Some([100; 5])));
    net.kill(1);
    net.run(Duration::from_secs(2));
    assert_eq!(sums(&net.nodes[0], 1, net.now), Some([105; 5]), "the values of a node that is away still count");
    net.nodes[1] = summing(&NAMES, 1, &plans(), 99, net.now);
    net.cut.clear();
    count(&net.nodes[1], 1, 2, net.now);
    net.until(|net| all_have(net, 1, Some([7; 5])));
    net.until(|net| sums(&net.nodes[0], 2, net.now) == Some([0; 5]));
    assert!(net.nodes.iter_mut().all(|node| node.section.take_notices().is_empty()), "this is a normal restart");
}

#[test]
fn values_of_a_node_that_is_gone_expire() {
    let mut net = mesh();
    count(&net.nodes[0], 1, 5, net.now);
    count(&net.nodes[1], 1, 100, net.now);
    net.until(|net| all_have(net, 1, Some([105; 5])));
    net.kill(1);
    net.run(LIFE / 2);
    count(&net.nodes[0], 1, 1, net.now);
    net.run(LIFE / 2 - Duration::from_secs(5));
    assert_eq!(net.nodes[2].total(1, DataKind::Gpc0, net.now), Some(106));
    net.run(Duration::from_secs(10));
    let (sum, key) = (net.nodes[2].sum.as_ref().unwrap(), TableKey::integer(1));
    assert_eq!((net.nodes[2].total(1, DataKind::Gpc0, net.now), sum.origins(&key, net.now)), (Some(6), 1));
    net.run(LIFE);
    assert_eq!(net.nodes[2].total(1, DataKind::Gpc0, net.now), None);
}

#[test]
fn two_nodes_with_one_name_are_reported_and_count_once() {
    let mut net = mesh();
    net.nodes.push(summing(&NAMES, 1, &plans(), 77, net.now));
    count(&net.nodes[1], 1, 10, net.now);
    count(&net.nodes[3], 1, 10, net.now);
    count(&net.nodes[0], 1, 1, net.now);
    let mut notices = Vec::new();
    let mut highest = 0;
    for _ in 0..3_000 {
        net.turn();
        notices.extend(net.nodes[0].section.take_notices());
        highest = highest.max(net.nodes[0].total(1, DataKind::Gpc0, net.now).unwrap_or(0));
    }
    assert_eq!(highest, 11);
    let duplicate = Notice::Duplicate { section: "p".into(), peer: "b".into() };
    assert!(notices.contains(&duplicate) && notices.len() <= 2, "{notices:?}");
    assert!(duplicate.to_string().contains("two running processes use the name of peer b"));
}

#[test]
fn a_node_that_stores_other_data_is_reported_and_summed_without_them() {
    let mut net = mesh();
    net.kill(1);
    let [mut plan, mut sum] = plans();
    let stores = || vec![store(DataKind::Gpc0, 1, 0), store(DataKind::HttpReqRate, 1, 5_000)];
    plan.layout = crate::table::Layout::new(stores());
    sum.layout = crate::table::Layout::new(stores());
    net.nodes[1] = summing(&NAMES, 1, &[plan, sum], 99, net.now);
    net.cut.clear();
    count(&net.nodes[1], 1, 4, net.now);
    count(&net.nodes[0], 1, 3, net.now);
    net.until(|net| sums(&net.nodes[2], 1, net.now) == Some([7, 3, 3, 3, 3]));
    let texts: Vec<String> = net.nodes[2].section.take_notices().iter().map(ToString::to_string).collect();
    let missing = "Peers section p: table t of peer b does not store conn_cur, http_req_rate(60000ms), bytes_in_cnt, \
                   gpc_rate(3,60000ms), so that it counts as zero.";
    assert_eq!(texts, [missing]);
    // It is reported once, and when it is over.
    net.kill(1);
    net.nodes[1] = summing(&NAMES, 1, &plans(), 100, net.now);
    net.cut.clear();
    count(&net.nodes[1], 1, 1, net.now);
    net.until(|net| sums(&net.nodes[2], 1, net.now) == Some([4; 5]));
    let texts: Vec<String> = net.nodes[2].section.take_notices().iter().map(ToString::to_string).collect();
    assert_eq!(texts, ["Peers section p: table t of peer b is summed completely again."]);
}

#[test]
fn a_node_with_other_keys_is_not_summed() {
    let mut net = mesh();
    net.kill(1);
    let plans = plans().map(|plan| StickTable { key: TableKeySpec::Text(20), ..plan });
    net.nodes[1] = summing(&NAMES, 1, &plans, 99, net.now);
    net.cut.clear();
    net.nodes[1].table.upsert(&TableKey::Long(b"abcd"), net.now, |entry| entry.add(DataKind::Gpc0, 0, 4)).unwrap();
    count(&net.nodes[0], 1, 3, net.now);
    let mut notices = Vec::new();
    for _ in 0..1_000 {
        net.turn();
        notices.extend(net.nodes[0].section.take_notices().iter().map(ToString::to_string));
    }
    assert_eq!(notices, ["Peers section p: table t of peer b has other keys than here: its values are not summed."]);
    assert_eq!(net.nodes[0].sum.as_ref().unwrap().used(), 1);
}

#[test]
fn a_successor_takes_over_the_values_of_its_process() {
    let mut net = mesh();
    for key in 0..500 {
        count(&net.nodes[1], key, 10, net.now);
    }
    count(&net.nodes[0], 1, 1, net.now);
    net.until(|net| all_have(net, 1, Some([11; 5])) && all_have(net, 499, Some([10; 5])));
    // The newer process listens before the older one leaves.
    let now = net.now;
    let remotes = net.nodes[1].section.setting().remotes.clone();
    net.nodes.push(super::net::node("b", remotes, &plans(), 50, now, true));
    net.nodes[1].section.leave(now);
    // The number of current connections is not taken over.
    let expected = |node: &Node, key, now| sums(node, key, now).map(|[first, _, rest @ ..]| [first, rest[0], rest[2]]);
    net.until(|net| {
        let others = [0, 2, 3].map(|at| &net.nodes[at]);
        let taught = others.iter().all(|node| is_settled(node));
        taught && others.iter().all(|node| expected(node, 499, net.now) == Some([10; 3]))
    });
    for node in [0, 2, 3] {
        assert_eq!(expected(&net.nodes[node], 1, net.now), Some([11; 3]), "node {node}");
    }
}

#[test]
fn very_many_values_are_summed() {
    const KEYS: u32 = 9_000;
    let mut net = mesh();
    for key in 0..KEYS {
        count(&net.nodes[0], key, 1, net.now);
        count(&net.nodes[1], key, 2, net.now);
    }
    let all = |net: &Net, total| (0..KEYS).all(|key| all_have(net, key, Some([total; 5])));
    net.until(|net| all(net, 3));
    // Those of a former process are removed from all of them.
    net.kill(1);
    net.nodes[1] = summing(&NAMES, 1, &plans(), 99, net.now);
    net.cut.clear();
    net.until(|net| all(net, 1));
}

#[test]
fn haproxys_with_one_name_are_recognized_by_their_processes() {
    let mut node = summing(&NAMES, 0, &plans(), 1, start());
    let mut now = start();
    let mut greet = |pid, now| {
        let hello = Hello { minor: 1, remote: "a".to_owned(), local: "b".to_owned(), pid };
        let ticket = node.section.greeted(&hello, now).unwrap();
        // A heartbeat: it announces nothing.
        assert_eq!(node.section.hear(ticket, &[0, 4], now), ReceiveResult::Taken(2));
        let mut out = Vec::new();
        node.section.say(ticket, &mut out, now, 1_000).unwrap();
        assert!(out.windows(2).any(|bytes| bytes == [0, 0]), "all values are requested");
        node.section.take_notices().len()
    };
    assert_eq!([greet(7, now), greet(7, now), greet(8, now), greet(9, now)], [0; 4], "it was started anew");
    assert_eq!([greet(8, now), greet(9, now), greet(8, now)], [1, 0, 0]);
    now = now + Duration::from_secs(60);
    assert_eq!([greet(9, now), greet(8, now)], [1, 0]);
}

#[test]
fn a_peer_that_changes_its_tables_does_not_fill_the_log() {
    let mut node = summing(&NAMES, 0, &plans(), 1, start());
    let hello = Hello { minor: 1, remote: "a".to_owned(), local: "b".to_owned(), pid: 1 };
    let ticket = node.section.greeted(&hello, start()).unwrap();
    let mut notices = 0;
    for round in 0..1_000 {
        let mut bytes = Vec::new();
        let key = if round % 2 == 0 { KeyKind::Text } else { KeyKind::Integer };
        let (name, stores) = (b"t".to_vec(), Vec::new());
        definition(&mut bytes, &Definition { id: 1, name, key, key_length: 4, stores, expire: 0 });
        assert_eq!(node.section.hear(ticket, &bytes, start()), ReceiveResult::Taken(bytes.len()));
        notices += node.section.take_notices().len();
    }
    assert_eq!(notices, 8);
}
