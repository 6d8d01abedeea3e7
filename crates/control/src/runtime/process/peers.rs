//! `show peers` (management manual, section 9.3). Must never communicate with a peer.

use std::fmt::Write as _;

use base::{Moment, WallTime};
use config::spec::TableSpec;
use live::peers::{PeerStatus, SectionStatus, TableStatus};
use policy::program::{BindAddress, Peers, ServerAddress};

use super::super::{Call, Command, Pending, Run};
use engine::peering::Exchange;
use engine::worker::Worker;

pub(super) const TABLE: &[Command<Worker>] = &[Command::new(
    "show peers",
    "show peers [dict|-] [section]",
    "dump some information about all the peers or this peers section",
    Run::Gradual(show),
)];

/// Size of the server name dictionary of each side of a connection.
const NAMES: u64 = 128;
/// Names per line.
const NAMES_A_LINE: u64 = 4;

fn show<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let with_names = call.word(2) == "dict";
        let wanted = call.word(if with_names || call.word(2) == "-" { 3 } else { 2 }).to_owned();
        let shared = &call.state.process;
        let sections = call.generation.program.peers.iter().rev().filter(|section| section.is_active());
        let mut is_first = true;
        for section in sections.filter(|section| wanted.is_empty() || *section.name == *wanted) {
            let Some(status) = shared.service::<Exchange>().status(section.index) else { continue };
            if !std::mem::take(&mut is_first) {
                call.answer.push("\n");
            }
            let told = describe_section(section, &status, with_names, rt::now(), rt::wall());
            call.answer.push(&told);
            call.answer.relieve().await?;
        }
        if is_first && !wanted.is_empty() {
            call.refuse("No such peers");
        }
        Ok(())
    })
}

/// Returns the description of a section. Where HAProxy shows pointers and internal flags, stable numbers and zeros are
/// shown.
fn describe_section(section: &Peers, status: &SectionStatus, with_names: bool, now: Moment, wall: WallTime) -> String {
    let mut text = String::new();
    let mut date = Vec::new();
    expression::log_format::date_with_millis(&mut date, wall, rt::local_offset(wall.seconds));
    let date = String::from_utf8_lossy(&date);
    let _ = writeln!(
        text,
        "{:#x}: [{}] id={} disabled=0 flags=0x{:x} resync_timeout={} task_calls=0",
        number(section.index, 0, 0),
        date.split('.').next().unwrap_or_default(),
        section.name,
        u8::from(status.complete),
        ahead(status.resync_timeout, now),
    );
    for place in peers_in_order(section, status) {
        let Some(peer) = status.peers.get(place) else { continue };
        tell_peer(&mut text, section, place, peer, with_names, now);
    }
    text
}

/// Returns the indexes of peers in the status, where the local one is last: the peer declared last comes first.
fn peers_in_order(section: &Peers, status: &SectionStatus) -> impl Iterator<Item = usize> {
    let (remotes, local) = (section.remotes.len(), status.peers.len().saturating_sub(1));
    let before = section.local_at.min(remotes);
    (before..remotes).rev().chain([local]).chain((0..before).rev())
}

fn tell_peer(text: &mut String, section: &Peers, place: usize, peer: &PeerStatus, with_names: bool, now: Moment) {
    let address = match section.remotes.get(place) {
        Some(remote) => remote_address(&remote.address),
        None => section.bind.as_ref().map_or_else(String::new, |bind| own_address(&bind.address)),
    };
    let address = if address.is_empty() { "?" } else { &address };
    let _ = write!(
        text,
        "  {:#x}: id={}({},{}) addr={address} app_state={} learn_state={} last_status={} last_hdshk={}\n        \
         reconnect={} heartbeat={} confirm={} tx_hbt={} rx_hbt={} no_hbt={} new_conn={} proto_err={} coll={}\n        \
         flags=0x0",
        number(section.index, place + 1, 0),
        peer.name,
        if peer.local { "local" } else { "remote" },
        if peer.active { "active" } else { "inactive" },
        if peer.running { "RUNNING" } else { "STOPPED" },
        peer.learn_state.word(),
        peer.last_status.word(),
        peer.last_handshake.map_or("<NEVER>".to_owned(), |then| duration(now.millis_since(then))),
        ahead(peer.reconnect, now),
        ahead(peer.heartbeat, now),
        peer.confirm,
        peer.tx_heartbeats,
        peer.rx_heartbeats,
        peer.no_heartbeat,
        peer.new_connections,
        peer.protocol_errors,
        peer.collisions,
    );
    if peer.running {
        let session = number(section.index, place + 1, u16::MAX.into());
        let _ = write!(text, " appctx:{session:#x} st0=7 st1=0 task_calls=0 state=EST");
    }
    text.push('\n');
    for (name, table) in [("remote_table", peer.remote_table), ("last_local_table", peer.last_local_table)] {
        if let Some((at, table)) = table.and_then(|at| Some((at, peer.tables.get(at)?))) {
            let _ = writeln!(
                text,
                "        {name}:{:#x} id={} local_id={} remote_id={}",
                number(section.index, place + 1, at + 1),
                table.name,
                table.local_id,
                table.remote_id
            );
        }
    }
    if !peer.tables.is_empty() {
        text.push_str("        shared tables:\n");
    }
    for (at, table) in peer.tables.iter().enumerate().rev() {
        tell_table(text, number(section.index, place + 1, at + 1), number(section.index, 0, at + 1), table);
        if with_names {
            tell_names(text, peer);
        } else {
            text.push_str("        Dictionary cache not dumped (use \"show peers dict\")\n");
        }
    }
}

