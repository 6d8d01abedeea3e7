//! SPOE agents and FastCGI applications that are killed, hang or send garbage under load: every request is answered,
//! the log contains the reason, and recovered peers are used again. Both over TLS, and their trace sources.

use crate::support::{
    DEFAULTS, Folder, Running, WEIR, connect, connect_unix, exchange, free_port, get, run, wait_until, weir,
};
use rustix::process::Signal;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

const PEM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/process/site.pem");

const ENGINE: &str = "[e]
spoe-agent e
    messages check
    option var-prefix e
    option set-on-error error
    timeout processing PATIENCE
    use-backend agents
    log global
spoe-message check
    args path=path
    event on-frontend-http-request
";

/// Runs `weir origin` as an agent or as an application.
fn peer(option: &str, port: u16) -> Running {
    let running = Running::start(Command::new(WEIR).args(["origin", option, &format!("127.0.0.1:{port}")]));
    drop(connect(port));
    running
}

/// Timeouts for peers: for those that must answer, and those that must fail.
const LONG: &str = "100s";
const SHORT: &str = "500ms";

/// A site that answers with the results of an agent: the score, and the error.
fn with_agent(folder: &Folder, patience: &str, port: u16, agents: &str) -> String {
    let engine = folder.write("engine.conf", &ENGINE.replace("PATIENCE", patience));
    let text = format!(
        "global\n    log stdout format raw local0\n    stats socket {} level admin\n{DEFAULTS}    log global\nfrontend web\n    bind \
         127.0.0.1:{port}\n    filter spoe engine e config {engine}\n    http-request return status 200 content-type text/plain \
         lf-string %[var(txn.e.score)]-%[var(txn.e.error)]\nbackend agents\n    mode spop\n    retries 0\n    timeout connect 100s\n    {agents}\n",
        folder.path("api").display()
    );
    folder.write("weir.cfg", &text)
}

/// A site in front of an application.
fn with_application(folder: &Folder, patience: &str, port: u16, servers: &str) -> String {
    let text = format!(
        "global\n    log stdout format raw local0\n    stats socket {} level admin\n{DEFAULTS}    log global\n    option httplog\n    \
         retries 0\nlisten web\n    bind 127.0.0.1:{port}\n    timeout server {patience}\n    use-fcgi-app a\n    {servers}\nfcgi-app a\n    \
         docroot /srv\n",
        folder.path("api").display()
    );
    folder.write("weir.cfg", &text)
}

fn says(port: u16) -> String {
    let (status, body) = exchange(&mut connect(port), &get("/"));
    assert_eq!(status, 200);
    body
}

fn status(port: u16, path: &str) -> u16 {
    exchange(&mut connect(port), &get(path)).0
}

/// Runs a load and returns its responses by class, from 1xx to 5xx.
fn load(port: u16, path: &str, requests: &str) -> [u64; 5] {
    let url = format!("http://127.0.0.1:{port}{path}");
    let found = run(Command::new(WEIR).args(["load", "-q", "--json", "-c", "8", "-n", requests, &url]));
    assert_eq!(found.code(), Some(0), "{}{}", found.stdout, found.stderr);
    ["1xx", "2xx", "3xx", "4xx", "5xx"].map(|class| {
        let rest = found.stdout.split(&format!("\"status_{class}\":")).nth(1).expect("a summary");
        rest.split([',', '}']).next().and_then(|text| text.parse().ok()).expect("a number")
    })
}

#[test]
fn an_agent_that_hangs_or_is_killed_costs_no_answer() {
    let (folder, port, at) = (Folder::new(), free_port(), free_port());
    let agent = peer("--spop", at);
    let file = with_agent(&folder, SHORT, port, &format!("server a 127.0.0.1:{at}"));
    let mut weir = Running::weir(&["-db", "-f", &file]);
    wait_until("the agent answers", || says(port) == "20-");
    agent.send(Signal::STOP);
    wait_until("a timeout", || says(port) == "-1");
    assert_eq!(load(port, "/", "40"), [0, 40, 0, 0, 0]);
    weir.wait_for_line(|line| line.contains("SPOE: [e] <EVENT:on-frontend-http-request> ") && line.contains(" st=1 "));
    agent.send(Signal::CONT);
    wait_until("the agent answers", || says(port) == "20-");
    agent.send(Signal::KILL);
    agent.finish();
    wait_until("the connection is refused", || says(port) == "-257");
    assert_eq!(load(port, "/", "400"), [0, 400, 0, 0, 0]);
    weir.wait_for_line(|line| line.contains("SPOE: [e] ") && line.contains(" st=257 "));
    let _agent = peer("--spop", at);
    wait_until("the next agent answers", || says(port) == "20-");
}

