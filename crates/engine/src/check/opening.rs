//! Opens the connections of a check (configuration manual, "tcp-check connect", "addr", "port"): where they lead, how they
//! begin, and how it is told that they do not. Must never send what a step sends, nor wait for an answer.

use conn::transport;
use std::future::Future as _;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;

use expression::sample::{ConnectionError, Value};
use live::health::CheckStatus;
use policy::check::{CheckStep, Connect, Port};
use policy::program::{MuxProtocol, ServerAddress, ServerPort, ServerTls};
use rt::net::{Address, ConnectOptions};
use tls::{Connection, asked_name};

use super::outcome::Outcome;
use super::run::{Course, Waited};
use super::words;
use crate::handshake::{is_one_too_many, tls_error};
use crate::outgoing::fixed_address;
use crate::stream::handshake::Greeting;

/// The step that opens a connection, which is to be told if that fails.
pub(super) struct Unproven<'a> {
    connect: &'a Connect,
    comment: Option<&'a str>,
    step: usize,
}

/// How a connection is opened.
struct Way {
    destination: Address,
    /// The SOCKS4 proxy in between.
    proxy: Option<Address>,
    /// It begins with a PROXY header.
    header: bool,
    /// What is sent first tells whether it was established.
    is_proved_by_sending: bool,
    options: ConnectOptions,
}

impl Way {
    /// What is connected to.
    fn target(&self) -> &Address {
        self.proxy.as_ref().unwrap_or(&self.destination)
    }
}

impl<'a> Course<'a> {
    /// Opens a connection in place of the one that is there.
    pub(super) async fn connect(&mut self, connect: &'a Connect) -> Result<(), Outcome> {
        self.close();
        self.linger = connect.linger;
        self.fulfilled = None;
        self.count(|protocol| &protocol.streams, 1);
        if self.server.address == ServerAddress::Reversed {
            return self.attach(connect).await;
        }
        if self.take_idle(connect) {
            self.restart_timeout();
            return Ok(());
        }
        self.count(|protocol| &protocol.connections, 1);
        let way = self.way(connect)?;
        let mut connecting = match transport::connect(way.target(), &way.options) {
            Ok(connecting) => connecting,
            Err(error) => return Err(self.failed(connect, &words::of_refusal(&error))),
        };
        self.spare = way.target().inet().filter(|_| way.options.is_plain()).map(|address| address.is_ipv6());
        if way.is_proved_by_sending {
            self.unproven = Some(Unproven { connect, comment: self.comment, step: self.step });
            self.stream = connecting.into_transport().ok();
            // The others that are due connect first: what is sent at once wakes the server, which then has something to do
            // until all is sent, and need not be woken for each.
            rt::yield_now().await;
            return Ok(());
        }
        self.stream = match self.within(|cx| Pin::new(&mut connecting).poll(cx)).await {
            Waited::Done(Ok(stream)) => Some(stream),
            Waited::Done(Err(error)) => return Err(self.failed(connect, &words::of_system(&error))),
            Waited::Expired => return Err(self.not_in_time(connect)),
        };
        self.greet(connect, &way).await?;
        self.secure(connect, &way).await?;
        self.choose_protocol(connect);
        self.choose_fcgi(connect);
        self.restart_timeout();
        Ok(())
    }

    /// How the connection of a step is opened.
    fn way(&self, connect: &Connect) -> Result<Way, Outcome> {
        let Some(destination) = self.destination(connect) else {
            return Err(self.failed(connect, "no address to connect to"));
        };
        let route = self.worker.process.outgoing.route(self.server.serial).filter(|route| !route.blocked);
        let Some(route) = route else { return Err(self.failed(connect, "no way to the server")) };
        let through = connect.via_socks4 || (connect.default && self.own.via_socks4);
        let proxy = self.server.connecting.socks4.as_ref().filter(|_| through).and_then(fixed_address);
        let header = connect.send_proxy || (connect.default && self.own.send_proxy);
        let next = self.next_step();
        let speaks_first = !matches!(next, Some(CheckStep::Expect(_)));
        let target = proxy.as_ref().unwrap_or(&destination);
        let is_brief = !self.is_shared();
        let is_near = is_brief && target.inet().is_some_and(|address| address.ip().is_loopback());
        let speaks_http2 = self.protocol(connect) == Some(MuxProtocol::Http2);
        // Where the connection is established at once, what is sent first finds out whether it was.
        let is_proved_by_sending = is_near
            && proxy.is_none()
            && !header
            && !speaks_http2
            && !self.asks_application(connect)
            && self.tls(connect).is_none()
            && matches!(next, Some(CheckStep::Send(_) | CheckStep::Request(_)));
        let options = ConnectOptions {
            // A socket that was kept speaks TCP.
            is_brief: is_brief && !route.options.multipath,
            looks_at_once: is_near && !is_proved_by_sending,
            delay_acknowledgement: route.options.delay_acknowledgement || header || speaks_first,
            ..route.options.clone()
        };
        Ok(Way { destination, proxy, header, is_proved_by_sending, options })
    }

    /// Asks a SOCKS4 proxy for the rest of the way, and sends the PROXY header, where there is either.
    async fn greet(&mut self, connect: &Connect, way: &Way) -> Result<(), Outcome> {
        let through = way.proxy.is_some();
        // It is made of the connection's addresses.
        let bytes = if way.header { self.header() } else { Vec::new() };
        let Some(mut stream) = self.stream.take_if(|_| through || way.header) else { return Ok(()) };
        let mut greeting = Greeting::through(&way.destination, through, false);
        let greeted = self.within(|cx| greeting.poll(cx, &mut stream, &bytes)).await;
        self.stream = Some(stream);
        match greeted {
            Waited::Done(Ok(())) => Ok(()),
            Waited::Done(Err(_)) => Err(self.failed(connect, "the connection broke in its beginning")),
            Waited::Expired => Err(self.not_in_time(connect)),
        }
    }

