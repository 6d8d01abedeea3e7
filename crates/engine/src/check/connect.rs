//! Opens the connections of a check (configuration manual, "tcp-check connect", "addr", "port"): destination, options, preamble,
//! handshake, and the messages of failures. Must never send what a step sends, nor wait for a response.

use conn::transport;
use std::future::Future as _;
use std::io;
use std::pin::Pin;

use expression::sample::{ConnectionError, Value};
use live::health::CheckStatus;
use policy::check::{CheckStep, Connect, Port};
use policy::program::{MuxProtocol, ServerAddress, ServerTls};
use rt::net::{Address, ConnectOptions};
use tls::{Connection, asked_name};

use super::address::checked_address;
use super::messages;
use super::running::{Outcome, RunningCheck, Unproven, Waited};
use crate::connection_preamble::Greeting;
use crate::handshake::{is_one_too_many, tls_error};
use crate::outgoing::fixed_address;

/// Destination and options of a connection.
struct CheckRoute {
    destination: Address,
    /// SOCKS4 proxy to connect through.
    proxy: Option<Address>,
    /// A PROXY header is sent.
    header: bool,
    /// The first write shows whether the connection was established.
    is_proved_by_sending: bool,
    options: ConnectOptions,
}

impl CheckRoute {
    /// Returns the address to connect to: the SOCKS4 proxy, else the destination.
    fn target(&self) -> &Address {
        self.proxy.as_ref().unwrap_or(&self.destination)
    }
}

impl<'a> RunningCheck<'a> {
    /// Opens a connection in place of the current one.
    pub(super) async fn connect(&mut self, connect: &'a Connect) -> Result<(), Outcome> {
        self.close();
        self.connection.linger = connect.linger;
        self.progress.fulfilled = None;
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
        if self.goes_by_quic(connect) {
            return self.connect_by_quic(connect, &way.destination, &way.options).await;
        }
        let mut connecting = match transport::connect(way.target(), &way.options) {
            Ok(connecting) => connecting,
            Err(error) => return Err(self.failed(connect, &messages::of_refusal(&error))),
        };
        self.connection.spare = way.target().inet().filter(|_| way.options.is_plain()).map(|address| address.is_ipv6());
        if way.is_proved_by_sending {
            self.connection.unproven =
                Some(Unproven { connect, comment: self.progress.comment, step: self.progress.step });
            self.connection.stream = connecting.into_transport().ok();
            // The other checks that are due connect first: bytes sent at once would wake the server for each check; after this,
            // it is busy until all are sent.
            rt::yield_now().await;
            return Ok(());
        }
        self.connection.stream = match self.within(|cx| Pin::new(&mut connecting).poll(cx)).await {
            Waited::Done(Ok(stream)) => Some(stream),
            Waited::Done(Err(error)) => return Err(self.failed(connect, &messages::of_system(&error))),
            Waited::Expired => return Err(self.not_in_time(connect)),
        };
        self.greet(connect, &way).await?;
        self.secure(connect, &way).await?;
        self.choose_protocol(connect).await?;
        self.choose_fcgi(connect);
        self.restart_timeout();
        Ok(())
    }

    /// Returns destination and options of a step's connection.
    fn way(&self, connect: &Connect) -> Result<CheckRoute, Outcome> {
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
        let multiplexes = matches!(self.protocol(connect), Some(MuxProtocol::Http2 | MuxProtocol::Qmux));
        // If the connection is established at once, the first write shows whether it succeeded.
        let is_proved_by_sending = is_near
            && proxy.is_none()
            && !header
            && !multiplexes
            && !self.asks_application(connect)
            && self.tls(connect).is_none()
            && matches!(next, Some(CheckStep::Send(_) | CheckStep::Request(_)));
        let options = ConnectOptions {
            // Reused sockets are plain TCP.
            is_brief: is_brief && !route.options.multipath,
            looks_at_once: is_near && !is_proved_by_sending,
            delay_acknowledgement: route.options.delay_acknowledgement || header || speaks_first,
            ..route.options.clone()
        };
        Ok(CheckRoute { destination, proxy, header, is_proved_by_sending, options })
    }