#[test]
fn an_application_that_hangs_or_is_killed_has_its_own_termination_states() {
    let (folder, port, at) = (Folder::new(), free_port(), free_port());
    let application = peer("--fcgi", at);
    let file = with_application(&folder, SHORT, port, &format!("server a 127.0.0.1:{at} proto fcgi"));
    let mut weir = Running::weir(&["-db", "-f", &file]);
    wait_until("the application answers", || status(port, "/?s=100") == 200);
    application.send(Signal::STOP);
    wait_until("a timeout", || status(port, "/hung") == 504);
    weir.wait_for_line(|line| line.contains("/hung") && line.contains(" 504 ") && line.contains(" sH-- "));
    assert_eq!(load(port, "/?s=100", "16"), [0, 0, 0, 0, 16]);
    application.send(Signal::CONT);
    wait_until("the application answers", || status(port, "/?s=100") == 200);
    // Killed during an answer that its client reads slowly.
    let mut slow = connect(port);
    slow.write_all(get("/cut?s=1g").as_bytes()).expect("sent");
    let mut begun = [0; 1000];
    slow.read_exact(&mut begun).expect("an answer begins");
    application.send(Signal::KILL);
    application.finish();
    let _ = slow.read_to_end(&mut Vec::new());
    weir.wait_for_line(|line| line.contains("/cut") && line.contains(" SD-- "));
    assert_eq!(status(port, "/gone"), 503);
    weir.wait_for_line(|line| line.contains("/gone") && line.contains(" SC-- "));
    assert_eq!(load(port, "/", "100"), [0, 0, 0, 0, 100]);
    let _application = peer("--fcgi", at);
    wait_until("the next one answers", || status(port, "/?s=100") == 200);
}

/// Runs a server that answers any input with pseudo-random bytes, different on each connection, and closes.
fn liar() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        let mut state = 1_u64;
        for mut stream in listener.incoming().flatten() {
            let mut bytes = [0_u8; 4096];
            let _ = stream.read(&mut bytes);
            for (index, byte) in bytes.iter_mut().enumerate() {
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                *byte = (state >> 33) as u8;
                // Prefixes that look like one of either protocol.
                match (state % 3, index) {
                    (0, 0) => *byte = 1,
                    (1, 0..=2) => *byte = 0,
                    _ => {}
                }
            }
            let _ = stream.write_all(&bytes[..1 + (state >> 40) as usize % 4000]);
        }
    });
    port
}

#[test]
fn what_lies_is_never_believed() {
    let (agents, applications) = (Folder::new(), Folder::new());
    let (asks, serves) = (free_port(), free_port());
    let file = with_agent(&agents, SHORT, asks, &format!("server a 127.0.0.1:{}", liar()));
    let asking = Running::weir(&["-db", "-f", &file]);
    let file = with_application(&applications, SHORT, serves, &format!("server a 127.0.0.1:{} proto fcgi", liar()));
    let serving = Running::weir(&["-db", "-f", &file]);
    for _ in 0..20 {
        let said = says(asks);
        let code: u32 = said.strip_prefix('-').and_then(|code| code.parse().ok()).unwrap_or_else(|| panic!("{said}"));
        assert!(code == 1 || (256..256 + 100).contains(&code), "{said}");
        let got = status(serves, "/");
        assert!(matches!(got, 502 | 504), "{got}");
    }
    assert_eq!(load(asks, "/", "200")[1], 200);
    assert_eq!(load(serves, "/", "200")[4], 200);
    for running in [asking, serving] {
        running.send(Signal::TERM);
        assert_eq!(running.finish().signal(), Some(15), "nothing else has ended it");
    }
}

