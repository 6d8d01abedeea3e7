//! The output of each alias and each format, line by line. The expected text is the manual's or the observed output of
//! HAProxy 3.5.

use super::*;
use crate::record::{Endpoint, Origin, Record, Timers};
use base::moment::WallTime;
use config::spec::{LogFormatSpec, Mode};

/// A request like that of section 8.2.3, with a value in every field.
fn record() -> Record<'static> {
    Record {
        client: Endpoint::Inet("10.0.1.2:33317".parse().unwrap()),
        destination: Endpoint::Inet("10.0.3.31:80".parse().unwrap()),
        backend_source: Endpoint::Inet("192.168.0.1:50001".parse().unwrap()),
        server_address: Endpoint::Inet("192.168.0.9:8000".parse().unwrap()),
        frontend: "http-in",
        backend: "static",
        server: "srv1",
        accept_date: WallTime { seconds: 1_233_922_454, nanos: 655_999_999 },
        request_date: WallTime { seconds: 1_233_922_455, nanos: 7_000_000 },
        local_offset: 3_600,
        timers: Timers {
            handshake: 1,
            idle: 2,
            request: 10,
            queue: 3,
            connect: 30,
            response: 69,
            data: 4,
            active: 116,
            total: 119,
        },
        status: 200,
        bytes_to_client: 2750,
        bytes_from_client: 87,
        method: b"GET",
        target: b"/index.html?a=b",
        version: b"HTTP/1.1",
        request_captures: &[Some(b"1wt.eu"), None, Some(b"a {b|c}")],
        response_captures: &[Some(b"nginx")],
        request_cookie: Some(b"SID=1"),
        response_cookie: Some(b"SID=2"),
        unique_id: Some(b"x-1"),
        actconn: 5,
        feconn: 4,
        beconn: 3,
        srv_conn: 2,
        retries: 1,
        server_queue: 7,
        backend_queue: 8,
        pid: 14_389,
        hostname: "lb1",
        log_counter: 12,
        request_counter: 13,
        tls_version: Some("TLSv1.3"),
        tls_cipher: Some("TLS_AES_128_GCM_SHA256"),
        origin: Origin::Close,
        ..Record::default()
    }
}

fn line(format: &str, record: &Record<'_>) -> String {
    let mut out = Vec::new();
    LogFormat::compile(format).unwrap_or_else(|error| panic!("{format}: {error}")).render(record, &mut out);
    String::from_utf8(out).unwrap()
}

fn predefined(format: LogFormatSpec, mode: Mode, record: &Record<'_>) -> String {
    let mut out = Vec::new();
    LogFormat::predefined(&format, mode).render(record, &mut out);
    String::from_utf8(out).unwrap()
}

