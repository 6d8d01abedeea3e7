//! The configurations of docs/how-to/bouncers.md with an API, agents and scripts of our own, which make the calls and speak the
//! protocols of those that others publish; and Coraza with the Core Rule Set, an agent in Go that `tests/coraza` builds.

use crate::support::{Folder, Running, connect_unix, wait_until};
use std::io::{BufRead as _, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{Receiver, channel};

/// Files of the configurations of the page, below `/etc/weir`.
pub const FILES: &[(&str, &str)] = &[
    ("bouncer/crowdsec.lua", include_str!("bouncers/bouncer.lua")),
    ("bouncer/settings.lua", include_str!("bouncers/settings.lua")),
    (
        "bouncer/bouncer.conf",
        "MAP_PATH=FOLDER/bouncer/list.map\nAPI_KEY=k\nUPDATE_FREQUENCY=0\nEXCLUDE_LOCATION=/open\n",
    ),
    ("bouncer/list.map", ""),
    ("spoe-bouncer/crowdsec.lua", include_str!("bouncers/pages.lua")),
    ("spoe-bouncer/files.lua", include_str!("bouncers/files.lua")),
    ("spoe-bouncer/ban.html", "<p>Banned, see {{url}}."),
    ("spoe-bouncer/captcha.html", "<p>Captcha {{key}}."),
];

/// Returns the block of the page that contains a line.
fn block(containing: &str) -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/how-to/bouncers.md");
    let page = std::fs::read_to_string(page).expect("a page");
    let mut blocks: Vec<String> = vec![String::new()];
    for line in page.lines() {
        match line.strip_prefix("    ") {
            Some(text) => *blocks.last_mut().expect("a block") += &format!("{text}\n"),
            None if line.is_empty() => blocks.last_mut().expect("a block").push('\n'),
            None => blocks.push(String::new()),
        }
    }
    blocks.into_iter().find(|block| block.lines().any(|line| line.trim() == containing)).expect("a block of the page")
}

/// A folder in the place of `/etc/weir`.
fn files() -> Folder {
    let folder = Folder::new();
    for name in ["bouncer", "spoe-bouncer"] {
        std::fs::create_dir(folder.path(name)).expect("own folder");
    }
    for (name, content) in FILES {
        folder.write(name, &content.replace("FOLDER", folder.text()));
    }
    folder
}

/// Starts the configuration of the block with that line. Its clients come over a UNIX socket, with a PROXY header that has their address.
fn started(folder: &Folder, containing: &str, replaced: &[(&str, String)]) -> Running {
    let app = TcpListener::bind("127.0.0.1:0").expect("an address");
    let address = app.local_addr().expect("an address");
    // Runs until the test's process ends.
    std::thread::spawn(move || {
        for stream in app.incoming().map_while(Result::ok) {
            if let Some((_, stream)) = request(stream) {
                answer(stream, "200 OK", "the application");
            }
        }
    });
    let mut text = block(containing)
        .replace("/etc/weir/", &format!("{}/", folder.text()))
        .replace("bind :80", &format!("bind {} accept-proxy", folder.path("socket").display()))
        .replace("192.0.2.11:8080", &address.to_string());
    for (from, to) in replaced {
        assert!(text.contains(from), "{from}");
        text = text.replace(from, to);
    }
    let times = "defaults\n mode http\n timeout connect 5s\n timeout client 60s\n timeout server 60s\n";
    let stats = format!("global\n stats socket {} level admin\n", folder.path("cli").display());
    Running::weir(&["-f", &folder.write("page.cfg", &format!("{stats}{times}{text}"))])
}

/// Reads the head of a request. Returns its lines.
fn request(stream: TcpStream) -> Option<(Vec<String>, TcpStream)> {
    let mut reader = BufReader::new(stream);
    let mut lines = Vec::new();
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line.trim().is_empty() {
            return Some((lines, reader.into_inner()));
        }
        lines.push(line.trim().to_ascii_lowercase());
    }
}

fn answer(mut stream: TcpStream, status: &str, body: &str) {
    let length = body.len();
    // The proxy may have left.
    let _ = write!(stream, "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}");
}

/// Sends a request from that address. Returns status, head and body.
fn asked(folder: &Folder, from: &str, head: &str, body: &str) -> (u16, String, String) {
    let mut stream = connect_unix(&folder.path("socket"));
    let length = if body.is_empty() { String::new() } else { format!("content-length: {}\r\n", body.len()) };
    let (line, fields) = head.split_once('\n').unwrap_or((head, ""));
    let fields: String = fields.lines().map(|field| format!("{field}\r\n")).collect();
    let text = format!(
        "PROXY TCP4 {from} 192.0.2.1 1000 80\r\n{line} HTTP/1.1\r\nhost: www.example.com\r\nconnection: \
         close\r\n{length}{fields}\r\n{body}"
    );
    stream.write_all(text.as_bytes()).expect("sent");
    let mut told = String::new();
    stream.read_to_string(&mut told).expect("an answer");
    let (head, body) = told.split_once("\r\n\r\n").expect("a head");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    (status, head.to_owned(), body.to_owned())
}

