//! `udp-lb` with servers and clients of others: Unbound and dnsperf, FreeRADIUS and radclient, rsyslog. The sections, and what the page
//! says about the files of these servers, are those of docs/udp.md. A program that is not installed is skipped with a message.

use crate::datagrams::{show, start};
use crate::pages::{adapted, block};
use crate::quic_sockets::{free_address, sockets};
use crate::services::program;
use crate::support::{Folder, Running, run, wait_until};
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, UdpSocket};
use std::process::Command;

const PAGE: &str = "udp.md";

type SocketAddress = (Ipv4Addr, u16);

/// Returns an address as it is written in a configuration.
fn text((address, port): SocketAddress) -> String {
    format!("{address}:{port}")
}

/// Starts Unbound at an address, with further lines of its section `server` and one name, whose address ends with a number. It accepts
/// more connections than the tests open: near its default of 10 it closes connections while queries are on their way.
fn unbound(folder: &Folder, program: &str, at: SocketAddress, number: u8, lines: &str) -> Running {
    let (address, port) = at;
    let text = format!(
        "server:\n interface: {address}@{port}\n port: {port}\n username: \"\"\n chroot: \"\"\n directory: \"{dir}\"\n pidfile: \
         \"\"\n use-syslog: no\n do-daemonize: no\n incoming-num-tcp: 100\n{lines} local-zone: \".\" static\n local-data: \". 60 IN NS www.example.\"\n \
         local-data: \"www.example. 60 IN A 192.0.2.{number}\"\nremote-control:\n control-enable: no\n",
        dir = folder.path("").display(),
    );
    let file = folder.write(&format!("unbound{number}.conf"), &text);
    let running = Running::start(Command::new(program).args(["-d", "-c", &file]));
    wait_until("Unbound serves", || !sockets(address, port).is_empty());
    running
}

/// Runs dnsperf until all of its queries have their answers. `arguments` are separated by spaces.
fn perf(folder: &Folder, program: &str, (address, port): SocketAddress, arguments: &str) {
    let queries = folder.write("queries", "www.example A\n");
    let mut command = Command::new(program);
    command.args(["-s", &address.to_string(), "-p", &port.to_string(), "-d", &queries, "-n", "2000", "-t", "10"]);
    let found = run(command.args(arguments.split_whitespace()));
    assert!(found.stdout.contains("Queries completed:    2000 (100.00%)"), "{}{}", found.stdout, found.stderr);
    assert!(found.stdout.contains("NOERROR 2000 (100.00%)"), "{}", found.stdout);
}

/// Waits until all servers of a section have answered their checks.
fn wait_for_checks(folder: &Folder, section: &str, servers: usize) {
    wait_until("the servers have answered checks", || {
        show(folder, &format!("show stat {section} 4 -1")).matches(",L7OK,").count() == servers
    });
}

/// Waits until a section has no flow, and checks that it has lost nothing.
fn assert_lost_nothing(folder: &Folder, section: &str) {
    wait_until("all flows have ended", || {
        show(folder, &format!("show udp-lb {section}")).starts_with(&format!("udp-lb {section} flows 0 "))
    });
    let shown = show(folder, &format!("show udp-lb {section}"));
    let lost = "evicted 0 refused 0 oversized 0 unsent 0 rejected 0 held 0 nameless 0";
    assert_eq!(shown.trim_end(), format!("udp-lb {section} flows 0 {lost}"));
}

/// Queries over UDP and TCP are answered by two servers of Unbound.
#[test]
fn name_servers_answer_through_it() {
    let (Some(server), Some(client)) = (program("unbound"), program("dnsperf")) else { return };
    let (folder, at, servers) = (Folder::new(), free_address(), [free_address(), free_address()]);
    let allowed = " access-control: 127.0.0.0/8 allow\n";
    let _servers =
        [(servers[0], 1), (servers[1], 2)].map(|(at, number)| unbound(&folder, &server, at, number, allowed));
    let section = adapted(
        block(PAGE, "listen dns-tcp"),
        &[
            ("bind :53", &format!("bind {}", text(at))),
            ("192.0.2.11:53", &text(servers[0])),
            ("192.0.2.12:53", &text(servers[1])),
        ],
    );
    let _weir = start(&folder, "", &section, &[]);
    wait_for_checks(&folder, "dns", 2);
    perf(&folder, &client, at, "-c 20");
    assert_lost_nothing(&folder, "dns");
    perf(&folder, &client, at, "-c 20 -m tcp");
}