/// A format and its output for [`record`].
const CASES: &[(&str, &str)] = &[
    ("%T", "06/Feb/2009:12:14:14 +0000"),
    ("%Tl", "06/Feb/2009:13:14:14 +0100"),
    ("%Ts", "1233922454"),
    ("%{+X}Ts", "498C2996"),
    ("%t", "06/Feb/2009:13:14:14.655"),
    ("%ms", "655"),
    ("%{+X}ms", "28F"),
    ("%tr", "06/Feb/2009:13:14:15.007"),
    ("%trg", "06/Feb/2009:12:14:15 +0000"),
    ("%trl", "06/Feb/2009:13:14:15 +0100"),
    ("%Ta", "116"),
    ("%Tc", "30"),
    ("%Td", "4"),
    ("%Th", "1"),
    ("%Ti", "2"),
    ("%Tq", "13"),
    ("%TR", "10"),
    ("%Tr", "69"),
    ("%Tt", "119"),
    ("%Tu", "117"),
    ("%Tw", "3"),
    ("%B", "2750"),
    ("%U", "87"),
    ("%ac", "5"),
    ("%b", "static"),
    ("%{+Q}b", "\"static\""),
    ("%bc", "3"),
    ("%bi", "192.168.0.1"),
    ("%bp", "50001"),
    ("%bq", "8"),
    ("%ci", "10.0.1.2"),
    ("%{+Q}ci", "\"10.0.1.2\""),
    ("%{+X}ci", "0A000102"),
    ("%{+Q,+X}ci", "0A000102"),
    ("%cp", "33317"),
    ("%{+Q}cp", "33317"),
    ("%{+X}cp", "8225"),
    ("%f", "http-in"),
    ("%fc", "4"),
    ("%fi", "10.0.3.31"),
    ("%fp", "80"),
    ("%{+X}fp", "0050"),
    ("%ft", "http-in"),
    ("%rc", "1"),
    ("%s", "srv1"),
    ("%sc", "2"),
    ("%si", "192.168.0.9"),
    ("%sp", "8000"),
    ("%sq", "7"),
    ("%sslc", "TLS_AES_128_GCM_SHA256"),
    ("%sslv", "TLSv1.3"),
    ("%ST", "200"),
    ("%ts", "--"),
    ("%{+Q}ts", "--"),
    ("%tsc", "----"),
    ("%CC", "SID=1"),
    ("%CS", "SID=2"),
    ("%HM", "GET"),
    ("%HP", "/index.html"),
    ("%HPO", "/index.html"),
    ("%HQ", "?a=b"),
    ("%HU", "/index.html?a=b"),
    ("%HV", "HTTP/1.1"),
    ("%hr", "{1wt.eu||a #7Bb#7Cc#7D}"),
    ("%{+Q}hr", "\"{1wt.eu||a #7Bb#7Cc#7D}\""),
    ("%hrl", "1wt.eu - a #7Bb#7Cc#7D"),
    ("%{+Q}hrl", "\"1wt.eu\" \"\" \"a #7Bb#7Cc#7D\""),
    ("%hs", "{nginx}"),
    ("%hsl", "nginx"),
    ("%r", "GET /index.html?a=b HTTP/1.1"),
    ("%{+Q}r", "\"GET /index.html?a=b HTTP/1.1\""),
    ("%H", "lb1"),
    ("%ID", "x-1"),
    ("%lc", "12"),
    ("%{+X}lc", "000C"),
    ("%OG", "txn_close"),
    ("%{+Q}OG", "\"txn_close\""),
    ("%pid", "14389"),
    ("%{+X}pid", "3835"),
    ("%rt", "13"),
    ("%{+X}rt", "000D"),
];

#[test]
fn each_alias_prints_its_value() {
    for (format, wanted) in CASES {
        assert_eq!(line(format, &record()), *wanted, "{format}");
    }
}

#[test]
fn each_alias_is_documented_once_and_has_a_case() {
    let mut names = Vec::new();
    for alias in aliases() {
        assert!(!names.contains(&alias.name), "%{} stands twice in the tables", alias.name);
        assert!(!alias.doc.is_empty(), "%{}", alias.name);
        assert!(CASES.iter().any(|(format, _)| format.strip_prefix('%') == Some(alias.name)), "%{}", alias.name);
        names.push(alias.name);
    }
    // The manual's table, without `%o`.
    let manual = "T Tl Ts t ms tr trg trl Ta Tc Td Th Ti Tq TR Tr Tt Tu Tw B CC CS H HM HP HPO HQ HU HV ID ST U ac b bc \
                  bi bp bq ci cp f fc fi fp ft lc hr hrl hs hsl OG pid r rc rt s sc si sp sq sslc sslv ts tsc";
    for name in manual.split_whitespace() {
        assert!(names.contains(&name), "%{name} is missing");
    }
}

/// The documentation's table has exactly the rows of ours, in the same order.
#[test]
fn each_alias_stands_in_the_documentation() {
    let text = include_str!("../../../../docs/logging.md");
    let told: Vec<&str> = text.lines().filter(|line| line.starts_with("| `%")).collect();
    let rows = aliases().map(|alias| {
        let Alias { name, restriction, doc, kind, .. } = alias;
        format!(
            "| `%{name}` | {} | {} | {} |",
            restriction.letter(),
            doc.replace('|', "\\|").replace('<', "\\<"),
            kind.name()
        )
    });
    assert_eq!(told, rows.collect::<Vec<_>>());
}

