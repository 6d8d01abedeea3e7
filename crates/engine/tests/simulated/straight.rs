//! Tests of exchanges on the straight path: peers, the log and the statistics see no difference from those that take the general
//! one, whatever happens on the way.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};

use rt::sim::Link;
use testkit::{Peer, Service, sleep, within};

use crate::api::*;
use crate::messages::*;
use crate::world::*;

/// A rule that never matches. With a rule on answers, exchanges take the general path.
const NEVER: &str = "http-response set-header x-never 1 if { always_false }\n";

/// A step of a peer.
#[derive(Debug, Clone)]
enum Step {
    Send(Vec<u8>),
    Sleep(u64),
    HalfClose,
    Close,
    Reset,
    /// The process begins a soft stop.
    Stop,
}

use Step::{Close, HalfClose, Reset, Sleep, Stop};

fn send(text: &str) -> Step {
    Step::Send(text.as_bytes().to_vec())
}

/// Performs the steps. `None`: the peer has closed its connection.
async fn perform(world: &World, mut peer: Peer, steps: &[Step]) -> Option<Peer> {
    for step in steps {
        match step {
            Step::Send(bytes) => {
                peer.try_send(bytes).await;
            }
            Sleep(millis) => sleep(*millis).await,
            HalfClose => peer.try_half_close(),
            Close => return None,
            Reset => {
                peer.reset();
                return None;
            }
            Stop => world.stop(),
        }
    }
    Some(peer)
}

/// A request and what happens to it.
#[derive(Debug, Clone)]
struct Row {
    asked: String,
    /// Steps of the server once it has received the head, and of the client once it has sent the request.
    server: Vec<Step>,
    client: Vec<Step>,
}

/// A request that the server answers with these steps.
fn answered(server: Vec<Step>) -> Row {
    Row { asked: get("/row"), server, client: Vec::new() }
}

/// A request that is answered with one send.
fn asked(request: &str, answer: &str) -> Row {
    Row { asked: request.to_owned(), ..answered(vec![send(answer)]) }
}

/// Everything that the peers of a request have seen, with these lines in the proxy, on a link that was used before.
fn told(lines: &str, row: &Row, link: fn(u64) -> Link) -> Vec<String> {
    let found = Arc::new(Mutex::new(Vec::new()));
    let (notes, row) = (Arc::clone(&found), row.clone());
    let proxy = format!(
        "log-format \"%HM %HP %HV %ST %B %U %tsc %rc %bc/%sc %s\"\n http-reuse always\n {lines}\n server s1 10.0.1.1:80"
    );
    listen(&proxy).global(SOCKET).workers(&[1]).seeds(0..2).shuffled().links(link).run(move |world| {
        let (notes, row) = (Arc::clone(&notes), row.clone());
        async move {
            let heads = Rc::new(RefCell::new(Vec::new()));
            serve(&world, &heads, row.server);
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            let head = client.receive_head().await.unwrap();
            client.receive(2).await;
            sleep(1).await;
            if head.contains("connection: close") {
                client = Peer::connect(WEIR).await;
            }
            client.send(&row.asked).await;
            let mut told = vec!["closed".to_owned()];
            if let Some(mut client) = perform(&world, client, &row.client).await {
                let (bytes, _) =
                    within(std::time::Duration::from_secs(90), client.try_receive_up_to(1 << 20)).await.unwrap();
                told = vec![String::from_utf8_lossy(&bytes).into_owned(), client.has_closed_in_order().to_string()];
            }
            sleep(60_000).await;
            told.extend(heads.take());
            if !row.client.iter().any(|step| matches!(step, Stop)) {
                told.push(counted(&ask("show stat").await));
            }
            told.extend(world.take_log().await);
            notes.lock().unwrap().append(&mut told);
        }
    });
    let mut found = found.lock().unwrap();
    std::mem::take(&mut *found)
}

