//! Opens every listening socket of a configuration before anything is served, and says in HAProxy's sentences which
//! could not be opened. Must never accept a connection.

use crate::files::reason;
use config::document::Sources;
use config::span::Span;
use config::spec::{Mode, ProxyKind, Spec};
use engine::listener::Listening;
use engine::service::runtime::Opened;
use policy::program::{Bind, BindAddress, Program, Proxy, SocketBuffers};
use rt::net::{Address, BindOptions, ListeningSocket};
use std::io;
use std::sync::Arc;
use std::time::Duration;

/// How long `defer-accept` waits for a client's first bytes.
const DEFER: Duration = Duration::from_secs(1);

/// Opens all sockets.
///
/// # Errors
/// One sentence for every address that could not be bound; what was opened is closed again.
pub fn open(program: &Program, spec: &Spec, sources: &Sources, reuse_port: bool) -> Result<Sockets, Vec<String>> {
    let mut opened = Vec::new();
    let mut errors = Vec::new();
    for proxy in program.proxies.iter().filter(|proxy| !proxy.disabled) {
        for bind in proxy.frontend.iter().flat_map(|frontend| &frontend.binds) {
            match sockets(bind, Surroundings { reuse_port, mode: proxy.mode, buffers: program.global.client_buffers }) {
                Ok(sockets) => opened.extend(sockets.into_iter().map(|socket| Listening {
                    frontend: proxy.index,
                    bind: bind.index,
                    socket,
                })),
                Err(error) => {
                    errors.push(sentence(owner(proxy), bind, place(proxy, bind, spec), sources, &error));
                }
            }
        }
    }
    let runtime = open_runtime(program, spec, sources, &mut errors);
    if errors.is_empty() { Ok(Sockets { proxies: opened, runtime }) } else { Err(errors) }
}

/// Every socket of a process.
pub struct Sockets {
    /// Those of proxies.
    pub proxies: Vec<Listening>,
    /// Those of the runtime API.
    pub runtime: Vec<Opened>,
}

/// Opens the sockets of the runtime API.
fn open_runtime(program: &Program, spec: &Spec, sources: &Sources, errors: &mut Vec<String>) -> Vec<Opened> {
    let around = Surroundings { reuse_port: false, mode: Mode::Tcp, buffers: SocketBuffers::default() };
    let mut opened = Vec::new();
    for (index, socket) in program.runtime.sockets.iter().enumerate() {
        match sockets(&socket.bind, around) {
            Ok(sockets) => opened.extend(sockets.into_iter().map(|socket| Opened { index, socket })),
            Err(error) => {
                let place = spec.global.runtime.sockets.get(index).map_or(Span::default(), |bind| bind.span);
                errors.push(sentence("frontend GLOBAL".to_owned(), &socket.bind, place, sources, &error));
            }
        }
    }
    opened
}

/// What the socket options of an address depend on, apart from its `bind` line.
#[derive(Clone, Copy)]
struct Surroundings {
    reuse_port: bool,
    mode: Mode,
    buffers: SocketBuffers,
}

fn options(bind: &Bind, around: Surroundings) -> BindOptions {
    let bytes = |buffer: Option<u32>| buffer.and_then(|bytes| usize::try_from(bytes).ok());
    BindOptions {
        backlog: i32::try_from(bind.backlog).unwrap_or(i32::MAX),
        v6only: bind.v6only,
        reuse_port: around.reuse_port,
        defer_accept: bind.defer_accept.then_some(DEFER),
        // `option tcp-smart-accept`, the default in HTTP mode: the first acknowledgement rides with the answer.
        no_quick_ack: around.mode == Mode::Http,
        send_buffer: bytes(around.buffers.send),
        receive_buffer: bytes(around.buffers.receive),
        mode: bind.unix_mode,
        ..BindOptions::default()
    }
}

/// The sockets of one address: one, or one a shard.
fn sockets(bind: &Bind, around: Surroundings) -> io::Result<Vec<Arc<ListeningSocket>>> {
    let address = match &bind.address {
        BindAddress::Inet(address) => Address::Inet(*address),
        BindAddress::Unix(path) => Address::Unix(path.clone()),
        BindAddress::Abstract(name) => Address::Abstract(name.clone()),
        BindAddress::Descriptor { fd, .. } => {
            return Ok(vec![Arc::new(ListeningSocket::inherit(*fd, &options(bind, around))?)]);
        }
    };
    let options = options(bind, around);
    // Several sockets on one address need SO_REUSEPORT; without it there is one.
    let shards = if around.reuse_port { bind.shards.max(1) } else { 1 };
    (0..shards).map(|_| ListeningSocket::bind(&address, &options).map(Arc::new)).collect()
}

/// Where the `bind` line is written.
fn place(proxy: &Proxy, bind: &Bind, spec: &Spec) -> Span {
    spec.proxies
        .get(proxy.index)
        .and_then(|proxy| proxy.binds.get(bind.index))
        .map_or(Span::default(), |bind| bind.span)
}

/// What HAProxy calls a proxy in messages.
fn owner(proxy: &Proxy) -> String {
    let kind = match proxy.kind {
        ProxyKind::Frontend => "frontend",
        ProxyKind::Backend => "backend",
        ProxyKind::Listen => "proxy",
    };
    format!("{kind} {}", proxy.name)
}

fn sentence(owner: String, bind: &Bind, place: Span, sources: &Sources, error: &io::Error) -> String {
    let file = sources.file(place).map_or("", |file| file.name.as_str());
    let reason = reason(error);
    let what = match &bind.address {
        BindAddress::Inet(address) => {
            let family = if address.is_ipv4() { "tcpv4" } else { "tcpv6" };
            format!("protocol {family}: cannot bind socket ({reason}) for [{}]", plain(address))
        }
        BindAddress::Unix(path) => {
            format!("protocol unix_stream: cannot bind UNIX socket ({reason}) [{}]", path.display())
        }
        BindAddress::Abstract(_) => format!("protocol abns_stream: cannot bind UNIX socket ({reason}) [{}]", bind.text),
        BindAddress::Descriptor { fd, .. } => format!("cannot use file descriptor '{fd}' ({reason})"),
    };
    format!("Binding [{file}:{}] for {owner}: {what}.", place.line)
}

/// Address and port as HAProxy writes them: without the brackets around an IPv6 address.
fn plain(address: &std::net::SocketAddr) -> String {
    format!("{}:{}", address.ip(), address.port())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_written_without_brackets_of_their_own() {
        let rows = [("127.0.0.1:80", "127.0.0.1:80"), ("[::1]:80", "::1:80")];
        for (address, expected) in rows {
            assert_eq!(plain(&address.parse().expect(address)), expected);
        }
    }
}
