//! Converters that look up a sample in a stick table (section 7.3.1). Must never track anything; those that count
//! create missing entries.

use super::stick;
use base::moment::Moment;
use config::spec::DataKind;
use expression::convert::{Convert, Converter};
use expression::sample::{Context, Type, Value};
use expression::{Kind, Signature};
use live::table::{Datum, EntryMut, Table};

const TABLE_NAME: Signature = Signature::new(1, &[Kind::Table]);
const INDEXED: Signature = Signature::new(2, &[Kind::Int, Kind::Table]);
/// Arguments with a default value for a missing entry.
const OR_ELSE: Signature = Signature::new(1, &[Kind::Table, Kind::Int]);

/// Defines rows that read a data type.
macro_rules! rows {
    ($read:ident; $($kind:ident, $doc:literal, $name:literal;)*) => {
        &[$(row($name, $doc, |c, value, a| $read(c, value, a.table(0)?, Datum::first(DataKind::$kind)))),*]
    };
}

/// Converters that read.
#[rustfmt::skip]
pub const READ: &[Converter] = rows! { read;
    BytesInRate, "Rate of bytes from clients, over the table's period.", "table_bytes_in_rate";
    BytesOutRate, "Rate of bytes to clients, over the table's period.", "table_bytes_out_rate";
    ConnCnt, "Number of connections.", "table_conn_cnt";
    ConnCur, "Current connections.", "table_conn_cur";
    ConnRate, "Connection rate, over the table's period.", "table_conn_rate";
    Gpc0, "The first general purpose counter.", "table_gpc0";
    Gpc1, "The second general purpose counter.", "table_gpc1";
    Gpt0, "The first general purpose tag.", "table_gpt0";
    GlitchCnt, "Number of glitches.", "table_glitch_cnt";
    GlitchRate, "Glitch rate, over the table's period.", "table_glitch_rate";
    Gpc0Rate, "Increment rate of the first general purpose counter, over the table's period.", "table_gpc0_rate";
    Gpc1Rate, "Increment rate of the second general purpose counter, over the table's period.", "table_gpc1_rate";
    HttpErrCnt, "Number of HTTP errors.", "table_http_err_cnt";
    HttpErrRate, "HTTP error rate, over the table's period.", "table_http_err_rate";
    HttpFailCnt, "Number of HTTP failures.", "table_http_fail_cnt";
    HttpFailRate, "HTTP failure rate, over the table's period.", "table_http_fail_rate";
    HttpReqCnt, "Number of requests.", "table_http_req_cnt";
    HttpReqRate, "Request rate, over the table's period.", "table_http_req_rate";
    SessCnt, "Number of sessions.", "table_sess_cnt";
    SessRate, "Session rate, over the table's period.", "table_sess_rate";
    ServerId, "Number (`id`) of the server stored in the entry.", "table_server_id";
};

/// Converters that read bytes as kilobytes.
#[rustfmt::skip]
pub const KILOBYTES: &[Converter] = rows! { kilobytes;
    BytesInCnt, "Kilobytes from clients.", "table_kbytes_in";
    BytesOutCnt, "Kilobytes to clients.", "table_kbytes_out";
};

