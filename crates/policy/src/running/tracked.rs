//! Fetches of the entries that a session or a stream tracks in stick tables (`sc_…`, `sc0_…` to `sc2_…`), and of the
//! entry of the client's address (`src_…`; section 7.3.3). Must never track anything.

use super::stick;
use crate::program::ProgramContext;
use config::spec::DataKind;
use expression::fetch::{Fetch, plain};
use expression::sample::{Context, Places, Type, Value};
use expression::{Arguments, Checking, Kind, Signature};
use live::table::{Datum, EntryMut, Table, TableKey, Tracked, sample_of};

const TRACKED: Places = Places::RUNNING;
const CLIENT: Places = Places::CLIENT;
const INT: Type = Type::Int;
/// Arguments: the number of a stick counter, and a table.
const NUMBERED: Signature = Signature::new(1, &[Kind::Int, Kind::Table]);
/// Arguments: an array index, the number of a stick counter, and a table.
const INDEXED: Signature = Signature::new(2, &[Kind::Int, Kind::Int, Kind::Table]);
/// Arguments of fetches with the number in their name: a table.
const NAMED: Signature = Signature::new(0, &[Kind::Table]);
/// Arguments of fetches of the client's address: a table.
const SOURCE: Signature = Signature::new(1, &[Kind::Table]);
/// Arguments: an array index and a table.
const SOURCE_INDEXED: Signature = Signature::new(2, &[Kind::Int, Kind::Table]);

/// Defines rows that read a data type, or change it and return the result.
macro_rules! rows {
    ($read:ident, $from:ident, $places:expr; $($kind:ident, $doc:literal,
        [$sc:literal, $sc0:literal, $sc1:literal, $sc2:literal, $src:literal];)*) => {
        &[$(
            Fetch::new($sc, NUMBERED, INT, $places, concat!("Tracked entry: ", $doc, "."), |c, a| {
                $read(c, number(a, 0)?, a.table(1), Datum::first(DataKind::$kind))
            }),
            Fetch::new($sc0, NAMED, INT, $places, concat!("Entry tracked as 0: ", $doc, "."), |c, a| {
                $read(c, 0, a.table(0), Datum::first(DataKind::$kind))
            }),
            Fetch::new($sc1, NAMED, INT, $places, concat!("Entry tracked as 1: ", $doc, "."), |c, a| {
                $read(c, 1, a.table(0), Datum::first(DataKind::$kind))
            }),
            Fetch::new($sc2, NAMED, INT, $places, concat!("Entry tracked as 2: ", $doc, "."), |c, a| {
                $read(c, 2, a.table(0), Datum::first(DataKind::$kind))
            }),
            Fetch::new($src, SOURCE, INT, CLIENT, concat!("Entry of the client's address: ", $doc, "."), |c, a| {
                $from(c, a.table(0)?, Datum::first(DataKind::$kind))
            })
            .checked(|a, c| table(a, c, 0)),
        )*]
    };
}

