//! Compiles the TLS parameters of `bind` and `server` lines: loads certificates, resolves the names of algorithms, and
//! reports errors as HAProxy does. Must never open a connection.

mod algorithm_errors;
mod algorithms;
mod bind_certificates;
mod line;
mod links;
mod lists;
mod store;
#[cfg(test)]
pub(super) mod tests;
mod tickets;
mod trust;

pub use lists::{AddError, AddedLine, add_to_list};
pub use store::KnownTls;
pub(super) use store::Store;

use super::Compiler;
use super::connection_names::asks_for_host;
use super::listening::ListenerOwner;
use super::names::SpecNames;
use crate::program::{MuxProtocol, ServerTls, TlsListener, TlsTraffic, TrafficSwitch};
use algorithm_errors::Unfit;
use config::diagnostic::{Diagnostic, Form};
use config::span::{Span, Spanned};
use config::spec::{
    BindSpec, BindTlsSpec, GlobalTlsSpec, Mode, ProxySpec, ServerSpec, ServerTlsSpec, TlsDefaults, UsedCertificateSpec,
    VerifyClients,
};
use expression::Expression;
use line::{BindTlsContext, Line};
use std::io;
use std::sync::Arc;
use tls::client;
use tls::limits::RecordLimits;
use tls::provider::Version;
use tls::server::{Entry, Settings, Verify};
use tls::verify::ClientTerms;

/// Usual locations of the system's root certificates.
pub(super) const SYSTEM_ROOTS: [&str; 3] =
    ["/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"];

/// Default of `tune.ssl.ssl-ctx-cache-size`: number of cached generated certificates.
const GENERATED: usize = 1_000;

/// Compiles the limits of connections.
fn limits(global: &GlobalTlsSpec) -> RecordLimits {
    let number = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
    RecordLimits {
        key_updates: global.key_updates.map_or(RecordLimits::default().key_updates, number),
        record: number(global.record_limit),
        compresses: !global.without_compression,
    }
}