    /// How the connection of a step is secured; `None`: it is not.
    pub(super) fn tls(&self, connect: &Connect) -> Option<&'a ServerTls> {
        self.server.connecting.tls.as_deref().filter(|tls| connect.ssl || connect.default && tls.checks)
    }

    /// Shakes hands, where the connection is to be secured.
    async fn secure(&mut self, connect: &Connect, way: &Way) -> Result<(), Outcome> {
        let Some(tls) = self.tls(connect) else { return Ok(()) };
        let Some(stream) = self.stream.take() else { return Ok(()) };
        let own = Some(tls).filter(|_| connect.default);
        let sni = self.server_name(connect, tls);
        let alpn = connect.alpn.as_deref().or_else(|| own?.check_alpn.as_deref());
        let name = asked_name(sni.as_deref(), way.destination.inet().map(|address| address.ip()));
        let broken = |reason: String| Outcome::new(CheckStatus::L6Response, reason);
        if is_one_too_many(self.generation.program.global.max_tls_connections) {
            return Err(broken(ConnectionError::TLS_TOO_MANY.message().to_owned()));
        }
        let Ok(client) = Connection::of_client(&tls.client, name, alpn) else {
            return Err(broken(ConnectionError::TLS_HANDSHAKE.message().to_owned()));
        };
        let mut stream = stream.with_tls(client);
        stream.begin_tls(&[]);
        let shaken = self.within(|cx| stream.poll_handshake(cx)).await;
        self.stream = Some(stream);
        match shaken {
            Waited::Done(Ok(())) => Ok(()),
            Waited::Done(Err(insecure)) => {
                let reason = tls_error(&insecure).0.message();
                Err(broken(words::at_connect(self, connect, reason)))
            }
            Waited::Expired => Err(Outcome::new(CheckStatus::L6Timeout, words::at_connect(self, connect, ""))),
        }
    }

    fn failed(&self, connect: &Connect, reason: &str) -> Outcome {
        Outcome::new(CheckStatus::L4Connection, words::at_connect(self, connect, reason))
    }

    pub(super) fn not_in_time(&self, connect: &Connect) -> Outcome {
        Outcome::new(CheckStatus::L4Timeout, words::at_connect(self, connect, ""))
    }

    /// The next step that does anything to the connection. Where nothing is waited for before this side has sent something,
    /// or is done, the kernel need not acknowledge the handshake by a packet of its own.
    fn next_step(&self) -> Option<&'a CheckStep> {
        let rest = self.check.steps.get(self.step..).unwrap_or_default();
        rest.iter().find(|step| !matches!(step, CheckStep::Comment(_) | CheckStep::Variable(_)))
    }

    /// Where the connection of a step leads. `None`: the server has no address yet, or none that a check can ask.
    fn destination(&self, connect: &Connect) -> Option<Address> {
        let current = self.worker.process.outgoing.address(self.server);
        let orders = self.worker.process.probing.check(self.server.serial);
        let ordered = orders.address.map(|ip| ServerAddress::Inet { ip, port: ServerPort::Exact(0) });
        let base = ordered.as_ref().or(self.own.address.as_ref()).unwrap_or(&current);
        let written = match &connect.port {
            Some(Port::Fixed(port)) => Some(*port),
            Some(Port::Evaluated(expression)) => self.lend(&[], |context| match expression.evaluate(context) {
                Some(Value::Int(port)) => u16::try_from(port).ok(),
                other => std::str::from_utf8(context.as_text(other?)?).ok()?.parse().ok(),
            }),
            None => None,
        };
        let port = written.or(orders.port).or(self.own.port);
        match (base, connect.address) {
            (_, Some(ip)) => {
                let of_server = inet_port(&current);
                Some(Address::Inet(SocketAddr::new(ip, port.or(of_server)?)))
            }
            (ServerAddress::Inet { ip, .. }, None) => {
                let ip = if ip.is_unspecified() { loopback(*ip) } else { *ip };
                let port = port.or_else(|| inet_port(base).filter(|port| *port > 0)).or_else(|| inet_port(&current))?;
                Some(Address::Inet(SocketAddr::new(ip, port)))
            }
            (other, None) => fixed_address(other),
        }
    }

    /// Whether a connection was not opened, by what the first write to it came to.
    pub(super) fn judge_opening(
        &mut self,
        opening: &Unproven<'a>,
        waited: &Waited<io::Result<usize>>,
    ) -> Option<Outcome> {
        let broke_later = |kind| matches!(kind, io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe);
        let reason = match waited {
            Waited::Done(Ok(_)) => return None,
            Waited::Done(Err(error)) if broke_later(error.kind()) => return None,
            Waited::Done(Err(error)) => Some(words::of_system(error)),
            Waited::Expired => None,
        };
        (self.comment, self.step) = (opening.comment, opening.step);
        Some(match reason {
            Some(reason) => self.failed(opening.connect, &reason),
            None => self.not_in_time(opening.connect),
        })
    }
}

fn inet_port(address: &ServerAddress) -> Option<u16> {
    match address {
        ServerAddress::Inet { port, .. } => Some(port.resolve(0)),
        _ => None,
    }
}

/// A server that is wherever the client is has no address of its own: this machine's is asked.
fn loopback(ip: IpAddr) -> IpAddr {
    match ip {
        IpAddr::V4(_) => IpAddr::from([127, 0, 0, 1]),
        IpAddr::V6(_) => IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1]),
    }
}
