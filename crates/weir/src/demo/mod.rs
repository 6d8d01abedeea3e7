//! The demonstration, which `weir` runs without arguments: a frontend on a free local port, three servers in the same
//! process, and a configuration that is loaded like any other. Must never listen on an address other than 127.0.0.1.

mod origin;

use crate::arguments::Settings;
use crate::files::reason;
use crate::load;
use crate::machine::Machine;
use crate::messages::{Messages, ReportedError};
use crate::serve::{Companion, KeptFiles, Service};
use crate::{listeners, serve};
use config::InputFile;
use engine::host::Host;
use rt::net::{Address, BindOptions, ListeningSocket};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::process::ExitCode;
use std::sync::Arc;

/// The configuration, with conventional ports.
const CONFIGURATION: &str = include_str!("haproxy.cfg");

/// The frontend's address in that text.
const FRONT: &str = "127.0.0.1:8080";

/// The servers' names and addresses in that text.
const ORIGINS: [(&str, &str); 3] =
    [("origin1", "127.0.0.1:8081"), ("origin2", "127.0.0.1:8082"), ("origin3", "127.0.0.1:8083")];

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
    drop(stage.reservation);
    crate::print(introduction(&stage.front, &stage.configuration));
    let program = prepared.program;
    let companion = Some(play(stage.origins));
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
    /// The frontend's address.
    front: String,
    /// Reserves that port until the frontend listens on it.
    reservation: ListeningSocket,
    origins: Vec<(&'static str, Arc<ListeningSocket>)>,
    configuration: String,
}

fn set_the_stage() -> io::Result<Stage> {
    let (reservation, front) = open(true)?;
    let mut configuration = CONFIGURATION.replace(FRONT, &front);
    let mut origins = Vec::new();
    for (name, written) in ORIGINS {
        let (socket, address) = open(false)?;
        configuration = configuration.replace(written, &address);
        origins.push((name, Arc::new(socket)));
    }
    Ok(Stage { front, reservation, origins, configuration })
}

/// Binds a socket to a free port and returns it with its address.
fn open(reuse_port: bool) -> io::Result<(ListeningSocket, String)> {
    let options = BindOptions { reuse_port, ..BindOptions::default() };
    let socket = ListeningSocket::bind(&Address::Inet(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))), &options)?;
    let address = socket.local_address().inet().ok_or(io::ErrorKind::AddrNotAvailable)?;
    Ok((socket, address.to_string()))
}

/// Starts the servers, all on the first worker: their performance does not matter.
fn play(origins: Vec<(&'static str, Arc<ListeningSocket>)>) -> Companion {
    Box::new(move |worker| {
        if worker == 0 {
            for (name, socket) in &origins {
                rt::spawn(rt::Class::Normal, rt::NO_TAG, origin::serve(name, Arc::clone(socket)));
            }
        }
    })
}

fn introduction(front: &str, configuration: &str) -> String {
    let listing: String = configuration.lines().map(|line| format!("    {line}\n").replace("    \n", "\n")).collect();
    format!(
        "\
Weir {version}: a front and three servers in one process. This is its configuration:

{listing}
Weir listens on http://{front} - try, in another terminal:

    curl http://{front}/                        again and again: the three servers take turns
    curl -d hello http://{front}/echo           a server gives the body back
    curl -o /dev/null http://{front}/large      100 MB pass through
    curl http://{front}/slow                    a server that takes its time: see it in the log
    curl -i http://{front}/status/503           an answer with a status of your choice
    printf 'GET /tunnel HTTP/1.1\\r\\nhost: x\\r\\nconnection: upgrade\\r\\nupgrade: x\\r\\n\\r\\nhello\\n' |
        socat -t1 - TCP:{front},shut-none   an upgraded connection: every byte comes back

Every request is logged below. Ctrl-C ends the demonstration.

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
        assert!(introduction("127.0.0.1:1", "").contains("socat -t1 - TCP:127.0.0.1:1,shut-none "));
    }

    #[test]
    fn every_address_of_the_text_is_replaced() {
        let stage = set_the_stage().unwrap();
        for written in ORIGINS.map(|origin| origin.1).into_iter().chain([FRONT]) {
            assert_eq!(CONFIGURATION.matches(written).count(), 1, "{written}");
            assert!(!stage.configuration.contains(&format!("{written}\n")), "{written}");
        }
        assert!(stage.configuration.contains(&format!("    bind {}\n", stage.front)));
    }

    #[test]
    fn the_introduction_names_the_address_first_where_a_reader_looks() {
        let text = introduction("127.0.0.1:4242", CONFIGURATION);
        assert!(text.contains("http://127.0.0.1:4242 "));
        assert!(text.lines().all(|line| line.len() <= 120));
    }
}