/// Unbound answers one client alone, whose address it knows from the PROXY header.
#[test]
fn a_name_server_reads_the_proxy_header() {
    let (Some(server), Some(client)) = (program("unbound"), program("dnsperf")) else { return };
    let (folder, at, ns, allowed) = (Folder::new(), free_address(), free_address(), free_address().0);
    let lines = adapted(
        block(PAGE, "proxy-protocol-port"),
        &[
            ("192.0.2.11@5300", &format!("{}@{}", ns.0, ns.1)),
            ("5300", &ns.1.to_string()),
            ("198.51.100.0/24", &format!("{allowed}/32")),
        ],
    );
    let lines = lines.strip_prefix("server:\n").expect("a section").trim_end().to_owned();
    let _server = unbound(&folder, &server, ns, 1, &format!(" access-control: 0.0.0.0/0 deny\n{lines}\n"));
    let section = adapted(
        block(PAGE, "send-proxy-v2\n"),
        &[("bind :53", &format!("bind {}", text(at))), ("192.0.2.11:5300", &text(ns))],
    );
    let _weir = start(&folder, "", &section, &[]);
    perf(&folder, &client, at, &format!("-a {allowed}"));
    assert_lost_nothing(&folder, "dns");
}

/// Starts FreeRADIUS for authentication and accounting at two addresses. Its answers contain its name, and the password of all users is
/// `hello`.
fn freeradius(
    folder: &Folder,
    program: &str,
    name: &str,
    [auth, accounting]: [SocketAddress; 2],
    clients: &str,
) -> Running {
    let dir = folder.path(name);
    let listen = |kind: &str, (address, port): SocketAddress| {
        format!(" listen {{\n type = {kind}\n ipaddr = {address}\n port = {port}\n }}\n")
    };
    let text = format!(
        "name = {name}\nlibdir = /usr/lib/freeradius\nrun_dir = {dir}\nlogdir = {dir}\npidfile = {dir}/pid\nsecurity {{\n status_server = yes\n reject_delay = \
         0\n}}\n{clients}\nmodules {{\n pap {{\n }}\n always ok {{\n rcode = ok\n }}\n}}\nserver default {{\n{}{} authorize {{\n update control {{\n Cleartext-Password := \
         \"hello\"\n }}\n update reply {{\n Reply-Message := \"{name}\"\n }}\n pap\n }}\n authenticate {{\n pap\n }}\n accounting {{\n ok\n \
         }}\n}}\n",
        listen("auth", auth),
        listen("acct", accounting),
        dir = dir.display(),
    );
    folder.write(&format!("{name}/radiusd.conf"), &text);
    let mut running =
        Running::start(Command::new(program).args(["-f", "-l", "stdout", "-d"]).arg(dir).env("LC_ALL", "C"));
    running.wait_for_line(|line| line.contains("Ready to process requests"));
    running
}

/// Sends requests of a client, and returns what radclient prints. `kind`: `auth` or `acct`.
fn radclient(folder: &Folder, program: &str, to: SocketAddress, kind: &str, requests: &str) -> String {
    let file = folder.write("requests", requests);
    let mut command = Command::new(program);
    command.args(["-x", "-s", "-r", "1", "-t", "30", "-p", "20", "-f", &file, &text(to), kind, "testing123"]);
    let found = run(&mut command);
    format!("{}{}", found.stdout, found.stderr)
}

/// Returns requests of a client at an address, with users of different names.
fn requests(client: Ipv4Addr, count: usize, lines: &str) -> String {
    let request = |number| format!("Packet-Src-IP-Address = {client}\nUser-Name = \"user{number}\"\n{lines}\n\n");
    (0..count).map(request).collect()
}

