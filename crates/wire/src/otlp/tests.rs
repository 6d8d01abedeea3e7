//! Encoded messages, decoded by an independent decoder.

use super::decoder::show;
use super::*;

const SPAN: SpanContext = SpanContext { trace_id: [0xab; 16], span_id: [0xcd; 8] };

fn head(name: &[u8]) -> SpanHead<'_> {
    SpanHead {
        context: SPAN,
        parent: None,
        parent_is_remote: false,
        state: b"",
        name,
        kind: Kind::Server,
        start: 5,
        end: 9,
    }
}

#[test]
fn spans_are_written_as_the_schema_says() {
    type Rest = fn(&mut Message<'_>);
    let names = format!("1:{} 2:{}", "ab".repeat(16), "cd".repeat(8));
    let nothing: Rest = |_| {};
    let rows: Vec<(SpanHead<'_>, Rest, String)> = vec![
        (head(b"GET"), nothing, "5:'GET' 6:2 7:5 8:9 16:257".to_owned()),
        (head(b"a\xffb"), nothing, "5:'a\u{fffd}b' 6:2 7:5 8:9 16:257".to_owned()),
        (
            SpanHead { parent: Some(*b"parent01"), parent_is_remote: true, state: b"a=1", end: 1, ..head(b"x") },
            nothing,
            "3:'a=1' 4:'parent01' 5:'x' 6:2 7:5 8:5 16:769".to_owned(),
        ),
        (
            SpanHead { kind: Kind::Client, ..head(b"") },
            |span| {
                span.span_attribute("t", Value::Text(b""));
                span.span_attribute("n", Value::Int(-1));
                span.span_attribute("z", Value::Int(0));
                span.span_attribute("b", Value::Bool(false));
                span.span_event(SpanEvent { time: 3, name: b"e" }, [("k", Value::Int(300))].into_iter());
                span.span_link(SpanContext { trace_id: *b"abcdefghijklmnop", span_id: *b"abcdefgh" });
                span.span_status(Status::Error, b"bad");
            },
            "6:3 7:5 8:9 9:{ 1:'t' 2:{ 1:'' } } 9:{ 1:'n' 2:{ 3:18446744073709551615 } } 9:{ 1:'z' 2:{ 3:0 } } \
             9:{ 1:'b' 2:{ 2:0 } } 11:{ 1:3 2:'e' 3:{ 1:'k' 2:{ 3:300 } } } 13:{ 1:'abcdefghijklmnop' 2:'abcdefgh' } \
             15:{ 2:'bad' 3:2 } 16:257"
                .to_owned(),
        ),
        (head(b"x"), |span| span.span_status(Status::Ok, b"no"), "5:'x' 6:2 7:5 8:9 15:{ 3:1 } 16:257".to_owned()),
        (head(b"x"), |span| span.span_status(Status::Unset, b"no"), "5:'x' 6:2 7:5 8:9 16:257".to_owned()),
    ];
    let is_message = |path: &[u64]| matches!(path, [9 | 11 | 13 | 15] | [9, 2] | [11, 3] | [11, 3, 2]);
    for (head, rest, expected) in rows {
        let mut out = Vec::new();
        head.write(&mut out, rest);
        assert_eq!(show(&out, &is_message), format!("{names} {expected}"));
    }
}

#[test]
fn long_messages_have_longer_lengths() {
    for length in [0, 1, 100, 127, 128, 16_383, 16_384, 100_000] {
        let mut out = Vec::new();
        let text = "x".repeat(length);
        head(text.as_bytes()).write(&mut out, |span| span.span_attribute("k", Value::Text(text.as_bytes())));
        let shown = show(&out, &|path| matches!(path, [9] | [9, 2]));
        assert!(shown.contains(&format!("9:{{ 1:'k' 2:{{ 1:'{text}' }} }} 16:")), "{length}");
    }
}

#[test]
fn requests_have_resource_scope_and_items() {
    let resource = [("service.name", Value::Text(b"weir")), ("n", Value::Int(1))];
    let scope = Scope { name: "s", version: "1" };
    let items: [&[u8]; 2] = [b"\x0a\x01a", b"\x0a\x01b"];
    let body = request(resource.into_iter(), scope, items.into_iter());
    let is_message = |path: &[u64]| matches!(path, [1] | [1, 1 | 2] | [1, 1, 1] | [1, 1, 1, 2] | [1, 2, 1 | 2]);
    assert_eq!(
        show(&body, &is_message),
        "1:{ 1:{ 1:{ 1:'service.name' 2:{ 1:'weir' } } 1:{ 1:'n' 2:{ 3:1 } } } 2:{ 1:{ 1:'s' 2:'1' } 2:{ 1:'a' } \
         2:{ 1:'b' } } }"
    );
}

#[test]
fn records_and_metrics_are_written_as_the_schema_says() {
    let record = LogRecord {
        time: 7,
        severity: 9,
        severity_text: "info",
        event: "e",
        body: Value::Text(b"said"),
        span: Some(SpanContext { trace_id: *b"abcdefghijklmnop", span_id: *b"abcdefgh" }),
    };
    let mut out = Vec::new();
    record.write(&mut out, [("k", Value::Bool(true))].into_iter());
    assert_eq!(
        show(&out, &|path| matches!(path, [5 | 6] | [6, 2])),
        "1:7 2:9 3:'info' 5:{ 1:'said' } 6:{ 1:'k' 2:{ 2:1 } } 8:1 9:'abcdefghijklmnop' 10:'abcdefgh' 11:7 12:'e'"
    );
    let metric = Metric { name: "m", description: "d", unit: "By" };
    let mut out = Vec::new();
    metric.write(&mut out, Shape::Sum { is_monotonic: true }, |points| {
        points.point(&Point { start: 1, time: 2, value: 3.0 }, |point| point.point_attribute("k", Value::Int(4)));
        points.point(&Point { start: 1, time: 2, value: 0.5 }, |_| {});
    });
    assert_eq!(
        show(&out, &|path| matches!(path, [7] | [7, 1] | [7, 1, 7] | [7, 1, 7, 2])),
        format!(
            "1:'m' 2:'d' 3:'By' 7:{{ 1:{{ 2:1 3:2 6:3 7:{{ 1:'k' 2:{{ 3:4 }} }} }} 1:{{ 2:1 3:2 4:{} }} 2:2 3:1 }}",
            0.5f64.to_bits()
        )
    );
    let mut out = Vec::new();
    metric.write(&mut out, Shape::Gauge, |points| points.point(&Point { start: 0, time: 2, value: -1.0 }, |_| {}));
    assert_eq!(
        show(&out, &|path| matches!(path, [5] | [5, 1])),
        format!("1:'m' 2:'d' 3:'By' 5:{{ 1:{{ 3:2 6:{} }} }}", u64::MAX)
    );
}

#[test]
fn answers_of_collectors_are_read_with_care() {
    type Row<'a> = (&'a [u8], Option<(u64, &'a str)>);
    let rows: &[Row<'_>] = &[
        (b"", None),
        (b"\x0a\x00", None),
        (b"\x0a\x02\x08\x05", Some((5, ""))),
        (b"\x0a\x05\x12\x03bad", Some((0, "bad"))),
        (b"\x0a\x07\x08\x05\x12\x03bad", Some((5, "bad"))),
        (b"\x12\x01x\x0a\x02\x08\x05", Some((5, ""))),
        // Truncated, endless and malformed responses.
        (b"\x0a\x05\x08", None),
        (b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", None),
        (b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", None),
        (b"\x0b", None),
        (b"{}", None),
    ];
    for (body, expected) in rows {
        let found = partial_success(body);
        let expected = expected.map(|(rejected, message)| PartialSuccess { rejected, message: message.to_owned() });
        assert_eq!(found, expected, "{body:?}");
    }
}
