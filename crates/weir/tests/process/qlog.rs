//! Traces of QUIC connections (`tune.quic.qlog-dir`): their records, their bounds, and directories that cannot be used.

use crate::quic_client::Client;
use crate::quic_sockets::free_address;
use crate::support::{DEFAULTS, Folder, Running, connect, exchange, free_port, get, wait_until, weir};
use serde_json::Value;
use std::net::Ipv4Addr;
use std::path::Path;

const SITE: &str = include_str!("site.pem");

/// A process whose answers are `payload`; `options` follow the directory.
fn start(folder: &Folder, options: &str, payload: &str) -> (Running, (Ipv4Addr, u16)) {
    let (port, (address, quic)) = (free_port(), free_address());
    let (pem, traces) = (folder.write("site.pem", SITE), folder.path("traces"));
    std::fs::create_dir(&traces).expect("a directory");
    let body = folder.write("payload", payload);
    let text = format!(
        "global\n    nbthread 2\n    tune.quic.qlog-dir {} {options}\n{DEFAULTS}frontend web\n    mode http\n    bind 127.0.0.1:{port}\n    \
         bind quic4@{address}:{quic} ssl crt {pem}\n    http-request return status 200 content-type text/plain file {body}\n",
        traces.display()
    );
    let running = Running::weir(&["-db", "-f", &folder.write("weir.cfg", &text)]);
    wait_until("the process serves", || exchange(&mut connect(port), &get("/")).0 == 200);
    (running, (address, quic))
}

/// Returns the traces in the directory, the oldest first.
fn traces(folder: &Folder) -> Vec<String> {
    let names = std::fs::read_dir(folder.path("traces")).expect("a directory");
    let mut names: Vec<_> =
        names.map(|entry| entry.expect("an entry").file_name().into_string().expect("text")).collect();
    names.sort_unstable();
    names
}

/// Returns the records of a trace.
fn records(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("a trace");
    assert!(text.is_empty() || text.ends_with('\n'), "{text}");
    text.split_terminator('\n')
        .map(|line| serde_json::from_str(line.strip_prefix('\u{1e}').expect("a record")).expect("JSON"))
        .collect()
}

/// Whether a trace has an event.
fn has(records: &[Value], name: &str) -> bool {
    records.iter().any(|record| record["name"] == name)
}

/// Waits until the newest of so many traces has the end of its connection, and returns it.
fn newest(folder: &Folder, count: usize) -> Vec<Value> {
    let path = |folder: &Folder| Some(folder.path("traces").join(traces(folder).last()?));
    let is_whole = |path: &Path| {
        std::fs::read_to_string(path).is_ok_and(|text| text.contains("connection_closed") && text.ends_with('\n'))
    };
    wait_until("a trace", || traces(folder).len() == count && path(folder).is_some_and(|path| is_whole(&path)));
    records(&path(folder).expect("a trace"))
}

#[test]
fn a_connection_is_traced_from_its_beginning_to_its_end() {
    let folder = Folder::new();
    let (_running, address) = start(&folder, "", "hello");
    let mut client = Client::connect(address);
    assert_eq!(client.get("/"), "hello");
    client.close();
    let records = newest(&folder, 1);
    assert_eq!((&records[0]["qlog_version"], &records[0]["qlog_format"]), (&"0.3".into(), &"JSON-SEQ".into()));
    assert_eq!(records[0]["trace"]["vantage_point"]["type"], "server");
    let title = records[0]["title"].as_str().expect("text");
    assert!(title.starts_with("frontend web, client 127.0.0.1:"), "{title}");
    let started = &records[1];
    assert_eq!(
        (&started["name"], &started["data"]["dst_port"]),
        (&"connectivity:connection_started".into(), &address.1.into())
    );
    for name in [
        "transport:datagrams_received",
        "transport:datagrams_sent",
        "recovery:metrics_updated",
        "connectivity:connection_state_updated",
        "transport:stream_state_updated",
    ] {
        assert!(has(&records, name), "{name}: {records:?}");
    }
    let times: Vec<f64> = records[1..].iter().map(|record| record["time"].as_f64().expect("a number")).collect();
    assert!(times.is_sorted(), "{times:?}");
    let closed = records.iter().find(|record| record["name"] == "connectivity:connection_closed").expect("an end");
    assert_eq!((&closed["data"]["owner"], &closed["data"]["application_code"]), (&"remote".into(), &0x100.into()));
}

/// The oldest files are removed, those of an earlier process first.
#[test]
fn the_number_of_files_is_bounded() {
    let folder = Folder::new();
    let (_running, address) = start(&folder, "files 2", "hello");
    let mut names: Vec<String> = Vec::new();
    for _ in 0..4 {
        let mut client = Client::connect(address);
        assert_eq!(client.get("/"), "hello");
        client.close();
        wait_until("the trace of the connection", || traces(&folder).last() > names.last());
        names.extend(traces(&folder).pop());
    }
    assert_eq!(traces(&folder), names[2..]);
}

/// A file ends with a whole record below its limit.
#[test]
fn the_size_of_files_is_bounded() {
    let folder = Folder::new();
    let payload = "0123456789".repeat(100_000);
    let (_running, address) = start(&folder, "size 64k", &payload);
    let mut client = Client::connect(address);
    for _ in 0..2 {
        assert!(client.get("/") == payload);
    }
    let sizes = || {
        traces(&folder)
            .iter()
            .map(|name| folder.path("traces").join(name).metadata().expect("a file").len())
            .collect::<Vec<_>>()
    };
    wait_until("a full file", || sizes().first().is_some_and(|size| *size > 60_000));
    client.close();
    // The next connection has its own.
    Client::connect(address).close();
    newest(&folder, 2);
    let name = traces(&folder).remove(0);
    assert!(sizes()[0] <= 64 << 10, "{:?}", sizes());
    assert!(has(&records(&folder.path("traces").join(name)), "transport:datagrams_sent"));
}

/// A directory that is not there, or that is a file, is an error with its place in the configuration.
#[test]
fn directories_that_cannot_be_written_are_refused() {
    let folder = Folder::new();
    let file = folder.write("file", "");
    for (path, reason) in [("/nonexistent/traces", "No such file or directory"), (&file, "not a directory")] {
        let text = format!(
            "global\n    tune.quic.qlog-dir {path}\n{DEFAULTS}frontend f\n    bind 127.0.0.1:{}\n",
            free_port()
        );
        let found = weir(["-c", "-f", &folder.write("weir.cfg", &text)]);
        assert_eq!(found.code(), Some(1));
        assert!(
            found.stderr.contains(&format!("weir.cfg:2] : 'tune.quic.qlog-dir' : cannot write to '{path}' : {reason}")),
            "{}",
            found.stderr
        );
        assert!(found.stderr.lines().any(|line| line.contains('^')), "{}", found.stderr);
    }
}