fn tell_table(text: &mut String, own: u64, plan: u64, table: &TableStatus) {
    let TableStatus { name, local_id, remote_id, remote_data, last_acked, last_pushed, last_get, .. } = table;
    let (origin, update) = (table.teaching_origin, table.update);
    let _ = write!(
        text,
        "          {own:#x} local_id={local_id} remote_id={remote_id} flags=0x0 remote_data={remote_data:#x}\n              \
         last_acked={last_acked} last_pushed={last_pushed} last_get={last_get} teaching_origin={origin} \
         update={last_pushed}\n              table:{plan:#x} id={name} update={update} localupdate={update} refcnt=1\n",
    );
    if let Some(sum) = table.sum {
        let _ = writeln!(text, "              sum:{name}{} values={}", TableSpec::SUM_SUFFIX, sum.word());
    }
}

/// Writes server names by their numbers, starting at 0.
fn tell_names(text: &mut String, peer: &PeerStatus) {
    text.push_str("        TX dictionary cache:\n");
    for line in peer.names_sent.chunks(NAMES_A_LINE as usize) {
        text.push_str("        ");
        for (number, name) in line {
            let _ = write!(text, "{:>5} -> {}", number.saturating_sub(1), String::from_utf8_lossy(name));
        }
        text.push('\n');
    }
    text.push_str("        RX dictionary cache:\n");
    for line in 0..NAMES / NAMES_A_LINE {
        text.push_str("        ");
        for number in line * NAMES_A_LINE..(line + 1) * NAMES_A_LINE {
            let name = peer.names_learned.iter().find(|known| known.0 == number + 1);
            let name = name.map_or("-".into(), |known| String::from_utf8_lossy(&known.1));
            let _ = write!(text, "{number:>5} -> {name}");
        }
        text.push('\n');
    }
}

/// Returns a number for a section, a peer, a table: shown in place of HAProxy's pointers.
fn number(section: usize, peer: usize, table: usize) -> u64 {
    1 << 44 | (section as u64) << 32 | (peer as u64 & 0xffff) << 16 | table as u64 & 0xffff
}

/// Formats the time left until `then`.
fn ahead(then: Option<Moment>, now: Moment) -> String {
    match then {
        None => "<NEVER>".to_owned(),
        Some(then) if then <= now => "<PAST>".to_owned(),
        Some(then) => duration(then.millis_since(now)),
    }
}

/// Formats a duration in its two largest units.
fn duration(millis: u64) -> String {
    let seconds = millis / 1_000;
    let (minutes, hours, days) = (seconds / 60, seconds / 3_600, seconds / 86_400);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{seconds}s"),
        (0, 0, _) => format!("{minutes}m{}s", seconds % 60),
        (0, ..) => format!("{hours}h{}m", minutes % 60),
        _ => format!("{days}d{}h", hours % 24),
    }
}

fn remote_address(address: &ServerAddress) -> String {
    match address {
        ServerAddress::Unix(path) => format!("unix:{}", path.display()),
        address => address.inet().map_or_else(String::new, |at| at.to_string()),
    }
}

