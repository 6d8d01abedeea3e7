//! The demonstration, which `weir` runs without arguments: a frontend and a dashboard on free local ports, three servers
//! and a few clients in the same process, and a configuration that is loaded like any other. Must never listen on an
//! address other than 127.0.0.1.

mod origin;
mod outages;
mod visitors;

use crate::arguments::Settings;
use crate::files::reason;
use crate::load;
use crate::machine::Machine;
use crate::messages::{Messages, ReportedError};
use crate::serve::{Companion, KeptFiles, Service};
use crate::{listeners, serve};
use config::InputFile;
use engine::host::Host;
use outages::Outages;
use rt::net::{Address, BindOptions, ListeningSocket};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;

/// The configuration, with conventional ports.
const CONFIGURATION: &str = include_str!("haproxy.cfg");

/// Addresses in that text where Weir listens: the frontend, the one of the visitors, the dashboard.
const FRONTENDS: [&str; 3] = ["127.0.0.1:8080", "127.0.0.1:8090", "127.0.0.1:8404"];

/// The servers' names and addresses in that text.
const ORIGINS: [(&str, &str); 3] =
    [("origin1", "127.0.0.1:8081"), ("origin2", "127.0.0.1:8082"), (UNRELIABLE, "127.0.0.1:8083")];

/// The server that has outages.
const UNRELIABLE: &str = "origin3";

/// Starts the demonstration and runs it until SIGINT or SIGTERM.
#[must_use]
pub fn run() -> ExitCode {
    let mut messages = Messages::new(false, false);
    match start(&mut messages) {
        Ok(code) => {
            crate::print("\nThe demonstration has ended.\n");
            code
        }
        Err(ReportedError) => ExitCode::FAILURE,
    }
}

fn start(messages: &mut Messages) -> Result<ExitCode, ReportedError> {
    let stage = set_the_stage().map_err(|error| {
        messages.alert(&format!("Cannot open a local port : {}", reason(&error)));
        ReportedError
    })?;
    let settings = Settings { foreground: true, ..Settings::default() };
    let file = InputFile { name: "demonstration.cfg".into(), bytes: stage.configuration.clone().into_bytes() };
    let loaded = load::read(&[file], &settings, messages);
    let prepared = load::compile(loaded, &settings, messages)?;
    let opened =
        listeners::open(&prepared.program, &prepared.spec, &prepared.sources, true, &mut listeners::Older::default());
    let sockets = opened.map_err(|errors| {
        errors.iter().for_each(|error| messages.alert(error));
        ReportedError
    })?;
    let introduction = introduction(&stage);
    // A client that the text invites must not connect to a socket that is closed.
    drop(stage.reservations);
    crate::print(introduction);
    let program = prepared.program;
    let companion = Some(play(stage.origins, stage.visitors));
    let service = Service {
        live: None,
        saved: Vec::new(),
        counts: Vec::new(),
        services: prepared.services,
        scripts: prepared.scripts,
        written: prepared.spec,
        sources: prepared.sources,
        program,
        sockets: sockets.proxies,
        datagrams: sockets.datagrams,
        channels: sockets.channels,
        runtime: sockets.runtime,
        relays: sockets.relays,
        peers: sockets.peers,
        succeeds: false,
        host: Host::default(),
        machine: Machine::default(),
        starter: None,
        master: None,
        last_step: None,
        companion,
        ends_gently: true,
        kept: KeptFiles::default(),
    };
    serve::serve(service, messages)
}

