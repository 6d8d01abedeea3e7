//! Measures a stick table: the memory of an entry when there are a million, and the time to track one, with one thread
//! and with two, when each request uses another entry and when all use the same.
//! `cargo run --release -p weir-live --example table_cost [ENTRIES]`. Must never measure anything around it.
#![allow(clippy::print_stdout)]

use base::moment::Moment;
use config::span::Span;
use config::spec::{DataKind, ServerKeySpec, StoreSpec, TableKeySpec, TableSpec};
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};
use weir_live::table::StickTable;
use weir_live::table::{TableKey, Tables, Tracked};

const ROUNDS: u32 = 2_000_000;

/// Returns a different number for each number, in pseudo-random order.
fn mixed(number: u32) -> u32 {
    let number = (number ^ (number >> 16)).wrapping_mul(0x85eb_ca6b);
    let number = (number ^ (number >> 13)).wrapping_mul(0xc2b2_ae35);
    number ^ (number >> 16)
}

/// Resident anonymous memory in kilobytes.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("RssAnon"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()).unwrap_or(0)
}

fn plan(key: TableKeySpec, store: &[DataKind]) -> StickTable {
    let store = store.iter().map(|kind| StoreSpec { kind: *kind, elements: 1, period: 10_000 }).collect();
    let written = TableSpec {
        span: Span::default(),
        key,
        size: 16 << 20,
        expire: Some(600_000),
        nopurge: false,
        recv_only: false,
        write_to: None,
        server_key: ServerKeySpec::Name,
        byte_rate_factor: 1,
        store,
        peers: None,
    };
    StickTable::new("t", None, &written)
}

fn at(millis: u32) -> Moment {
    Moment::ZERO + Duration::from_millis(millis.into())
}

/// Nanoseconds per tracked request: it begins, its entry is read, and it ends.
fn track(tables: &Tables, threads: u32, key: fn(u32, u32) -> u32) -> f64 {
    let Some(table) = tables.get(0) else { return 0.0 };
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            scope.spawn(move || {
                let handle = Rc::new(Arc::clone(table));
                for round in 0..ROUNDS {
                    let now = at(round >> 10);
                    let key = TableKey::integer(key(thread, round));
                    let Some(tracked) = Tracked::new(&handle, &key, now, |entry| {
                        entry.add(DataKind::HttpReqRate, 0, 1);
                    }) else {
                        continue;
                    };
                    std::hint::black_box(tracked.read(now, |entry| entry.get(DataKind::HttpReqRate, 0)));
                    tracked.end(now, |entry| {
                        entry.add(DataKind::BytesOutRate, 0, 500);
                    });
                }
            });
        }
    });
    start.elapsed().as_nanos() as f64 / f64::from(ROUNDS)
}

fn main() {
    let entries = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000_000_u32);
    let rates = [DataKind::ConnCur, DataKind::HttpReqRate, DataKind::HttpErrRate, DataKind::BytesOutRate];
    let rows: [(&str, TableKeySpec, &[DataKind]); 4] = [
        ("ip, http_req_rate", TableKeySpec::Ipv4, &[DataKind::HttpReqRate]),
        ("ip, conn_cur and three rates", TableKeySpec::Ipv4, &rates),
        ("ipv6, conn_cur and three rates", TableKeySpec::Ipv6, &rates),
        ("string of 20 bytes, gpc0", TableKeySpec::Text(31), &[DataKind::Gpc0]),
    ];
    for (name, key, store) in rows {
        let before = resident();
        let tables = Tables::new(&[plan(key, store)], 7);
        let Some(table) = tables.get(0) else { continue };
        let start = Instant::now();
        for number in 0..entries {
            let text = format!("key-{:016x}", mixed(number));
            let made = match key {
                TableKeySpec::Text(_) => TableKey::Long(text.as_bytes()),
                TableKeySpec::Ipv6 => TableKey::ipv6(u128::from(mixed(number)).into()),
                _ => TableKey::ipv4(mixed(number).into()),
            };
            table.upsert(&made, at(0), |_| ());
        }
        let (nanos, bytes) = (start.elapsed().as_nanos() / u128::from(entries), (resident() - before) * 1024);
        println!("{name}: {} entries, {} bytes each, {nanos} ns to make one", table.used(), bytes / u64::from(entries));
    }
    let tables = Tables::new(&[plan(TableKeySpec::Integer, &rates)], 7);
    for threads in [1, 2] {
        println!(
            "{threads} threads, a million keys: {:.0} ns",
            track(&tables, threads, |_, round| mixed(round) % 1_000_000)
        );
        println!("{threads} threads, a key each: {:.0} ns", track(&tables, threads, |thread, _| thread));
        println!("{threads} threads, one key: {:.0} ns", track(&tables, threads, |_, _| 0));
    }
}