/// Fetches that read.
#[rustfmt::skip]
pub const READ: &[Fetch] = rows! { read, read_source, TRACKED;
    BytesInRate, "rate of bytes from clients, over the table's period", ["sc_bytes_in_rate", "sc0_bytes_in_rate", "sc1_bytes_in_rate", "sc2_bytes_in_rate", "src_bytes_in_rate"];
    BytesOutRate, "rate of bytes to clients, over the table's period", ["sc_bytes_out_rate", "sc0_bytes_out_rate", "sc1_bytes_out_rate", "sc2_bytes_out_rate", "src_bytes_out_rate"];
    ConnCnt, "number of connections", ["sc_conn_cnt", "sc0_conn_cnt", "sc1_conn_cnt", "sc2_conn_cnt", "src_conn_cnt"];
    ConnCur, "current connections", ["sc_conn_cur", "sc0_conn_cur", "sc1_conn_cur", "sc2_conn_cur", "src_conn_cur"];
    ConnRate, "connection rate, over the table's period", ["sc_conn_rate", "sc0_conn_rate", "sc1_conn_rate", "sc2_conn_rate", "src_conn_rate"];
    Gpc0, "the first general purpose counter", ["sc_get_gpc0", "sc0_get_gpc0", "sc1_get_gpc0", "sc2_get_gpc0", "src_get_gpc0"];
    Gpc1, "the second general purpose counter", ["sc_get_gpc1", "sc0_get_gpc1", "sc1_get_gpc1", "sc2_get_gpc1", "src_get_gpc1"];
    Gpt0, "the first general purpose tag", ["sc_get_gpt0", "sc0_get_gpt0", "sc1_get_gpt0", "sc2_get_gpt0", "src_get_gpt0"];
    GlitchCnt, "number of glitches", ["sc_glitch_cnt", "sc0_glitch_cnt", "sc1_glitch_cnt", "sc2_glitch_cnt", "src_glitch_cnt"];
    GlitchRate, "glitch rate, over the table's period", ["sc_glitch_rate", "sc0_glitch_rate", "sc1_glitch_rate", "sc2_glitch_rate", "src_glitch_rate"];
    Gpc0Rate, "increment rate of the first general purpose counter, over the table's period", ["sc_gpc0_rate", "sc0_gpc0_rate", "sc1_gpc0_rate", "sc2_gpc0_rate", "src_gpc0_rate"];
    Gpc1Rate, "increment rate of the second general purpose counter, over the table's period", ["sc_gpc1_rate", "sc0_gpc1_rate", "sc1_gpc1_rate", "sc2_gpc1_rate", "src_gpc1_rate"];
    HttpErrCnt, "number of HTTP errors", ["sc_http_err_cnt", "sc0_http_err_cnt", "sc1_http_err_cnt", "sc2_http_err_cnt", "src_http_err_cnt"];
    HttpErrRate, "HTTP error rate, over the table's period", ["sc_http_err_rate", "sc0_http_err_rate", "sc1_http_err_rate", "sc2_http_err_rate", "src_http_err_rate"];
    HttpFailCnt, "number of HTTP failures", ["sc_http_fail_cnt", "sc0_http_fail_cnt", "sc1_http_fail_cnt", "sc2_http_fail_cnt", "src_http_fail_cnt"];
    HttpFailRate, "HTTP failure rate, over the table's period", ["sc_http_fail_rate", "sc0_http_fail_rate", "sc1_http_fail_rate", "sc2_http_fail_rate", "src_http_fail_rate"];
    HttpReqCnt, "number of requests", ["sc_http_req_cnt", "sc0_http_req_cnt", "sc1_http_req_cnt", "sc2_http_req_cnt", "src_http_req_cnt"];
    HttpReqRate, "request rate, over the table's period", ["sc_http_req_rate", "sc0_http_req_rate", "sc1_http_req_rate", "sc2_http_req_rate", "src_http_req_rate"];
    SessCnt, "number of sessions", ["sc_sess_cnt", "sc0_sess_cnt", "sc1_sess_cnt", "sc2_sess_cnt", "src_sess_cnt"];
    SessRate, "session rate, over the table's period", ["sc_sess_rate", "sc0_sess_rate", "sc1_sess_rate", "sc2_sess_rate", "src_sess_rate"];
};

/// Fetches that read bytes as kilobytes.
#[rustfmt::skip]
pub const KILOBYTES: &[Fetch] = rows! { kilobytes, kilobytes_source, CLIENT;
    BytesInCnt, "kilobytes from clients", ["sc_kbytes_in", "sc0_kbytes_in", "sc1_kbytes_in", "sc2_kbytes_in", "src_kbytes_in"];
    BytesOutCnt, "kilobytes to clients", ["sc_kbytes_out", "sc0_kbytes_out", "sc1_kbytes_out", "sc2_kbytes_out", "src_kbytes_out"];
};

/// Fetches that increment.
#[rustfmt::skip]
pub const INCREMENT: &[Fetch] = rows! { increment, increment_source, TRACKED;
    Gpc0, "increments the first general purpose counter and returns it", ["sc_inc_gpc0", "sc0_inc_gpc0", "sc1_inc_gpc0", "sc2_inc_gpc0", "src_inc_gpc0"];
    Gpc1, "increments the second general purpose counter and returns it", ["sc_inc_gpc1", "sc0_inc_gpc1", "sc1_inc_gpc1", "sc2_inc_gpc1", "src_inc_gpc1"];
};

