//! Thousands of requests on four threads through one table, one queue, one server's and one frontend's limit: the final
//! counts are exact. Must never depend on the thread of a connection.

use crate::crowd::{CLIENTS, Origin, command};
use crate::support::{DEFAULTS, Folder, Running, connect, exchange, free_port, get, wait_until};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::thread;

const REQUESTS: usize = 3200;
/// Requests per connection.
const EACH: usize = 10;
/// Number of paths by which requests are counted; the last one is answered by the proxy itself.
const PATHS: usize = 8;
const SERVER_LIMIT: usize = 3;
const FRONTEND_LIMIT: usize = 12;

fn configuration(port: u16, origin: u16, socket: &str) -> String {
    format!(
        "global\n    nbthread 4\n    stats socket {socket} level admin\n{DEFAULTS}frontend web\n    bind 127.0.0.1:{port}\n    \
         maxconn {FRONTEND_LIMIT}\n    stick-table type string len 16 size 100 store \
         conn_cnt,conn_cur,sess_cnt,http_req_cnt,http_err_cnt,gpc(2)\n    tcp-request connection track-sc0 src\n    \
         http-request track-sc1 path\n    http-request sc-inc-gpc(0,0)\n    http-request sc-inc-gpc(0,1)\n    http-request \
         sc-add-gpc(1,1) 3\n    http-request deny status 404 if {{ path /{last} }}\n    default_backend app\nbackend app\n    \
         server s1 127.0.0.1:{origin} maxconn {SERVER_LIMIT}\n",
        last = PATHS - 1
    )
}

/// Sends the requests, each on the path of its number; every client returns after a few.
fn ask(port: u16) {
    let taken = AtomicUsize::new(0);
    let next = || Some(taken.fetch_add(1, SeqCst)).filter(|number| *number < REQUESTS / EACH);
    thread::scope(|scope| {
        for _ in 0..CLIENTS {
            scope.spawn(|| {
                while let Some(connection) = next() {
                    let mut stream = connect(port);
                    for request in 0..EACH {
                        let path = (connection * EACH + request) % PATHS;
                        let expected = if path == PATHS - 1 { 404 } else { 200 };
                        assert_eq!(exchange(&mut stream, &get(&format!("/{path}"))).0, expected);
                    }
                }
            });
        }
    });
}

/// Parses words like `name=number`, by name.
fn numbers(line: &str) -> BTreeMap<&str, &str> {
    line.split(' ').filter_map(|word| word.split_once('=')).collect()
}

/// Returns the entries of the table, by key.
fn table(text: &str) -> BTreeMap<&str, BTreeMap<&str, &str>> {
    text.lines().filter(|line| line.starts_with("0x")).map(numbers).map(|line| (line["key"], line)).collect()
}

/// Returns the values of one line of `show stat`, by column.
pub fn statistics<'t>(text: &'t str, proxy: &str, name: &str) -> BTreeMap<&'t str, &'t str> {
    let mut lines = text.lines();
    let columns = lines.next().expect("a header").trim_start_matches("# ").split(',');
    let line = lines.find(|line| line.starts_with(&format!("{proxy},{name},"))).expect("a line of it");
    columns.zip(line.split(',')).collect()
}

fn has(line: &BTreeMap<&str, &str>, wanted: &[(&str, usize)]) {
    for (name, number) in wanted {
        assert_eq!(line.get(name).copied(), Some(number.to_string().as_str()), "{name}");
    }
}

#[test]
fn one_table_one_queue_and_the_limits_count_exactly_on_four_threads() {
    let folder = Folder::new();
    let socket = format!("{}/api", folder.text());
    let (through, own) = (REQUESTS / PATHS * (PATHS - 1), REQUESTS / PATHS);
    let origin = Origin::start(through / SERVER_LIMIT / 2 * SERVER_LIMIT, SERVER_LIMIT);
    let port = free_port();
    let _weir = Running::weir(&["-db", "-f", &folder.write("counts.cfg", &configuration(port, origin.port, &socket))]);
    drop(connect(port));
    ask(port);
    assert_eq!((origin.served(), origin.most.load(SeqCst)), (through, SERVER_LIMIT));

    // The first connection checked that the address is open: it closed without a request, which counts as a bad one.
    let connections = REQUESTS / EACH + 1;
    wait_until("all connections end", || {
        table(&command(&socket, "show table web\n")).get("127.0.0.1").is_some_and(|entry| entry["conn_cur"] == "0")
    });
    let shown = command(&socket, "show table web\n");
    let entries = table(&shown);
    assert_eq!(entries.len(), PATHS + 1, "{shown}");
    for (key, entry) in &entries {
        let wanted: &[(&str, usize)] = match key.strip_prefix('/') {
            None => &[
                ("conn_cnt", connections),
                ("sess_cnt", connections),
                ("http_req_cnt", REQUESTS + 1),
                ("http_err_cnt", own + 1),
                ("gpc0", REQUESTS),
                ("gpc1", 0),
            ],
            Some("7") => &[("http_req_cnt", own), ("http_err_cnt", own), ("gpc0", own), ("gpc1", 3 * own)],
            Some(_) => &[("http_req_cnt", own), ("http_err_cnt", 0), ("gpc0", own), ("gpc1", 3 * own)],
        };
        has(entry, wanted);
        has(entry, &[("use", 0), ("conn_cur", 0)]);
    }

    let shown = command(&socket, "show stat\n");
    let frontend = statistics(&shown, "web", "FRONTEND");
    has(&frontend, &[("scur", 0), ("stot", connections), ("conn_tot", connections), ("req_tot", REQUESTS + 1)]);
    has(&frontend, &[("hrsp_2xx", through), ("hrsp_4xx", own + 1), ("slim", FRONTEND_LIMIT)]);
    assert!(frontend["smax"].parse::<usize>().is_ok_and(|most| (1..=FRONTEND_LIMIT).contains(&most)));
    for name in ["s1", "BACKEND"] {
        let line = statistics(&shown, "app", name);
        has(&line, &[("scur", 0), ("qcur", 0), ("hrsp_2xx", through), ("hrsp_5xx", 0)]);
        has(&line, &[("stot", through), ("wretr", 0), ("econ", 0), ("eresp", 0)]);
    }
    has(&statistics(&shown, "app", "s1"), &[("smax", SERVER_LIMIT), ("slim", SERVER_LIMIT)]);
    let most: usize = statistics(&shown, "app", "BACKEND")["qmax"].parse().expect("a number");
    assert!((1..=FRONTEND_LIMIT - SERVER_LIMIT).contains(&most), "the queue had {most}");
}
