//! `udp-lb` over real sockets: reloads, rejections by the kernel, addresses. `RELOADS=100` runs longer.

use crate::browser::Browser;
use crate::dashboard::send;
use crate::quic_sockets::{free_address, sockets};
use crate::reload::Service;
use crate::support::{Folder, Running, connect, connect_unix, exchange, free_port, get, line, wait_until};
use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::AsRawFd;
use std::time::Duration;

/// Waits for answers for at most this time.
const PATIENCE: Duration = Duration::from_secs(10);

/// A server that answers each datagram with its name and the datagram, until the test ends.
struct Server {
    address: SocketAddr,
}

impl Server {
    fn start(name: &'static str) -> Self {
        Self::at("127.0.0.1:0", name)
    }

    fn at(address: &str, name: &'static str) -> Self {
        let socket = UdpSocket::bind(address).expect("a port");
        let address = socket.local_addr().expect("bound");
        std::thread::spawn(move || {
            let mut place = [0; 2048];
            while let Ok((length, from)) = socket.recv_from(&mut place) {
                let answer = [name.as_bytes(), b":", &place[..length]].concat();
                let _ = socket.send_to(&answer, from);
            }
        });
        Self { address }
    }
}

/// A client with a port of its own.
struct Client(UdpSocket);

impl Client {
    fn of(to: (Ipv4Addr, u16)) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
        socket.connect(to).expect("an address");
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
        Self(socket)
    }

    /// Sends a datagram and returns its answer; `None`: the kernel has rejected it.
    fn try_ask(&self, text: &str) -> Option<String> {
        self.0.send(text.as_bytes()).ok()?;
        let mut place = [0; 2048];
        let length = self.0.recv(&mut place).ok()?;
        String::from_utf8(place[..length].to_vec()).ok()
    }

    fn ask(&self, text: &str) -> String {
        self.try_ask(text).expect("an answer")
    }
}

/// Returns an address that rejects what anyone but one peer sends to it. It is closed for as long as the socket exists: nobody else
/// can get the port.
pub fn closed_port() -> (UdpSocket, SocketAddr) {
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    close(&socket);
    let address = socket.local_addr().expect("bound");
    (socket, address)
}

/// Makes a socket receive nothing any longer, and keep its port.
fn close(socket: &UdpSocket) {
    socket.connect("127.0.0.1:9").expect("an address");
}

/// A section at an address, with these lines.
fn section((address, port): (Ipv4Addr, u16), lines: &str) -> String {
    format!("udp-lb dns\n    dgram-bind {address}:{port}\n    timeout client 1m\n{lines}\n")
}

/// A frontend whose answers show that the process serves.
fn web(port: &str) -> String {
    format!(
        "frontend web\n    mode http\n    timeout client 10s\n    bind 127.0.0.1:{port}\n    http-request return status 200\n"
    )
}

/// Starts Weir with these sections, and waits until it serves. Its runtime API is the socket `api` in the folder.
pub fn start(folder: &Folder, global: &str, sections: &str, arguments: &[&str]) -> Running {
    let port = free_port();
    let api = folder.path("api");
    let text =
        format!("global\n    nbthread 3\n    stats socket {} level admin expose-fd listeners\n{global}", api.display());
    let file = folder.write(&format!("{port}.cfg"), &format!("{text}{}{sections}", web(&port.to_string())));
    let running = Running::weir(&[&["-db", "-f", &file], arguments].concat());
    wait_until("the process serves", || exchange(&mut connect(port), &get("/")).0 == 200);
    running
}

/// The kernel rejects the datagrams to a server without a process. One client is enough to notice it, without a check.
#[test]
fn a_rejected_datagram_is_noticed() {
    let (folder, at) = (Folder::new(), free_address());
    let (_closed, gone) = closed_port();
    let _weir = start(&folder, "", &section(at, &format!("    server gone {gone}")), &[]);
    let client = Client::of(at);
    client.0.send(b"1").expect("sent");
    // Both are counted by the task of the flow, at its end.
    wait_until("the flow has ended by a rejection", || {
        let shown = show(&folder, "show udp-lb");
        shown.contains("dns flows 0 ") && shown.contains(" rejected 1 ")
    });
}

