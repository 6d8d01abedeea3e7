//! Weir announces addresses to a real router: BIRD, with both address families over one session. Skipped with a message if BIRD is
//! not installed.

use crate::support::{DEFAULTS, Folder, Running, WEIR, connect_unix, free_port, wait_until, weir};
use rustix::process::Signal;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs of BIRD are in a directory of the administrator.
fn program(name: &str) -> Option<PathBuf> {
    let found = ["/usr/sbin", "/usr/local/sbin", "/usr/bin"].map(|folder| Path::new(folder).join(name));
    let found = found.into_iter().find(|path| path.exists());
    if found.is_none() {
        eprintln!("SKIPPED: {name} of BIRD 2 is not installed");
    }
    found
}

/// A router.
struct Bird {
    running: Running,
    control: PathBuf,
    client: PathBuf,
    port: u16,
}

impl Bird {
    /// Starts a router that accepts a session from 127.0.0.2 in AS 65001, with further lines for its protocol; `None`: BIRD is not
    /// installed.
    fn start(folder: &Folder, lines: &str) -> Option<Self> {
        Self::between(folder, ["127.0.0.1", "127.0.0.2"], lines)
    }

    /// The same with the addresses of the router and of Weir.
    fn between(folder: &Folder, [own, weir]: [&str; 2], lines: &str) -> Option<Self> {
        let (daemon, client) = (program("bird")?, program("birdc")?);
        let (port, control) = (free_port(), folder.path("bird.ctl"));
        let text = format!(
            "log stderr all;\nrouter id 10.0.0.254;\nprotocol device {{}}\nprotocol bgp weir {{\n local {own} port {port} as \
             65000;\n neighbor {weir} as 65001;\n multihop 2;\n passive;\n error wait time 1,2;\n ipv4 {{ import all; export none; \
             }};\n ipv6 {{ import all; export none; }};\n {lines}\n}}\n"
        );
        let file = folder.write("bird.conf", &text);
        let running = Running::start(Command::new(daemon).args(["-f", "-c", &file, "-s"]).arg(&control));
        let bird = Self { running, control, client, port };
        wait_until("the router serves", || bird.ask("show protocols").contains("weir"));
        Some(bird)
    }

    fn ask(&self, command: &str) -> String {
        let asked = Command::new(&self.client).arg("-s").arg(&self.control).args(command.split(' ')).output();
        asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
    }

    /// Waits until the router has a route to `prefix`, and returns its description.
    fn wait_for_route(&self, prefix: &str) -> String {
        let ask = || self.ask(&format!("show route {prefix} all"));
        wait_until(&format!("a route to {prefix}"), || ask().contains("BGP.origin"));
        ask()
    }

    fn wait_for_withdrawal(&self, prefix: &str) {
        wait_until(&format!("no route to {prefix}"), || !self.ask(&format!("show route {prefix}")).contains(prefix));
    }
}

/// A configuration with one server at `server`, and its runtime API at `socket`.
fn configuration(socket: &Path, router: u16, server: u16, neighbor: &str) -> String {
    format!(
        "global
    stats socket {} level admin
    log stdout format raw local0
{DEFAULTS}backend app
    server one 127.0.0.1:{server} check inter 20 rise 1 fall 1 init-state down
bgp edge
    local-as 65001
    router-id 10.0.0.1
    neighbor tor 127.0.0.1 as 65000 port {router} source 127.0.0.2 multihop 2 {neighbor}
    acl has_servers nbsrv(app) ge 1
    announce 203.0.113.10/32 med 10 community 65000:7,no-export if has_servers
    announce 203.0.113.11/32 if {{ nbsrv(app) ge 2 }}
    announce 2001:db8::10/128 next-hop 2001:db8::1 if has_servers
",
        socket.display()
    )
}

/// A running Weir with its server.
pub struct Scene {
    pub weir: Running,
    pub server: Option<Running>,
    socket: PathBuf,
    file: String,
}

impl Scene {
    fn start(folder: &Folder, router: u16, neighbor: &str) -> Self {
        Self::with(folder, |socket, server| configuration(socket, router, server, neighbor))
    }

