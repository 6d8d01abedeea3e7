//! Commands for stick tables (management manual, section 9.3). Must never hold a table's lock while it waits for the
//! peer to read.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use base::moment::Moment;
use config::spec::{DataForm, DataKind, RuntimeLevel, StoreSpec, TableKeySpec};
use live::table::{Cursor, EntryRef, EntryView, Table, TableKey};

use super::super::{Call, Command, Pending, Run};
use engine::worker::Worker;

/// Entries visited per lock of a shard.
const PAGE: u32 = 128;
/// Maximum number of conditions in a filter.
const MOST_CONDITIONS: usize = 4;
/// Maximum number of expired entries removed per shard before a table is shown; further ones are still counted.
const SWEPT: usize = 1 << 20;

#[rustfmt::skip]
pub(super) const TABLE: &[Command<Worker>] = &[
    Command::new("clear table", "clear table <table> [<filter>]*", "remove an entry from a table (filter: data/key)", Run::Gradual(clear)).at(RuntimeLevel::Operator),
    Command::new("set table", "set table <table> key <k> [data.* <v>]*", "update or create a table entry's data", Run::Now(set)).at(RuntimeLevel::Operator),
    Command::new("show table", "show table [<table> [<filter>]*]", "report table usage stats or dump this table's contents (filter: data/key)", Run::Gradual(show)),
];

/// Commands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verb {
    Show,
    Set,
    Clear,
}

impl Verb {
    /// Returns the usage message.
    fn usage(self) -> &'static str {
        match self {
            Self::Show => {
                "Optional argument only supports \"data.<store_data_type>\" <operator> <value> or key <key> or ptr <ptr>\n"
            }
            Self::Set => {
                "Required arguments: <table> key <key> [data.<store_data_type> <value>]* or <table> ptr <ptr> \
                 [data.<store_data_type> <value>]*\n"
            }
            Self::Clear => {
                "Required arguments: <table> \"data.<store_data_type>\" <operator> <value> or <table> key <key> or \
                 <table> ptr <ptr>\n"
            }
        }
    }
}

/// A comparison of a stored value.
#[derive(Debug, Clone, Copy)]
struct Condition {
    kind: DataKind,
    element: u32,
    holds: fn(&i64, &i64) -> bool,
    value: i64,
}

impl Condition {
    fn matches(&self, entry: &EntryView<'_>, table: &Table) -> bool {
        scaled_value(entry, table, self.kind, self.element)
            .is_some_and(|value| (self.holds)(&(value as i64), &self.value))
    }
}

/// The entries that a command selects.
enum EntrySelection {
    All,
    Matching(Vec<Condition>),
    Key(usize),
    Entry(EntryRef),
}

fn find(worker: &Worker, name: &str) -> Option<Arc<Table>> {
    worker.process.live.tables.iter().find(|table| *table.plan.name == *name).map(Arc::clone)
}

/// Parses the words after the table's name; answers with an error if they are invalid.
fn chosen(call: &mut Call<'_, Worker>, table: &Table, verb: Verb) -> Option<EntrySelection> {
    let word = call.word(3);
    if word.starts_with("data.") {
        if verb == Verb::Set {
            call.refuse("content-based lookup is only supported with the \"show\" and \"clear\" actions\n");
            return None;
        }
        return conditions(call, table).map(EntrySelection::Matching);
    }
    match word {
        "" => Some(EntrySelection::All),
        "key" if call.word(4).is_empty() => {
            call.refuse("Key value expected\n");
            None
        }
        "key" => Some(EntrySelection::Key(4)),
        "ptr" => {
            let Some(digits) = call.word(4).strip_prefix("0x") else {
                call.refuse("Pointer expected (0xffff notation)\n");
                return None;
            };
            let Ok(number) = u64::from_str_radix(digits, 16) else {
                call.refuse("Malformed ptr.\n");
                return None;
            };
            let place = EntryRef::of_number(number);
            let place = place.filter(|at| table.read_at(*at, rt::now(), |_| ()).is_some());
            if place.is_none() {
                call.refuse("No entry can be found matching ptr.\n");
            }
            place.map(EntrySelection::Entry)
        }
        _ => {
            call.refuse(verb.usage());
            None
        }
    }
}

/// Returns the data type that a word names, with the element of an array (`[<index>]`). The error is HAProxy's message.
fn datum(table: &Table, name: &str) -> Result<(DataKind, u32), &'static str> {
    let (name, element) = match name.split_once('[') {
        Some((array, rest)) if DataKind::find(array).is_some_and(DataKind::is_array) => {
            (array, rest.strip_suffix(']').and_then(|index| index.parse().ok()).unwrap_or(u32::MAX))
        }
        _ => (name, 0),
    };
    let kind = DataKind::find(name).ok_or("Unknown data type")?;
    if !table.plan.layout.has(kind) {
        return Err("Data type not stored in this table");
    }
    Ok((kind, element))
}