/// Serves connections: requests for the row with its steps, others with an answer. Collects the heads.
fn serve(world: &World, heads: &Rc<RefCell<Vec<String>>>, steps: Vec<Step>) {
    let (heads, inner) = (Rc::clone(heads), world.clone());
    Service::at(S1).serve(&world.scope, move |mut peer: Peer, number| {
        let (heads, steps, world) = (Rc::clone(&heads), steps.clone(), inner.clone());
        async move {
            while let Some(head) = peer.try_receive_head().await {
                let is_row = head.contains("/row");
                heads.borrow_mut().push(format!("{number}: {head}"));
                if !is_row {
                    peer.try_send(OK).await;
                    continue;
                }
                match perform(&world, peer, &steps).await {
                    Some(left) => peer = left,
                    None => return,
                }
            }
        }
    });
}

/// The statistics of frontend, server and backend without times.
fn counted(table: &str) -> String {
    const COLUMNS: &[&str] = &[
        "scur",
        "stot",
        "bin",
        "bout",
        "ereq",
        "econ",
        "eresp",
        "wretr",
        "wredis",
        "lbtot",
        "cli_abrt",
        "srv_abrt",
        "hrsp_1xx",
        "hrsp_2xx",
        "hrsp_3xx",
        "hrsp_4xx",
        "hrsp_5xx",
        "hrsp_other",
        "req_tot",
        "connect",
        "reuse",
        "eint",
        "intercepted",
        "srv_icur",
        "used_conn_cur",
    ];
    let names: Vec<&str> = table.lines().next().unwrap().trim_start_matches("# ").split(',').collect();
    let one = |row: &str| {
        let row: Vec<&str> = row.split(',').collect();
        let value = |name: &&str| format!("{name} {}", row[names.iter().position(|found| found == name).unwrap()]);
        COLUMNS.iter().map(value).collect::<Vec<_>>().join(", ")
    };
    table.lines().filter(|line| line.starts_with("l,")).map(one).collect::<Vec<_>>().join("\n")
}

/// Compares both paths.
fn compare(lines: &str, row: &Row, link: fn(u64) -> Link) {
    let straight = told(lines, row, link);
    let general = told(&format!("{lines}\n {NEVER}"), row, link);
    for (one, other) in straight.iter().zip(&general) {
        assert!(one == other, "{lines}\n{row:?}\nstraight: {one}\ngeneral:  {other}");
    }
    assert_eq!(straight.len(), general.len(), "{lines}\n{row:?}");
}

fn compare_all(lines: &str, rows: &[Row]) {
    rows.iter().for_each(|row| compare(lines, row, |_| Link::default()));
}

/// An answer with a body of that length.
fn long(length: usize) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nX-A: b\r\n\r\n");
    [head.into_bytes(), (b'a'..=b'z').cycle().take(length).collect()].concat()
}

#[test]
fn an_answer_may_arrive_in_two_pieces_anywhere() {
    let pieces = |at: usize| vec![send(&OK[..at]), Sleep(3), send(&OK[at..])];
    (1..OK.len()).for_each(|at| compare("", &answered(pieces(at)), |_| Link::default()));
}

