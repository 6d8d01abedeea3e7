//! Any bytes as the output of a peer: no panic, termination, valid messages round-trip, and no table exceeds its size.


use base::moment::Moment;
use config::span::Span;
use config::spec::{DataKind, ServerKeySpec, StoreSpec, TableKeySpec, TableSpec};
use live::peers::{ReceiveResult, Remote, Role, Section, Setting, Shared};
use live::table::Table;
use expression::pattern::Key;
use live::table::StickTable;
use std::sync::Arc;
use std::time::Duration;
use wire::peers::{Definition, Hello, Message, Update, decode, definition, update};

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    if let Ok(Some((hello, length))) = Hello::decode(data) {
        let mut out = Vec::new();
        hello.encode(&mut out);
        assert_eq!(Hello::decode(&out), Ok(Some((hello, out.len()))));
        assert!(length <= data.len());
    }
    let (mut rest, mut table) = (data, None);
    while let Ok(Some(frame)) = decode(rest, 16_384) {
        assert!(frame.length > 0 && frame.length <= rest.len());
        rest = &rest[frame.length..];
        match (frame.message, &table) {
            (Message::Definition(payload), _) => {
                table = Definition::decode(payload).ok();
                if let Some(table) = &table {
                    let mut out = Vec::new();
                    definition(&mut out, table);
                    let Ok(Some(again)) = decode(&out, usize::MAX) else { panic!("{table:?}") };
                    let Message::Definition(payload) = again.message else { panic!("{table:?}") };
                    assert_eq!(Definition::decode(payload).as_ref(), Ok(table));
                }
            }
            (Message::Update(has, payload), Some(table)) => {
                let Ok(entry) = Update::decode(payload, has, table) else { continue };
                let mut out = Vec::new();
                update(&mut out, table, &entry);
                let Ok(Some(again)) = decode(&out, usize::MAX) else { panic!("{entry:?}") };
                let Message::Update(has, payload) = again.message else { panic!("{entry:?}") };
                assert_eq!(Update::decode(payload, has, table), Ok(entry));
            }
            _ => {}
        }
    }
    converse(data);
}

/// Size of the advertised table in entries.
const SIZE: u32 = 8;

/// Creates a table of names of that size. `summed`: it holds the sums of another one.
fn table(summed: bool) -> Arc<Table> {
    let kinds = [DataKind::Gpc0, DataKind::HttpReqRate, DataKind::BytesInCnt, DataKind::ServerKey, DataKind::Gpt];
    let stores = kinds.map(|kind| StoreSpec { kind, elements: 1 + u32::from(kind == DataKind::Gpt), period: 1_000 });
    let written = TableSpec {
        span: Span::default(),
        key: TableKeySpec::Text(20),
        size: SIZE,
        expire: Some(10_000),
        nopurge: false,
        recv_only: false,
        write_to: None,
        server_key: ServerKeySpec::Name,
        byte_rate_factor: 1,
        store: stores.to_vec(),
        peers: None,
    };
    Arc::new(Table::new(StickTable { shared: true, summed, ..StickTable::new("t", None, &written) }, Key::new(1)))
}

/// Feeds these bytes from a known peer, in two pieces.
fn converse(data: &[u8]) {
    let now = Moment::ZERO + Duration::from_secs(100);
    let share = |name: &str, summed| Shared {
        name: name.into(),
        table: table(summed),
        write_to: None,
        role: Role::Plain,
    };
    let mut tables = vec![share("t", false), share("u", false), share("u.agg", true)];
    Shared::assign_roles(&mut tables);
    let setting = Setting {
        name: "p".into(),
        local: "me".into(),
        remotes: vec![Remote { name: "you".into(), shard: 0 }],
        tables: tables.clone(),
        updates: 200,
        limit: 16_384,
        pid: 1,
        process: 1,
    };
    let mut section = Section::new(setting, now, false);
    let hello = Hello { minor: 1, remote: "me".to_owned(), local: "you".to_owned(), pid: 2 };
    let Ok(ticket) = section.greeted(&hello, now) else { panic!("a peer is not let in") };
    let mut out = Vec::new();
    let (mut at, half) = (0, data.len() / 2);
    for end in [half, data.len()] {
        match section.hear(ticket, &data[at..end], now) {
            ReceiveResult::Taken(taken) => {
                assert!(taken <= end - at);
                at += taken;
            }
            ReceiveResult::End(_) => break,
        }
        let _ = section.say(ticket, &mut out, now, 16_384);
    }
    section.sum(now);
    assert!(tables.iter().all(|shared| shared.table.used() <= SIZE));
    // Acknowledgements are combined, and repeated requests are answered once.
    assert!(out.len() < 100_000);
}
