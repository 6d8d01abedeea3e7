//! Fetches of a stream: its timers, its retries, its byte counts, its termination (sections 7.3.2 and 7.3.4). Must
//! never read a message.

use super::process::{check_unit, in_unit};
use super::{Fetch, SampleOf, plain};
use crate::record::Timers;
use crate::sample::{Context, Direction, Places, StreamFacts, Type, Value};
use crate::{Arguments, Checking, Kind, Signature};

const INT: Type = Type::Int;
const REQUEST: Places = Places::REQUEST;
const SERVER: Places = Places::SERVER_LAYER5;
const TRANSACTION: Places = Places::TRANSACTION;
/// Places for the bytes of the request.
const UP: Places = TRANSACTION;
/// Places for the bytes of the response.
const DOWN: Places = Places::TARGET;

/// Every fetch of the family.
pub const TABLE: &[Fetch] = &[
    timer("bc.timer.connect", SERVER, "Time to connect to the server, in milliseconds.", |c, _| {
        timed(c, |t| t.connect)
    }),
    of_stream("bc_be_queue", SERVER, "Requests processed before this one in the backend's queue.", |c, _| {
        Some(Value::Int(stream(c)?.backend_queue.into()))
    }),
    of_stream("bc_srv_queue", SERVER, "Requests processed before this one in the server's queue.", |c, _| {
        Some(Value::Int(stream(c)?.server_queue.into()))
    }),
    of_stream("bytes_in", UP, "Bytes received from the client.", bytes_in).at_end(),
    of_stream("bytes_out", DOWN, "Bytes received from the server.", bytes_of_server).at_end(),
    timer(
        "fc.timer.handshake",
        Places::CLIENT,
        "Time of the handshakes of the client's connection, in milliseconds.",
        handshake,
    ),
    timer(
        "fc.timer.total",
        Places::CLIENT_SESSION,
        "Time since the connection was accepted, in milliseconds.",
        |c, _| timed(c, |t| t.total),
    )
    .at_end(),
    plain("prio_class", INT, Places::RUNNING, "Priority class of the stream.", |c, _| {
        Some(Value::Int(stream(c)?.priority.0.into()))
    }),
    plain("prio_offset", INT, Places::RUNNING, "Priority offset of the stream.", |c, _| {
        Some(Value::Int(stream(c)?.priority.1.into()))
    }),
    of_stream("req.bytes_in", UP, "Bytes received from the client.", bytes_in).at_end(),
    of_stream("req.bytes_out", UP, "Bytes sent to the server.", |c, _| count(stream(c)?.sent)).at_end(),
    timer("req.timer.hdr", REQUEST, "Time to receive the request's header, in milliseconds.", |c, _| {
        head(c, |t| t.request)
    }),
    timer("req.timer.idle", REQUEST, "Idle time before the request's first byte, in milliseconds.", |c, _| {
        timed(c, |t| t.idle)
    }),
    timer("req.timer.queue", SERVER, "Time in queues, in milliseconds.", |c, _| timed(c, |t| t.queue)),
    timer("req.timer.tq", REQUEST, "Time until the request's header was received, in milliseconds (Tq).", |c, _| {
        head(c, |t| t.query())
    }),
    Fetch::new(
        "request_date",
        UNIT,
        INT,
        TRANSACTION,
        "Date when the request's first byte was received.",
        request_date,
    )
    .checked(check_date),
    of_stream("res.bytes_in", DOWN, "Bytes received from the server.", bytes_of_server).at_end(),
    of_stream("res.bytes_out", DOWN, "Bytes sent to the client.", |c, _| count(stream(c)?.bytes_out)).at_end(),
    timer("res.timer.data", DOWN, "Time to transfer the response's body, in milliseconds.", |c, _| {
        timed(c, |t| t.data)
    })
    .at_end(),
    timer(
        "res.timer.hdr",
        Places::RESPONSE,
        "Response time of the server, up to the end of the header, in milliseconds.",
        |c, _| timed(c, |t| t.response),
    ),
    of_stream("txn.conn_retries", SERVER, "Number of connection retries.", |c, _| {
        Some(Value::Int(stream(c)?.retries.into()))
    }),
    plain("txn.id32", INT, Places::RUNNING, "32-bit number of the stream within the process, from 0.", |c, _| {
        Some(Value::Int(stream(c)?.number.into()))
    }),
    plain("txn.redispatched", Type::Bool, SERVER, "Whether the request was redispatched to another server.", |c, _| {
        Some(Value::Bool(stream(c)?.redispatched))
    }),
    plain("txn.sess_term_state", Type::Str, Places::RUNNING, "Termination state of the stream, as in logs.", |c, _| {
        c.copy(&stream(c)?.termination).map(Value::Str)
    })
    .at_end(),
    timer("txn.timer.total", TRANSACTION, "Time since the request's first byte, in milliseconds (Ta).", |c, _| {
        timed(c, |t| t.active)
    })
    .at_end(),
    plain("unique-id", Type::Str, Places::EVERYWHERE, "The unique ID of the request (`unique-id-format`).", |c, _| {
        c.copy(c.probes.unique_id()?).map(Value::Str)
    }),
    timer("txn.timer.user", TRANSACTION, "Total time as seen by the user, in milliseconds (Tu).", |c, _| {
        timed(c, |t| t.user())
    })
    .at_end(),
];