/// A request that was never parsed, over UNIX sockets or without connections.
#[test]
fn each_alias_prints_something_for_a_missing_value() {
    let nothing = Record { frontend: "fe", backend: "fe", status: -1, ..Record::default() };
    for (format, wanted) in [
        ("%ci %cp %fi %fp %bi %bp %si %sp", "- - - - - - - -"),
        ("%{+Q}bi %{+Q}bp %{+X}bi %{+X}bp %{+Q,+X}si", "\"\" \"\" - - \"\""),
        ("%HM %HP %HPO %HQ %HU %HV %r", "<BADREQ> <BADREQ> <BADREQ> <BADREQ> <BADREQ> <BADREQ> <BADREQ>"),
        ("%{+Q}HM %{+Q}r", "\"<BADREQ>\" \"<BADREQ>\""),
        ("%CC %CS %ID %sslc %sslv", "- - - - -"),
        ("%{+Q}o %CC %CS %ID %sslc %sslv", "\"\" \"\" \"\" \"\" \"\""),
        ("[%hr%hrl%hs%hsl]", "[]"),
        ("[%{+Q}hr%{+Q}hrl]", "[]"),
        ("%s %ST %ts %tsc %OG", "<NOSRV> -1 -- ---- unspec"),
        ("%TR/%Tw/%Tc/%Tr/%Ta %Tq", "-1/-1/-1/-1/0 -1"),
    ] {
        assert_eq!(line(format, &nothing), wanted, "{format}");
    }
    let unix = Record { client: Endpoint::Unix(3), server_address: Endpoint::Unix(0), ..Record::default() };
    assert_eq!(line("%ci %cp %{+Q}ci %{+X}cp %si %sp", &unix), "unix 3 \"unix\" 0003 unix 0");
    let six = Record { client: Endpoint::Inet("[2001:db8::1]:33438".parse().unwrap()), ..Record::default() };
    assert_eq!(
        line("%ci %cp %{+X}ci %{+X}cp %{+Q}ci", &six),
        "2001:db8::1 33438 20010DB8000000000000000000000001 829E \"2001:db8::1\""
    );
}

#[test]
fn parts_of_the_request_line() {
    let bytes = |part: &'static str| part.as_bytes();
    for (request, wanted) in [
        ("GET / HTTP/1.0", "GET|/|/||/|HTTP/1.0"),
        ("GET /?x HTTP/1.0", "GET|/|/|?x|/?x|HTTP/1.0"),
        ("GET http://a.b/c?d=e HTTP/1.1", "GET|http://a.b/c|/c|?d=e|http://a.b/c?d=e|HTTP/1.1"),
        ("GET http://a.b?x=1/2 HTTP/1.1", "GET|http://a.b||?x=1/2|http://a.b?x=1/2|HTTP/1.1"),
        ("OPTIONS * HTTP/1.0", "OPTIONS|*|||*|HTTP/1.0"),
        ("CONNECT a:443 HTTP/1.1", "CONNECT|a:443|||a:443|HTTP/1.1"),
        ("GET /aaa", "GET|/aaa|/aaa||/aaa|HTTP/0.9"),
        ("GET /a\"b#c]?\\d HTTP/1.1", "GET|/a#22b#23c]|/a#22b#23c]|?\\d|/a#22b#23c]?\\d|HTTP/1.1"),
        ("GET", "GET|||||HTTP/0.9"),
    ] {
        let mut parts = request.split(' ').map(bytes);
        let mut next = || parts.next().unwrap_or_default();
        let record = Record { method: next(), target: next(), version: next(), ..Record::default() };
        assert_eq!(line("%HM|%HP|%HPO|%HQ|%HU|%HV", &record), wanted, "{request}");
    }
}

/// As HAProxy does with `tune.http.logurilen` set to these numbers.
#[test]
fn long_requests_are_cut() {
    for (request_limit, wanted) in [
        (2, "GE||HTTP/0.9|GE"),
        (3, "GET||HTTP/0.9|GET"),
        (4, "GET||HTTP/0.9|GET "),
        (9, "GET|/aaaa|HTTP/0.9|GET /aaaa"),
        (10, "GET|/aaaaa|HTTP/0.9|GET /aaaaa"),
        (11, "GET|/aaaaa|HTTP/0.9|GET /aaaaa "),
        (12, "GET|/aaaaa|H|GET /aaaaa H"),
        (19, "GET|/aaaaa|HTTP/1.1|GET /aaaaa HTTP/1.1"),
    ] {
        let record =
            Record { method: b"GET", target: b"/aaaaa", version: b"HTTP/1.1", request_limit, ..Record::default() };
        assert_eq!(line("%HM|%HU|%HV|%r", &record), wanted, "{request_limit}");
    }
}

