//! Several nodes that share certificates over Redis, ordered from Pebble; without go or redis-server the tests report so and pass.

use crate::acme::{Stage, pebble};
use crate::services::program;
use crate::support::{Folder, Running, WEIR, connect_unix, free_port, wait_until};
use rustix::process::Signal;
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::process::Command;

/// Number of nodes.
const NODES: usize = 5;

/// Several nodes, and a load balancer before them at the ports where Pebble validates names.
struct Fleet {
    stage: Stage,
    redis: Option<Running>,
    program: String,
    ports: Vec<[u16; 2]>,
}

impl Fleet {
    fn new() -> Option<Self> {
        let (folder, program) = (Folder::new(), program("redis-server")?);
        let pebble = pebble(&folder)?;
        let ports = (0..NODES).map(|_| [free_port(), free_port()]).collect();
        let mut fleet = Self { stage: Stage::new(folder, &pebble), redis: None, program, ports };
        fleet.start_redis();
        Some(fleet)
    }

    fn start_redis(&mut self) {
        let (folder, socket) = (self.stage.folder.text(), self.stage.folder.path("redis.sock"));
        let arguments = ["--port", "0", "--save", "", "--dir", folder, "--unixsocket", &socket.display().to_string()];
        self.redis = Some(Running::start(Command::new(&self.program).args(arguments)));
        wait_until("Redis answers", || {
            let mut socket = connect_unix(&socket);
            let mut answer = [0; 7];
            socket.write_all(b"PING\r\n").is_ok() && socket.read_exact(&mut answer).is_ok() && answer == *b"+PONG\r\n"
        });
    }

    /// Starts the load balancer.
    fn front(&self) -> Running {
        let servers = |which: usize| -> String {
            self.ports
                .iter()
                .enumerate()
                .map(|(at, ports)| format!(" server n{at} 127.0.0.1:{}\n", ports[which]))
                .collect()
        };
        let text = format!(
            "defaults\n mode tcp\n timeout connect 5s\n timeout client 20s\n timeout server 20s\n balance roundrobin\n\
             listen http\n bind 127.0.0.1:{}\n{}listen tls\n bind 127.0.0.1:{}\n{}",
            self.stage.http,
            servers(0),
            self.stage.tls,
            servers(1)
        );
        let file = self.stage.folder.write("front.cfg", &text);
        Running::start(Command::new(WEIR).args(["-db", "-f", &file]))
    }

    /// Starts a node. `sections` has its frontend, and its certificates; `{http}`, `{tls}` are replaced by its ports, `{node}` by
    /// its number.
    fn node(&self, node: usize, sections: &str) -> Running {
        let (folder, directory, [http, tls]) = (self.stage.folder.text(), &self.stage.directory, self.ports[node]);
        let text = format!(
            "global\n httpclient.ssl.ca-file {folder}/ca.pem\n httpclient.resolvers.disabled on\n \
             expose-experimental-directives\n cluster-secret secret\n stats socket {folder}/{node}.sock level admin\n \
             acme.state-dir {folder}/{{node}}\nstore fleet\n server r unix@{folder}/redis.sock\n\
             acme default\n directory {directory}\n keytype ECDSA\n curves P-256\n shared-store fleet\n{sections}"
        );
        let text = text.replace("{http}", &http.to_string()).replace("{tls}", &tls.to_string());
        let file = self.stage.folder.write(&format!("{node}.cfg"), &text.replace("{node}", &node.to_string()));
        Running::start(Command::new(WEIR).args(["-db", "-f", &file]))
    }

    fn ask(&self, node: usize, command: &str) -> String {
        self.stage.ask_at(&format!("{node}.sock"), command)
    }

    /// Returns the serial number of a node's certificate, once it was obtained.
    fn serial(&self, node: usize, name: &str) -> String {
        let command = format!("show ssl cert {}", name.replace("{node}", &node.to_string()));
        let is_obtained = |shown: &str| shown.contains("Issuer: /CN=Pebble Intermediate");
        wait_until("the certificate", || is_obtained(&self.ask(node, &command)));
        let shown = self.ask(node, &command);
        shown.lines().find_map(|line| line.strip_prefix("Serial: ")).expect("a number").to_owned()
    }
}

/// Each certificate is ordered once, validated through any node, and delivered to all.
#[test]
fn each_certificate_is_ordered_once_and_delivered_to_all_nodes() {
    const CERTIFICATES: usize = 100;
    let Some(fleet) = Fleet::new() else { return };
    let folder = fleet.stage.folder.text();
    let name = |at: usize| format!("{folder}/n{{node}}-{at}.pem");
    let loads: String =
        (0..CERTIFICATES).map(|at| format!(" load crt {} acme default domains d{at}.example\n", name(at))).collect();
    let sections = format!(
        "crt-store\n{loads}frontend f\n mode http\n timeout client 20s\n bind 127.0.0.1:{{http}}\n \
         bind 127.0.0.1:{{tls}} ssl crt {}\n http-request return status 200\n",
        name(0)
    );
    let _front = fleet.front();
    let _nodes: Vec<_> = (0..NODES).map(|node| fleet.node(node, &sections)).collect();
    let mut serials = BTreeSet::new();
    for at in 0..CERTIFICATES {
        let serial = fleet.serial(0, &name(at));
        for node in 1..NODES {
            assert_eq!(fleet.serial(node, &name(at)), serial, "{at}");
        }
        serials.insert(serial);
    }
    assert_eq!((serials.len(), fleet.stage.orders()), (CERTIFICATES, CERTIFICATES));
    // An operator's order is delivered as well.
    let first = name(0).replace("{node}", "3");
    let former = fleet.serial(3, &name(0));
    // The task that has waited for the first certificate may not have ended yet.
    wait_until("the order is accepted", || fleet.ask(3, &format!("acme renew {first}")) == "\n");
    wait_until("the next certificate", || fleet.serial(4, &name(0)) != former);
    assert_eq!(fleet.serial(4, &name(0)), fleet.serial(3, &name(0)));
    assert_eq!(fleet.stage.orders(), CERTIFICATES + 1);
}

/// Names are proved in handshakes of any node; a node that starts again, and one that joins, take the certificate of the store.
#[test]
fn all_nodes_offer_proofs_in_handshakes() {
    let Some(fleet) = Fleet::new() else { return };
    let sections = "frontend f\n mode http\n timeout client 20s\n bind 127.0.0.1:{tls} ssl acme a.example,b.example\n \
                    http-request return status 200\n";
    let name = format!("{}/{{node}}/a.example.pem", fleet.stage.folder.text());
    let _front = fleet.front();
    let mut nodes: Vec<_> = (0..NODES).map(|node| fleet.node(node, sections)).collect();
    let serial = fleet.serial(0, &name);
    assert!((1..NODES).all(|node| fleet.serial(node, &name) == serial));
    // A node that has lost its files.
    let last = nodes.pop().expect("a node");
    last.send(Signal::TERM);
    last.finish();
    std::fs::remove_dir_all(fleet.stage.folder.path("4")).expect("a folder");
    nodes.push(fleet.node(4, sections));
    assert_eq!((fleet.serial(4, &name), fleet.stage.orders()), (serial, 1));
}