/// An API with decisions: the first list at once, a change once the test says so.
fn api(changes: Receiver<&'static str>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let Some((lines, stream)) = request(stream) else { continue };
            assert!(lines.contains(&"x-api-key: k".to_owned()), "{lines:?}");
            let list = if lines[0].contains("startup=true") {
                r#"{"deleted":null,"new":[{"value":"203.0.113.6","type":"ban"},{"value":"198.51.100.0/24","type":"captcha"}]}"#
            } else {
                let Ok(change) = changes.recv() else { return };
                change
            };
            answer(stream, "200 OK", list);
        }
    });
    address
}

#[test]
fn a_bouncer_in_lua_follows_the_decisions_of_its_api() {
    let folder = files();
    let (change, changes) = channel();
    let replaced = [("127.0.0.1:8080", api(changes)), ("www.recaptcha.net:443", "127.0.0.1:9".to_owned())];
    let _weir = started(&folder, "http-request lua.crowdsec_allow", &replaced);
    let html = "GET /\naccept: text/html";
    wait_until("the first decisions arrive", || asked(&folder, "203.0.113.6", html, "").0 == 403);
    assert_eq!(asked(&folder, "203.0.113.6", html, "").2, "<p>Banned.");
    assert_eq!(asked(&folder, "203.0.113.6", "GET /\naccept: image/png", "").2, "Access forbidden");
    let (status, _, body) = asked(&folder, "203.0.113.6", "GET /open", "");
    assert_eq!((status, &body[..]), (200, "the application"), "an excluded path");
    assert_eq!(asked(&folder, "192.0.2.5", "GET /", "").2, "the application");
    // A captcha, wrong and right answers, and the way back to the page.
    wait_until("the captcha is asked for", || asked(&folder, "198.51.100.7", html, "").2 == "<p>What is 6 times 7?");
    let (status, ..) = asked(&folder, "198.51.100.7", "POST /", "answer=41&redirect_uri=/x");
    assert_eq!(status, 200);
    let (status, head, _) = asked(&folder, "198.51.100.7", "POST /", "answer=42&redirect_uri=/x");
    assert!(status == 302 && head.contains("location: /x"), "{head}");
    assert_eq!(asked(&folder, "198.51.100.7", "GET /x", "").2, "the application");
    assert_eq!(asked(&folder, "198.51.100.8", html, "").2, "<p>What is 6 times 7?");
    // The ban ends, another begins.
    change
        .send(r#"{"deleted":[{"value":"203.0.113.6","type":"ban"}],"new":[{"value":"192.0.2.5","type":"ban"}]}"#)
        .expect("the API runs");
    wait_until("the ban ends", || asked(&folder, "203.0.113.6", "GET /", "").0 == 200);
    wait_until("the other ban begins", || asked(&folder, "192.0.2.5", "GET /", "").0 == 403);
}

/// Answers messages of the published configuration as CrowdSec's agent does: by the address, and the captcha's form. Ends with its listener.
fn decide(listener: &TcpListener) {
    while let Ok((mut stream, _)) = listener.accept() {
        std::thread::spawn(move || {
            let mut length = [0; 4];
            while stream.read_exact(&mut length).is_ok() {
                let mut frame = vec![0; u32::from_be_bytes(length) as usize];
                if stream.read_exact(&mut frame).is_err() {
                    return;
                }
                let answered = match frame[0] {
                    1 => {
                        let items =
                            b"\x07version\x08\x032.0\x0emax-frame-size\x03\xfc\xf0\x06\x0ccapabilities\x08\x0apipelining";
                        [&[101, 0, 0, 0, 1, 0, 0][..], items].concat()
                    }
                    3 => [&[103, 0, 0, 0, 1, frame[5], frame[6]][..], &orders(&frame)].concat(),
                    _ => continue,
                };
                let length = u32::try_from(answered.len()).expect("short").to_be_bytes();
                if stream.write_all(&[&length[..], &answered].concat()).is_err() {
                    return;
                }
            }
        });
    }
}

/// Returns the variables that the agent sets for a message.
fn orders(frame: &[u8]) -> Vec<u8> {
    let holds = |bytes: &[u8]| frame.windows(bytes.len()).any(|found| found == bytes);
    let set = |name: &str, value: &str| {
        let length = |text: &str| u8::try_from(text.len()).expect("short");
        [&[1, 3, 2, length(name)][..], name.as_bytes(), &[8, length(value)], value.as_bytes()].concat()
    };
    // The value of src-ip: an IPv4 address.
    let is_from = |address: [u8; 4]| holds(&[b"src-ip\x06".as_slice(), &address].concat());
    if is_from([203, 0, 113, 6]) {
        [set("remediation", "ban"), set("contact_us_url", "/contact")].concat()
    } else if is_from([198, 51, 100, 7]) && !holds(b"solved=1") {
        let cookie = set("captcha_cookie", "captcha=pending");
        [set("remediation", "captcha"), set("captcha_site_key", "site"), set("captcha_status", "pending"), cookie]
            .concat()
    } else if is_from([198, 51, 100, 7]) {
        [set("remediation", "allow"), set("redirect", "1"), set("captcha_cookie", "captcha=valid")].concat()
    } else {
        set("remediation", "allow")
    }
}

#[test]
fn a_bouncer_beside_the_process_is_asked_by_spop() {
    let folder = files();
    let engine = block("spoe-agent crowdsec-agent");
    folder.write("spoe-bouncer/crowdsec.cfg", &engine);
    let listener = TcpListener::bind("127.0.0.1:0").expect("an address");
    let address = listener.local_addr().expect("an address").to_string();
    std::thread::spawn(move || decide(&listener));
    let _weir = started(&folder, "server spoa 127.0.0.1:9000", &[("127.0.0.1:9000", address)]);
    let (status, head, body) = asked(&folder, "203.0.113.6", "GET /\naccept: text/html", "");
    assert_eq!((status, &body[..]), (403, "<p>Banned, see /contact."), "{head}");
    assert!(head.contains("cache-control: no-store") && head.contains("content-type: text/html"), "{head}");
    assert_eq!(asked(&folder, "203.0.113.6", "GET /\naccept: image/png", "").2, "Forbidden");
    let (status, head, body) = asked(&folder, "198.51.100.7", "GET /", "");
    assert_eq!((status, &body[..]), (200, "<p>Captcha site."), "{head}");
    assert!(head.contains("set-cookie: captcha=pending"), "{head}");
    let (status, head, _) = asked(&folder, "198.51.100.7", "POST /page", "solved=1");
    assert!(status == 302 && head.contains("location: /page") && head.contains("set-cookie: captcha=valid"), "{head}");
    // A body that is too large is not sent to the agent, which then does not see what it holds.
    let large = format!("solved=1&{}", "x".repeat(52_000));
    assert_eq!(asked(&folder, "198.51.100.7", "POST /page", &large).2, "<p>Captcha site.");
    assert_eq!(asked(&folder, "192.0.2.5", "GET /", "").2, "the application");
}

#[test]
fn requests_are_refused_while_no_agent_decides() {
    let folder = files();
    folder.write("spoe-bouncer/crowdsec.cfg", &block("spoe-agent crowdsec-agent"));
    folder.write("coraza.conf", &block("spoe-agent coraza-agent"));
    for line in ["server spoa 127.0.0.1:9000", "server coraza 127.0.0.1:9000"] {
        let _weir = started(&folder, line, &[("127.0.0.1:9000", folder.path("none").display().to_string())]);
        assert_eq!(asked(&folder, "192.0.2.5", "GET /", "").0, 503, "{line}");
    }
}

#[test]
fn coraza_refuses_attacks_by_the_core_rule_set() {
    let folder = files();
    let program = folder.path("coraza");
    let mut build = Command::new("go");
    build.current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/coraza"));
    build.args(["build", "-buildvcs=false", "-mod=readonly", "-o"]).arg(&program).arg(".");
    if !build.output().is_ok_and(|built| built.status.success()) {
        eprintln!("SKIPPED: Go and Coraza's modules are not there, and no firewall was asked");
        return;
    }
    folder.write("coraza.conf", &block("spoe-agent coraza-agent"));
    let rules = folder.write("rules.conf", &block("SecRuleEngine On"));
    let agents = folder.path("agent");
    let mut agent = Running::start(Command::new(&program).arg(&agents).arg(&rules));
    agent.wait_for_line(|line| line.trim() == "ready");
    let replaced = [("127.0.0.1:9000", agents.display().to_string())];
    let _weir = started(&folder, "server coraza 127.0.0.1:9000", &replaced);
    let form = "POST /login\ncontent-type: application/x-www-form-urlencoded";
    let rows = [
        ("GET /", "", 200),
        ("GET /search?q=blue+shoes&page=2", "", 200),
        (form, "user=anna&comment=hello", 200),
        ("GET /?id=1%20UNION%20SELECT%20password%20FROM%20users--", "", 403),
        ("GET /?file=../../../../etc/passwd", "", 403),
        ("GET /?q=%3Cscript%3Ealert(1)%3C/script%3E", "", 403),
        ("GET /\nuser-agent: sqlmap/1.0", "", 403),
        (form, "comment=<script>alert(document.cookie)</script>", 403),
    ];
    for (head, body, expected) in rows {
        let head = if head.contains("user-agent") { head.to_owned() } else { format!("{head}\nuser-agent: test/1.0") };
        let (status, ..) = asked(&folder, "192.0.2.5", &format!("{head}\naccept: */*"), body);
        assert_eq!(status, expected, "{head} {body}");
    }
}
