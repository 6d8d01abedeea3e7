//! Tests of names that are resolved while the process serves: a scripted name server, whose answers change, fail, are
//! truncated or forged, on the virtual clock.

use engine::resolve::Resolving;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::IoSlice;
use std::net::IpAddr;
use std::rc::Rc;

use base::buffer::Buffer;
use rt::net::{Address, Datagram};
use testkit::{Peer, Service, sleep};

use crate::messages::*;
use crate::world::*;

const DNS: &str = "10.0.0.53:53";
const OTHER_DNS: &str = "10.0.0.54:53";

const A: u16 = 1;
const AAAA: u16 = 28;
const SRV: u16 = 33;

/// A name server's reply to a query.
#[derive(Clone)]
enum Reply {
    /// Records: the owner's name (empty: the queried one), type and data of each.
    Records(Vec<(Vec<u8>, u16, Vec<u8>)>),
    Code(u8),
    Silence,
    Truncated,
    /// The messages that this makes of the correct reply.
    Forged(fn(Vec<u8>) -> Vec<Vec<u8>>, Box<Reply>),
}

fn name(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in text.split('.') {
        bytes.push(label.len() as u8);
        bytes.extend(label.bytes());
    }
    bytes.push(0);
    bytes
}

fn address(text: &str) -> (u16, Vec<u8>) {
    match text.parse().unwrap() {
        IpAddr::V4(ip) => (A, ip.octets().to_vec()),
        IpAddr::V6(ip) => (AAAA, ip.octets().to_vec()),
    }
}

/// Address records with these addresses.
fn at(list: &[&str]) -> Reply {
    let records = list.iter().map(|text| address(text)).map(|(kind, data)| (Vec::new(), kind, data));
    Reply::Records(records.collect())
}

/// SRV records: weight, port, host.
fn services(list: &[(u16, u16, &str)]) -> Reply {
    let data = |(weight, port, host): &(u16, u16, &str)| {
        let mut data = vec![0, 1];
        data.extend(weight.to_be_bytes());
        data.extend(port.to_be_bytes());
        data.extend(name(host));
        (Vec::new(), SRV, data)
    };
    Reply::Records(list.iter().map(data).collect())
}

