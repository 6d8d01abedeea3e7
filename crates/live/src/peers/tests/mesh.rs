//! Synchronization between nodes: at the start, during updates, across partitions, failures and reloads.

use super::super::*;
use super::net::{Net, counters, section, store, table};
use crate::table::TableKey;
use config::spec::{DataKind, TableKeySpec};
use std::sync::Arc;
use std::time::Duration;
use wire::peers::Status;

fn complete(net: &Net) -> bool {
    net.nodes.iter().all(|node| node.section.is_complete())
}

#[test]
fn a_node_that_begins_is_taught_everything_that_another_one_knows() {
    let plan = counters(20_000);
    let mut net = Net::new(&["a", "b"], &plan);
    net.kill(1);
    net.until(|net| net.nodes[0].section.is_complete());
    for key in 0..10_000 {
        net.nodes[0].bump(key, net.now);
    }
    // It teaches learned entries, too.
    let now = net.now;
    let words = [77];
    let until = now + Duration::from_secs(50);
    assert!(net.nodes[0].table.learn(&TableKey::integer(70_000), now, until, [(DataKind::Gpc0, 0, &words[..])]));
    net.nodes[1] = section(&["a", "b"], 1, &[], &plan, now, false);
    net.cut.clear();
    net.until(|net| net.nodes[1].section.is_complete());
    assert!((0..10_000).all(|key| net.nodes[1].count(key, net.now) == Some(1)));
    assert_eq!(net.nodes[1].count(70_000, net.now), Some(77));
    // The remaining life was sent.
    let later = until + Duration::from_millis(100);
    assert_eq!(net.nodes[1].count(70_000, later), None);
    let told = net.nodes[1].section.status();
    assert_eq!(
        (told.peers[0].last_status, told.peers[0].running, told.complete),
        (LastStatus::Established, true, true)
    );
}

#[test]
fn what_happens_is_told_both_ways_and_nothing_comes_back() {
    let mut net = Net::new(&["a", "b", "c"], &counters(1_000));
    net.until(complete);
    net.until(|net| net.links() == 3);
    for key in 0..300 {
        let node = key as usize % 3;
        for _ in 0..=node {
            net.nodes[node].bump(key, net.now);
        }
    }
    let knows_all = |net: &Net| {
        net.nodes.iter().all(|node| (0..300).all(|key| node.count(key, net.now) == Some(u64::from(key % 3) + 1)))
    };
    net.until(knows_all);
    // From now on only heartbeats are sent: two bytes to each of two others every three seconds.
    net.run(Duration::from_secs(1));
    let before: Vec<usize> = net.nodes.iter().map(|node| node.sent).collect();
    net.run(Duration::from_secs(30));
    for (node, before) in net.nodes.iter().zip(before) {
        assert!((20..=48).contains(&(node.sent - before)), "{} bytes", node.sent - before);
    }
    assert!(knows_all(&net));
    for node in &net.nodes {
        assert_eq!(node.table.last_update(), 100 + 100 * u32::from(node.section.setting().local.as_bytes()[0] - b'a'));
        for peer in &node.section.status().peers[..2] {
            assert!(peer.tx_heartbeats >= 9 && peer.rx_heartbeats >= 9 && peer.no_heartbeat == 0, "{peer:?}");
            assert_eq!(peer.tables[0].last_pushed, node.table.last_update());
            assert_eq!(peer.tables[0].last_acked, peer.tables[0].last_get);
        }
    }
    // Everything was acknowledged: nothing is sent again over a new connection.
    let before: usize = net.nodes.iter().map(|node| node.sent).sum();
    net.cut.extend([(0, 1), (0, 2), (1, 2)]);
    net.until(|net| net.links() == 0);
    net.cut.clear();
    net.until(|net| net.links() == 3);
    net.run(Duration::from_secs(1));
    let sent = net.nodes.iter().map(|node| node.sent).sum::<usize>() - before;
    assert!(sent < 100, "{sent} bytes");
}