/// Clients are authenticated by two servers of FreeRADIUS; all requests of a client reach the same one.
#[test]
fn clients_are_authenticated_through_it() {
    let (Some(server), Some(client)) = (program("freeradius"), program("radclient")) else { return };
    let (folder, at) = (Folder::new(), [free_address(), free_address()]);
    let servers = [(); 2].map(|()| [free_address(), free_address()]);
    let clients = adapted(block(PAGE, "secret = "), &[("192.0.2.1", "127.0.0.0/8")]);
    let _servers = [("r1", servers[0]), ("r2", servers[1])]
        .map(|(name, addresses)| freeradius(&folder, &server, name, addresses, &clients));
    let [[a1, c1], [a2, c2]] = servers.map(|addresses| addresses.map(text));
    let section = adapted(
        block(PAGE, "udp-lb radius\n"),
        &[
            ("bind :1812", &format!("bind {}", text(at[0]))),
            ("bind :1813", &format!("bind {}", text(at[1]))),
            ("192.0.2.21:1812", &a1),
            ("192.0.2.22:1812", &a2),
            ("192.0.2.21:1813", &c1),
            ("192.0.2.22:1813", &c2),
        ],
    );
    let _weir = start(&folder, "", &section, &[]);
    wait_for_checks(&folder, "radius", 2);
    let mut reached = BTreeSet::new();
    for number in 1..=12 {
        let from = Ipv4Addr::new(127, 0, 0, number);
        let found = radclient(&folder, &client, at[0], "auth", &requests(from, 40, "User-Password = \"hello\""));
        assert_eq!(found.matches("Received Access-Accept ").count(), 40, "{found}");
        let names: Vec<_> =
            ["r1", "r2"].into_iter().filter(|name| found.contains(&format!("Reply-Message = \"{name}\""))).collect();
        assert_eq!(names.len(), 1, "{found}");
        reached.extend(names);
    }
    assert_eq!(reached.len(), 2);
    let from = Ipv4Addr::LOCALHOST;
    let refused = radclient(&folder, &client, at[0], "auth", &requests(from, 1, "User-Password = \"other\""));
    assert!(refused.contains("Received Access-Reject "), "{refused}");
    let lines = "Acct-Status-Type = Start\nAcct-Session-Id = \"1\"";
    let counted = radclient(&folder, &client, at[1], "acct", &requests(from, 20, lines));
    assert_eq!(counted.matches("Received Accounting-Response ").count(), 20, "{counted}");
    assert_lost_nothing(&folder, "radius");
    assert_lost_nothing(&folder, "radius-accounting");
}

/// Starts rsyslog at an address. It writes each message, as it was received, to a line of the file `name` in the folder.
fn rsyslog(folder: &Folder, program: &str, name: &str, at: SocketAddress) -> Running {
    let own = adapted(
        block(PAGE, "imudp"),
        &[
            ("address=\"192.0.2.31\"", &format!("address=\"{}\"", at.0)),
            ("port=\"514\"", &format!("port=\"{}\"", at.1)),
        ],
    );
    let out = folder.path(name);
    let text = format!(
        "{own}\ntemplate(name=\"raw\" type=\"string\" string=\"%rawmsg%\\n\")\naction(type=\"omfile\" file=\"{}\" template=\"raw\")\n",
        out.display()
    );
    let file = folder.write(&format!("{name}.conf"), &text);
    let mut command = Command::new(program);
    let running = Running::start(command.args(["-n", "-f", &file, "-i"]).arg(folder.path(&format!("{name}.pid"))));
    wait_until("rsyslog listens", || !sockets(at.0, at.1).is_empty());
    running
}

/// Messages of several senders arrive at two servers of rsyslog, each of them once and whole.
#[test]
fn messages_arrive_whole_and_once() {
    let Some(program) = program("rsyslogd") else { return };
    let (folder, at, servers) = (Folder::new(), free_address(), [free_address(), free_address()]);
    let _servers = [("l1", servers[0]), ("l2", servers[1])].map(|(name, at)| rsyslog(&folder, &program, name, at));
    let section = adapted(
        block(PAGE, "proxy-responses 0"),
        &[
            ("bind :514", &format!("bind {}", text(at))),
            ("192.0.2.31:514", &text(servers[0])),
            ("192.0.2.32:514", &text(servers[1])),
        ],
    );
    let _weir = start(&folder, "", &section, &[]);
    let senders = [(); 4].map(|()| UdpSocket::bind("127.0.0.1:0").expect("a port"));
    let received = |name: &str| std::fs::read_to_string(folder.path(name)).unwrap_or_default();
    let mut sent = BTreeSet::new();
    // A few at a time: the buffers of the sockets hold them.
    for round in 0..25 {
        for (number, sender) in senders.iter().cycle().take(20).enumerate() {
            let length = if number == 0 { 8_192 } else { 60 + 40 * number };
            let message = format!("<14>Dec  1 12:00:00 host app: {round}/{number} {}", "x".repeat(8_192));
            sender.send_to(&message.as_bytes()[..length], at).expect("sent");
            sent.insert(message[..length].to_owned());
        }
        wait_until("the messages have arrived", || {
            ["l1", "l2"].iter().map(|name| received(name).matches('\n').count()).sum::<usize>() >= sent.len()
        });
    }
    let received = ["l1", "l2"].map(received);
    let counts = received.each_ref().map(|lines| lines.lines().count());
    // Threads choose at the same time, so that these are not exactly halves.
    assert!(counts.iter().all(|count| *count > 200), "{counts:?}");
    assert_eq!(
        received.iter().flat_map(|lines| lines.lines()).collect::<BTreeSet<_>>(),
        sent.iter().map(String::as_str).collect()
    );
    assert_lost_nothing(&folder, "syslog");
}