/// The kernel rejects the answers to a client that has closed its port: its flow ends, and no further answer is sent.
#[test]
fn a_flow_ends_when_its_client_is_gone() {
    let (folder, at) = (Folder::new(), free_address());
    let (server, log) =
        (UdpSocket::bind("127.0.0.1:0").expect("a port"), UdpSocket::bind("127.0.0.1:0").expect("a port"));
    for socket in [&server, &log] {
        socket.set_read_timeout(Some(PATIENCE)).expect("a socket");
    }
    let [to, lines] = [&server, &log].map(|socket| socket.local_addr().expect("bound"));
    let lines = format!("    log {lines} local0\n    server s {to}");
    let _weir = start(&folder, "", &section(at, &lines), &[]);
    let client = Client::of(at);
    client.0.send(b"1").expect("sent");
    let mut place = [0; 2048];
    let (_, flow) = server.recv_from(&mut place).expect("a datagram");
    server.send_to(b"answer", flow).expect("sent");
    assert_eq!(client.0.recv(&mut place).expect("an answer"), 6);
    let other = Client::of(at);
    other.0.send(b"2").expect("sent");
    let (_, flow_of_other) = server.recv_from(&mut place).expect("a datagram");
    close(&client.0);
    server.send_to(b"answer", flow).expect("sent");
    let line = loop {
        let length = log.recv(&mut place).expect("a line");
        let line = String::from_utf8_lossy(&place[..length]).into_owned();
        if line.contains(" dns/s ") {
            break line;
        }
    };
    assert!(line.contains(" CD "), "{line}");
    server.send_to(b"answer", flow_of_other).expect("sent");
    assert_eq!(other.0.recv(&mut place).expect("an answer"), 6);
    assert!(show(&folder, "show udp-lb").starts_with("udp-lb dns flows 1 "));
}

/// Many clients have closed their ports when their answers come: no report of the kernel stays unread.
#[test]
fn all_flows_end_whose_clients_are_gone() {
    let (folder, at) = (Folder::new(), free_address());
    let server = UdpSocket::bind("127.0.0.1:0").expect("a port");
    server.set_read_timeout(Some(PATIENCE)).expect("a socket");
    let lines = format!("    server s {}", server.local_addr().expect("bound"));
    let _weir = start(&folder, "", &section(at, &lines), &[]);
    let mut flows = Vec::new();
    let clients: Vec<_> = (0..200)
        .map(|_| {
            let client = Client::of(at);
            client.0.send(b"1").expect("sent");
            flows.push(server.recv_from(&mut [0; 16]).expect("a datagram").1);
            client
        })
        .collect();
    clients.iter().for_each(|client| close(&client.0));
    for flow in flows {
        server.send_to(b"answer", flow).expect("sent");
    }
    wait_until("all flows have ended", || show(&folder, "show udp-lb").starts_with("udp-lb dns flows 0 "));
}

/// Clients and servers of both versions, at an address of IPv6 and at all addresses.
#[test]
fn datagrams_of_ipv6_are_balanced() {
    let folder = Folder::new();
    let (v4, v6) = (Server::start("a"), Server::at("[::1]:0", "b"));
    let any = UdpSocket::bind("[::]:0").expect("a port");
    let one = UdpSocket::bind("[::1]:0").expect("a port");
    let [any_port, one_port] = [&any, &one].map(|socket| socket.local_addr().expect("bound").port());
    drop((any, one));
    let servers = format!("    balance static-rr\n    server a {}\n    server b {}", v4.address, v6.address);
    let lines = format!("    dgram-bind [::1]:{one_port}\n{servers}");
    let _weir = start(
        &folder,
        "",
        &format!("udp-lb dns\n    dgram-bind :::{any_port} v4v6\n    timeout client 1m\n{lines}\n"),
        &[],
    );
    for to in [format!("127.0.0.2:{any_port}"), format!("[::1]:{any_port}"), format!("[::1]:{one_port}")] {
        let ip = to.parse::<SocketAddr>().expect("an address").ip();
        let mut found: Vec<_> = (0..2)
            .map(|_| {
                let client = UdpSocket::bind((ip, 0)).expect("a port");
                // Answers come from the address that it has sent to.
                client.connect(&to).expect("an address");
                client.set_read_timeout(Some(PATIENCE)).expect("a socket");
                let client = Client(client);
                assert_eq!(client.ask("1"), client.ask("1"), "{to}");
                client.ask("2")
            })
            .collect();
        found.sort_unstable();
        assert_eq!(found, ["a:2", "b:2"], "{to}");
    }
}