#[test]
fn what_happened_in_a_partition_is_told_when_it_has_healed() {
    let mut net = Net::new(&["a", "b", "c"], &counters(60_000));
    net.until(complete);
    net.until(|net| net.links() == 3);
    net.cut.extend([(0, 2), (1, 2)]);
    net.until(|net| net.links() == 1);
    let statuses = net.nodes.iter().map(|node| node.section.status());
    let silent: u32 = statuses.flat_map(|status| status.peers).map(|peer| peer.no_heartbeat).sum();
    assert_eq!(silent, 2);
    // Few updates are sent in their order, very many by scanning the table.
    for key in 0..20_000 {
        net.nodes[0].bump(key, net.now);
    }
    for key in 30_000..30_100 {
        net.nodes[2].bump(key, net.now);
    }
    net.until(|net| (0..20_000).all(|key| net.nodes[1].count(key, net.now) == Some(1)));
    assert_eq!(net.nodes[2].count(5, net.now), None);
    net.cut.clear();
    net.until(|net| (0..20_000).all(|key| net.nodes[2].count(key, net.now) == Some(1)));
    let late = |net: &Net, node: usize| (30_000..30_100).all(|key| net.nodes[node].count(key, net.now) == Some(1));
    net.until(|net| late(net, 0) && late(net, 1));
    assert_eq!(net.links(), 3);
}

#[test]
fn another_one_is_asked_when_a_teacher_dies() {
    let plan = counters(60_000);
    let names = ["a", "b", "c"];
    let mut net = Net::new(&names, &plan);
    net.kill(2);
    net.until(|net| net.nodes[0].section.is_complete() && net.nodes[1].section.is_complete());
    for key in 0..50_000 {
        net.nodes[0].bump(key, net.now);
    }
    net.until(|net| (0..50_000).all(|key| net.nodes[1].count(key, net.now).is_some()));
    net.cut.clear();
    net.nodes[2] = section(&names, 2, &[], &plan, net.now, false);
    let teacher = |net: &Net| {
        let peers = net.nodes[2].section.status().peers;
        let learns = |peer: &PeerStatus| peer.learn_state == LearnState::Processing;
        peers.iter().position(learns).filter(|_| net.nodes[2].table.used() > 0)
    };
    net.until(|net| teacher(net).is_some());
    assert!(!net.nodes[2].section.is_complete());
    let dying = teacher(&net).unwrap();
    net.kill(dying);
    net.until(|net| net.nodes[2].section.is_complete());
    assert!((0..50_000).all(|key| net.nodes[2].count(key, net.now).is_some()));
}

#[test]
fn who_knows_not_everything_says_so() {
    // All start at once: no peer can teach, and after a while none waits.
    let mut net = Net::new(&["a", "b"], &counters(10));
    net.until(|net| net.links() == 1);
    net.run(Duration::from_secs(1));
    assert!(!complete(&net));
    net.until(complete);
}

#[test]
fn a_newer_process_is_taught_by_the_older_one_before_it_calls_anybody() {
    let plan = counters(10_000);
    let names = ["a", "b"];
    let mut net = Net::new(&names, &plan);
    net.until(complete);
    for key in 0..3_000 {
        net.nodes[0].bump(key, net.now);
    }
    let now = net.now;
    net.nodes.push(section(&names, 0, &[], &plan, now, true));
    net.run(Duration::from_secs(2));
    assert_eq!(net.nodes[2].section.status().peers[0].new_connections, 0);
    net.nodes[0].section.leave(now);
    net.until(|net| net.nodes[2].section.is_complete());
    assert!((0..3_000).all(|key| net.nodes[2].count(key, net.now) == Some(1)));
    // It did not ask the other one, and connects to it from now on.
    net.until(|net| net.nodes[2].section.status().peers[0].running);
    net.nodes[2].bump(9_999, net.now);
    net.until(|net| net.nodes[1].count(9_999, net.now) == Some(1));
}

#[test]
fn without_an_older_process_another_node_is_asked() {
    let plan = counters(100);
    let names = ["a", "b"];
    let mut net = Net::new(&names, &plan);
    net.until(complete);
    net.nodes[1].bump(5, net.now);
    net.kill(0);
    net.nodes.push(section(&names, 0, &[], &plan, net.now, true));
    net.until(|net| net.nodes[2].section.is_complete());
    assert_eq!(net.nodes[2].count(5, net.now), Some(1));
}