const UNIT: Signature = Signature::new(0, &[Kind::Str]);

const fn timer(name: &'static str, places: Places, doc: &'static str, eval: SampleOf) -> Fetch {
    plain(name, INT, places, doc, eval)
}

const fn of_stream(name: &'static str, places: Places, doc: &'static str, eval: SampleOf) -> Fetch {
    plain(name, INT, places, doc, eval)
}

fn stream(context: &Context<'_>) -> Option<StreamFacts> {
    context.probes.stream()
}

fn timed<'a>(context: &Context<'a>, which: impl Fn(&Timers) -> i64) -> Option<Value<'a>> {
    Some(Value::Int(which(&stream(context)?.timings.timers(context.now))))
}

/// The connection has it before there is a stream.
fn handshake<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    timed(context, |timers| timers.handshake).or_else(|| {
        let mut own = None;
        context.probes.lend_record(&mut |record| own = Some(Value::Int(record.timers.handshake)));
        own
    })
}

/// Timers that end with the request's head are -1 in rules on requests: the head counts as received after these.
fn head<'a>(context: &Context<'a>, which: impl Fn(&Timers) -> i64) -> Option<Value<'a>> {
    match context.direction {
        Direction::Request => stream(context).map(|_| Value::Int(-1)),
        Direction::Response => timed(context, which),
    }
}

fn count<'a>(bytes: u64) -> Option<Value<'a>> {
    Some(Value::Int(i64::try_from(bytes).unwrap_or(i64::MAX)))
}

/// No bytes of a request are counted while its rules are evaluated.
fn bytes_in<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let taken = stream(context)?.bytes_in;
    count(if context.direction == Direction::Request { 0 } else { taken })
}

/// Bytes before compression, as the manual defines `bytes_out`.
fn bytes_of_server<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    count(stream(context)?.received)
}

fn check_date(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    check_unit(arguments, 0)
}

fn request_date<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let Some(facts) = stream(context) else {
        let accepted = context.probes.session()?.accept_date;
        return Some(Value::Int(in_unit(accepted, arguments.int(0))));
    };
    let waited = facts.timings.first_byte.map(|first| first.saturating_since(facts.timings.start));
    Some(Value::Int(in_unit(facts.start_date.saturating_add(waited.unwrap_or_default()), arguments.int(0))))
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    const ROWS: &[(&str, &str)] = &[
        ("fc.timer.handshake", "0"),
        ("req.timer.idle", "100"),
        ("req.timer.queue", "10"),
        ("bc.timer.connect", "20"),
        ("res.timer.hdr", "30"),
        ("res.timer.data", "790"),
        ("fc.timer.total", "1000"),
        ("txn.timer.total", "900"),
        ("unique-id", "id-7"),
        ("txn.timer.user", "900"),
        ("request_date", "1600000000"),
        ("request_date(ms)", "1600000000350"),
        ("bytes_in", "11"),
        ("req.bytes_in", "11"),
        ("bytes_out", "44"),
        ("res.bytes_out", "22"),
        ("req.bytes_out", "33"),
        ("res.bytes_in", "44"),
        ("txn.id32", "9"),
        ("txn.conn_retries", "2"),
        ("txn.redispatched", "1"),
        ("bc_srv_queue", "4"),
        ("bc_be_queue", "5"),
        ("txn.sess_term_state", "SD"),
        ("prio_class", "0"),
        ("prio_offset", "0"),
    ];

    #[test]
    fn a_stream() {
        check_rows(&Scene::response(200, &[]), ROWS);
        check_rows(&Scene::response(200, &[]), &[("req.timer.hdr", "50"), ("req.timer.tq", "150")]);
        check_rows(&Scene::request("GET", "/", &[]), &[("req.timer.hdr", "-1"), ("req.timer.tq", "-1")]);
    }
}
