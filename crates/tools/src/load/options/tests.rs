//! Command lines with the resulting plans.

use super::*;
use crate::load::plan::Reference;
use std::io;
use std::net::SocketAddr;

fn nowhere(host: &str, port: u16) -> io::Result<SocketAddr> {
    match host {
        "unknown" => Err(io::Error::other("no such name")),
        _ => Ok(SocketAddr::from(([192, 0, 2, 1], port))),
    }
}

fn words(words: &[&str]) -> Result<LoadTask, Outcome> {
    parse(&words.iter().map(OsString::from).collect::<Vec<_>>(), &nowhere)
}

fn plan(line: &[&str]) -> Plan {
    match words(line) {
        Ok(LoadTask::Run(plan)) => *plan,
        other => panic!("{line:?}: {other:?}"),
    }
}

fn refused(line: &[&str]) -> String {
    match words(line) {
        Err(Outcome::Misused(why)) => why,
        other => panic!("{line:?}: {other:?}"),
    }
}

#[test]
fn every_row_is_spelled_once_and_can_be_found() {
    for (index, row) in OPTIONS.iter().enumerate() {
        assert!(OPTIONS[..index].iter().all(|other| other.name != row.name), "{} twice", row.name);
        let (found, attached) = find(OsStr::new(row.name)).expect(row.name);
        assert_eq!((found.name, attached), (row.name, None));
        assert!(row.name.starts_with("--") || row.value == Value::None || row.name.len() == 2, "{}", row.name);
    }
}

#[test]
fn every_option_of_h1load_is_known() {
    let known = "-c -t -d -n -r -s -R -T -w -e -l -ll -A -P -H -O -I -S -F -v --cipher-list --cipher-suites --tls-reuse --tls-ver";
    for name in known.split(' ') {
        assert!(OPTIONS.iter().any(|row| row.name == name), "{name}");
    }
    assert_eq!(words(&["-h"]), Ok(LoadTask::Help));
    assert_eq!(words(&["-c", "3", "--help", "--nonsense"]), Ok(LoadTask::Help));
}

#[test]
fn a_line_of_h1load_means_what_it_means_there() {
    let line = "-t 2 -c 10 -d 3 -n 1000 -r 100 -s 2 -T 10 -w 100 -e -A -F -O 66/1448 -ll -P -S -v http://a:81/x";
    let plan = plan(&line.split(' ').collect::<Vec<_>>());
    assert_eq!(
        (plan.threads, plan.connections, plan.requests, plan.requests_per_connection),
        (2, 10, Some(1000), Some(100))
    );
    let times = (plan.duration, plan.ramp_up, plan.think, plan.timeout);
    let millis = Duration::from_millis;
    assert_eq!(times, (Some(millis(3000)), millis(2000), millis(10), Some(millis(100))));
    assert!(plan.stop_on_error && plan.first_untimed && plan.send_with_handshake);
    assert_eq!((plan.overhead, plan.pace, plan.reference), (Some((66, 1448)), Pace::AsFastAsAnswered, None));
    let output = Output { long: 2, percentiles: true, statuses: true, verbose: 1, ..Output::default() };
    assert_eq!(plan.output, output);
    assert_eq!(plan.targets.len(), 1);
    assert_eq!(plan.targets[0].address, "192.0.2.1:81".parse().expect("an address"));
    assert_eq!(plan.targets[0].request, b"GET /x HTTP/1.1\r\nHost: a:81\r\n\r\n");
    assert_eq!(plan.targets[0].last_request, b"GET /x HTTP/1.1\r\nHost: a:81\r\nConnection: close\r\n\r\n");
}

#[test]
fn values_stand_behind_their_option_in_every_form() {
    assert_eq!(plan(&["-c4", "-n1k", "-d500ms", "a"]), plan(&["a", "-c", "4", "-n", "1k", "-d", "0.5"]));
    assert_eq!(plan(&["-l", "-l", "a"]), plan(&["-ll", "a"]));
    assert_eq!(plan(&["-n", "-1", "-r", "0", "-w", "-1", "-R", "0", "-d", "0", "a"]), plan(&["a"]));
    assert_eq!(plan(&["--constant=1.5k", "a"]).pace, Pace::Constant(1500.0));
    assert_eq!(plan(&["-R", "10", "a"]).pace, Pace::AtMost(10.0));
    assert_eq!(plan(&["--reference", "100,4", "a"]).reference, Some(Reference { rate: 100.0, connections: 4 }));
    assert_eq!(plan(&["--json", "a"]).output.json, Some(ReportSink::Stdout));
    assert_eq!(plan(&["--csv=x", "a"]).output.csv, Some(ReportSink::File("x".into())));
    assert_eq!(plan(&["--", "a"]).targets.len(), 1);
}

