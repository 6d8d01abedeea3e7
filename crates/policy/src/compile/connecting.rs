//! Compiles the parameters of connections to servers. Must never open a connection.

use super::Compiler;
use super::names::SpecNames;
use crate::program::{
    Connecting, KeepAlive, Namespace, ProxyField, ProxyHeader, ProxySsl, ServerAddress, ServerPort, ServerTls, Source,
    TransparentSource,
};
use config::diagnostic::Form;
use config::span::{Span, Spanned};
use config::spec::{
    AddressSpec, ConnectingSpec, Family, HostSpec, Mode, MuxProtocol, PortSpec, PresentedSource, ProxyHeaderSpec,
    ProxySpec, ServerSpec, SourceSpec, Spec,
};
use expression::Expression;
use expression::log_format::{LogFormat, Purpose};
use expression::sample::EvalPlace;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::time::Duration;

/// Whether the server may select HTTP/2 or HTTP/3 with ALPN.
fn offers_multiplexing(tls: Option<&ServerTls>) -> bool {
    tls.is_some_and(|tls| tls.client.offers(b"h2") || tls.client.offers(b"h3"))
}

/// Whether a protocol is usable in a mode: `none` in TCP and log mode, `spop` in SPOP mode, all others in HTTP mode.
pub(super) fn is_usable(protocol: MuxProtocol, mode: Mode) -> bool {
    match mode {
        Mode::Http => !matches!(protocol, MuxProtocol::None | MuxProtocol::Spop),
        Mode::Spop => protocol == MuxProtocol::Spop,
        Mode::Tcp | Mode::Log | Mode::Udp => protocol == MuxProtocol::None,
    }
}