#[test]
fn connections_that_failed_before_a_stream_existed() {
    let mut out = Vec::new();
    let record = Record { frontend: "frt", bind_name: "f1", ..record() };
    connection_error(&record, "Connection error during SSL handshake", &mut out);
    let wanted = b"10.0.1.2:33317 [06/Feb/2009:13:14:14.655] frt/f1: Connection error during SSL handshake";
    assert_eq!(out, wanted);
}

#[test]
fn early_lines_and_redispatches_are_marked() {
    let early = Record { partial: true, redispatched: true, ..record() };
    assert_eq!(
        line("%B %U %Ta %Tc %Td %Th %Ti %Tq %TR %Tr %Tt %Tu %Tw %rc", &early),
        "+2750 87 +116 30 4 1 2 13 10 69 +119 +117 3 +1"
    );
    assert_eq!(line("%ft %{+Q}ft", &Record { tls_frontend: true, ..record() }), "http-in~ \"http-in~\"");
}

#[test]
fn separators_are_merged_and_flags_follow_the_global_ones() {
    let bare = Record { request_captures: &[], response_captures: &[], ..record() };
    for (format, wanted) in [
        ("|%hr %hs| %hr|%hr %{+Q}HM", "| | | \"GET\""),
        ("%hr  %hs x %hr%hs y%hr %hs z ", "x y z "),
        ("  lead", "lead"),
        ("a  b\tc", "a b\tc"),
        ("%ci %{+Q}o %ci %{-Q}o %ci", "10.0.1.2 \"10.0.1.2\" 10.0.1.2"),
        ("%{+Q}o %{-Q}ci %b", "10.0.1.2 \"static\""),
        ("%{+Q}o%{+X}cp%b", "8225\"static\""),
        ("%ci%cp", "10.0.1.233317"),
        ("%% %%%% %%ci", "% %% %ci"),
        ("x%-y %_ %>", "x-y _ >"),
        ("%{Q}ci %{+Z}ci %{+Q+E}ci %{}ci %{+Q, +E}ci", "10.0.1.2 10.0.1.2 10.0.1.2 10.0.1.2 \"10.0.1.2\""),
        ("%(name)ci %(a-b_1:sint){+Q}ci %(:str)HM", "10.0.1.2 \"10.0.1.2\" GET"),
        ("\"%HP-\" %HP_ é", "\"/index.html-\" /index.html_ é"),
        ("%o", ""),
        ("%t\\nx", "06/Feb/2009:13:14:14.655\\nx"),
    ] {
        assert_eq!(line(format, &bare), wanted, "{format}");
    }
}

#[test]
fn broken_formats_are_refused_in_haproxys_words() {
    for (format, at, wanted) in [
        ("a%", 2, "truncated line after '%'"),
        ("%{+E", 4, "truncated line after '+E'"),
        ("%{+Q}", 5, "parse argument modifier without alias name near '%{+Q}'"),
        ("%{+Q}%ci", 5, "parse argument modifier without alias name near '%{+Q}'"),
        (
            "%foo",
            1,
            "no such format alias 'foo'. If you wanted to emit the '%' character verbatim, you need to use '%%'",
        ),
        (
            "%ciX",
            1,
            "no such format alias 'ciX'. If you wanted to emit the '%' character verbatim, you need to use '%%'",
        ),
        (
            "<% ci>",
            2,
            "unexpected alias name near ' ' at position 2 line : '<% ci>'. Maybe you want to write a single '%', use the \
             syntax '%%'",
        ),
        (
            "%(n)5",
            4,
            "unexpected alias name near '5' at position 4 line : '%(n)5'. Maybe you want to write a single '%', use the \
             syntax '%%'",
        ),
        ("%(n)", 4, "truncated line after '%'"),
        ("%(n){+Q}", 8, "parse argument modifier without alias name near '%{+Q}'"),
        ("%(n-a.b)ci", 5, "invalid character in custom name near '.' at position 5 line : '%(n-a.b)ci'"),
        ("%(n", 3, "invalid character in custom name near '"),
        (
            "%(n:foo)ci",
            4,
            "unexpected output type 'foo' at position 4 line : '%(n:foo)ci'. Supported types are: str, sint, bool, raw",
        ),
        ("%[src]", 1, "sample expressions are not supported yet by Weir, at position 1 line : '%[src]'"),
    ] {
        let error = LogFormat::compile(format).map(|_| ()).unwrap_err();
        assert_eq!((error.to_string().as_str(), error.at), (wanted, at), "{format}");
    }
    for (name, known) in [("TS", "Ts"), ("BP", "bp"), ("trx", "tr"), ("HMM", "HM"), ("zzz", "")] {
        let hint = LogFormat::compile(&format!("%{name}")).map(|_| ()).unwrap_err().hint();
        assert_eq!(hint, (!known.is_empty()).then(|| format!("did you mean '%{known}'?")), "{name}");
    }
}