impl Compiler<'_> {
    /// Compiles the TLS parameters of a `bind` line; `None` if it has none, or an error was reported.
    pub(super) fn bind_tls(
        &mut self,
        bind: &BindSpec,
        owner: ListenerOwner<'_>,
        traffic: TlsTraffic,
        used: &[UsedCertificateSpec],
        global: &GlobalTlsSpec,
    ) -> Option<Arc<tls::Server>> {
        let written = bind.tls.as_deref()?;
        let ListenerOwner { kind, name } = owner;
        let place = format!("for bind '{}' at [{}]", bind.text, self.place(bind.span));
        let line = Line {
            head: format!("'bind {}' in section '{}' : ", bind.text, if kind == "proxy" { "listen" } else { kind }),
            form: Form::Parsing,
            algorithms: (format!("Proxy '{name}': "), format!(" {place}.")),
            span: bind.span,
        };
        if !written.ssl {
            // The files are validated in any case.
            self.authorities(&written.common, global, &line)?;
            self.silent_authorities(written, global, &line)?;
            return None;
        }
        let none = TlsDefaults::default();
        let above = global.defaults_at(bind.span).unwrap_or(&none);
        let is_strict = written.strict_sni.or(above.binds.strict_sni).unwrap_or(false);
        let settings = self.bind_settings(written, traffic, global, &line);
        let context = BindTlsContext { written, traffic, global, line: &line };
        let offered = self.offered(&context, name, used, settings);
        let lists = std::mem::take(&mut self.tls.named_lists);
        let resumption = self.resumption(written, &above.binds, global, &line);
        let entries = offered?;
        if entries.is_empty() {
            let missing = format!("Proxy '{name}': no SSL certificate specified {place}");
            if !is_strict || written.generates {
                self.alert(bind.span, Form::Bare, format!("{missing} (use 'crt')."));
                return None;
            }
            let message = format!("{missing}, ssl connections will fail (use 'crt').");
            self.out.push(Diagnostic::warning(bind.span, message).with_form(Form::Bare));
        }
        let authority = match written.generates {
            true => Some(self.signing_authority(written, name, global, bind.span)?),
            false => None,
        };
        match tls::Server::new(entries, is_strict, resumption?) {
            Ok(server) => {
                let most = global.generated_cache.map_or(GENERATED, |most| most as usize);
                let server = match authority {
                    Some(authority) => server.generating(authority, most),
                    None => server,
                };
                let server = Arc::new(server.noting(&self.shared.wanted));
                self.tls.listeners.push(TlsListener {
                    owner: (kind.into(), name.into()),
                    place: self.place(bind.span),
                    text: bind.text.as_str().into(),
                    written: written.clone(),
                    span: bind.span,
                    traffic,
                    server: Arc::clone(&server),
                    lists,
                });
                Some(server)
            }
            Err(why) => {
                self.alert(bind.span, Form::Bare, format!("Proxy '{name}': {why} {place}."));
                None
            }
        }
    }

    /// Compiles the certificates of an address. `None` if an error was reported.
    fn offered(
        &mut self,
        context: &BindTlsContext<'_>,
        frontend: &str,
        used: &[UsedCertificateSpec],
        settings: Option<Settings>,
    ) -> Option<Vec<Entry>> {
        let mut failed = settings.is_none();
        let settings = Arc::new(settings.unwrap_or_default());
        let mut entries = Vec::new();
        for (source, path) in &context.written.sources {
            match self.written_source(*source, path, context, &settings) {
                // The first certificate is a default, together with the others of its bundle.
                Some(mut found) if entries.is_empty() => {
                    found.iter_mut().take_while(|found| found.is_first).for_each(|found| found.mark_default());
                    entries.extend(found);
                }
                Some(found) => entries.extend(found),
                None => failed = true,
            }
        }
        match self.own_certificates(&context.written.acme, context.global) {
            Some(own) => bind_certificates::ListedCertificate::add_whole(&mut entries, own, &settings),
            None => failed = true,
        }
        match self.used_list(frontend, used, context) {
            Some(mut found) => {
                if let Some(first) = found.first_mut().filter(|_| entries.is_empty()) {
                    first.mark_default();
                }
                entries.extend(found);
            }
            None => failed = true,
        }
        if failed { None } else { Some(entries.into_iter().map(|found| found.entry).collect()) }
    }

    fn bind_settings(
        &mut self,
        written: &BindTlsSpec,
        traffic: TlsTraffic,
        global: &GlobalTlsSpec,
        line: &Line,
    ) -> Option<Settings> {
        let none = TlsDefaults::default();
        let defaults = &global.defaults_at(line.span).unwrap_or(&none).binds;
        let algorithms = self.algorithms(&written.common, &defaults.common, line)?;
        let alpn = match (&written.common.alpn, traffic) {
            // Nothing else is possible, whatever the lines of a list say about TCP.
            (_, TlsTraffic::Quic) => vec![b"h3".to_vec()],
            (Some(written), _) => written.value.iter().map(|name| name.clone().into_bytes()).collect(),
            (None, TlsTraffic::Http) => vec![b"h2".to_vec(), b"http/1.1".to_vec()],
            (None, TlsTraffic::Qmux) => vec![b"h3".to_vec()],
            (None, TlsTraffic::Bytes) => Vec::new(),
        };
        if traffic == TlsTraffic::Quic && algorithms.versions.1 != Version::Tls13 {
            let (head, tail) = &line.algorithms;
            self.alert(line.span, Form::Bare, format!("{head}QUIC needs TLSv1.3, which is disabled{tail}"));
            return None;
        }
        let method = written.verify.as_ref().map_or(VerifyClients::None, |verify| verify.value);
        let authorities = self.authorities(&written.common, global, line)?;
        let silent = self.silent_authorities(written, global, line)?;
        let ignored = self.ignored(written.crt_ignore_err.as_ref(), "crt-ignore-err", line)?;
        let ignored_behind = self.ignored(written.ca_ignore_err.as_ref(), "ca-ignore-err", line)?;
        let has_authorities = authorities.ca_file.is_some() || silent.is_some();
        let terms = ClientTerms {
            is_required: method == VerifyClients::Required,
            authorities,
            silent,
            announces: !written.no_ca_names,
            ignored,
            ignored_behind,
        };
        let verify = match method {
            VerifyClients::None => Verify::None(terms),
            _ if has_authorities => Verify::Asked(terms),
            _ => {
                let (head, tail) = &line.algorithms;
                let message = format!("{head}verify is enabled but no CA file specified{tail}");
                self.alert(line.span, Form::Bare, message);
                return None;
            }
        };
        let prefers_clients_order = written.prefer_client_ciphers || defaults.prefer_client_ciphers;
        let capture = global.capture_size as usize;
        let early_data = if written.early_data { self.tls.early_data } else { 0 };
        Some(Settings {
            algorithms,
            alpn,
            verify,
            prefers_clients_order,
            capture,
            limits: limits(global),
            early_data,
            is_quic: traffic == TlsTraffic::Quic,
        })
    }

    /// Compiles the TLS parameters of a server; `None` if it has none, or an error was reported.
    pub(super) fn server_tls(
        &mut self,
        server: &ServerSpec,
        checked_by_tls: bool,
        proxy: &ProxySpec,
        global: &GlobalTlsSpec,
        names: &SpecNames<'_>,
        head: &str,
    ) -> Option<Box<ServerTls>> {
        let none = ServerTlsSpec::default();
        let written = server.tls.as_deref().unwrap_or(&none);
        if !written.ssl && !written.ssl_by_default && written.check != Some(true) && !checked_by_tls {
            // The files and the name are validated in any case.
            self.authorities(&written.common, global, &server_line(server.span, head));
            if let Some(sni) = &written.sni {
                self.connection_expression(sni, server.span, names, head);
            }
            return None;
        }
        let (backend, name) = (&proxy.name.value, &server.name.value);
        let mut settings = self.client_settings(written, backend, name, server.span, global, head)?;
        if server.address.value.is_quic() {
            if settings.algorithms.versions.1 != Version::Tls13 {
                self.alert(server.span, Form::Placed, format!("{head}QUIC needs TLSv1.3, which is disabled."));
                return None;
            }
            // Nothing else is possible, whatever `default-server` says for TCP.
            settings.alpn = vec![b"h3".to_vec()];
        } else if server.connecting.protocol == Some(MuxProtocol::Qmux) && settings.alpn.is_empty() {
            settings.alpn = vec![b"h3".to_vec()];
        }
        let sni = self.sni(written, server.span, proxy.mode, names, head);
        let check_alpn = written.check_alpn.as_ref();
        let check_alpn = check_alpn.map(|list| list.iter().map(|name| name.clone().into_bytes()).collect());
        match tls::Client::new(settings) {
            Ok(client) => Some(Box::new(ServerTls {
                client: Arc::new(client.noting(&self.shared.wanted)),
                traffic: TrafficSwitch::new(written.ssl),
                sni,
                checks: written.check.unwrap_or(written.ssl),
                check_sni: written.check_sni.as_deref().map(Into::into),
                names_checks: written.check_sni_auto != Some(false),
                check_alpn,
            })),
            Err(why) => {
                self.alert(server.span, Form::Placed, format!("{head}{why}."));
                None
            }
        }
    }

    /// Compiles the client settings of a server line; `None` if an error was reported.
    fn client_settings(
        &mut self,
        written: &ServerTlsSpec,
        backend: &str,
        server: &str,
        span: Span,
        global: &GlobalTlsSpec,
        head: &str,
    ) -> Option<client::Settings> {
        let line = server_line(span, head);
        let nothing = TlsDefaults::default();
        let defaults = global.defaults_at(span).unwrap_or(&nothing);
        let sentence = |unfit: Unfit<'_>| unfit.of_server(head, backend, server);
        let algorithms = self.algorithms_of(&written.common, &defaults.servers, &line, sentence)?;
        let authorities = self.authorities(&written.common, global, &line)?;
        let verifies = written.verify.unwrap_or(global.trusts_servers != Some(true));
        if verifies && authorities.ca_file.is_none() {
            let message = format!(
                "{head}verify is enabled by default but no CA file specified. If you're running on a LAN where you're \
                 certain to trust the server's certificate, please set an explicit 'verify none' statement on the \
                 'server' line, or use 'ssl-server-verify none' in the global section to disable server-side \
                 verifications by default."
            );
            self.alert(span, Form::LatePlaced, message);
            return None;
        }
        let certificate = match &written.certificate {
            None => None,
            Some(path) => {
                let found = self.certificates(path, written.common.folder.as_deref(), global, &line)?;
                found.certificates.into_iter().next()
            }
        };
        let protocols = written.common.alpn.as_ref().map_or(&[][..], |written| &written.value);
        Some(client::Settings {
            algorithms,
            alpn: protocols.iter().map(|name| name.clone().into_bytes()).collect(),
            authorities: verifies.then(|| Arc::clone(&authorities)),
            unused: (!verifies).then_some(authorities),
            host: written.verifyhost.clone(),
            certificate,
            resumes: !written.no_reuse,
            early_data: written.early_data,
            limits: limits(global),
        })
    }

    /// Compiles the SNI of requests: `sni`, else in HTTP mode the host of the request.
    fn sni(
        &mut self,
        written: &ServerTlsSpec,
        span: Span,
        mode: Mode,
        names: &SpecNames<'_>,
        head: &str,
    ) -> Option<Expression> {
        let text = match &written.sni {
            Some(text) => text.clone(),
            None if asks_for_host(written, mode) => Spanned::new("req.hdr(host),field(1,:)".to_owned(), span),
            None => return None,
        };
        self.connection_expression(&text, span, names, head)
    }
}

/// Returns the prefixes and suffixes of messages about a server line.
fn server_line(span: Span, head: &str) -> Line {
    Line { head: head.to_owned(), form: Form::Placed, algorithms: (head.to_owned(), ".".to_owned()), span }
}

/// Resolves a file name against its base directory or the configuration's directory.
pub(super) fn located(name: &str, base: Option<&str>, folder: Option<&str>) -> String {
    if name.starts_with('/') {
        return name.to_owned();
    }
    match (base, folder) {
        (Some(base), _) => format!("{}/{name}", base.trim_end_matches('/')),
        (None, Some(folder)) => format!("{folder}{name}"),
        (None, None) => name.to_owned(),
    }
}

/// Returns the system's error message without its number.
pub(super) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or_default().to_owned()
}