fn conditions(call: &mut Call<'_, Worker>, table: &Table) -> Option<Vec<Condition>> {
    let mut conditions = Vec::new();
    let mut at = 3;
    while !call.word(at).is_empty() {
        if conditions.len() == MOST_CONDITIONS {
            let (place, last) = (at + 1, call.word(at - 1).to_owned());
            let ending = match place % 10 {
                _ if (11..14).contains(&(place % 100)) => "th",
                1 => "st",
                2 => "nd",
                3 => "rd",
                _ => "th",
            };
            call.refuse(&format!("Detected extra data in filter, {place}{ending} word of input, after '{last}'\n"));
            return None;
        }
        match condition(call, table, at) {
            Ok(condition) => conditions.push(condition),
            Err(why) => {
                call.refuse(&format!("Filter entry #{}: {why}\n", conditions.len() + 1));
                return None;
            }
        }
        at += 3;
    }
    Some(conditions)
}

fn condition(call: &Call<'_, Worker>, table: &Table, at: usize) -> Result<Condition, &'static str> {
    let name = call.word(at).strip_prefix("data.").ok_or("Unknown data type")?;
    let (kind, element) = datum(table, name)?;
    let holds: fn(&i64, &i64) -> bool = match call.word(at + 1) {
        "eq" => i64::eq,
        "ne" => i64::ne,
        "le" => i64::le,
        "ge" => i64::ge,
        "lt" => i64::lt,
        "gt" => i64::gt,
        _ => return Err("Require and operator among \"eq\", \"ne\", \"le\", \"ge\", \"lt\", \"gt\""),
    };
    let value = call.word(at + 2).parse().map_err(|_| "Require a valid integer value to compare against")?;
    Ok(Condition { kind, element, holds, value })
}

/// Parses a key. The error is HAProxy's message.
fn key<'k>(table: &Table, text: &'k [u8], buffer: &'k mut Vec<u8>, verb: Verb) -> Result<TableKey<'k>, String> {
    let invalid = || "Invalid key\n".to_owned();
    let words = || std::str::from_utf8(text).map_err(|_| invalid());
    match table.plan.key {
        TableKeySpec::Ipv4 => match words()?.parse::<Ipv4Addr>() {
            Ok(address) => Ok(TableKey::ipv4(address)),
            Err(_) => {
                let address = words()?.parse::<Ipv6Addr>().ok().and_then(|address| address.to_ipv4());
                address.map(TableKey::ipv4).ok_or_else(invalid)
            }
        },
        TableKeySpec::Ipv6 => match words()?.parse::<Ipv4Addr>() {
            Ok(address) => Ok(TableKey::ipv6(address.to_ipv6_mapped())),
            Err(_) => words()?.parse().map(TableKey::ipv6).map_err(|_| invalid()),
        },
        TableKeySpec::Integer => Ok(TableKey::integer(leading_number(text) as u32)),
        TableKeySpec::Text(length) => Ok(TableKey::Long(&text[..text.len().min(length as usize)])),
        TableKeySpec::Binary(_) => {
            buffer.clear();
            let what = match verb {
                Verb::Show => "Showing keys from",
                Verb::Set => "Inserting keys into",
                Verb::Clear => "Removing keys from",
            };
            Err(format!("{what} tables of type other than ip, ipv6, string and integer is not supported\n"))
        }
    }
}

/// Returns the leading integer of a text; 0 without one.
fn leading_number(text: &[u8]) -> i64 {
    let (negative, digits) = match text.strip_prefix(b"-") {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let number = digits
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0_i64, |number, digit| number.wrapping_mul(10).wrapping_add(i64::from(digit - b'0')));
    if negative { number.wrapping_neg() } else { number }
}

fn show<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    Box::pin(async move {
        let name = call.word(2).to_owned();
        if name.is_empty() {
            // In reverse order of declaration, as in HAProxy.
            let tables: Vec<Arc<Table>> = call.state.process.live.tables.iter().rev().map(Arc::clone).collect();
            for table in tables {
                table.sweep(rt::now(), SWEPT);
                call.answer.push(header(&table));
                call.answer.relieve().await?;
            }
            return Ok(());
        }
        let Some(table) = find(call.state, &name) else {
            call.refuse("No such table\n");
            return Ok(());
        };
        let Some(chosen) = chosen(call, &table, Verb::Show) else { return Ok(()) };
        if matches!(chosen, EntrySelection::Key(_)) && !call.permits(RuntimeLevel::Operator) {
            return Ok(());
        }
        if call.conversation.level < RuntimeLevel::Operator {
            call.answer.push(header(&table));
            call.answer.push("# contents not dumped due to insufficient privileges\n");
            return Ok(());
        }
        table.sweep(rt::now(), SWEPT);
        let conditions = match chosen {
            EntrySelection::All => Vec::new(),
            EntrySelection::Matching(conditions) => conditions,
            EntrySelection::Key(at) => {
                show_key(call, &table, at);
                return Ok(());
            }
            EntrySelection::Entry(place) => {
                let mut text = header(&table);
                let told = table.read_at(place, rt::now(), |entry| write_entry(&mut text, place, &entry, &table));
                call.answer.push(if told.is_some() { text } else { String::new() });
                return Ok(());
            }
        };
        call.answer.push(header(&table));
        let (mut cursor, mut text) = (Some(Cursor::default()), String::new());
        while let Some(from) = cursor {
            text.clear();
            cursor = table.page(from, PAGE, rt::now(), |place, entry| {
                if conditions.iter().all(|condition| condition.matches(&entry, &table)) {
                    write_entry(&mut text, place, &entry, &table);
                }
            });
            call.answer.push(&text);
            call.answer.relieve().await?;
        }
        Ok(())
    })
}