#[test]
fn formats_that_can_be_logged_before_the_end() {
    for (format, mode, at_end) in [
        (LogFormatSpec::Default, Mode::Http, false),
        (LogFormatSpec::Tcp, Mode::Tcp, true),
        (LogFormatSpec::Http, Mode::Http, true),
        (LogFormatSpec::HttpClf, Mode::Http, true),
        (LogFormatSpec::Https, Mode::Http, true),
        (LogFormatSpec::TcpClf, Mode::Tcp, true),
    ] {
        let format = LogFormat::predefined(&format, mode);
        assert_eq!(format.waits_for_end(), at_end, "{format:?}");
        assert_eq!(format.is_default(), !at_end);
    }
    assert!(!LogFormat::compile("%ci %r %ST %s").unwrap().waits_for_end());
    assert!(LogFormat::compile("%ci %Tt").unwrap().waits_for_end());
    assert!(LogFormat::compile("%lc").unwrap().uses("lc"));
    assert!(!LogFormat::compile("%ci").unwrap().uses("lc"));
}

fn millis(request: i64, queue: i64, connect: i64, response: i64, active: i64) -> Timers {
    Timers { handshake: 0, idle: 0, request, queue, connect, response, data: 0, active, total: active }
}

/// The lines of section 8.9 that a current format can print, after "haproxy[pid]: ".
#[test]
fn examples_of_the_manual() {
    let px =
        Record { frontend: "px-http", backend: "px-http", server: "srv1", bytes_to_client: 243, ..Record::default() };
    let at = |time: i64, millis: u32| {
        let date = WallTime { seconds: 1_066_176_000 + time, nanos: millis * 1_000_000 };
        (date, date)
    };
    let head = Record { status: 200, method: b"HEAD", target: b"/", version: b"HTTP/1.0", ..px };
    let none = Record { server: "<NOSRV>", bytes_to_client: 0, timers: millis(-1, -1, -1, -1, 8490), ..px };
    // Client's port, date, the rest; actconn, feconn, beconn, srv_conn; the output.
    let cases = [
        (
            33318,
            at(30_717, 130),
            Record { timers: millis(6559, 0, 7, 147, 6723), ..head },
            [5, 3, 3, 1],
            "127.0.0.1:33318 [15/Oct/2003:08:31:57.130] px-http px-http/srv1 6559/0/7/147/6723 200 243 - - ---- 5/3/3/1/0 \
             0/0 \"HEAD / HTTP/1.0\"",
        ),
        (
            33319,
            at(30_717, 149),
            Record { timers: millis(6559, 1230, 7, 147, 6870), backend_queue: 9, ..head },
            [324, 239, 239, 99],
            "127.0.0.1:33319 [15/Oct/2003:08:31:57.149] px-http px-http/srv1 6559/1230/7/147/6870 200 243 - - ---- \
             324/239/239/99/0 0/9 \"HEAD / HTTP/1.0\"",
        ),
        (
            33320,
            at(30_737, 654),
            Record {
                timers: millis(9, 0, 7, 14, 30),
                partial: true,
                method: b"GET",
                target: b"/image.iso",
                version: b"HTTP/1.0",
                ..head
            },
            [3, 3, 3, 1],
            "127.0.0.1:33320 [15/Oct/2003:08:32:17.654] px-http px-http/srv1 9/0/7/14/+30 200 +243 - - ---- 3/3/3/1/0 0/0 \
             \"GET /image.iso HTTP/1.0\"",
        ),
        (
            33320,
            at(30_737, 925),
            Record {
                timers: millis(9, 0, 7, 14, 30),
                status: 502,
                termination: *b"PH--",
                method: b"GET",
                target: b"/cgi-bin/bug.cgi?",
                version: b"HTTP/1.0",
                ..px
            },
            [3, 2, 2, 0],
            "127.0.0.1:33320 [15/Oct/2003:08:32:17.925] px-http px-http/srv1 9/0/7/14/30 502 243 - - PH-- 3/2/2/0/0 0/0 \
             \"GET /cgi-bin/bug.cgi? HTTP/1.0\"",
        ),
        (
            34548,
            at(55_135, 798),
            Record { status: -1, termination: *b"CR--", ..none },
            [2, 2, 2, 0],
            // The manual's line predates "<BADREQ>".
            "127.0.0.1:34548 [15/Oct/2003:15:18:55.798] px-http px-http/<NOSRV> -1/-1/-1/-1/8490 -1 0 - - CR-- 2/2/2/0/0 \
             0/0 \"<BADREQ>\"",
        ),
        (
            34552,
            at(55_591, 462),
            Record {
                timers: millis(3183, -1, -1, -1, 11_215),
                status: 503,
                termination: *b"SC--",
                retries: 3,
                bytes_to_client: 0,
                ..head
            },
            [205, 202, 202, 115],
            "127.0.0.1:34552 [15/Oct/2003:15:26:31.462] px-http px-http/srv1 3183/-1/-1/-1/11215 503 0 - - SC-- \
             205/202/202/115/3 0/0 \"HEAD / HTTP/1.0\"",
        ),
    ];
    for (port, (accept_date, request_date), rest, [actconn, feconn, beconn, srv_conn], wanted) in cases {
        let client = Endpoint::Inet(([127, 0, 0, 1], port).into());
        let record = Record { client, accept_date, request_date, actconn, feconn, beconn, srv_conn, ..rest };
        assert_eq!(predefined(LogFormatSpec::Http, Mode::Http, &record), wanted);
    }
}