/// Other converters.
pub const OTHERS: &[Converter] = &[
    row("table_clr_gpc0", "Clears the first general purpose counter and returns its value.", |c, value, a| {
        change(c, value, a.table(0)?, |entry, table| Datum::first(DataKind::Gpc0).set(entry, table, 0))
    }),
    row("table_clr_gpc1", "Clears the second general purpose counter and returns its value.", |c, value, a| {
        change(c, value, a.table(0)?, |entry, table| Datum::first(DataKind::Gpc1).set(entry, table, 0))
    }),
    row("table_inc_gpc0", "Increments the first general purpose counter and returns it.", |c, value, a| {
        change(c, value, a.table(0)?, |entry, table| Datum::first(DataKind::Gpc0).count(entry, table, 1))
    }),
    row("table_inc_gpc1", "Increments the second general purpose counter and returns it.", |c, value, a| {
        change(c, value, a.table(0)?, |entry, table| Datum::first(DataKind::Gpc1).count(entry, table, 1))
    }),
    indexed("table_clr_gpc", "Clears a general purpose counter and returns its value.", |c, value, a| {
        let datum = Datum::array(DataKind::Gpc, a.int(0)?)?;
        change(c, value, a.table(1)?, |entry, table| datum.set(entry, table, 0))
    }),
    indexed("table_inc_gpc", "Increments a general purpose counter and returns it.", |c, value, a| {
        let datum = Datum::array(DataKind::Gpc, a.int(0)?)?;
        change(c, value, a.table(1)?, |entry, table| datum.count(entry, table, 1))
    }),
    indexed("table_gpc", "A general purpose counter.", |c, value, a| {
        read(c, value, a.table(1)?, Datum::array(DataKind::Gpc, a.int(0)?)?)
    }),
    indexed(
        "table_gpc_rate",
        "Increment rate of a general purpose counter, over the table's period.",
        |c, value, a| read(c, value, a.table(1)?, Datum::array(DataKind::GpcRate, a.int(0)?)?),
    ),
    indexed("table_gpt", "A general purpose tag.", |c, value, a| {
        read(c, value, a.table(1)?, Datum::array(DataKind::Gpt, a.int(0)?)?)
    }),
    Converter::new(
        "in_table",
        TABLE_NAME,
        Type::Any,
        Type::Bool,
        "Whether the table has an entry for the key.",
        |c, value, a| stick::look_up(c, value, a.table(0)?, false, |_, _| Some(true)).map(Value::Bool),
    )
    .checked(|a, c| stick::default_table(a, c, 0)),
    row("table_trackers", "Number of concurrent trackers of the entry.", |c, value, a| {
        stick::look_up(c, value, a.table(0)?, 0, |entry, _| Some(entry.trackers)).map(|found| Value::Int(found.into()))
    }),
    or_else("table_expire", "Remaining lifetime of the entry, in milliseconds.", |c, value, a| {
        age(c, value, a.table(0)?, a.int(1), |left, _| left)
    }),
    or_else("table_idle", "Time since the entry was refreshed, in milliseconds.", |c, value, a| {
        age(c, value, a.table(0)?, a.int(1), |left, life| life.saturating_sub(left))
    }),
];

const fn row(name: &'static str, doc: &'static str, eval: Convert) -> Converter {
    Converter::new(name, TABLE_NAME, Type::Any, Type::Int, doc, eval).checked(|a, c| stick::default_table(a, c, 0))
}

const fn indexed(name: &'static str, doc: &'static str, eval: Convert) -> Converter {
    Converter::new(name, INDEXED, Type::Any, Type::Int, doc, eval).checked(|a, c| stick::default_table(a, c, 1))
}

const fn or_else(name: &'static str, doc: &'static str, eval: Convert) -> Converter {
    Converter::new(name, OR_ELSE, Type::Any, Type::Int, doc, eval).checked(|a, c| stick::default_table(a, c, 0))
}

fn read<'a>(context: &Context<'a>, value: Value<'a>, table: usize, datum: Datum) -> Option<Value<'a>> {
    let found = stick::look_up(context, value, table, 0, |entry, table| datum.read(entry, table))?;
    Some(Value::Int(found as i64))
}

fn kilobytes<'a>(context: &Context<'a>, value: Value<'a>, table: usize, datum: Datum) -> Option<Value<'a>> {
    read(context, value, table, datum)?.integer().map(|bytes| Value::Int(bytes >> 10))
}

fn change<'a>(
    context: &Context<'a>,
    value: Value<'a>,
    table: usize,
    with: impl FnOnce(&mut EntryMut<'_>, &Table) -> Option<u64>,
) -> Option<Value<'a>> {
    stick::change(context, value, table, with).map(|found| Value::Int(found as i64))
}

/// Returns a time computed from the remaining and the total lifetime of an entry, in milliseconds.
fn age<'a>(
    context: &Context<'a>,
    value: Value<'a>,
    table: usize,
    missing: Option<i64>,
    tell: impl FnOnce(i64, i64) -> i64,
) -> Option<Value<'a>> {
    let found = stick::look_up(context, value, table, missing, |entry, table| {
        let left = if entry.until == Moment::MAX { 0 } else { entry.until.millis_since(context.now) };
        let life = table.plan.expire.map_or(0, |life| life.as_millis());
        Some(Some(tell(left as i64, life as i64)))
    })?;
    found.map(Value::Int)
}