#[test]
fn of_two_that_call_each_other_one_stands() {
    let mut net = Net::new(&["a", "b"], &counters(10));
    let calls = net.calls();
    assert_eq!(calls.len(), 2);
    for (from, ticket, _) in &calls {
        net.nodes[*from].section.reached(*ticket);
    }
    let answers: Vec<Option<Status>> =
        calls.iter().map(|(from, ticket, hello)| net.deliver(*from, *ticket, hello)).collect();
    assert_eq!((answers, net.links()), (vec![Some(Status::Succeeded), Some(Status::TryAgain)], 1));
    // The second call was abandoned because of the first one's hello.
    assert!(!net.nodes[1].section.stands(calls[1].1) && net.nodes[0].section.status().peers[0].running);
    net.run(Duration::from_secs(12));
    assert_eq!(net.links(), 1);
    assert_eq!(net.nodes[1].section.status().peers[0].collisions, 1);
}

#[test]
fn keys_are_spread_over_shards() {
    let plan = counters(1_000);
    let mut net = Net::new(&["a", "b", "c"], &plan);
    net.nodes[0] = section(&["a", "b", "c"], 0, &[0, 1, 2], &plan, net.now, false);
    net.until(complete);
    for key in 0..200 {
        net.nodes[0].bump(key, net.now);
    }
    let has = |net: &Net, node: usize, key: u32| net.nodes[node].count(key, net.now).is_some();
    net.until(|net| (0..200).all(|key| has(net, 1, key) || has(net, 2, key)));
    net.run(Duration::from_secs(5));
    for key in 0..200_u32 {
        let part = net.nodes[0].table.plan.shard(&key.to_be_bytes()) as usize;
        assert!(has(&net, part, key) && !has(&net, 3 - part, key), "{key}");
    }
    assert!((0..200).filter(|key| has(&net, 1, *key)).count() > 60);
}

#[test]
fn every_kind_of_data_and_many_names_arrive() {
    let stores = DataKind::ALL.into_iter().map(|kind| {
        let elements = if matches!(kind, DataKind::Gpt | DataKind::Gpc | DataKind::GpcRate) { 3 } else { 1 };
        store(kind, elements, 10_000)
    });
    let plan = table(TableKeySpec::Text(32), 1_000, None, stores.collect());
    let mut net = Net::new(&["a", "b"], &plan);
    net.until(complete);
    let (now, keys) = (net.now, 300_u64);
    for number in 0..keys {
        let source = Arc::clone(&net.nodes[0].table);
        let server = source.servers.number(format!("server-{number}").as_bytes());
        source.upsert(&TableKey::Long(format!("key-{number}").as_bytes()), now, |entry| {
            for kind in DataKind::ALL {
                let value = if kind == DataKind::ServerKey { server.into() } else { number + kind as u64 };
                entry.set(kind, 0, value);
                entry.set(kind, 2, value + 1);
            }
            entry.set(DataKind::BytesInCnt, 0, u64::MAX - number);
        });
    }
    let target = Arc::clone(&net.nodes[1].table);
    net.until(|_| target.used() == keys as u32);
    for number in 0..keys {
        target
            .find(&TableKey::Long(format!("key-{number}").as_bytes()), net.now, |entry| {
                for kind in DataKind::ALL {
                    let got = entry.get(kind, 0).unwrap();
                    let wanted = number + kind as u64;
                    match kind {
                        DataKind::ServerKey => {
                            let name = target.servers.name(got as u32).unwrap();
                            assert_eq!(*name, *format!("server-{number}").as_bytes());
                        }
                        // The number of local connections is not learned.
                        DataKind::ConnCur => assert_eq!(got, 0),
                        DataKind::BytesInCnt => assert_eq!(got, u64::MAX - number),
                        _ => assert_eq!(got, wanted, "{kind:?}"),
                    }
                }
                assert_eq!(entry.get(DataKind::Gpc, 2), Some(number + DataKind::Gpc as u64 + 1));
            })
            .unwrap();
    }
}