#[test]
fn predefined_formats() {
    let record = Record { request_date: record().accept_date, request_captures: &[Some(b"1wt.eu")], ..record() };
    for (format, mode, wanted) in [
        (LogFormatSpec::Default, Mode::Http, "Connect from 10.0.1.2:33317 to 10.0.3.31:80 (http-in/HTTP)"),
        (LogFormatSpec::Default, Mode::Tcp, "Connect from 10.0.1.2:33317 to 10.0.3.31:80 (http-in/TCP)"),
        (
            LogFormatSpec::Tcp,
            Mode::Tcp,
            "10.0.1.2:33317 [06/Feb/2009:13:14:14.655] http-in static/srv1 3/30/119 2750 -- 5/4/3/2/1 7/8",
        ),
        (
            LogFormatSpec::Http,
            Mode::Http,
            "10.0.1.2:33317 [06/Feb/2009:13:14:14.655] http-in static/srv1 10/3/30/69/116 200 2750 SID=1 SID=2 ---- \
             5/4/3/2/1 7/8 {1wt.eu} {nginx} \"GET /index.html?a=b HTTP/1.1\"",
        ),
        (
            LogFormatSpec::HttpClf,
            Mode::Http,
            "10.0.1.2 - - [06/Feb/2009:12:14:14 +0000] \"GET /index.html?a=b HTTP/1.1\" 200 2750 \"\" \"\" 33317 655 \
             \"http-in\" \"static\" \"srv1\" 10 3 30 69 116 ---- 5 4 3 2 1 7 8 \"SID=1\" \"SID=2\" \"1wt.eu\" \"nginx\"",
        ),
    ] {
        assert_eq!(predefined(format, mode, &record), wanted);
    }
    assert_eq!(
        line(LogFormat::TCP_CLF, &record),
        "10.0.1.2 - - [06/Feb/2009:12:14:14 +0000] \"TCP \" 000 2750 \"\" \"\" 33317 655 \"http-in\" \"static\" \"srv1\" 1 3 \
         30 119 87 ---- 5 4 3 2 1 7 8 \"\" \"\" "
    );
    assert_eq!(predefined(LogFormatSpec::Http, Mode::Tcp, &record), predefined(LogFormatSpec::Tcp, Mode::Tcp, &record));
    assert_eq!(predefined(LogFormatSpec::HttpClf, Mode::Tcp, &record), line(LogFormat::TCP_CLF, &record));
    let unix = Record { client: Endpoint::Unix(1), destination: Endpoint::Unix(1), ..record };
    assert_eq!(predefined(LogFormatSpec::Default, Mode::Http, &unix), "Connect to unix:1 (http-in/HTTP)");
}