#[test]
fn answers_of_every_form() {
    const REST: &str = "Content-Length: 2\r\n\r\nok";
    let (early, chunks) = ("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", "2\r\nok\r\n0\r\n\r\n");
    let mut rows: Vec<Row> = [
        OK.to_owned(),
        early.to_owned() + OK,
        "HTTP/1.1 100 Continue\r\n\r\n".to_owned() + OK,
        format!("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"),
        format!("{OK}surplus"),
        format!("{OK}{OK}"),
        format!("HTTP/1.1 200 OK\r\nConnection: close\r\n{REST}"),
        format!("HTTP/1.0 200 OK\r\n{REST}"),
        format!("HTTP/1.0 200 OK\r\nConnection: keep-alive\r\n{REST}"),
        "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n".to_owned(),
        "HTTP/1.1 204 No Content\r\n\r\n".to_owned(),
        format!("HTTP/1.1 204 No Content\r\n{REST}"),
        "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nContent-Length: 9\r\n\r\n".to_owned(),
        format!("HTTP/1.1 404 Not Found\r\n{REST}"),
        format!("HTTP/1.1 500 Oops\r\n{REST}"),
        format!("HTTP/1.1 401 Who\r\nWWW-Authenticate: NTLM\r\n{REST}"),
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n".to_owned(),
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok".to_owned(),
        "HTTP/1.1 200 OK\r\nbad name: 1\r\n\r\n".to_owned(),
        "hello\r\n\r\n".to_owned(),
    ]
    .iter()
    .map(|answer| answered(vec![send(answer)]))
    .collect();
    rows.push(answered(vec![send("HTTP/1.1 200 OK\r\n\r\nuntil the end"), Close]));
    rows.push(answered(vec![send(early), Sleep(7), send(OK)]));
    for length in [600, 15_000, 16_200, 16_384, 40_000] {
        rows.push(answered(vec![Step::Send(long(length))]));
    }
    compare_all("", &rows);
}

#[test]
fn requests_of_every_form() {
    let answers = [
        OK,
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 101 Go\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
    ];
    for request in [
        "GET /row HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "GET /row HTTP/1.0\r\n\r\n",
        "GET /row HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
        "HEAD /row HTTP/1.1\r\nHost: a\r\n\r\n",
        "HEAD /row HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "DELETE /row HTTP/1.1\r\nHost: a\r\n\r\n",
        "POST /row HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
        "POST /row HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
        "POST /row HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        "GET /row HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\n\r\n",
        "GET /row HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n",
        "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\nX: /row\r\n\r\n",
        "GET /row HTTP/1.1\r\nHost: a\r\nAuthorization: NTLM x\r\n\r\n",
        "GET /row HTTP/1.1\r\nHost: a\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET /row HTTP/1.1\r\nHost: a\r\n\r\nGET /row?2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
        "GET /row HTTP/1.1\r\nHost: a\r\n\r\nGET /b HT",
    ] {
        compare_all("", &answers.map(|answer| asked(request, answer)));
    }
}

#[test]
fn servers_that_fail() {
    let mut rows = Vec::new();
    for end in [Close, Reset, HalfClose] {
        for before in [0, 6] {
            rows.push(answered(vec![Sleep(before), end.clone()]));
            rows.push(Row { asked: get("/row").replace("GET", "PATCH"), ..answered(vec![Sleep(before), end.clone()]) });
            for part in [&OK[..9], &OK[..OK.len() - 2], &OK[..OK.len() - 1], OK] {
                rows.push(answered(vec![send(part), Sleep(before), end.clone()]));
            }
        }
    }
    compare_all("", &rows);
    compare_all("retries 0", &rows);
}

#[test]
fn peers_that_are_late() {
    let lines = "timeout server 2s\n timeout client 3s\n timeout http-keep-alive 1s";
    let mut rows: Vec<Row> =
        [1, 4, 5, 6, 1_999, 2_001].into_iter().map(|millis| answered(vec![Sleep(millis), send(OK)])).collect();
    for part in [9, OK.len() - 1] {
        for millis in [1_999, 2_001] {
            rows.push(answered(vec![send(&OK[..part]), Sleep(millis), send(&OK[part..])]));
        }
    }
    compare_all(lines, &rows);
    compare_all(&format!("{lines}\n option independent-streams"), &rows);
    compare_all(&format!("{lines}\n http-request set-timeout server 1s"), &rows);
}

#[test]
fn clients_that_leave() {
    let mut rows = Vec::new();
    for end in [Close, Reset, HalfClose] {
        for (millis, answer) in [(0, 2), (2, 1), (2, 4), (6, 9), (6, 2), (30, 60)] {
            let server = vec![Sleep(answer), send(OK)];
            rows.push(Row { asked: get("/row"), server, client: vec![Sleep(millis), end.clone()] });
        }
    }
    compare_all("", &rows);
    compare_all("option abortonclose", &rows);
}