/// Fetches that clear.
#[rustfmt::skip]
pub const CLEAR: &[Fetch] = rows! { clear, clear_source, TRACKED;
    Gpc0, "clears the first general purpose counter and returns its value", ["sc_clr_gpc0", "sc0_clr_gpc0", "sc1_clr_gpc0", "sc2_clr_gpc0", "src_clr_gpc0"];
    Gpc1, "clears the second general purpose counter and returns its value", ["sc_clr_gpc1", "sc0_clr_gpc1", "sc1_clr_gpc1", "sc2_clr_gpc1", "src_clr_gpc1"];
};

/// Fetches of arrays, and of an entry itself.
pub const OTHERS: &[Fetch] = &[
    indexed("sc_get_gpc", "Tracked entry: a general purpose counter.", |c, a| {
        read(c, number(a, 1)?, a.table(2), Datum::array(DataKind::Gpc, a.int(0)?)?)
    }),
    indexed("sc_get_gpt", "Tracked entry: a general purpose tag.", |c, a| {
        read(c, number(a, 1)?, a.table(2), Datum::array(DataKind::Gpt, a.int(0)?)?)
    }),
    indexed(
        "sc_gpc_rate",
        "Tracked entry: increment rate of a general purpose counter, over the table's period.",
        |c, a| read(c, number(a, 1)?, a.table(2), Datum::array(DataKind::GpcRate, a.int(0)?)?),
    ),
    indexed("sc_inc_gpc", "Tracked entry: increments a general purpose counter and returns it.", |c, a| {
        increment(c, number(a, 1)?, a.table(2), Datum::array(DataKind::Gpc, a.int(0)?)?)
    }),
    indexed("sc_clr_gpc", "Tracked entry: clears a general purpose counter and returns its value.", |c, a| {
        clear(c, number(a, 1)?, a.table(2), Datum::array(DataKind::Gpc, a.int(0)?)?)
    }),
    Fetch::new(
        "sc1_clr_gpc",
        Signature::new(1, &[Kind::Int, Kind::Table]),
        INT,
        TRACKED,
        "Entry tracked as 1: clears a general purpose counter and returns its value.",
        |c, a| clear(c, 1, a.table(1), Datum::array(DataKind::Gpc, a.int(0)?)?),
    ),
    of_source("src_get_gpc", "Entry of the client's address: a general purpose counter.", |c, a| {
        read_source(c, a.table(1)?, Datum::array(DataKind::Gpc, a.int(0)?)?)
    }),
    of_source("src_get_gpt", "Entry of the client's address: a general purpose tag.", |c, a| {
        read_source(c, a.table(1)?, Datum::array(DataKind::Gpt, a.int(0)?)?)
    }),
    of_source(
        "src_gpc_rate",
        "Entry of the client's address: increment rate of a general purpose counter, over the table's period.",
        |c, a| read_source(c, a.table(1)?, Datum::array(DataKind::GpcRate, a.int(0)?)?),
    ),
    of_source(
        "src_inc_gpc",
        "Entry of the client's address: increments a general purpose counter and returns it.",
        |c, a| increment_source(c, a.table(1)?, Datum::array(DataKind::Gpc, a.int(0)?)?),
    ),
    of_source(
        "src_clr_gpc",
        "Entry of the client's address: clears a general purpose counter and returns its value.",
        |c, a| clear_source(c, a.table(1)?, Datum::array(DataKind::Gpc, a.int(0)?)?),
    ),
    Fetch::new(
        "src_updt_conn_cnt",
        SOURCE,
        INT,
        CLIENT,
        "Entry of the client's address: increments the number of connections and returns it.",
        |c, a| change_source(c, a.table(0)?, |entry, _| entry.add(DataKind::ConnCnt, 0, 1)),
    )
    .checked(|a, c| table(a, c, 0)),
    Fetch::new("sc_key", Signature::new(1, &[Kind::Int]), Type::Any, TRACKED, "Tracked entry: its key.", |c, a| {
        key(c, number(a, 0)?)
    }),
    plain("sc0_key", Type::Any, TRACKED, "Entry tracked as 0: its key.", |c, _| key(c, 0)),
    plain("sc1_key", Type::Any, TRACKED, "Entry tracked as 1: its key.", |c, _| key(c, 1)),
    plain("sc2_key", Type::Any, TRACKED, "Entry tracked as 2: its key.", |c, _| key(c, 2)),
    Fetch::new("sc_tracked", NUMBERED, Type::Bool, TRACKED, "Whether an entry is tracked.", |c, a| {
        is_tracked(c, number(a, 0)?, a.table(1))
    }),
    Fetch::new("sc0_tracked", NAMED, Type::Bool, TRACKED, "Whether an entry is tracked as 0.", |c, a| {
        is_tracked(c, 0, a.table(0))
    }),
    Fetch::new("sc1_tracked", NAMED, Type::Bool, TRACKED, "Whether an entry is tracked as 1.", |c, a| {
        is_tracked(c, 1, a.table(0))
    }),
    Fetch::new("sc2_tracked", NAMED, Type::Bool, TRACKED, "Whether an entry is tracked as 2.", |c, a| {
        is_tracked(c, 2, a.table(0))
    }),
    Fetch::new("sc_trackers", NUMBERED, INT, TRACKED, "Tracked entry: number of concurrent trackers.", |c, a| {
        trackers(c, number(a, 0)?, a.table(1))
    }),
    Fetch::new("sc0_trackers", NAMED, INT, TRACKED, "Entry tracked as 0: number of concurrent trackers.", |c, a| {
        trackers(c, 0, a.table(0))
    }),
    Fetch::new("sc1_trackers", NAMED, INT, TRACKED, "Entry tracked as 1: number of concurrent trackers.", |c, a| {
        trackers(c, 1, a.table(0))
    }),
    Fetch::new("sc2_trackers", NAMED, INT, TRACKED, "Entry tracked as 2: number of concurrent trackers.", |c, a| {
        trackers(c, 2, a.table(0))
    }),
    Fetch::new("table_avl", SOURCE, INT, TRACKED, "Free entries of a stick table.", |c, a| {
        Some(Value::Int(c.live()?.tables.get(a.table(0)?)?.available().into()))
    })
    .checked(|a, c| table(a, c, 0)),
    Fetch::new("table_cnt", SOURCE, INT, TRACKED, "Entries in use in a stick table.", |c, a| {
        Some(Value::Int(c.live()?.tables.get(a.table(0)?)?.used().into()))
    })
    .checked(|a, c| table(a, c, 0)),
];

