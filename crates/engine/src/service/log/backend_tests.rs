//! Lines to backends in `mode log`, over the kernel's own sockets.

use super::tests::{is_empty, on_worker, received};
use super::{Logger, Targets};
use crate::generation::Generation;
use config::environment::Environment;
use config::spec::LogLevel;
use config::{InputFile, LoadOptions};
use live::{Admin, Live, ServerPlace};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::sync::Arc;
use std::time::Duration;

/// No name is known.
struct NoNames;

impl policy::compile::Resolver for NoNames {
    fn resolve(&mut self, host: &str, _: config::spec::Family) -> Result<IpAddr, String> {
        Err(host.to_owned())
    }
}

/// Two servers that receive datagrams, and the targets of a configuration with `log backend@logs`.
struct Collectors {
    sockets: [UdpSocket; 2],
    live: Arc<Live>,
    targets: Arc<Targets>,
}

impl Collectors {
    fn new(balance: &str) -> Self {
        let sockets = [(); 2].map(|()| {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
            socket
        });
        let [one, two] = [0, 1].map(|server: usize| sockets[server].local_addr().unwrap());
        let text = format!(
            "global\n log backend@logs format priority local0\nbackend logs\n mode log\n{balance}\n server one udp@{one}\n \
             server two udp@{two}\n"
        );
        let file = InputFile { name: "haproxy.cfg".to_owned(), bytes: text.into_bytes() };
        let loaded = config::load(&[file], Environment::new(), &LoadOptions::default());
        assert!(!loaded.has_errors(), "{:?}", loaded.diagnostics);
        let limits = policy::SystemLimits::default();
        let program = policy::compile(&loaded.spec, &mut NoNames, &limits, &mut Vec::new()).unwrap();
        let program = Arc::new(program);
        let live = Arc::new(program.live(7));
        let generation = Generation::new(program, 7);
        let targets = Arc::new(Targets::open(&generation, &live, "weir").0);
        Self { sockets, live, targets }
    }

    fn log(&self, lines: &'static [&'static str]) {
        on_worker(&self.targets, move |logger: Logger, _| async move {
            lines.iter().for_each(|line| logger.message(None, LogLevel::Notice, line));
        });
    }

    fn received(&self, server: usize, lines: &[&str]) {
        for line in lines {
            assert_eq!(received(&self.sockets[server]), format!("<133>{line}\n"));
        }
        assert!(is_empty(&self.sockets[server]), "server {server} got more");
    }
}

#[test]
fn servers_get_lines_in_turn() {
    let collectors = Collectors::new(" balance roundrobin");
    collectors.log(&["a", "b", "c"]);
    collectors.received(0, &["a", "c"]);
    collectors.received(1, &["b"]);
}

#[test]
fn lines_without_a_server_or_without_a_key_are_dropped_and_counted() {
    let collectors = Collectors::new(" balance log-hash 'field(2,/)'\n hash-type map-based none");
    collectors.log(&["x/2/y", "nothing", "x/3/y", "x/4"]);
    collectors.received(0, &["x/2/y", "x/4"]);
    collectors.received(1, &["x/3/y"]);
    assert_eq!(collectors.targets.dropped(), 1);
    for server in 0..2 {
        collectors.live.proxies[0].set_admin(server, Admin::Maintenance, base::Moment::default());
    }
    collectors.log(&["x/2/y"]);
    collectors.received(0, &[]);
    collectors.received(1, &[]);
    assert_eq!(collectors.targets.dropped(), 2);
}

#[test]
fn a_server_that_has_moved_gets_the_next_line_where_it_is() {
    let collectors = Collectors::new(" balance sticky");
    let elsewhere = UdpSocket::bind("127.0.0.1:0").unwrap();
    elsewhere.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let moved: SocketAddr = elsewhere.local_addr().unwrap();
    collectors.log(&["before"]);
    collectors.targets.move_server(ServerPlace { proxy: 0, server: 0 }, moved);
    collectors.log(&["behind"]);
    collectors.received(0, &["before"]);
    assert_eq!(received(&elsewhere), "<133>behind\n");
}