    /// Sends the SOCKS4 request and the PROXY header, if configured.
    async fn greet(&mut self, connect: &Connect, way: &CheckRoute) -> Result<(), Outcome> {
        let through = way.proxy.is_some();
        // It contains the connection's addresses.
        let bytes = if way.header { self.header() } else { Vec::new() };
        let Some(mut stream) = self.connection.stream.take_if(|_| through || way.header) else { return Ok(()) };
        let mut greeting = Greeting::through(&way.destination, through, false);
        let greeted = self.within(|cx| greeting.poll(cx, &mut stream, &bytes)).await;
        self.connection.stream = Some(stream);
        match greeted {
            Waited::Done(Ok(())) => Ok(()),
            Waited::Done(Err(_)) => Err(self.failed(connect, "the connection broke in its beginning")),
            Waited::Expired => Err(self.not_in_time(connect)),
        }
    }

    /// Returns the TLS settings of a step's connection; `None`: not encrypted.
    pub(super) fn tls(&self, connect: &Connect) -> Option<&'a ServerTls> {
        self.server.connecting.tls.as_deref().filter(|tls| connect.ssl || connect.default && tls.checks)
    }

    /// Performs the TLS handshake, if the connection is encrypted.
    async fn secure(&mut self, connect: &Connect, way: &CheckRoute) -> Result<(), Outcome> {
        let Some(tls) = self.tls(connect) else { return Ok(()) };
        let Some(stream) = self.connection.stream.take() else { return Ok(()) };
        let own = Some(tls).filter(|_| connect.default);
        let sni = self.server_name(connect, tls);
        let alpn = connect.alpn.as_deref().or_else(|| own?.check_alpn.as_deref());
        // The protocol of a QUIC server is none over TCP.
        let alpn = alpn.or_else(|| self.server.connecting.quic.map(|_| &[][..]));
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
        self.connection.stream = Some(stream);
        match shaken {
            Waited::Done(Ok(())) => Ok(()),
            Waited::Done(Err(insecure)) => {
                let reason = tls_error(&insecure).0.message();
                Err(broken(messages::at_connect(self, connect, reason)))
            }
            Waited::Expired => Err(Outcome::new(CheckStatus::L6Timeout, messages::at_connect(self, connect, ""))),
        }
    }

    fn failed(&self, connect: &Connect, reason: &str) -> Outcome {
        Outcome::new(CheckStatus::L4Connection, messages::at_connect(self, connect, reason))
    }

    pub(super) fn not_in_time(&self, connect: &Connect) -> Outcome {
        Outcome::new(CheckStatus::L4Timeout, messages::at_connect(self, connect, ""))
    }

    /// Returns the next step that acts on the connection. Unless that step waits for the server to send first, the kernel need
    /// not acknowledge the handshake in a packet of its own.
    fn next_step(&self) -> Option<&'a CheckStep> {
        let rest = self.check.steps.get(self.progress.step..).unwrap_or_default();
        rest.iter().find(|step| !matches!(step, CheckStep::Comment(_) | CheckStep::Variable(_)))
    }

    /// Returns the destination of a step's connection. `None`: the server has no address yet, or none that a check can use.
    fn destination(&self, connect: &Connect) -> Option<Address> {
        let written = match &connect.port {
            Some(Port::Fixed(port)) => Some(*port),
            Some(Port::Evaluated(expression)) => self.lend(&[], |context| match expression.evaluate(context) {
                Some(Value::Int(port)) => u16::try_from(port).ok(),
                other => std::str::from_utf8(context.as_text(other?)?).ok()?.parse().ok(),
            }),
            None => None,
        };
        checked_address(self.worker, self.server, self.own, connect.address, written)
    }

    /// Returns the failure of a connection attempt that the result of the first write shows. `None`: the connection was
    /// established.
    pub(super) fn judge_opening(
        &mut self,
        opening: &Unproven<'a>,
        waited: &Waited<io::Result<usize>>,
    ) -> Option<Outcome> {
        let broke_later = |kind| matches!(kind, io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe);
        let reason = match waited {
            Waited::Done(Ok(_)) => return None,
            Waited::Done(Err(error)) if broke_later(error.kind()) => return None,
            Waited::Done(Err(error)) => Some(messages::of_system(error)),
            Waited::Expired => None,
        };
        (self.progress.comment, self.progress.step) = (opening.comment, opening.step);
        Some(match reason {
            Some(reason) => self.failed(opening.connect, &reason),
            None => self.not_in_time(opening.connect),
        })
    }
}