#[test]
fn a_soft_stop_on_the_way() {
    for millis in [0, 2, 8] {
        let row = Row { client: vec![Sleep(millis), Stop], ..answered(vec![Sleep(4), send(OK)]) };
        compare("", &row, |_| Link::default());
        compare("option httpclose", &row, |_| Link::default());
    }
}

/// Less than a head fits on these links.
#[test]
fn links_that_take_pieces() {
    let narrow = |_| Link { buffer: 30, ..Link::default() };
    for row in [answered(vec![send(OK)]), asked("GET /row HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n", OK)] {
        compare("", &row, narrow);
    }
    let row = Row { client: vec![Sleep(5_000)], ..answered(vec![Step::Send(long(3_000))]) };
    compare("timeout client 2s", &row, |_| Link { buffer: 500, ..Link::default() });
    compare("timeout client 9s", &row, |_| Link { buffer: 500, ..Link::default() });
}

/// Everything that changes requests, or decides about connections.
#[test]
fn settings_beside() {
    for lines in [
        "http-request set-header a b\n http-request set-var(txn.a) path",
        "http-request set-header connection close if { path_beg /row }",
        "http-request set-method HEAD if { path_beg /row }",
        "http-request set-method POST if { path_beg /row }",
        "http-request deny if { path /row }",
        "http-request set-log-level silent if { path_beg /row }",
        "http-request set-uri /other/row if { path_beg /row }",
        "option forwardfor\n option originalto",
        "http-send-name-header X-Server",
        "option http-server-close",
        "option httpclose",
        "option http-pretend-keepalive\n option http-server-close",
        "http-reuse never",
        "http-reuse safe",
        "capture request header host len 5\n capture response header x-a len 5",
        "option splice-auto",
        "option http-restrict-req-hdr-names delete",
        "retry-on all-retryable-errors",
        "balance leastconn",
        "balance uri",
        "option logasap",
        "timeout queue 1s\n fullconn 1",
        "default-server maxconn 1",
        "default-server max-reuse 0",
        "default-server observe layer7 error-limit 1 on-error mark-down check inter 50s",
    ] {
        let rows = [
            answered(vec![send(OK)]),
            answered(vec![send(&OK[..20]), Sleep(2), send(&OK[20..])]),
            answered(vec![send("HTTP/1.1 503 No\r\nX-A: b\r\nContent-Length: 2\r\n\r\nok")]),
            answered(vec![Close]),
            asked("GET /row HTTP/1.1\r\nHost: a\r\nx_y: 1\r\n\r\nGET /b HTTP/1.1\r\nHost: a\r\n\r\n", OK),
        ];
        compare_all(lines, &rows);
    }
}

/// A request that waits in the queue of a full server leaves the straight path before it has a connection.
#[test]
fn a_request_that_is_queued_goes_on() {
    for lines in ["", NEVER] {
        listen(&format!("http-reuse always\n {lines}\n server s1 10.0.1.1:80 maxconn 1")).run(|world| async move {
            let mut s1 = Service::at(S1);
            let (mut one, mut two) = (Peer::connect(WEIR).await, Peer::connect(WEIR).await);
            one.send(GET).await;
            let mut server = s1.accept().await;
            for _ in 0..3 {
                server.expect(GET_AT_SERVER).await;
                two.send(get("/two")).await;
                sleep(10).await;
                server.send(OK).await;
                one.expect(OK_AT_CLIENT).await;
                server.expect(get_at_server("/two")).await;
                one.send(GET).await;
                sleep(10).await;
                server.send(OK).await;
                two.expect(OK_AT_CLIENT).await;
            }
            server.expect(GET_AT_SERVER).await;
            server.send(OK).await;
            one.expect(OK_AT_CLIENT).await;
            s1.is_left_alone();
            world.forget_log();
        });
    }
}