/// Returns the answer of the runtime API to a command.
pub fn show(folder: &Folder, command: &str) -> String {
    let mut stream = connect_unix(&folder.path("api"));
    stream.write_all(format!("{command}\n").as_bytes()).expect("sent");
    stream.shutdown(std::net::Shutdown::Write).expect("open");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

#[test]
fn flows_survive_reloads_in_place() {
    let reloads = std::env::var("RELOADS").ok().and_then(|count| count.parse().ok()).unwrap_or(5);
    let at = free_address();
    let (a, b) = (Server::start("a"), Server::start("b"));
    let sections = |lines: &str| {
        let servers = format!("    server a {}\n    server b {}\n{lines}", a.address, b.address);
        format!("{}{}", web("PORT"), section(at, &servers))
    };
    let service = Service::start_with("    nbthread 3\n", &sections(""), Folder::new());
    let before = sockets(at.0, at.1);
    assert_eq!(before.len(), 3);
    let clients: Vec<_> = (0..20).map(|_| Client::of(at)).collect();
    let asked = |text: &str| clients.iter().map(|client| client.ask(text)).collect::<Vec<_>>();
    let first = asked("q");
    assert!(["a:q", "b:q"].iter().all(|answer| first.iter().any(|found| found == answer)), "{first:?}");
    for number in 0..reloads {
        service.write("    nbthread 3\n", &sections(&format!("    proxy-requests {}", 1_000 + number)));
        let answer = service.reload();
        assert!(answer.starts_with("Success=1\n") && answer.contains("Reloaded in place"), "{answer}");
        assert_eq!(asked("q"), first);
    }
    // Another section gets the address: its sockets and their flows stay.
    service.write("    nbthread 3\n", &sections("").replace("udp-lb dns", "udp-lb names"));
    let answer = service.reload();
    assert!(answer.starts_with("Success=1\n") && answer.contains("Reloaded in place"), "{answer}");
    assert_eq!(asked("q"), first);
    (0..20).for_each(|_| assert!(Client::of(at).ask("q").ends_with(":q")));
    assert_eq!(sockets(at.0, at.1), before);
}

/// A successor gets the sockets; a hash keeps clients where they were.
#[test]
fn a_successor_serves_the_clients() {
    let (folder, at) = (Folder::new(), free_address());
    let (a, b) = (Server::start("a"), Server::start("b"));
    let lines = format!("    balance hash src_port\n    server a {}\n    server b {}", a.address, b.address);
    let old = start(&folder, "", &section(at, &lines).replace("client 1m", "client 1s"), &[]);
    let before = sockets(at.0, at.1);
    let clients: Vec<_> = (0..20).map(|_| Client::of(at)).collect();
    let asked = |text: &str| clients.iter().map(|client| client.ask(text)).collect::<Vec<_>>();
    let first = asked("q");
    let (api, id) = (folder.path("api").display().to_string(), old.id().to_string());
    let _new = start(&folder, "", &section(at, &lines), &["-x", &api, "-sf", &id]);
    // The old process ends when its flows are idle: it receives nothing any longer.
    assert_eq!(old.finish().code(), Some(0));
    assert_eq!(asked("q"), first);
    assert_eq!(sockets(at.0, at.1), before);
}

#[test]
fn an_inherited_socket_receives_datagrams() {
    let folder = Folder::new();
    let socket = UdpSocket::bind("127.0.0.1:0").expect("a port");
    let port = socket.local_addr().expect("bound").port();
    rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::empty()).expect("own");
    let server = Server::start("s");
    let lines = format!("udp-lb dns\n    dgram-bind fd@{}\n    server s {}\n", socket.as_raw_fd(), server.address);
    let _weir = start(&folder, "", &lines, &[]);
    drop(socket);
    assert_eq!(Client::of((Ipv4Addr::LOCALHOST, port)).ask("1"), "s:1");
}