impl Compiler<'_> {
    /// Compiles the connection parameters of a server. `head` is the prefix of error messages: `'server b/s' : `.
    pub(super) fn connecting(
        &mut self,
        names: &SpecNames<'_>,
        proxy: &ProxySpec,
        server: &ServerSpec,
        address: &ServerAddress,
        head: &str,
        tls: Option<Box<ServerTls>>,
    ) -> Connecting {
        let written = &server.connecting;
        self.usable_with(proxy, server);
        names.begin_at(server.span);
        // The server's `source` takes precedence.
        let source = written.source.as_ref().or(proxy.connecting.source.as_ref());
        let source = source.and_then(|source| self.source(source, server.span, head));
        let header = self.header(&written.proxy_header, names, head);
        let namespace = written.namespace.as_ref().map(|name| match name.value.as_str() {
            "*" => Namespace::Told,
            wanted => {
                if !self.resolver.has_namespace(wanted) {
                    self.alert(name.span, Form::Placed, format!("{head}Cannot open namespace '{wanted}'."));
                }
                Namespace::Named(wanted.into())
            }
        });
        let presents = source.as_ref().and_then(|source| source.presented.as_ref());
        let presents = presents.is_some_and(|presented| !matches!(presented, TransparentSource::Address(_)));
        // Connections that the server opens are interchangeable, whatever the parameters of outgoing ones are.
        let opens = *address != ServerAddress::Reversed;
        let varies = opens
            && (presents || header.is_some() || follows_the_client(address) || namespace == Some(Namespace::Told));
        let keepalive = proxy.connecting.keepalive;
        // Connections with different SNI are not shared.
        let name = self.connection_name(written, server.span, names, head);
        let quic = self.quic_connecting(server, &names.spec.global, head);
        let negotiates = quic.is_none() && written.protocol.is_none() && offers_multiplexing(tls.as_deref());
        let of_sessions = quic.filter(|quic| quic.webtransport).map(|_| MuxProtocol::Quic);
        let sni = || tls.as_ref().and_then(|tls| tls.sni.clone());
        Connecting {
            varies,
            name: name.or_else(sni),
            protocol: written.protocol.or(quic.is_some().then_some(MuxProtocol::Quic)),
            quic,
            negotiates,
            websockets: of_sessions.or(written.websockets.filter(|_| quic.is_none())).or_else(|| {
                let offers_both = negotiates && tls.as_deref().is_some_and(|tls| tls.client.offers(b"http/1.1"));
                offers_both.then_some(MuxProtocol::Http1)
            }),
            idle_ping: written.idle_ping.map(Duration::from_millis),
            multipath: matches!(server.address.value, AddressSpec::Inet { multipath: true, .. }),
            no_ssl: server.tls.as_ref().is_some_and(|tls| tls.no_ssl),
            tls,
            source,
            header,
            socks4: self.socks4(written),
            namespace,
            user_timeout: written
                .user_timeout
                .filter(|millis| *millis > 0)
                .map(|millis| Duration::from_millis(u64::from(millis))),
            md5_password: written.md5_password.as_deref().map(Into::into),
            congestion_control: written.congestion_control.as_deref().map(Into::into),
            fast_open: written.fast_open,
            smart: proxy.connecting.smart_connect,
            keepalive: proxy.options.srvtcpka.then_some(KeepAlive {
                count: keepalive.count,
                idle: keepalive.idle,
                interval: keepalive.interval,
            }),
        }
    }

    /// Validates that the protocol of a server is usable in its proxy's mode.
    fn usable_with(&mut self, proxy: &ProxySpec, server: &ServerSpec) {
        let is_quic = server.address.value.is_quic();
        if let Some(protocol) = server.connecting.protocol.or(is_quic.then_some(MuxProtocol::Quic))
            && !(is_usable(protocol, proxy.mode) && (protocol == MuxProtocol::Quic) == is_quic)
        {
            let message = format!(
                "backend '{}' : MUX protocol '{}' is not usable for server '{}' at [{}].",
                proxy.name.value,
                protocol.name(),
                server.name.value,
                self.place(server.span)
            );
            self.alert(server.span, Form::Bare, message);
        }
    }

    /// Compiles `pool-conn-name`.
    fn connection_name(
        &mut self,
        written: &ConnectingSpec,
        span: Span,
        names: &SpecNames<'_>,
        head: &str,
    ) -> Option<Expression> {
        self.connection_expression(written.pool_conn_name.as_ref()?, span, names, head)
    }

    /// Compiles an expression that is evaluated for a request before its server has a connection: `pool-conn-name`,
    /// `sni`.
    pub(super) fn connection_expression(
        &mut self,
        text: &Spanned<String>,
        span: Span,
        names: &SpecNames<'_>,
        head: &str,
    ) -> Option<Expression> {
        let read = Expression::parse_all(&text.value, EvalPlace::ServerSource, names);
        let (why, hint) = match read.map_err(|error| (error.message, error.hint)) {
            Ok(expression) => match expression.fetch().refusal(EvalPlace::ServerSource) {
                None => return Some(expression),
                Some(_) => {
                    let (text, needs) = (&text.value, expression.fetch().wanted());
                    let why = format!(
                        "fetch method '{text}' extracts information from '{needs}', none of which is available here."
                    );
                    (why, None)
                }
            },
            Err(error) => error,
        };
        let message = format!("{head}error detected while parsing sni or pool-conn-name expressions : {why}.");
        // The expression may come from `default-server` on another line.
        let at = Some(text.span).filter(|at| (at.file, at.line) == (span.file, span.line));
        self.alert_with_hint(at.unwrap_or(span), Form::Placed, message, hint);
        None
    }

    /// Returns the namespaces that a client may be in: those that PROXY headers may name, and those of `bind` and
    /// `server` lines.
    pub(super) fn namespaces(&mut self, spec: &Spec) -> Vec<Box<str>> {
        for name in &spec.sections.namespaces {
            if !self.resolver.has_namespace(&name.value) {
                let message = format!("Cannot open namespace '{}'.", name.value);
                self.alert(name.span, Form::ParsingTight, message);
            }
        }
        let listed = spec.sections.namespaces.iter().map(|name| name.value.as_str());
        let binds = spec.proxies.iter().flat_map(|proxy| &proxy.binds);
        let servers = spec.proxies.iter().flat_map(|proxy| &proxy.servers);
        let binds = binds.filter_map(|bind| bind.listening.namespace.as_deref());
        let servers = servers.filter_map(|server| server.connecting.namespace.as_ref()).map(|name| name.value.as_str());
        let mut names: Vec<Box<str>> =
            listed.chain(binds).chain(servers.filter(|name| *name != "*")).map(Into::into).collect();
        names.sort();
        names.dedup();
        names
    }

    pub(super) fn source(&mut self, written: &SourceSpec, span: Span, head: &str) -> Option<Source> {
        let (address, ports) = self.bound(&written.address, span, head)?;
        let presented = match &written.presented {
            None => None,
            Some(PresentedSource::Client) => Some(TransparentSource::Client),
            Some(PresentedSource::ClientIp) => Some(TransparentSource::ClientIp),
            Some(PresentedSource::Address(address)) => {
                Some(TransparentSource::Address(self.bound(address, span, head).map(|(address, _)| address)?))
            }
            Some(PresentedSource::Header { name, occurrence }) => Some(TransparentSource::Header {
                name: name.to_ascii_lowercase().into_bytes().into(),
                occurrence: *occurrence,
            }),
        };
        Some(Source { address, ports, presented, interface: written.interface.as_deref().map(Into::into) })
    }

    /// Returns the address to bind to and its port range.
    fn bound(&mut self, written: &AddressSpec, span: Span, head: &str) -> Option<(SocketAddr, Option<(u16, u16)>)> {
        let AddressSpec::Inet { host, family, port, .. } = written else {
            let message = format!("{head}a UNIX socket as 'source' is not supported yet by Weir.");
            self.alert(span, Form::Parsing, message);
            return None;
        };
        let ip = match host {
            HostSpec::Ip(ip) => *ip,
            HostSpec::Any | HostSpec::Name(_) if *family == Family::V6 => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
            HostSpec::Any | HostSpec::Name(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        };
        Some(match *port {
            // The first port represents the range where one is shown.
            PortSpec::Range(first, last) => (SocketAddr::new(ip, first.max(1)), Some((first.max(1), last))),
            PortSpec::Exact(port) => (SocketAddr::new(ip, port), None),
            PortSpec::None | PortSpec::Offset(_) => (SocketAddr::new(ip, 0), None),
        })
    }

    fn header(&mut self, written: &ProxyHeaderSpec, names: &SpecNames<'_>, head: &str) -> Option<ProxyHeader> {
        let mut fields = Vec::new();
        for field in &written.fields {
            match LogFormat::for_rule(&field.format.value, Purpose::Text, EvalPlace::ServerSource, names) {
                Ok(format) => {
                    let text = field.format.value.as_str().into();
                    fields.push(ProxyField { kind: field.kind, text, format });
                }
                Err(error) => {
                    let message = format!("{head}{error}");
                    self.alert_with_hint(field.format.span, Form::Placed, message, error.hint());
                }
            }
        }
        if let Some(span) = written.pass_tlvs.filter(|_| written.v1 && !written.v2) {
            let message =
                format!("{head}'proxy-v2-options pass-tlv' requires 'send-proxy-v2', 'send-proxy' sends no TLVs.");
            let hint = Some("write 'send-proxy-v2'".to_owned());
            self.alert_with_hint(span, Form::Placed, message, hint);
        }
        (written.v1 || written.v2).then(|| ProxyHeader {
            binary: written.v2,
            checksum: written.checksum,
            unique_id: written.unique_id,
            authority: written.authority,
            pass_tlvs: written.pass_tlvs.is_some(),
            ssl: written.ssl.then_some(ProxySsl {
                client_name: written.client_name,
                key: written.key,
                signature: written.signature,
                cipher: written.cipher,
            }),
            fields: fields.into(),
        })
    }

    fn socks4(&mut self, written: &ConnectingSpec) -> Option<ServerAddress> {
        // The parser has rejected names.
        self.server_address(&written.socks4.as_ref()?.value).ok()
    }
}

/// Whether the address to connect to depends on the client's destination address.
fn follows_the_client(address: &ServerAddress) -> bool {
    match address {
        ServerAddress::Inet { ip, port } => ip.is_unspecified() || matches!(port, ServerPort::Offset(_)),
        ServerAddress::Unresolved { port } => matches!(port, ServerPort::Offset(_)),
        ServerAddress::Unix(_) | ServerAddress::Abstract(_) | ServerAddress::Carrier(_) | ServerAddress::Reversed => {
            false
        }
    }
}