/// The configuration with free ports, and their sockets.
struct Stage {
    /// Addresses of the frontend, of the visitors' frontend and of the dashboard.
    front: SocketAddr,
    visitors: SocketAddr,
    dashboard: SocketAddr,
    /// Reserve these ports until Weir listens on them.
    reservations: [ListeningSocket; 3],
    origins: Vec<(&'static str, Arc<ListeningSocket>)>,
    configuration: String,
}

fn set_the_stage() -> io::Result<Stage> {
    let mut configuration = CONFIGURATION.to_owned();
    let mut place = |written: &str, reuse_port| -> io::Result<(ListeningSocket, SocketAddr)> {
        let (socket, address) = open(reuse_port)?;
        configuration = configuration.replace(written, &address.to_string());
        Ok((socket, address))
    };
    let [(first, front), (second, visitors), (third, dashboard)] =
        [place(FRONTENDS[0], true)?, place(FRONTENDS[1], true)?, place(FRONTENDS[2], true)?];
    let mut origins = Vec::new();
    for (name, written) in ORIGINS {
        origins.push((name, Arc::new(place(written, false)?.0)));
    }
    let reservations = [first, second, third];
    Ok(Stage { front, visitors, dashboard, reservations, origins, configuration })
}

/// Binds a socket to a free port and returns it with its address.
fn open(reuse_port: bool) -> io::Result<(ListeningSocket, SocketAddr)> {
    let options = BindOptions { reuse_port, ..BindOptions::default() };
    let socket = ListeningSocket::bind(&Address::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))), &options)?;
    let address = socket.local_address().inet().ok_or(io::ErrorKind::AddrNotAvailable)?;
    Ok((socket, address))
}

/// Starts the servers and the visitors, all on the first worker: their performance does not matter.
fn play(origins: Vec<(&'static str, Arc<ListeningSocket>)>, visitors: SocketAddr) -> Companion {
    Box::new(move |worker| {
        if worker == 0 {
            for (name, socket) in &origins {
                let outages = if *name == UNRELIABLE { Outages::Since(rt::now()) } else { Outages::Never };
                rt::spawn(rt::Class::Normal, rt::NO_TAG, origin::serve(name, outages, Arc::clone(socket)));
            }
            visitors::start(visitors);
        }
    })
}

fn introduction(stage: &Stage) -> String {
    let Stage { front, dashboard, configuration, .. } = stage;
    let listing: String = configuration.lines().map(|line| format!("    {line}\n").replace("    \n", "\n")).collect();
    format!(
        "\
Weir {version}: a frontend, three servers and a dashboard in one process. This is the configuration:

{listing}
Open the dashboard in a browser:

    http://{dashboard}/stats/dashboard

The demonstration sends itself about ten requests a second. {UNRELIABLE} fails for 10 seconds of every 40: Weir repeats
the requests that it fails on another server, and stops using it after two failed checks. Its clients see no error.

Weir listens on http://{front} - try, in another terminal:

    curl http://{front}/                        again and again: the three servers take turns
    curl -d hello http://{front}/echo           a server gives the body back
    curl -o /dev/null http://{front}/large      100 MB pass through
    curl http://{front}/slow                    a server that takes its time: see it in the log
    curl -i http://{front}/status/404           an answer with a status of your choice
    printf 'GET /tunnel HTTP/1.1\\r\\nhost: x\\r\\nconnection: upgrade\\r\\nupgrade: x\\r\\n\\r\\nhello\\n' |
        socat -t1 - TCP:{front},shut-none   an upgraded connection: every byte comes back

Your requests and the changes of servers are logged below. Ctrl-C ends everything.

",
        version = crate::version::VERSION,
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A client that half-closes after the request may be disconnected before the server is reached.
    #[test]
    fn the_tunnel_is_not_half_closed() {
        let stage = set_the_stage().unwrap();
        assert!(introduction(&stage).contains(&format!("socat -t1 - TCP:{},shut-none ", stage.front)));
    }

    #[test]
    fn every_address_of_the_text_is_replaced() {
        let stage = set_the_stage().unwrap();
        for written in ORIGINS.map(|origin| origin.1).into_iter().chain(FRONTENDS) {
            assert_eq!(CONFIGURATION.matches(written).count(), 1, "{written}");
            assert!(!stage.configuration.contains(&format!("{written}\n")), "{written}");
        }
        for address in [stage.front, stage.visitors, stage.dashboard] {
            assert!(stage.configuration.contains(&format!("    bind {address}\n")));
        }
    }

    #[test]
    fn the_introduction_names_both_addresses() {
        let stage = set_the_stage().unwrap();
        let text = introduction(&stage);
        assert!(text.contains(&format!("\n    http://{}/stats/dashboard\n", stage.dashboard)));
        assert!(text.contains(&format!("http://{} ", stage.front)));
        assert!(text.lines().all(|line| line.len() <= 120));
    }
}