/// Another process terminates TLS in front of the agent and the application.
#[test]
fn agents_and_applications_are_reached_by_tls() {
    let folder = Folder::new();
    let (spop, fcgi, tls_spop, tls_fcgi) = (free_port(), free_port(), free_port(), free_port());
    let (_agent, _application) = (peer("--spop", spop), peer("--fcgi", fcgi));
    let listen = |name: &str, from: u16, to: u16| {
        format!("listen {name}\n    mode tcp\n    bind 127.0.0.1:{from} ssl crt {PEM}\n    server s 127.0.0.1:{to}\n")
    };
    let text = format!("{DEFAULTS}{}{}", listen("a", tls_spop, spop), listen("b", tls_fcgi, fcgi));
    let file = folder.write("tls.cfg", &text);
    let _ends_tls = Running::weir(&["-db", "-f", &file]);
    drop((connect(tls_spop), connect(tls_fcgi)));
    let (asks, serves) = (free_port(), free_port());
    let file = with_agent(&folder, LONG, asks, &format!("server a 127.0.0.1:{tls_spop} ssl verify none"));
    let asking = Running::weir(&["-db", "-f", &file]);
    assert_eq!(says(asks), "20-");
    drop(asking);
    let server = format!("server a 127.0.0.1:{tls_fcgi} proto fcgi ssl verify none");
    let _serving = Running::weir(&["-db", "-f", &with_application(&folder, LONG, serves, &server)]);
    for _ in 0..3 {
        assert_eq!(exchange(&mut connect(serves), &get("/?s=50000")).1.len(), 50_000);
    }
    let post = "POST /?s=7 HTTP/1.1\r\nhost: a\r\ncontent-length: 5\r\n\r\nhello";
    assert_eq!(exchange(&mut connect(serves), post).1.len(), 7);
}

#[test]
fn a_second_attempt_at_an_application_is_refused_with_a_reason() {
    let folder = Folder::new();
    let file = with_application(&folder, SHORT, 1, "hedge-requests after 10ms\n    server a 127.0.0.1:1 proto fcgi");
    let found = weir(["-c", "-f", &file]);
    assert_eq!(found.code(), Some(1));
    let said = "proxy 'web': 'hedge-requests' is not supported yet by Weir with 'use-fcgi-app'.";
    assert!(found.stderr.contains(said), "{}", found.stderr);
}

/// Enables a trace source, with its events on standard output.
fn trace(socket: &Path, source: &str) {
    let mut stream = connect_unix(socket);
    let words = ["sink stdout", "level developer", "verbosity complete", "start now"];
    let line = words.map(|word| format!("trace {source} {word}")).join(";");
    stream.write_all(format!("{line}\n").as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    assert!(answer.trim().is_empty(), "{answer}");
}

#[test]
fn traces_show_what_is_said_to_agents_applications_and_the_test_server() {
    let folder = Folder::new();
    let (port, at) = (free_port(), free_port());
    let _agent = peer("--spop", at);
    let mut weir = Running::weir(&["-db", "-f", &with_agent(&folder, LONG, port, &format!("server a 127.0.0.1:{at}"))]);
    drop(connect(port));
    trace(&folder.path("api"), "spop");
    assert_eq!(says(port), "20-");
    for event in ["|spop_conn_new] new SPOP connection : srv=agents/a", "|tx_notify] ", "|rx_ack] "] {
        weir.wait_for_line(|line| line.contains("|spop|") && line.contains(event));
    }
    drop(weir);
    let (port, at, plain) = (free_port(), free_port(), free_port());
    let _application = peer("--fcgi", at);
    let servers =
        format!("server a 127.0.0.1:{at} proto fcgi\nfrontend test\n    mode haterm\n    bind 127.0.0.1:{plain}");
    let mut weir = Running::weir(&["-db", "-f", &with_application(&folder, LONG, port, &servers)]);
    drop((connect(port), connect(plain)));
    for source in ["fcgi", "haterm"] {
        trace(&folder.path("api"), source);
    }
    assert_eq!(status(port, "/?s=1"), 200);
    for event in ["|fconn_new] ", "|tx_begin_request] sending FCGI request: GET /?s=1 ", "|rsp_headers] "] {
        weir.wait_for_line(|line| line.contains("|fcgi|") && line.contains(event));
    }
    let mut stream: TcpStream = connect(plain);
    assert_eq!(exchange(&mut stream, &get("/?s=20")).1.len(), 20);
    for event in ["|hstrm_new] new haterm stream : ", "|hstrm_resp] build a HTTP response: status=200 size=20"] {
        weir.wait_for_line(|line| line.contains("|haterm|") && line.contains(event));
    }
}