#[test]
fn an_address_in_use_is_told() {
    let folder = Folder::new();
    let (address, port) = free_address();
    let _taken = UdpSocket::bind((address, port)).expect("a socket");
    let file = folder.write("a.cfg", &section((address, port), "    server s 127.0.0.1:1"));
    let found = line(&format!("-db -f {file}"));
    let expected = format!(
        "Binding [{file}:2] for proxy dns: protocol udpv4: cannot bind socket (Address already in use) for [{address}:{port}]."
    );
    assert_eq!(found.code(), Some(1));
    assert!(found.stderr.contains(&expected), "{expected}\n{}", found.stderr);
}

/// Two lines with one address would share its datagrams.
#[test]
fn an_address_that_two_lines_name_is_an_error() {
    let folder = Folder::new();
    let at = (Ipv4Addr::LOCALHOST, 5_353);
    let twice = section(at, "    dgram-bind 127.0.0.1:5353\n    server s 127.0.0.1:1");
    let found = line(&format!("-c -f {}", folder.write("a.cfg", &twice)));
    assert_eq!(found.code(), Some(1));
    assert!(found.stderr.contains("has this UDP address already."), "{}", found.stderr);
}

/// The dashboard's API, the statistics page and `show udp-lb` have the same counts.
#[test]
fn lost_datagrams_are_shown_to_operators() {
    let (folder, at, page) = (Folder::new(), free_address(), free_port());
    let (_closed, gone) = closed_port();
    let lines = format!("    accepted-payload-size 100\n    server gone {gone}");
    let stats = format!(
        "frontend page\n    mode http\n    timeout client 10s\n    bind 127.0.0.1:{page}\n    stats uri /\n    stats dashboard\n"
    );
    let _weir = start(&folder, "", &format!("{}{stats}", section(at, &lines)), &[]);
    let client = Client::of(at);
    client.0.send(&[b'x'; 200]).expect("sent");
    wait_until("the first datagram was counted", || show(&folder, "show udp-lb").contains(" oversized 1 "));
    client.0.send(b"1").expect("sent");
    wait_until("the flow has ended by a rejection", || show(&folder, "show udp-lb").contains(" rejected 1 "));
    let asked = |path: &str| send(page, &format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n")).body;
    let found = asked("/api/v1/proxies?proxy=dns&fields=scur");
    let counts = "\"flows_evicted\":0,\"datagrams_refused\":0,\"datagrams_oversized\":1,\"datagrams_unsent\":0,\"flows_rejected\":1,\"datagrams_held\":0,\"connections_nameless\":0";
    assert!(
        found.contains(&format!("\"kind\":\"frontend\",\"proxy\":\"dns\",\"name\":\"FRONTEND\",\"scur\":0,{counts}")),
        "{found}"
    );
    assert!(!asked("/api/v1/proxies?proxy=web").contains("flows_evicted"));
    assert_eq!(found.matches("flows_evicted").count(), 1, "{found}");
    let text = asked("/");
    assert!(text.contains("Oversized datagrams") && text.contains("Flows rejected by servers"), "{text}");
    assert_eq!(text.matches("Evicted flows").count(), 1);
    let Some(mut browser) = Browser::start(&folder) else { return };
    browser.open(&format!("http://127.0.0.1:{page}/dashboard#/frontend/dns"));
    let value = |name: &str| {
        format!(
            "[...document.querySelectorAll('.values div')].find((one) => one.firstChild.textContent === '{name}')?.lastChild.textContent"
        )
    };
    browser.wait(&format!("{} === '1' && {} === '0'", value("Datagrams oversized"), value("Flows evicted")));
    assert_eq!(browser.value(&value("Flows rejected by servers")), "1");
    assert!(browser.complaints().is_empty(), "{:#?}", browser.complaints());
}