/// The answer to a query; `None`: there is none.
fn answer(question: &[u8], reply: &Reply) -> Option<Vec<u8>> {
    let end = 12 + question[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
    let message = |flags: u16, records: &[(Vec<u8>, u16, Vec<u8>)]| {
        let mut bytes = question[..2].to_vec();
        for number in [0x8180 | flags, 1, records.len() as u16, 0, 0] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.extend(&question[12..end]);
        for (owner, kind, data) in records {
            bytes.extend(if owner.is_empty() { &[0xc0, 12][..] } else { owner });
            for number in [*kind, 1, 0, 60, data.len() as u16] {
                bytes.extend(number.to_be_bytes());
            }
            bytes.extend(data);
        }
        bytes
    };
    Some(match reply {
        Reply::Records(records) => message(0, records),
        Reply::Code(code) => message(u16::from(*code), &[]),
        Reply::Truncated => message(0x0200, &[]),
        Reply::Silence | Reply::Forged(..) => return None,
    })
}

type Zone = BTreeMap<(String, u16), Reply>;

/// A name server whose zone can be changed, and which records its queries.
#[derive(Clone, Default)]
struct NameServer {
    zone: Rc<RefCell<Zone>>,
    asked: Rc<RefCell<Vec<(String, u16)>>>,
}

impl NameServer {
    fn start(world: &World, at: &str) -> Self {
        let server = Self::default();
        let mut socket = Datagram::bind(&Address::Inet(at.parse().unwrap())).unwrap();
        let inner = server.clone();
        world.scope.spawn(async move {
            let mut buffer = Buffer::with_capacity(4096);
            loop {
                buffer.clear();
                let received = std::future::poll_fn(|cx| socket.poll_receive_from(cx, &mut buffer)).await;
                let Ok((_, from)) = received else { return };
                for message in inner.serve(buffer.data()) {
                    let _ = socket.send_to(&from, &[IoSlice::new(&message)]);
                }
            }
        });
        server
    }

    fn serve(&self, question: &[u8]) -> Vec<Vec<u8>> {
        let end = 12 + question[12..].iter().position(|byte| *byte == 0).unwrap();
        let (mut labels, mut rest) = (Vec::new(), &question[12..end]);
        while let Some((length, tail)) = rest.split_first() {
            let (label, next) = tail.split_at(usize::from(*length));
            labels.push(String::from_utf8(label.to_vec()).unwrap());
            rest = next;
        }
        let key = (labels.join("."), u16::from_be_bytes([question[end + 1], question[end + 2]]));
        self.asked.borrow_mut().push(key.clone());
        let reply = self.zone.borrow().get(&key).cloned().unwrap_or(Reply::Code(3));
        match &reply {
            Reply::Forged(forge, good) => forge(answer(question, good).unwrap()),
            reply => answer(question, reply).into_iter().collect(),
        }
    }

    /// Sets the reply for a name and type.
    fn set(&self, name: &str, kind: u16, reply: Reply) {
        self.zone.borrow_mut().insert((name.to_owned(), kind), reply);
    }
}

/// A backend whose servers are resolved by [`DNS`], with queries of both types by default.
fn following(section: &str, servers: &str) -> Worlds {
    config(&format!("resolvers my\n nameserver one {DNS}\n{section}\nlisten l\n bind {WEIR}\n retries 0\n{servers}\n"))
        .global("dns-accept-family ipv4")
}

/// Expects these lines in the log next.
async fn says(world: &World, sentences: &[&str]) {
    let lines = world.lines(sentences.len()).await;
    let said: Vec<&str> = lines.iter().map(|line| line.split_once("]: ").map_or("", |(_, text)| text)).collect();
    assert_eq!(said, sentences);
}

async fn ends(world: &World) {
    world.stop();
    sleep(3_000).await;
    world.forget_log();
}

/// Expects a request to be answered by the server at that address.
async fn is_served_at(server: &str) {
    let mut service = Service::at(server);
    let mut client = Peer::connect(WEIR).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").await;
    let mut at = service.accept().await;
    at.receive_head().await;
    at.send("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n").await;
    client.expect("HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n").await;
}

const COMES: [&str; 3] = [
    "l/s1: IP changed from '(none)' to '10.0.1.1' by 'my/one'.",
    "Server l/s1 ('app.test') is UP/READY (resolves again).",
    "Server l/s1 administratively READY thanks to valid DNS answer.",
];

#[test]
fn a_server_follows_its_name() {
    following("", "option dontlog-normal\n server s1 app.test:80 resolvers my init-addr none").run(
        |world| async move {
            let names = NameServer::start(&world, DNS);
            names.set("app.test", A, at(&["10.0.1.1"]));
            says(&world, &COMES).await;
            is_served_at(S1).await;
            names.set("app.test", A, at(&["10.0.1.2"]));
            says(&world, &["l/s1: IP changed from '10.0.1.1' to '10.0.1.2' by 'my/one'."]).await;
            is_served_at(S2).await;
            // The address in use stays, as it is still in the answer.
            names.set("app.test", A, at(&["10.0.1.1", "10.0.1.2"]));
            sleep(3_000).await;
            world.expect_no_log();
            ends(&world).await;
        },
    );
}

#[test]
fn what_was_known_outlives_failures_for_a_while() {
    let failures: [(Reply, &str); 4] = [
        (Reply::Code(3), "DNS NX status"),
        (Reply::Code(5), "DNS refused status"),
        (Reply::Silence, "DNS timeout status"),
        (Reply::Code(2), "unspecified DNS error"),
    ];
    for (reply, reason) in failures {
        let hold = "resolve_retries 1\n timeout retry 100ms\n hold nx 10s\n hold refused 10s\n hold timeout 10s\n hold other 10s";
        following(hold, "server s1 app.test:80 resolvers my init-addr none").workers(&[1, 4]).run(move |world| {
            let reply = reply.clone();
            async move {
                let names = NameServer::start(&world, DNS);
                names.set("app.test", A, at(&["10.0.1.1"]));
                says(&world, &COMES).await;
                names.set("app.test", A, reply);
                sleep(9_000).await;
                world.expect_no_log();
                let down = format!(
                    "Server l/s1 is going DOWN for maintenance ({reason}). 0 active and 0 backup servers left. 0 \
                     sessions active, 0 requeued, 0 remaining in queue."
                );
                says(&world, &[&down, "proxy l has no server available!"]).await;
                let mut client = Peer::connect(WEIR).await;
                client.send(GET).await;
                client.expect(page(503)).await;
                world.lines(1).await;
                names.set("app.test", A, at(&["10.0.1.1"]));
                says(&world, &COMES).await;
                ends(&world).await;
            }
        });
    }
}

#[test]
fn rounds_of_questions_come_in_time() {
    let section = "resolve_retries 2\n timeout retry 300ms\n timeout resolve 5s";
    let servers = "server s1 app.test:80 resolvers my init-addr none";
    config(&format!("resolvers my\n nameserver one {DNS}\n{section}\nlisten l\n bind {WEIR}\n{servers}\n"))
        .global("dns-accept-family ipv4,ipv6")
        .run(|world| async move {
            let names = NameServer::start(&world, DNS);
            let both = [("app.test".to_owned(), AAAA), ("app.test".to_owned(), A)];
            // The first query came before the name server was started.
            sleep(350).await;
            assert_eq!(*names.asked.borrow(), both);
            sleep(4_900).await;
            names.asked.borrow_mut().clear();
            sleep(200).await;
            assert_eq!(*names.asked.borrow(), both);
            sleep(300).await;
            assert_eq!(*names.asked.borrow(), [both.clone(), both.clone()].concat());
            // The other type is not queried without an answer.
            names.set("app.test", AAAA, Reply::Silence);
            names.asked.borrow_mut().clear();
            sleep(6_000).await;
            assert_eq!(*names.asked.borrow(), [both[0].clone(), both[0].clone()]);
            ends(&world).await;
        });
}

#[test]
fn the_first_good_answer_of_several_name_servers_counts() {
    let section = format!("nameserver two {OTHER_DNS}");
    following(&section, "server s1 app.test:80 resolvers my init-addr none").run(|world| async move {
        let (one, two) = (NameServer::start(&world, DNS), NameServer::start(&world, OTHER_DNS));
        one.set("app.test", A, Reply::Code(2));
        two.set("app.test", A, at(&["10.0.1.1"]));
        says(&world, &[&COMES[0].replace("my/one", "my/two"), COMES[1], COMES[2]]).await;
        two.set("app.test", A, Reply::Silence);
        one.set("app.test", A, at(&["10.0.1.2"]));
        says(&world, &["l/s1: IP changed from '10.0.1.1' to '10.0.1.2' by 'my/one'."]).await;
        ends(&world).await;
    });
}

#[test]
fn servers_of_one_name_have_addresses_of_their_own() {
    following("", "server-template s 3 app.test:80 resolvers my init-addr none").run(|world| async move {
        let names = NameServer::start(&world, DNS);
        names.set("app.test", A, at(&["10.0.1.1", "10.0.1.2"]));
        let second = "l/s2: IP changed from '(none)' to '10.0.1.2' by 'DNS cache'.";
        let others = [second, &COMES[1].replace("s1", "s2"), &COMES[2].replace("s1", "s2")];
        says(&world, &[&COMES[..], &others].concat()).await;
        names.set("app.test", A, at(&["10.0.1.2"]));
        let lost = "Server l/s1 is going DOWN for maintenance (No IP for server ). 1 active and 0 backup servers left. \
                    0 sessions active, 0 requeued, 0 remaining in queue.";
        says(&world, &[lost]).await;
        ends(&world).await;
    });
}

#[test]
fn servers_come_and_go_with_a_service() {
    let servers = "balance roundrobin\n server-template s 2 _http._tcp.test resolvers my init-addr none";
    following("", servers).workers(&[1, 4]).run(|world| async move {
        let names = NameServer::start(&world, DNS);
        names.set("a.test", A, at(&["10.0.1.1"]));
        names.set("b.test", A, at(&["10.0.1.2"]));
        names.set("_http._tcp.test", SRV, services(&[(1, 80, "a.test")]));
        let comes = |server: &str, host: &str, ip: &str| {
            [
                format!("l/{server} changed its FQDN from (null) to {host} by 'SRV record'"),
                format!("l/{server}: IP changed from '(none)' to '{ip}' by 'my/one'."),
                format!("Server l/{server} ('{host}') is UP/READY (resolves again)."),
                format!("Server l/{server} administratively READY thanks to valid DNS answer."),
            ]
        };
        let first = comes("s1", "a.test", "10.0.1.1");
        says(&world, &first.each_ref().map(String::as_str)).await;
        // More than there are servers.
        names.set("_http._tcp.test", SRV, services(&[(1, 80, "a.test"), (513, 81, "b.test"), (0, 82, "c.test")]));
        let second = comes("s2", "b.test", "10.0.1.2");
        says(&world, &second.each_ref().map(String::as_str)).await;
        let state = &world.shared().live.proxies[0];
        assert_eq!([0, 1].map(|server| state.status(server).map(|status| status.weight)), [Some(1), Some(256)]);
        // A service is identified by its port as well.
        names.set("_http._tcp.test", SRV, services(&[(513, 81, "b.test")]));
        let gone = "Server l/s1 is going DOWN for maintenance (entry removed from SRV record). 1 active and 0 backup \
                    servers left. 0 sessions active, 0 requeued, 0 remaining in queue.";
        says(&world, &[gone]).await;
        assert_eq!(world.shared().service::<Resolving>().named(0).host, None);
        assert_eq!(world.shared().service::<Resolving>().named(1).host.as_deref(), Some("b.test"));
        ends(&world).await;
    });
}

/// Weights keep their ratios, and the servers have the port of the line.
#[test]
fn services_have_the_port_of_the_line_and_weights_in_proportion() {
    let servers = "balance roundrobin\n server-template s 3 _http._tcp.test resolvers my init-addr none srv-port 8000";
    following("", servers).workers(&[1, 4]).run(|world| async move {
        let names = NameServer::start(&world, DNS);
        names.set("a.test", A, at(&["10.0.1.1"]));
        names.set("b.test", A, at(&["10.0.1.2"]));
        names.set("c.test", A, at(&["10.0.1.3"]));
        let shown = || {
            let (shared, state) = (world.shared(), &world.shared().live.proxies[0]);
            let generation = shared.generation();
            let of = |server: &policy::program::Server| match &*shared.outgoing.address(server) {
                policy::program::ServerAddress::Inet { port: policy::program::ServerPort::Exact(port), .. } => *port,
                other => panic!("{other:?}"),
            };
            let weight = |server| state.status(server).map_or(0, |status| status.weight);
            generation.program.proxies[0].servers().map(|server| (of(server), weight(server.index))).collect::<Vec<_>>()
        };
        names.set("_http._tcp.test", SRV, services(&[(10, 80, "a.test"), (20, 81, "b.test"), (60, 82, "c.test")]));
        world.lines(12).await;
        assert_eq!(shown(), [(8000, 10), (8000, 20), (8000, 60)]);
        names.set("_http._tcp.test", SRV, services(&[(100, 80, "a.test"), (200, 81, "b.test"), (600, 82, "c.test")]));
        sleep(10_000).await;
        assert_eq!(shown(), [(8000, 43), (8000, 85), (8000, 256)]);
        world.forget_log();
        ends(&world).await;
    });
}

#[test]
fn what_does_not_fit_comes_over_tcp() {
    following("", "server s1 app.test:80 resolvers my init-addr none").run(|world| async move {
        let names = NameServer::start(&world, DNS);
        names.set("app.test", A, Reply::Truncated);
        let mut service = Service::at(DNS);
        let over_tcp = names.clone();
        let mut peer = service.accept().await;
        let length = peer.receive(2).await;
        let question = peer.receive(usize::from(u16::from_be_bytes([length[0], length[1]]))).await;
        let whole = answer(&question, &at(&["10.0.1.1"])).unwrap();
        peer.send([&(whole.len() as u16).to_be_bytes()[..], &whole].concat()).await;
        over_tcp.set("app.test", A, at(&["10.0.1.1"]));
        says(&world, &COMES).await;
        // The connection is kept for some time, and closed with its process at the latest.
        drop(peer);
        sleep(6_000).await;
        ends(&world).await;
    });
}

/// Invalid answers, one after the other.
fn forged(good: Vec<u8>) -> Vec<Vec<u8>> {
    let mut other_id = good.clone();
    other_id[0] ^= 0x55;
    let mut other_question = good.clone();
    other_question[13] ^= 1;
    let mut looping = good.clone();
    let owner = 12 + good[12..].iter().position(|byte| *byte == 0).unwrap() + 5;
    looping[owner..owner + 2].copy_from_slice(&[0xc0 | (owner >> 8) as u8, owner as u8]);
    let mut question = good.clone();
    question[2] &= 0x7f;
    let cut = good[..good.len() - 1].to_vec();
    vec![other_id, other_question, looping, question, cut, Vec::new(), vec![0xff; 500]]
}

#[test]
fn forged_answers_change_nothing() {
    following("", "server s1 app.test:80 resolvers my init-addr none").run(|world| async move {
        let names = NameServer::start(&world, DNS);
        names.set("app.test", A, at(&["10.0.1.1"]));
        says(&world, &COMES).await;
        names.set("app.test", A, Reply::Forged(forged, Box::new(at(&["10.6.6.6"]))));
        sleep(20_000).await;
        world.expect_no_log();
        // The correct one is accepted if it follows them.
        let with_the_right_one: fn(Vec<u8>) -> Vec<Vec<u8>> = |good| [forged(good.clone()), vec![good]].concat();
        names.set("app.test", A, Reply::Forged(with_the_right_one, Box::new(at(&["10.0.1.2"]))));
        says(&world, &["l/s1: IP changed from '10.0.1.1' to '10.0.1.2' by 'my/one'."]).await;
        ends(&world).await;
    });
}

#[test]
fn a_request_waits_for_the_address_of_a_name() {
    let rules = "option dontlog-normal\n http-request do-resolve(txn.ip,my,ipv4) req.hdr(host)\n http-request deny \
                 status 503 unless { var(txn.ip) -m found }\n http-request set-dst var(txn.ip)\n server s1 0.0.0.0:80";
    following("hold valid 10s", rules).run(|world| async move {
        let names = NameServer::start(&world, DNS);
        names.set("a", A, at(&["10.0.1.1"]));
        is_served_at(S1).await;
        // It is cached, and then queried again.
        names.set("a", A, at(&["10.0.1.2"]));
        is_served_at(S1).await;
        assert_eq!(names.asked.borrow().len(), 1);
        sleep(11_000).await;
        is_served_at(S2).await;
        world.expect_no_log();
        let mut client = Peer::connect(WEIR).await;
        client.send("GET / HTTP/1.1\r\nHost: nowhere.test\r\n\r\n").await;
        let head = client.receive_head().await.unwrap();
        assert!(head.starts_with("HTTP/1.1 503 "), "{head}");
        drop(client);
        world.lines(1).await;
        // A failed name is queried again by the next request.
        names.set("nowhere.test", A, at(&["10.0.1.1"]));
        let mut service = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("GET / HTTP/1.1\r\nHost: nowhere.test\r\n\r\n").await;
        let mut server = service.accept().await;
        server.receive_head().await.unwrap();
        drop((client, server));
        world.lines(1).await;
        ends(&world).await;
    });
}

#[test]
fn a_session_waits_for_the_address_of_a_name_as_long_as_its_bytes_may_be_inspected() {
    let rules = "mode tcp\n option tcplog\n option dontlog-normal\n tcp-request inspect-delay 2s\n tcp-request content \
                 do-resolve(txn.ip,my,ipv4) str(app.test)\n tcp-request content do-resolve(txn.ip,my,ipv4) str(b.test) \
                 unless { var(txn.ip) -m found }\n tcp-request content set-dst ipv4(10.0.1.2)\n tcp-request content set-dst var(txn.ip)\n server s1 0.0.0.0:80";
    let section = "hold valid 1h\n timeout resolve 11s\n resolve_retries 1\n timeout retry 10s";
    following(section, rules).run(|world| async move {
        let names = NameServer::start(&world, DNS);
        names.set("app.test", A, Reply::Silence);
        names.set("b.test", A, at(&["10.0.1.1"]));
        let mut other = Service::at(S2);
        let begun = rt::now();
        let mut early = Peer::connect(WEIR).await;
        early.send("x").await;
        let mut at_other = other.accept().await;
        assert_eq!(rt::now().saturating_since(begun).as_millis() / 100, 20, "given up when the delay was over");
        at_other.expect("x").await;
        // The first name has failed by then, the second one is found.
        sleep(10_000).await;
        names.set("app.test", A, Reply::Code(3));
        let mut service = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        let mut at = service.accept().await;
        client.send("y").await;
        at.expect("y").await;
        let asked: Vec<String> = names.asked.borrow().iter().map(|(name, _)| name.clone()).collect();
        assert_eq!(asked, ["app.test", "app.test", "b.test"]);
        drop((early, at_other, client, at));
        sleep(1).await;
        world.stop();
        sleep(12_000).await;
        world.forget_log();
    });
}