    /// The same with the text of a configuration for a socket of the runtime API and the port of a server.
    pub fn with(folder: &Folder, configuration: impl FnOnce(&Path, u16) -> String) -> Self {
        let (socket, port) = (folder.path("weir.sock"), free_port());
        let server = Running::start(Command::new(WEIR).args(["origin", "-L", &format!("127.0.0.1:{port}")]));
        let file = folder.write("weir.cfg", &configuration(&socket, port));
        let weir = Running::weir(&["-f", &file]);
        drop(connect_unix(&socket));
        Self { weir, server: Some(server), socket, file }
    }

    pub fn ask(&self, line: &str) -> String {
        let mut answer = String::new();
        let mut stream = connect_unix(&self.socket);
        stream.write_all(format!("{line}\n").as_bytes()).expect("sent");
        stream.read_to_string(&mut answer).expect("an answer");
        answer
    }
}

#[test]
fn a_router_has_the_routes_while_servers_are_up() {
    let folder = Folder::new();
    let Some(bird) = Bird::start(&folder, "") else { return };
    let mut scene = Scene::start(&folder, bird.port, "");
    let route = bird.wait_for_route("203.0.113.10/32");
    for part in ["BGP.as_path: 65001", "BGP.next_hop: 127.0.0.2", "BGP.med: 10", "(65000,7) (65535,65281)"] {
        assert!(route.contains(part), "{part}: {route}");
    }
    let route = bird.wait_for_route("2001:db8::10/128");
    assert!(route.contains("BGP.next_hop: 2001:db8::1") && route.contains("BGP.as_path: 65001"), "{route}");
    let shown = scene.ask("show bgp");
    assert!(
        shown.starts_with("bgp edge local-as=65001 router-id=10.0.0.1\nneighbor tor address=127.0.0.1:"),
        "{shown}"
    );
    for part in [
        " as=65000 state=Established ",
        " hold_time=9s router_id=10.0.0.254 announced=2 established=1 ",
        "route 203.0.113.10/32 state=announced announcement=1/1 changes=1 ",
        "route 203.0.113.11/32 state=withdrawn announcement=-/1 changes=0 for=- condition=\"if { nbsrv(app) ge 2 }\"\n",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert_eq!(scene.ask("show bgp nothing").trim(), "No such bgp section.");
    // The router requests the routes again.
    bird.ask("reload in weir");
    wait_until("the routes are sent again", || scene.ask("show bgp").contains(" updates_sent=4 "));
    // The only server ends, and a check finds that.
    scene.server = None;
    bird.wait_for_withdrawal("203.0.113.10/32");
    bird.wait_for_withdrawal("2001:db8::10/128");
    assert!(scene.ask("show bgp").contains("state=Established"), "the session lasts");
    let lines = ["neighbor tor (127.0.0.1:", "203.0.113.10/32 is withdrawn"];
    for part in lines {
        scene.weir.wait_for_line(|line| line.contains(part));
    }
    assert!(bird.running.id() > 0);
}

#[test]
fn the_first_line_whose_condition_holds_counts() {
    let folder = Folder::new();
    let Some(bird) = Bird::start(&folder, "") else { return };
    let lines =
        "    announce 203.0.113.12/32 med 20 if has_servers\n    announce 203.0.113.12/32 med 200\n    announce 2001";
    let text =
        |socket: &Path, server| configuration(socket, bird.port, server, "").replacen("    announce 2001", lines, 1);
    let mut scene = Scene::with(&folder, text);
    let has = |med: &str| bird.ask("show route 203.0.113.12/32 all").contains(&format!("BGP.med: {med}\n"));
    wait_until("the first line counts", || has("20"));
    scene.server = None;
    wait_until("the second line counts", || has("200"));
    bird.wait_for_withdrawal("203.0.113.10/32");
    assert!(scene.ask("show bgp").contains("route 203.0.113.12/32 state=announced announcement=2/2 "));
}

#[test]
fn the_exporter_has_the_sessions_and_the_routes() {
    let folder = Folder::new();
    let Some(bird) = Bird::start(&folder, "") else { return };
    let port = free_port();
    let exporter = format!(
        "frontend metrics\n    bind 127.0.0.1:{port}\n    http-request use-service prometheus-exporter\nbackend app"
    );
    let text =
        |socket: &Path, server| configuration(socket, bird.port, server, "").replacen("backend app", &exporter, 1);
    let scene = Scene::with(&folder, text);
    bird.wait_for_route("203.0.113.10/32");
    bird.wait_for_route("2001:db8::10/128");
    let metrics = |query: &str| crate::dashboard::get(port, &format!("/metrics{query}")).body;
    let found = metrics("?scope=bgp");
    let tor = "{section=\"edge\",neighbor=\"tor\"";
    let rows = [
        "# TYPE weir_bgp_neighbor_state gauge".to_owned(),
        format!("weir_bgp_neighbor_state{tor},state=\"Established\"}} 1"),
        format!("weir_bgp_neighbor_state{tor},state=\"Idle\"}} 0"),
        format!("weir_bgp_neighbor_routes{tor}}} 2"),
        "# TYPE weir_bgp_neighbor_sessions_total counter".to_owned(),
        format!("weir_bgp_neighbor_sessions_total{tor}}} 1"),
        format!("weir_bgp_neighbor_updates_sent_total{tor}}} 2"),
        format!("weir_bgp_neighbor_routes_dropped_total{tor}}} 0"),
        format!("weir_bgp_neighbor_malformed_total{tor}}} 0"),
        "weir_bgp_route_announced{section=\"edge\",prefix=\"203.0.113.10/32\"} 1".to_owned(),
        "weir_bgp_route_announced{section=\"edge\",prefix=\"203.0.113.11/32\"} 0".to_owned(),
        "weir_bgp_route_changes_total{section=\"edge\",prefix=\"2001:db8::10/128\"} 1".to_owned(),
    ];
    for row in rows {
        assert!(found.lines().any(|line| line == row), "{row}: {found}");
    }
    // All of the numbers that `show bgp` has: messages are exchanged all the time.
    let number = |text: &str, begin: &str, end: &str| -> Option<u64> {
        text.split(begin).nth(1)?.split(end).next()?.trim().parse().ok()
    };
    for (metric, name) in
        [("messages_sent", "sent"), ("messages_received", "received"), ("updates_received", "updates_received")]
    {
        let before = number(&scene.ask("show bgp"), &format!(" {name}="), " ").expect(name);
        let metric = format!("\nweir_bgp_neighbor_{metric}_total{tor}}}");
        let value = number(&metrics("?scope=bgp"), &metric, "\n").expect(name);
        let after = number(&scene.ask("show bgp"), &format!(" {name}="), " ").expect(name);
        assert!((before..=after).contains(&value), "{name}: {before}, {value}, {after}");
    }
    let one = metrics("?scope=bgp&metrics=weir_bgp_route_changes_total");
    assert_eq!(one.lines().filter(|line| line.starts_with("# TYPE")).count(), 1, "{one}");
    assert!(!metrics("").contains("weir_bgp"), "they have to be named");
}

#[test]
fn a_stop_withdraws_and_says_why() {
    let folder = Folder::new();
    let Some(bird) = Bird::start(&folder, "") else { return };
    let scene = Scene::start(&folder, bird.port, "");
    bird.wait_for_route("203.0.113.10/32");
    scene.weir.send(Signal::USR1);
    assert!(scene.weir.finish().status.success());
    bird.wait_for_withdrawal("203.0.113.10/32");
    let shown = bird.ask("show protocols all weir");
    assert!(shown.contains("Administrative shutdown"), "{shown}");
    let text = bird.running;
    text.send(Signal::TERM);
    let log = text.finish().stderr;
    assert!(log.contains("Weir stops"), "{log}");
}

#[test]
fn another_process_takes_over() {
    let folder = Folder::new();
    let Some(bird) = Bird::start(&folder, "") else { return };
    let scene = Scene::start(&folder, bird.port, "");
    bird.wait_for_route("203.0.113.10/32");
    let old = scene.weir.id().to_string();
    let new = Running::weir(&["-f", &scene.file, "-sf", &old]);
    assert!(scene.weir.finish().status.success());
    bird.wait_for_route("203.0.113.10/32");
    new.send(Signal::USR1);
    assert!(new.finish().status.success());
    bird.wait_for_withdrawal("203.0.113.10/32");
}

/// The same configuration for a process that accepts connections for a long time after it is asked to stop.
fn with_grace(text: &str) -> String {
    text.replacen("global\n", "global\n    grace 1h\n", 1)
}

#[test]
fn routes_are_withdrawn_before_the_grace_of_a_stop() {
    let folder = Folder::new();
    let Some(bird) = Bird::start(&folder, "") else { return };
    let mut scene = Scene::with(&folder, |socket, server| with_grace(&configuration(socket, bird.port, server, "")));
    bird.wait_for_route("203.0.113.10/32");
    scene.weir.send(Signal::USR1);
    bird.wait_for_withdrawal("203.0.113.10/32");
    bird.wait_for_withdrawal("2001:db8::10/128");
    scene.weir.wait_for_line(|line| line.contains("is Idle: stopped"));
    let shown = scene.ask("show bgp");
    assert!(shown.contains(" state=Idle ") && shown.contains(" next_attempt=- "), "it still serves: {shown}");
}

#[test]
fn another_process_takes_over_within_the_grace() {
    let folder = Folder::new();
    let Some(bird) = Bird::start(&folder, "") else { return };
    let mut scene = Scene::with(&folder, |socket, server| with_grace(&configuration(socket, bird.port, server, "")));
    bird.wait_for_route("203.0.113.10/32");
    let old = scene.weir.id().to_string();
    let _new = Running::weir(&["-f", &scene.file, "-sf", &old]);
    scene.weir.wait_for_line(|line| line.contains("is Idle: stopped"));
    wait_until("the newer process has the session", || {
        scene.ask("show bgp").contains(" state=Established ") && !bird.ask("show route 203.0.113.10/32").is_empty()
    });
    bird.wait_for_route("203.0.113.10/32");
    assert!(scene.weir.try_status().is_none(), "the older one serves");
}

#[test]
fn a_session_over_ipv6_has_routes_of_both_families() {
    if std::net::TcpListener::bind("[::1]:0").is_err() {
        eprintln!("SKIPPED: there is no IPv6");
        return;
    }
    let folder = Folder::new();
    let Some(bird) = Bird::between(&folder, ["::1", "::1"], "") else { return };
    // The kernel refuses all that serving does not need.
    let text = |socket: &Path, server| {
        configuration(socket, bird.port, server, "")
            .replacen("global\n", "global\n    confine strict\n", 1)
            .replacen("tor 127.0.0.1 as", "tor ::1 as", 1)
            .replacen(" source 127.0.0.2", " source ::1", 1)
            .replacen("10/32 med 10", "10/32 next-hop 192.0.2.1 med 10", 1)
            .replacen("11/32 if", "11/32 next-hop 192.0.2.1 if", 1)
    };
    let mut scene = Scene::with(&folder, text);
    let route = bird.wait_for_route("203.0.113.10/32");
    assert!(route.contains("BGP.next_hop: 192.0.2.1") && route.contains("BGP.med: 10"), "{route}");
    let route = bird.wait_for_route("2001:db8::10/128");
    assert!(route.contains("BGP.next_hop: 2001:db8::1") && route.contains("BGP.as_path: 65001"), "{route}");
    assert!(scene.ask("show bgp").contains("neighbor tor address=[::1]:"), "{}", scene.ask("show bgp"));
    scene.server = None;
    bird.wait_for_withdrawal("203.0.113.10/32");
    bird.wait_for_withdrawal("2001:db8::10/128");
    scene.weir.send(Signal::USR1);
    assert!(scene.weir.finish().stderr.contains("system calls that serving does not need"));
}

#[test]
fn a_next_hop_is_that_of_the_session_with_strict_confinement() {
    let folder = Folder::new();
    let Some(bird) = Bird::start(&folder, "") else { return };
    let text = |socket: &Path, server| {
        configuration(socket, bird.port, server, "").replacen("global\n", "global\n    confine strict\n", 1)
    };
    let scene = Scene::with(&folder, text);
    let route = bird.wait_for_route("203.0.113.10/32");
    assert!(route.contains("BGP.next_hop: 127.0.0.2"), "{route}");
    // A connection that fails is repeated.
    bird.ask("restart weir");
    wait_until("the session is established again", || scene.ask("show bgp").contains(" established=2 "));
    bird.wait_for_route("203.0.113.10/32");
}

#[test]
fn a_router_can_require_a_password() {
    let folder = Folder::new();
    let Some(bird) = Bird::start(&folder, "password \"secret\";") else { return };
    let file = folder.write("password", "secret\n");
    let mut scene = Scene::start(&folder, bird.port, &format!("password-file {file}"));
    let line = scene.weir.wait_for_line(|line| line.contains("bgp edge: neighbor tor"));
    if line.contains("the kernel does not support MD5 signatures") {
        eprintln!("SKIPPED: {line}");
        return;
    }
    bird.wait_for_route("203.0.113.10/32");
}

#[test]
fn wrong_sections_are_refused_with_what_is_allowed() {
    let folder = Folder::new();
    let empty = folder.write("empty", "\nsecret\n");
    let long = folder.write("long", &"x".repeat(81));
    let missing = folder.path("missing").display().to_string();
    let needed = "local-as 65001\n router-id 10.0.0.1\n neighbor tor 192.0.2.1 as 65000\n";
    let with = |line: &str| format!("{needed} {line}\n");
    let rows = [
        (
            with("announce 203.0.113.10/32 if { path / }"),
            "its condition uses 'path', which needs a stream.",
            "nbsrv(backend)",
        ),
        (
            with("announce 203.0.113.10/32 if { src 10.0.0.1 }"),
            "its condition uses 'src', which needs a stream.",
            "^^^",
        ),
        (with("acl a method GET\n announce 203.0.113.10/32 if a"), "its condition uses 'method'", "allowed: samples"),
        (with("announce 203.0.113.10/32 if { nbsrv(nothing) ge 1 }"), "unable to find backend 'nothing'", "^"),
        (
            with("announce 203.0.113.10/32 if { nbsrv ge 1 }"),
            "its condition uses 'nbsrv', whose argument is missing",
            "^",
        ),
        (with("announce 203.0.113.10/32 if nothing"), "no such ACL : 'nothing'", "^^^^^^^"),
        (
            with("announce 2001:db8::1"),
            "a next hop is needed, since the address of neighbor 'tor'",
            "add 'next-hop <address>'",
        ),
        (with(&format!("neighbor b 192.0.2.2 as 1 password-file {missing}")), "cannot be read : No such file", "^"),
        (with(&format!("neighbor b 192.0.2.2 as 1 password-file {empty}")), "its first line is empty.", "^"),
        (
            with(&format!("neighbor b 192.0.2.2 as 1 password-file {long}")),
            "its first line is longer than 80 bytes.",
            "^",
        ),
        ("router-id 10.0.0.1\n".to_owned(), "bgp section 'edge' : 'local-as <number>' is missing.", "^"),
        ("local-as 1\n".to_owned(), "bgp section 'edge' : 'router-id <address>' is missing.", "^"),
        (
            "local-as 1\n router-id 10.0.0.1\n".to_owned(),
            "a line 'neighbor <name> <address> as <number>' is missing.",
            "^",
        ),
    ];
    for (section, message, allowed) in rows {
        let text = format!(
            "{DEFAULTS}frontend f\n bind 127.0.0.1:{}\nbackend app\n server s 127.0.0.1:1\nbgp edge\n {section}",
            free_port()
        );
        let file = folder.write("wrong.cfg", &text);
        let result = weir(["-c", "-f", &file]);
        assert_eq!(result.code(), Some(1), "{section}");
        for part in [message, allowed] {
            assert!(result.stderr.contains(part), "{part}: {}", result.stderr);
        }
    }
    let warned =
        with("announce 203.0.113.10/32 local-preference 5\n announce 203.0.113.10/32 med 5 if { nbsrv(app) ge 1 }");
    let text = format!(
        "{DEFAULTS}frontend f\n bind 127.0.0.1:{}\nbackend app\n server s 127.0.0.1:1\nbgp edge\n {warned}",
        free_port()
    );
    let result = weir(["-c", "-f", &folder.write("doubtful.cfg", &text)]);
    assert_eq!(result.code(), Some(0), "{}", result.stderr);
    for part in ["'local-preference' has no effect", "an earlier line without a condition always applies."] {
        assert!(result.stderr.contains(part), "{part}: {}", result.stderr);
    }
}