fn own_address(address: &BindAddress) -> String {
    match address {
        BindAddress::Inet(at) => at.to_string(),
        BindAddress::Unix(path) => format!("unix:{}", path.display()),
        BindAddress::Quic(_)
        | BindAddress::Udp(_)
        | BindAddress::Abstract(_)
        | BindAddress::Descriptor { .. }
        | BindAddress::Reverse { .. } => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use live::peers::LastStatus;
    use policy::program::{Peer, ServerPort};
    use std::time::Duration;

    fn peer(name: &str, local: bool) -> PeerStatus {
        PeerStatus { name: name.into(), local, ..PeerStatus::default() }
    }

    #[test]
    fn a_section_is_told_as_haproxy_tells_it() {
        let address = |port| ServerAddress::Inet { ip: [192, 0, 2, 1].into(), port: ServerPort::Exact(port) };
        let remote = |name: &str, port| Peer {
            name: name.into(),
            address: address(port),
            shard: 0,
            connecting: Default::default(),
            tls: None,
        };
        let section = Peers {
            index: 0,
            name: "p".into(),
            disabled: false,
            local: Some("A".into()),
            bind: None,
            own_tls: None,
            own_address: None,
            remotes: vec![remote("B", 1), remote("C", 2)],
            local_at: 1,
            shards: 0,
            tables: Vec::new(),
            max_updates: 200,
            logs: Vec::new(),
        };
        let now = Moment::ZERO.saturating_add(Duration::from_secs(100_000));
        let table = TableStatus {
            name: "p/t".into(),
            local_id: 1,
            remote_id: 3,
            remote_data: 0x8_0001,
            last_acked: 1,
            last_pushed: 2,
            last_get: 3,
            teaching_origin: 4,
            update: 5,
            sum: None,
        };
        let connected = PeerStatus {
            active: true,
            running: true,
            last_status: LastStatus::Established,
            last_handshake: Some(Moment::ZERO),
            heartbeat: Some(now.saturating_add(Duration::from_millis(2_900))),
            reconnect: Some(now),
            confirm: 1,
            tx_heartbeats: 2,
            rx_heartbeats: 3,
            no_heartbeat: 4,
            new_connections: 5,
            protocol_errors: 6,
            collisions: 7,
            last_local_table: Some(0),
            tables: vec![table],
            names_sent: vec![(1, (*b"s1").into()), (2, (*b"s2").into())],
            ..peer("C", false)
        };
        let status = SectionStatus {
            name: "p".into(),
            complete: true,
            resync_timeout: None,
            peers: vec![peer("B", false), connected, peer("A", true)],
        };
        let head = |id: &str, rest: &str| {
            format!(
                "  0x{id}: id={rest} app_state=STOPPED learn_state=NOTASSIGNED last_status=NONE last_hdshk=<NEVER>\n        \
                 reconnect=<NEVER> heartbeat=<NEVER> confirm=0 tx_hbt=0 rx_hbt=0 no_hbt=0 new_conn=0 proto_err=0 \
                 coll=0\n        flags=0x0\n"
            )
        };
        let expected = format!(
            "  0x100000020000: id=C(remote,active) addr=192.0.2.1:2 app_state=RUNNING learn_state=NOTASSIGNED \
             last_status=ESTA last_hdshk=1d3h\n        reconnect=<PAST> heartbeat=2s confirm=1 tx_hbt=2 rx_hbt=3 \
             no_hbt=4 new_conn=5 proto_err=6 coll=7\n        flags=0x0 appctx:0x10000002ffff st0=7 st1=0 task_calls=0 \
             state=EST\n        last_local_table:0x100000020001 id=p/t local_id=1 remote_id=3\n        shared \
             tables:\n          0x100000020001 local_id=1 remote_id=3 flags=0x0 remote_data=0x80001\n              \
             last_acked=1 last_pushed=2 last_get=3 teaching_origin=4 update=2\n              \
             table:0x100000000001 id=p/t update=5 localupdate=5 refcnt=1\n        Dictionary cache not dumped (use \
             \"show peers dict\")\n{}{}",
            head("100000030000", "A(local,inactive) addr=?"),
            head("100000010000", "B(remote,inactive) addr=192.0.2.1:1"),
        );
        let told = describe_section(&section, &status, false, now, WallTime::default());
        let (first, rest) = told.split_once('\n').unwrap();
        assert!(first.starts_with("0x100000000000: [01/Jan/1970:") || first.contains("/1970:"), "{first}");
        assert!(first.ends_with("] id=p disabled=0 flags=0x1 resync_timeout=<NEVER> task_calls=0"), "{first}");
        assert_eq!(rest, expected);
        let names = describe_section(&section, &status, true, now, WallTime::default());
        assert!(names.contains("TX dictionary cache:\n            0 -> s1    1 -> s2\n        RX dictionary cache:\n"));
        assert_eq!(names.matches(" -> -").count(), 128);
    }

    #[test]
    fn times_have_two_units() {
        for (seconds, told) in [(0, "0s"), (59, "59s"), (61, "1m1s"), (3_660, "1h1m"), (90_000, "1d1h")] {
            assert_eq!(duration(seconds * 1_000), told);
        }
    }
}