fn show_key(call: &mut Call<'_, Worker>, table: &Table, at: usize) {
    let written = config::text::to_bytes(call.word(at)).into_owned();
    let mut buffer = Vec::new();
    match key(table, &written, &mut buffer, Verb::Show) {
        Err(why) => call.refuse(&why),
        Ok(key) => {
            let mut text = header(table);
            let told = table.find_place(&key, rt::now(), |place, entry| write_entry(&mut text, place, &entry, table));
            if told.is_some() {
                call.answer.push(text);
            }
        }
    }
}

fn header(table: &Table) -> String {
    let plan = &table.plan;
    format!("# table: {}, type: {}, size:{}, used:{}\n", plan.name, plan.key.name(), plan.size, table.used())
}

/// Returns the name of an element; elements of arrays are numbered.
pub(crate) fn column(kind: DataKind, element: u32) -> String {
    match kind {
        DataKind::Gpt => format!("gpt{element}"),
        DataKind::Gpc => format!("gpc{element}"),
        DataKind::GpcRate => format!("gpc{element}_rate"),
        kind => kind.name().to_owned(),
    }
}

/// Returns an element's value as shown: byte rates are scaled to bytes.
pub(crate) fn scaled_value(entry: &EntryView<'_>, table: &Table, kind: DataKind, element: u32) -> Option<u64> {
    let value = entry.get(kind, element)?;
    let scaled = matches!(kind, DataKind::BytesInRate | DataKind::BytesOutRate);
    Some(if scaled { value * u64::from(table.plan.byte_rate_factor) } else { value })
}

/// Writes a line of `show table`.
fn write_entry(text: &mut String, place: EntryRef, entry: &EntryView<'_>, table: &Table) {
    let _ = write!(text, "{:#x}: key=", place.number());
    write_key(text, table.plan.key, entry.key);
    let left = if entry.until == Moment::MAX { 0 } else { entry.until.millis_since(rt::now()) };
    let _ = write!(text, " use={} exp={left} shard={}", entry.trackers, table.plan.shard(entry.key));
    for StoreSpec { kind, elements, period } in &table.plan.layout.stores {
        for element in 0..*elements {
            let name = column(*kind, element);
            let value = scaled_value(entry, table, *kind, element).unwrap_or(0);
            let _ = match kind.form() {
                DataForm::Rate => write!(text, " {name}({period})={value}"),
                DataForm::Number | DataForm::Large => write!(text, " {name}={value}"),
                DataForm::Server => {
                    let known = table.servers.name(value as u32);
                    write!(text, " {name}={}", known.map_or("-".to_owned(), |name| config::text::from_bytes(&name)))
                }
            };
        }
    }
    text.push('\n');
}

pub(crate) fn write_key(text: &mut String, spec: TableKeySpec, key: &[u8]) {
    let _ = match spec {
        TableKeySpec::Ipv4 => write!(text, "{}", Ipv4Addr::from(<[u8; 4]>::try_from(key).unwrap_or_default())),
        TableKeySpec::Ipv6 => write!(text, "{}", Ipv6Addr::from(<[u8; 16]>::try_from(key).unwrap_or_default())),
        TableKeySpec::Integer => write!(text, "{}", u32::from_be_bytes(key.try_into().unwrap_or_default())),
        TableKeySpec::Text(_) => {
            for byte in key {
                let _ = match byte {
                    b'\\' | b'=' | b' ' => write!(text, "\\{}", char::from(*byte)),
                    b'\t' => write!(text, "\\t"),
                    b'\n' => write!(text, "\\n"),
                    b'\r' => write!(text, "\\r"),
                    0x1b => write!(text, "\\e"),
                    0x20..0x7f => write!(text, "{}", char::from(*byte)),
                    other => write!(text, "\\x{other:02x}"),
                };
            }
            Ok(())
        }
        TableKeySpec::Binary(_) => text.write_str(&base::hex::encode_upper(key)),
    };
}