const fn indexed(name: &'static str, doc: &'static str, eval: expression::fetch::SampleOf) -> Fetch {
    Fetch::new(name, INDEXED, INT, TRACKED, doc, eval)
}

const fn of_source(name: &'static str, doc: &'static str, eval: expression::fetch::SampleOf) -> Fetch {
    Fetch::new(name, SOURCE_INDEXED, INT, CLIENT, doc, eval).checked(|a, c| table(a, c, 1))
}

/// Sets a missing table argument to the table of the proxy.
fn table(arguments: &mut Arguments, checking: &Checking<'_>, at: usize) -> Result<(), String> {
    stick::default_table(arguments, checking, at)
}

/// Returns the number of a stick counter in an argument; `None` if it is out of range.
fn number(arguments: &Arguments, at: usize) -> Option<u8> {
    u8::try_from(arguments.int(at)?).ok()
}

/// Calls `with` with the tracked entry of a stick counter.
#[inline]
fn tracked<T>(context: &Context<'_>, number: u8, with: impl FnOnce(&Tracked) -> Option<T>) -> Option<T> {
    with(&*context.tracked(number)?)
}

/// Returns another table and the tracked key, if the key types are equal.
fn elsewhere<'a>(context: &Context<'a>, tracked: &Tracked, table: usize) -> Option<(&'a Table, Vec<u8>)> {
    let other = context.live()?.tables.get(table)?;
    if other.plan.key.name() != tracked.table().plan.key.name() {
        return None;
    }
    Some((other, tracked.read(context.now, |entry| entry.key.to_vec())))
}

fn read<'a>(context: &Context<'a>, number: u8, table: Option<usize>, datum: Datum) -> Option<Value<'a>> {
    let found = match table {
        None => tracked(context, number, |tracked| datum.read_tracked(tracked, context.now)),
        Some(table) => read_elsewhere(context, number, table, datum),
    };
    found.map(int)
}