#[test]
fn options_about_requests_hold_for_the_urls_behind_them() {
    let plan = plan(&[
        "-H", "x: 1", "--weight", "3", "a/1", "--data", "hi", "a/2", "-X", "PUT", "-H", "y: 2", "a/3", "-I", "a/4",
    ]);
    let heads = plan.targets.iter().map(|target| String::from_utf8_lossy(&target.request).into_owned());
    assert_eq!(
        heads.collect::<Vec<_>>(),
        [
            "GET /1 HTTP/1.1\r\nHost: a\r\nx: 1\r\n\r\n",
            "POST /2 HTTP/1.1\r\nHost: a\r\nx: 1\r\nContent-Length: 2\r\n\r\nhi",
            "PUT /3 HTTP/1.1\r\nHost: a\r\nx: 1\r\ny: 2\r\nContent-Length: 2\r\n\r\nhi",
            "HEAD /4 HTTP/1.1\r\nHost: a\r\nx: 1\r\ny: 2\r\nContent-Length: 2\r\n\r\nhi",
        ]
    );
    assert_eq!(plan.targets.iter().map(|target| target.weight).collect::<Vec<_>>(), [3, 1, 1, 1]);
    assert_eq!(plan.targets.iter().map(|target| target.head_only).collect::<Vec<_>>(), [false, false, false, true]);
}

#[test]
fn tls_and_http_2_are_asked_for() {
    use tls::provider::Version;
    let plan =
        plan(&["--tls-ver", "TLSv1.2", "--tls-reuse", "--sni", "b", "--h2", "--streams", "32", "https://a/", "c"]);
    assert_eq!(plan.tls.algorithms.versions, (Version::Tls12, Version::Tls12));
    assert!(plan.tls.reuse && !plan.tls.handshakes && plan.tls.authorities.is_none());
    assert_eq!(plan.protocol, Protocol::Http2 { streams: 32 });
    assert_eq!(plan.targets.iter().map(|target| target.secure.as_deref()).collect::<Vec<_>>(), [Some("b"), None]);
    assert_eq!(plan.targets[0].address.port(), 443);
}

#[test]
fn http_3_is_asked_for() {
    let asked = plan(&["--h3", "--streams", "8", "--tls-ver", "TLS1.3", "https://a/"]);
    assert_eq!(asked.protocol, Protocol::Http3 { streams: 8 });
    assert_eq!(asked.tls_settings().alpn, [b"h3"]);
    assert!(plan(&["--h3", "--handshakes", "--tls-reuse", "https://a/"]).tls.handshakes);
}