/// Encodings of whole formats: named items only, with the observed output of HAProxy 3.5 for the same values.
#[test]
fn encodings_tell_what_has_a_name() {
    for (format, wanted) in [
        ("pre %{+json}o text %ci %(a)ci text2 %(b)cp post", r#"{"a": "10.0.1.2", "b": 33317}"#),
        (
            "%{+json}o %(x-_9)ms %()ci %(t)t %(s)Ts",
            r#"{"x-_9": 655, "t": "06/Feb/2009:13:14:14.655", "s": 1233922454}"#,
        ),
        (
            "%{+json,+X}o %(ci)ci %(cp)cp %(s)Ts %(m)ms",
            r#"{"ci": "0A000102", "cp": "8225", "s": "498C2996", "m": "28F"}"#,
        ),
        (
            "%{+json}o %(hr)hr %(hrl)hrl",
            r#"{"hr": "{1wt.eu||a #7Bb#7Cc#7D}", "hrl": ["1wt.eu", "-", "a #7Bb#7Cc#7D"]}"#,
        ),
        (
            "%{+json,+Q,+E}o %(r)r %(hrl)hrl",
            r#"{"r": "GET /index.html?a=b HTTP/1.1", "hrl": ["1wt.eu", "", "a #7Bb#7Cc#7D"]}"#,
        ),
        (
            "%{+json}o %(a:str)ST %(b:bool)ST %(c:raw)ci %(d:sint)HM %(e:raw)ST",
            r#"{"a": "200", "b": true, "c": "10.0.1.2", "d": "GET", "e": 200}"#,
        ),
        ("%{+json}o %(a){-json}ci %(b){+cbor}ci", r#"{"a": "10.0.1.2", "b": "10.0.1.2"}"#),
        ("%{+json}o %(a)ci %{-json}o %(e)ci", "\"10.0.1.2\" 10.0.1.2"),
        (
            "x %{+json}ci|%{+json}ST|%{+json}hsl|%{+cbor}ST|%{+cbor}ts|%{+cbor}ms",
            r#"x "10.0.1.2"|200|["nginx"]|18C8|622D2D|19028F"#,
        ),
        ("%{+cbor}o x", "BFFF"),
        (
            "%{+cbor}o %(a:str)ST %(b:bool)ST %(f)ft %(s)s %(ci)ci",
            "BF616118C86162F561667F67687474702D696EFF61736473727631626369683 1302E302E312E32FF",
        ),
        (
            "%{+cbor}o %(q)HQ %(hs)hs %(hrl)hrl",
            "BF61717F643F613D62FF6268737F617B656E67696E78617DFF6368726C9F7F663177742E6575FF7F612DFF7F62612063233742616263233743616363233744FFFFFF",
        ),
        ("%{+cbor,+X}o %(rt)rt", "BF6272746430303044FF"),
    ] {
        let wanted = if wanted.starts_with("BF") { wanted.replace(' ', "") } else { wanted.to_owned() };
        assert_eq!(line(format, &record()), wanted, "{format}");
    }
    let nothing = Record { status: -1, partial: true, redispatched: true, ..Record::default() };
    for (format, wanted) in [
        (
            "%{+json}o %(bi)bi %(bp)bp %(CC)CC %(ID)ID %(hr)hr %(hsl)hsl %(ST)ST %(B)B %(rc)rc %(HM)HM",
            r#"{"bi": "", "bp": "", "CC": "", "ID": "", "hr": null, "hsl": null, "ST": -1, "B": 0, "rc": 0, "HM": "<BADREQ>"}"#,
        ),
        (
            "%{+cbor}o %(bi)bi %(bp)bp %(CC)CC %(hr)hr %(hsl)hsl %(ST)ST",
            "BF626269F6626270F6624343F6626872F66368736CF662535420FF",
        ),
    ] {
        assert_eq!(line(format, &nothing), wanted, "{format}");
    }
    let mut out = Vec::new();
    LogFormat::compile("%{+bin,+cbor}o %(a)ci %(b)ST").unwrap().render(&record(), &mut out);
    assert_eq!(out, b"\xbfaah10.0.1.2ab\x18\xc8\xff");
}
