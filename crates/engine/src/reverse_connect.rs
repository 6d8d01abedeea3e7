//! Opens connections of reverse HTTP: each `bind rhttp@<backend>/<server>` keeps a number of connections to that server, which
//! sends requests over them (configuration manual, "rhttp@" and "nbconn"). Must never serve one.

use std::cell::Cell;
use std::rc::Rc;
use std::task::Poll;
use std::time::Duration;

use config::spec::{LogLevel, MultiQueue, MuxProtocol};
use conn::dial::{Security, dial};
use conn::transport::Transport;
use policy::program::{Bind, BindAddress, Program, Proxy, Server};
use rt::net::Address;

use crate::end_notice::{Ending, Guard};
use crate::frontends::Opening;
use crate::outgoing::fixed_address;
use crate::stream::client;
use crate::worker::Worker;

/// Minimum interval between the starts of two attempts.
const PAUSE: Duration = Duration::from_secs(1);

/// State that all connections of a `bind` line share.
struct Line {
    frontend: usize,
    bind: usize,
    /// Indices of the backend and of its server.
    server: (usize, usize),
    wanted: u32,
    standing: Cell<u32>,
    stage: Cell<Stage>,
}

/// State of a line that was logged last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Begun,
    Complete,
    Failed,
}

/// Starts the connections that are assigned to this worker: all of a line are on one worker.
pub fn start(worker: &Rc<Worker>) {
    let generation = worker.generation();
    for (proxy, bind) in lines(&generation.program) {
        let BindAddress::Reverse { proxy: backend, server } = bind.address else { continue };
        let place = proxy.index + bind.index;
        let own = match &bind.listening.threads {
            Some(threads) => threads[place % threads.len().max(1)],
            None => place % worker.process.workers(),
        };
        if own != worker.id {
            continue;
        }
        let line = Rc::new(Line {
            frontend: proxy.index,
            bind: bind.index,
            server: (backend, server),
            wanted: bind.listening.connections,
            standing: Cell::new(0),
            stage: Cell::new(Stage::Begun),
        });
        line.tell(worker, "Initiating.");
        for _ in 0..line.wanted {
            rt::spawn(rt::Class::Normal, rt::NO_TAG, keep_up(Rc::clone(worker), Rc::clone(&line)));
        }
    }
}

/// Returns the `bind` lines of reverse HTTP.
fn lines(program: &Program) -> impl Iterator<Item = (&Proxy, &Bind)> {
    let proxies = program.proxies.iter().filter(|proxy| !proxy.disabled).map(|proxy| &**proxy);
    let binds = proxies
        .flat_map(|proxy| proxy.frontend.iter().flat_map(move |own| own.binds.iter().map(move |bind| (proxy, bind))));
    binds.filter(|(_, bind)| matches!(bind.address, BindAddress::Reverse { .. }))
}

/// Opens a connection whenever the previous one has ended, until the process or the frontend stops.
async fn keep_up(worker: Rc<Worker>, line: Rc<Line>) {
    while worker.process.opening(line.frontend) != Opening::Shut {
        let begun = rt::now();
        match connect(&worker, &line).await {
            Some((stream, peer)) if worker.process.opening(line.frontend) == Opening::Open => {
                serve(&worker, &line, stream, peer).await;
            }
            Some(_) => {}
            None => line.note(&worker, Stage::Failed),
        }
        rt::sleep_until(begun + PAUSE).await;
    }
}

/// Starts a session for a connection, and waits for its end.
async fn serve(worker: &Rc<Worker>, line: &Rc<Line>, stream: Transport, peer: Address) {
    let Some(slots) = worker.process.live.enter_freely(line.frontend, line.bind) else {
        return line.note(worker, Stage::Failed);
    };
    // The session runs here: it is counted for this worker until it ends.
    worker.process.reserve(worker.id, Some(&[worker.id]), MultiQueue::Off, rt::random);
    let ending = Rc::new(Ending::default());
    let guard = Guard::of(&ending);
    let generation = worker.generation();
    client::start_reversed(worker, &generation.frontend(line.frontend), line.bind, stream, peer, slots, guard);
    drop(generation);
    line.standing.set(line.standing.get() + 1);
    if line.standing.get() == line.wanted {
        line.note(worker, Stage::Complete);
    }
    std::future::poll_fn(|cx| ending.poll(cx)).await;
    line.standing.set(line.standing.get() - 1);
}

/// Opens a connection to the server, which has to speak HTTP/2. `None`: it failed.
async fn connect(worker: &Rc<Worker>, line: &Line) -> Option<(Transport, Address)> {
    let generation = worker.generation();
    let proxy = generation.proxy(line.server.0);
    let server = proxy.server(line.server.1)?;
    let outgoing = &worker.process.outgoing;
    let route = outgoing.route(server.serial).filter(|route| !route.blocked)?;
    let address = fixed_address(&outgoing.address(server))?;
    let tls = server.connecting.tls.as_deref().filter(|tls| tls.carries_traffic());
    let security = tls.map(|tls| Security { client: &tls.client, name: None });
    let mut dialing = Box::pin(dial(&address, &route.options, security));
    let mut timer = rt::Timer::new();
    timer.arm(proxy.timeouts.connect.map(|limit| rt::now() + limit));
    let opened = std::future::poll_fn(|cx| match dialing.as_mut().poll(cx) {
        Poll::Ready(opened) => Poll::Ready(opened.ok()),
        Poll::Pending => timer.poll_expired(cx).map(|()| None),
    });
    let transport = opened.await?;
    drop(dialing);
    speaks_http2(server, &transport).then_some((transport, address))
}

fn speaks_http2(server: &Server, transport: &Transport) -> bool {
    match server.connecting.protocol {
        Some(protocol) => protocol == MuxProtocol::Http2,
        None => transport.handshake_info().is_some_and(|state| state.alpn.as_deref() == Some(b"h2")),
    }
}

impl Line {
    /// Records the state of a line; logs it if it changed.
    fn note(&self, worker: &Worker, stage: Stage) {
        if self.stage.replace(stage) == stage {
            return;
        }
        match stage {
            Stage::Complete => self.tell(worker, &format!("Running with nbconn {} reached.", self.wanted)),
            Stage::Failed => self.tell(worker, "Error encountered."),
            Stage::Begun => {}
        }
    }

    fn tell(&self, worker: &Worker, what: &str) {
        let generation = worker.generation();
        let backend = generation.proxy(self.server.0);
        let name = backend.server(self.server.1).map_or("", |server| &server.name);
        let frontend = &generation.proxy(self.frontend).name;
        let text = format!("preconnect {frontend}::{}/{name}: {what}", backend.name);
        worker.logger.message(Some(self.frontend), LogLevel::Notice, &text);
    }
}