fn set(call: &mut Call<'_, Worker>) {
    let Some(table) = table_of(call, Verb::Set) else { return };
    let Some(chosen) = chosen(call, &table, Verb::Set) else { return };
    let now = rt::now();
    let place = match chosen {
        EntrySelection::All | EntrySelection::Matching(_) => return,
        EntrySelection::Entry(place) => place,
        EntrySelection::Key(at) => {
            let written = config::text::to_bytes(call.word(at)).into_owned();
            let mut buffer = Vec::new();
            let key = match key(&table, &written, &mut buffer, Verb::Set) {
                Ok(key) => key,
                Err(why) => return call.refuse(&why),
            };
            if table.upsert(&key, now, |_| ()).is_none() {
                return call.refuse("Unable to allocate a new entry\n");
            }
            match table.find_place(&key, now, |place, _| place) {
                Some(place) => place,
                None => return,
            }
        }
    };
    let mut at = 5;
    while !call.word(at).is_empty() {
        if let Err(why) = set_datum(call, &table, place, at) {
            call.refuse(&format!("{why}\n"));
            return;
        }
        at += 2;
    }
}

fn set_datum(call: &Call<'_, Worker>, table: &Table, place: EntryRef, at: usize) -> Result<(), &'static str> {
    let name = call.word(at).strip_prefix("data.").ok_or("\"data.<type>\" followed by a value expected")?;
    let (kind, element) = datum(table, name)?;
    if table.plan.layout.place(kind, element).is_none() {
        return Err("index out of range in this data array");
    }
    let value: i64 = call.word(at + 1).parse().map_err(|_| "Require a valid integer value to store")?;
    // Server names are stored as internal numbers and cannot be set.
    if kind.form() != DataForm::Server {
        table.change_at(place, rt::now(), |entry| entry.set(kind, element, value as u64));
    }
    Ok(())
}

/// Returns the table named by a command; answers with an error if there is none.
fn table_of(call: &mut Call<'_, Worker>, verb: Verb) -> Option<Arc<Table>> {
    if call.word(2).is_empty() {
        call.refuse(verb.usage());
        return None;
    }
    let found = find(call.state, call.word(2));
    if found.is_none() {
        call.refuse("No such table\n");
    }
    if verb != Verb::Show && found.as_ref().is_some_and(|table| table.plan.summed) {
        call.refuse("The table holds sums over peers, which cannot be changed\n");
        return None;
    }
    found
}

fn clear<'a>(call: &'a mut Call<'_, Worker>) -> Pending<'a> {
    const IN_USE: &str = "Entry currently in use, cannot remove\n";
    Box::pin(async move {
        let Some(table) = table_of(call, Verb::Clear) else { return Ok(()) };
        let Some(chosen) = chosen(call, &table, Verb::Clear) else { return Ok(()) };
        let conditions = match chosen {
            EntrySelection::All => Vec::new(),
            EntrySelection::Matching(conditions) => conditions,
            EntrySelection::Key(at) => {
                let written = config::text::to_bytes(call.word(at)).into_owned();
                let mut buffer = Vec::new();
                match key(&table, &written, &mut buffer, Verb::Clear) {
                    Err(why) => call.refuse(&why),
                    Ok(key) if !table.remove(&key, rt::now()) => call.refuse(IN_USE),
                    Ok(_) => {}
                }
                return Ok(());
            }
            EntrySelection::Entry(place) => {
                if !table.remove_at(place, rt::now(), |_| true) {
                    call.refuse(IN_USE);
                }
                return Ok(());
            }
        };
        let mut cursor = Some(Cursor::default());
        while let Some(from) = cursor {
            let (mut places, now) = (Vec::new(), rt::now());
            let matches = |entry: &EntryView<'_>| conditions.iter().all(|condition| condition.matches(entry, &table));
            cursor = table.page(from, PAGE, now, |place, entry| {
                if entry.trackers == 0 && matches(&entry) {
                    places.push(place);
                }
            });
            for place in places {
                table.remove_at(place, now, |entry| matches(&entry));
            }
            call.answer.relieve().await?;
        }
        Ok(())
    })
}