#[test]
fn what_is_not_understood_is_told() {
    const WRONG: &[(&[&str], &str)] = &[
        (&[], "no URL was given"),
        (&["-c", "4"], "no URL was given"),
        (&["--nonsense", "a"], "unknown option '--nonsense'"),
        (&["-Sl", "a"], "unknown option '-Sl'"),
        (&["-z", "a"], "unknown option '-z'"),
        (&["a", "-c"], "-c expects a value (CONNECTIONS)"),
        (&["-c", "-d", "a"], "-c expects a whole number from 1 to 1000000, not '-d'"),
        (&["-c", "0", "a"], "-c expects a whole number from 1 to 1000000, not '0'"),
        (&["-c", "4", "-t", "8", "a"], "-t 8 is more threads than there are connections (-c 4)"),
        (
            &["-d", "3x", "a"],
            "-d expects a time of up to 366 days, such as 500ms or 10s (seconds without a unit), not '3x'",
        ),
        (
            &["-w", "x", "a"],
            "-w expects a time of up to 366 days, such as 500ms or 10s (milliseconds without a unit), not 'x'",
        ),
        (&["-O", "66", "a"], "-O expects two numbers of bytes such as 66/1448, not '66'"),
        (&["-O", "66/0", "a"], "-O expects two numbers of bytes such as 66/1448, not '66/0'"),
        (&["-H", "x", "a"], "-H expects a field line such as 'Name: value', without line breaks, not 'x'"),
        (&["-X", "a b", "a"], "-X expects a method such as GET or POST, not 'a b'"),
        (
            &["--reference", "1,0", "a"],
            "--reference expects a rate such as 100, or 100,4 with its connections, not '1,0'",
        ),
        (&["-R", "1", "--constant", "1", "a"], "-R and --constant exclude each other"),
        (
            &["-T", "1", "--constant", "1", "a"],
            "-T and --constant exclude each other: a constant rate waits for nothing",
        ),
        (&["a", "-X", "PUT"], "-X stands behind the last URL: write it in front of the URL that it is for"),
        (&["--live=1", "a"], "--live takes no value"),
        (&["--json", "--csv", "a"], "--json and --csv cannot both have standard output"),
        (&["--json=x", "--csv=x", "a"], "--json and --csv name the same file"),
        (&["--live", "--csv", "a"], "--live needs standard output for itself: write --json=FILE or --csv=FILE"),
        (&["--tls-ver", "TLS1.3", "a"], "--tls-ver is for https:// URLs"),
        (&["--tls-ver", "TLS1.1", "https://a"], "--tls-ver expects TLS1.2 or TLS1.3, not 'TLS1.1'"),
        (
            &["--cipher-list", "RC4", "https://a"],
            "--cipher-list expects names of OpenSSL's ('RC4' is none that is supported), not 'RC4'",
        ),
        (&["--handshakes", "https://a", "b"], "--handshakes is for https:// URLs"),
        (&["--handshakes", "--h2", "https://a"], "--handshakes and --h2 exclude each other: nothing is asked for"),
        (
            &["--streams", "3", "a"],
            "--streams needs --h2 or --h3: a connection of HTTP/1 carries one request at a time",
        ),
        (&["--h2", "--h3", "https://a"], "--h2 and --h3 exclude each other"),
        (&["--h3", "https://a", "http://b/x"], "--h3 is for https:// URLs, not 'http://b/x'"),
        (&["--h3", "-F", "https://a"], "-F is for TCP, and --h3 uses QUIC"),
        (
            &["--h3", "--tls-ver", "TLS1.2", "https://a"],
            "--tls-ver TLS1.2 and --h3 exclude each other: QUIC needs TLS 1.3",
        ),
        (
            &["--h3", "--cipher-list", "ECDHE-RSA-AES128-GCM-SHA256", "https://a"],
            "--cipher-list is for TLS 1.2, and --h3 needs TLS 1.3",
        ),
        (
            &["--h3", "--handshakes", "--streams", "2", "https://a"],
            "--handshakes and --streams exclude each other: nothing is asked for",
        ),
        (&["--sni", "a b", "https://a"], "--sni expects the name of a host, not 'a b'"),
        (&["ftp://a/"], "'ftp://a/' is no URL that can be asked for: only http:// and https:// are known"),
    ];
    for (line, why) in WRONG {
        assert_eq!(refused(line), *why, "{line:?}");
    }
}

#[test]
fn what_cannot_be_done_is_told_apart_from_what_is_not_understood() {
    let failed = |line: &[&str]| matches!(words(line), Err(Outcome::Failed(_)));
    assert!(failed(&["--body", "/nonexistent/body", "a"]));
    assert!(failed(&["http://unknown/"]));
}

#[test]
fn there_is_an_end_of_urls_and_fields() {
    let mut many = vec!["a"; MOST_URLS];
    assert_eq!(plan(&many).targets.len(), MOST_URLS);
    many.push("a");
    assert_eq!(refused(&many), "more than 1000 URLs");
    let mut fields = ["-H", "a: b"].repeat(257);
    fields.push("a");
    assert_eq!(refused(&fields), "-H was written more than 256 times");
}

/// Generates words that are similar to valid ones, and others.
fn word() -> impl proptest::strategy::Strategy<Value = OsString> {
    use proptest::prelude::*;
    let names: Vec<&str> =
        OPTIONS.iter().map(|row| row.name).filter(|name| !matches!(*name, "--body" | "--ca")).collect();
    let name = proptest::sample::select(names);
    prop_oneof![
        name.clone().prop_map(OsString::from),
        (name, "[=]?[0-9a-zé.,/:-]{0,6}").prop_map(|(name, rest)| OsString::from(format!("{name}{rest}"))),
        "(http://)?[a-z0-9.:/?#\\[\\]@%-]{0,12}".prop_map(OsString::from),
        "-?[0-9]{0,20}[.]?[0-9]{0,3}(k|m|g|s|ms|us|h)?".prop_map(OsString::from),
        proptest::collection::vec(any::<u8>(), 0..6).prop_map(|bytes| OsStr::from_bytes(&bytes).to_owned()),
    ]
}

proptest::proptest! {
    #[test]
    fn no_words_are_an_accident(words in proptest::collection::vec(word(), 0..8)) {
        if let Ok(LoadTask::Run(plan)) = parse(&words, &nowhere) {
            assert!(!plan.targets.is_empty() && plan.threads <= plan.connections);
            assert!(plan.targets.iter().all(|target| target.weight > 0 && !target.request.is_empty()));
        }
    }
}
