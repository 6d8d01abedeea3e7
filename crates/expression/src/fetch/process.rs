//! Fetches of the process: its number, its load, the date, random numbers (section 7.3.2). Must never query the system
//! itself: the probes do.

use super::{Fetch, plain};
use crate::sample::{Context, Places, Type, Value};
use crate::{Argument, Arguments, Checking, Kind, Signature};
use base::moment::WallTime;
use std::fmt::Write as _;

const ALL: Places = Places::EVERYWHERE;

/// Every fetch of the family.
pub const TABLE: &[Fetch] = &[
    Fetch::new("date", DATE, Type::Int, ALL, "The current date, plus an offset.", date).checked(check_date),
    plain("date_us", Type::Int, ALL, "Microseconds part of the current date.", date_us),
    Fetch::new("env", NAME, Type::Str, ALL, "Value of an environment variable.", env),
    plain("hostname", Type::Str, ALL, "Host name of this machine.", hostname),
    plain("nbproc", Type::Int, ALL, "Always 1, since there is a single process.", one),
    plain("pid", Type::Int, ALL, "Process ID.", pid),
    plain("proc", Type::Int, ALL, "Always 1, since there is a single process.", one),
    plain(
        "quic_enabled",
        Type::Bool,
        ALL,
        "Whether QUIC addresses receive datagrams (`tune.quic.listen`).",
        quic_enabled,
    ),
    Fetch::new("rand", RANGE, Type::Int, ALL, "Random number from 0 up to the range, exclusive.", rand)
        .checked(check_range),
    plain("stopping", Type::Bool, RUNNING, "Whether the process is stopping.", stopping),
    plain("tgroup", Type::Int, ALL, "Thread group of the current thread; always 0.", tgroup),
    plain("thread", Type::Int, ALL, "Number of the current thread, from 0.", thread),
    plain("uptime", Type::Int, ALL, "Seconds since the process started.", uptime),
    Fetch::new("uuid", RANGE, Type::Str, ALL, "A random UUID of version 4 or 7.", uuid).checked(check_uuid),
];

const RUNNING: Places = Places::RUNNING;
const NAME: Signature = Signature::new(1, &[Kind::Str]);
const DATE: Signature = Signature::new(0, &[Kind::Int, Kind::Str]);
const RANGE: Signature = Signature::new(0, &[Kind::Int]);

/// Replaces a unit with its number per second; the default is the second.
pub(super) fn check_unit(arguments: &mut Arguments, index: usize) -> Result<(), String> {
    let parts = match arguments.utf8(index) {
        None | Some("s") => 1,
        Some("ms") => 1_000,
        Some("us") => 1_000_000,
        Some(other) => {
            return Err(format!("expects 's', 'ms' or 'us', got '{other}'"));
        }
    };
    arguments.set(index, Argument::Int(parts));
    Ok(())
}

/// A date in the unit that [`check_unit`] has parsed.
pub(super) fn in_unit(date: WallTime, parts: Option<i64>) -> i64 {
    let parts = parts.unwrap_or(1);
    let fraction = i64::from(date.nanos) / (1_000_000_000 / parts.max(1));
    date.seconds.saturating_mul(parts).saturating_add(fraction * i64::from(parts > 1))
}

fn check_date(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    check_unit(arguments, 1)
}

fn date<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let now = in_unit(context.probes.wall(), arguments.int(1));
    Some(Value::Int(now.saturating_add(arguments.int(0).unwrap_or(0))))
}

fn date_us<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    Some(Value::Int(i64::from(context.probes.wall().nanos / 1_000)))
}

fn env<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    context.probes.environment(arguments.text(0)?).map(Value::Str)
}

fn hostname<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    Some(Value::Str(context.probes.process().hostname.as_bytes()))
}

fn one<'a>(_: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    Some(Value::Int(1))
}

fn pid<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    Some(Value::Int(context.probes.process().pid.into()))
}

fn quic_enabled<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    Some(Value::Bool(context.probes.process().quic))
}

fn check_range(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    // Only the lower 32 bits of a range count, as in HAProxy.
    if let Some(range) = arguments.int(0) {
        arguments.set(0, Argument::Int(range & 0xffff_ffff));
    }
    Ok(())
}

fn rand<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let number = context.probes.random() >> 32;
    Some(Value::Int(match arguments.int(0) {
        Some(range) => ((number * range.unsigned_abs()) >> 32) as i64,
        None => number as i64,
    }))
}

fn stopping<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    Some(Value::Bool(context.probes.process().stopping))
}

fn tgroup<'a>(_: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    Some(Value::Int(0))
}

fn thread<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    Some(Value::Int(context.probes.process().thread as i64))
}

fn uptime<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    Some(Value::Int(context.probes.process().uptime as i64))
}

fn check_uuid(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    match arguments.int(0) {
        None | Some(4 | 7) => Ok(()),
        Some(other) => Err(format!("Unsupported UUID version: '{other}'")),
    }
}

/// RFC 9562, sections 5.4 and 5.7.
fn uuid<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (first, second) = (context.probes.random(), context.probes.random());
    let mut number = (u128::from(first) << 64) | u128::from(second);
    let version = arguments.int(0).unwrap_or(4) as u128;
    if version == 7 {
        let wall = context.probes.wall();
        let millis = wall.seconds as u128 * 1_000 + u128::from(wall.millis());
        number = (number & ((1 << 80) - 1)) | ((millis & 0xffff_ffff_ffff) << 80);
    }
    number = (number & !(0xf << 76) & !(0b11 << 62)) | (version << 76) | (0b10 << 62);
    let mut text = context.text(36);
    let part = |shift: u32, bits: u32| (number >> shift) & ((1 << bits) - 1);
    let parts = (part(96, 32), part(80, 16), part(64, 16), part(48, 16), part(0, 48));
    write!(text, "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}", parts.0, parts.1, parts.2, parts.3, parts.4).ok()?;
    text.finish().map(Value::Str)
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn the_process_and_the_date() {
        // The time is 1700000000.123456789, the random number always 0x0123456789abcdef.
        check_rows(
            &Scene::default(),
            &[
                ("date", "1700000000"),
                ("date(3600)", "1700003600"),
                ("date(-10,ms)", "1700000000113"),
                ("date(0,us)", "1700000000123456"),
                ("date_us", "123456"),
                ("rand", "19088743"),
                ("rand(1000)", "4"),
                ("rand(1)", "0"),
                ("uuid", "01234567-89ab-4def-8123-456789abcdef"),
                ("uuid(7)", "018bcfe5-687b-7def-8123-456789abcdef"),
                ("uuid(5)", "!invalid args in fetch method 'uuid' : Unsupported UUID version: '5'"),
                ("env(HOME)", "/home/weir"),
                ("env(NOPE)", "<none>"),
                ("hostname", "lb1"),
                ("nbproc", "1"),
                ("proc", "1"),
                ("pid", "42"),
                ("thread", "3"),
                ("tgroup", "0"),
                ("stopping", "0"),
                ("uptime", "7"),
                ("quic_enabled", "1"),
            ],
        );
    }
}