/// Reads the entry of the tracked key in another table; 0 if there is none.
#[inline(never)]
fn read_elsewhere(context: &Context<'_>, number: u8, table: usize, datum: Datum) -> Option<u64> {
    tracked(context, number, |tracked| {
        let (other, key) = elsewhere(context, tracked, table)?;
        other.find(&TableKey::Long(&key), context.now, |entry| datum.read(&entry, other)).unwrap_or(Some(0))
    })
}

fn read_source<'a>(context: &Context<'a>, table: usize, datum: Datum) -> Option<Value<'a>> {
    stick::look_up(context, source(context)?, table, 0, |entry, table| datum.read(entry, table)).map(int)
}

fn kilobytes<'a>(context: &Context<'a>, number: u8, table: Option<usize>, datum: Datum) -> Option<Value<'a>> {
    read(context, number, table, datum)?.integer().map(|bytes| Value::Int(bytes >> 10))
}

fn kilobytes_source<'a>(context: &Context<'a>, table: usize, datum: Datum) -> Option<Value<'a>> {
    read_source(context, table, datum)?.integer().map(|bytes| Value::Int(bytes >> 10))
}

fn source<'a>(context: &Context<'a>) -> Option<Value<'a>> {
    context.probes.source().map(|address| address.ip().into())
}

fn int<'a>(number: u64) -> Value<'a> {
    Value::Int(number as i64)
}

/// Changes the tracked entry, or that of the same key in another table, which is created if necessary.
fn change<'a>(
    context: &Context<'a>,
    number: u8,
    table: Option<usize>,
    with: impl Fn(&mut EntryMut<'_>, &Table) -> Option<u64>,
) -> Option<Value<'a>> {
    tracked(context, number, |tracked| match table {
        None => tracked.change(context.now, |entry| with(entry, tracked.table())),
        Some(table) => {
            let (other, key) = elsewhere(context, tracked, table)?;
            other.upsert(&TableKey::Long(&key), context.now, |entry| with(entry, other))?
        }
    })
    .map(int)
}

fn change_source<'a>(
    context: &Context<'a>,
    table: usize,
    with: impl Fn(&mut EntryMut<'_>, &Table) -> Option<u64>,
) -> Option<Value<'a>> {
    stick::change(context, source(context)?, table, with).map(int)
}

fn increment<'a>(context: &Context<'a>, number: u8, table: Option<usize>, datum: Datum) -> Option<Value<'a>> {
    change(context, number, table, |entry, table| datum.count(entry, table, 1))
}

fn increment_source<'a>(context: &Context<'a>, table: usize, datum: Datum) -> Option<Value<'a>> {
    change_source(context, table, |entry, table| datum.count(entry, table, 1))
}

fn clear<'a>(context: &Context<'a>, number: u8, table: Option<usize>, datum: Datum) -> Option<Value<'a>> {
    change(context, number, table, |entry, table| datum.set(entry, table, 0))
}

fn clear_source<'a>(context: &Context<'a>, table: usize, datum: Datum) -> Option<Value<'a>> {
    change_source(context, table, |entry, table| datum.set(entry, table, 0))
}

fn key<'a>(context: &Context<'a>, number: u8) -> Option<Value<'a>> {
    tracked(context, number, |tracked| {
        let key = tracked.read(context.now, |entry| context.copy(entry.key))?;
        sample_of(tracked.table().plan.key, key)
    })
}

fn is_tracked<'a>(context: &Context<'a>, number: u8, table: Option<usize>) -> Option<Value<'a>> {
    let found = tracked(context, number, |tracked| match table {
        None => Some(()),
        Some(table) => {
            let (other, key) = elsewhere(context, tracked, table)?;
            other.find(&TableKey::Long(&key), context.now, |_| ())
        }
    });
    Some(Value::Bool(found.is_some()))
}

fn trackers<'a>(context: &Context<'a>, number: u8, table: Option<usize>) -> Option<Value<'a>> {
    tracked(context, number, |tracked| match table {
        None => Some(tracked.read(context.now, |entry| entry.trackers)),
        Some(table) => {
            let (other, key) = elsewhere(context, tracked, table)?;
            Some(other.find(&TableKey::Long(&key), context.now, |entry| entry.trackers).unwrap_or(0))
        }
    })
    .map(|trackers| Value::Int(trackers.into()))
}
