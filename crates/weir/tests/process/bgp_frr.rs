//! Weir announces addresses to FRR's bgpd, which has no kernel routes and listens on loopback only. Skipped with a message if FRR
//! is not installed.

use crate::bgp::Scene;
use crate::support::{DEFAULTS, Folder, Running, free_port, wait_until};
use rustix::process::Signal;
use std::path::Path;
use std::process::Command;

const DAEMON: &str = "/usr/lib/frr/bgpd";

/// A router in AS 65000, which accepts a session from 127.0.0.2 in AS 65001.
struct Router {
    _running: Running,
    port: u16,
    folder: String,
}

impl Router {
    /// `None`: FRR is not installed.
    fn start(folder: &Folder) -> Option<Self> {
        if !Path::new(DAEMON).exists() {
            eprintln!("SKIPPED: {DAEMON} of FRR is not installed");
            return None;
        }
        let text = "router bgp 65000\n bgp router-id 10.0.0.254\n no bgp ebgp-requires-policy\n neighbor 127.0.0.2 remote-as \
                    65001\n neighbor 127.0.0.2 passive\n neighbor 127.0.0.2 ebgp-multihop 2\n address-family ipv6 unicast\n  \
                    neighbor 127.0.0.2 activate\n exit-address-family\n";
        let (port, file) = (free_port(), folder.write("bgpd.conf", text));
        let sockets = folder.text().to_owned();
        let mut command = Command::new(DAEMON);
        command.args(["-Z", "-n", "-S", "-P", "0", "-l", "127.0.0.1", "-p", &port.to_string(), "-f", &file]);
        command.arg("-i").arg(folder.path("bgpd.pid")).args(["--vty_socket", &sockets]);
        let router = Self { _running: Running::start(&mut command), port, folder: sockets };
        wait_until("the router serves", || router.ask("show bgp summary").contains("127.0.0.2"));
        Some(router)
    }

    fn ask(&self, command: &str) -> String {
        let asked = Command::new("vtysh").args(["--vty_socket", &self.folder, "-c", command]).output();
        asked.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default()
    }

    fn route(&self, prefix: &str) -> String {
        self.ask(&format!("show bgp {} unicast {prefix}", if prefix.contains(':') { "ipv6" } else { "ipv4" }))
    }
}

#[test]
fn frr_has_the_routes_while_servers_are_up() {
    let folder = Folder::new();
    let Some(router) = Router::start(&folder) else { return };
    let mut scene = Scene::with(&folder, |socket, server| {
        format!(
            "global\n stats socket {} level admin\n{DEFAULTS}backend app\n server one 127.0.0.1:{server} check inter 20 rise 1 fall \
             1 init-state down\nbgp edge\n local-as 65001\n router-id 10.0.0.1\n neighbor tor 127.0.0.1 as 65000 port {} source \
             127.0.0.2 multihop 2\n announce 203.0.113.10/32 next-hop 192.0.2.1 med 10 community 65000:7,no-export if {{ nbsrv(app) \
             ge 1 }}\n announce 2001:db8::10/128 next-hop 2001:db8::1 if {{ nbsrv(app) ge 1 }}\n",
            socket.display(),
            router.port
        )
    });
    let (first, second) = ("203.0.113.10/32", "2001:db8::10/128");
    wait_until("both routes", || [first, second].iter().all(|prefix| router.route(prefix).contains("from 127.0.0.2")));
    let route = router.route(first);
    for part in ["\n  65001\n", "192.0.2.1 from 127.0.0.2 (10.0.0.1)", "metric 10", "Community: 65000:7 no-export"] {
        assert!(route.contains(part), "{part}: {route}");
    }
    assert!(router.route(second).contains("2001:db8::1 from 127.0.0.2"), "{}", router.route(second));
    // The router requests the routes again.
    router.ask("clear bgp 127.0.0.2 soft in");
    wait_until("the routes are sent again", || scene.ask("show bgp").contains(" updates_sent=4 "));
    scene.server = None;
    wait_until("no routes", || [first, second].iter().all(|prefix| router.route(prefix).contains("not in table")));
    assert!(scene.ask("show bgp").contains(" state=Established ") && scene.ask("show bgp").contains(" established=1 "));
    scene.weir.send(Signal::USR1);
    assert!(scene.weir.finish().status.success());
    let ended =
        || router.ask("show bgp neighbors 127.0.0.2").contains("Notification received (Cease/Administrative Shutdown)");
    wait_until("the reason is known", ended);
}
