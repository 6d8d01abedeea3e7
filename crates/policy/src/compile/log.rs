//! Compiles `log` lines, log formats, and rings. Must never send a line.

use super::names::SpecNames;
use super::{Compiler, address};
use crate::program::{
    EVENTS, LogAddress, LogLines, LogProfile, LogServer, LogTarget, PROVISIONING, ProfileStep, Ring, RingServer,
    Sample, ServerAddress, ServerTls, UniqueId,
};
use config::diagnostic::{Diagnostic, Form};
use config::span::{Span, Spanned};
use config::spec::{
    AddressSpec, BalanceSpec, GlobalSpec, LogFormatSpec, LogLevel, LogProtocol, LogSpec, LogStep, LogTargetSpec, Mode,
    ProxyKind, ProxySpec, RingSpec, ServerSpec, SocketKind, Spec, SyslogFormat,
};
use expression::Conversion;
use expression::log_format::{LogFormat, Purpose};
use expression::sample::{EvalPlace, Type};
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

/// Default size of a ring in bytes: HAProxy's BUFSIZE.
const RING_SIZE: u32 = 16_384;
/// Default of `maxlen` in bytes; HAProxy does not compare it with the ring's size.
const DEFAULT_MAXLEN: u32 = 1_024;
/// Maximum size of the ring of events in bytes.
const EVENTS_SIZE: usize = 1 << 20;

impl Compiler<'_> {
    pub(super) fn logs(&mut self, written: &[LogSpec], spec: &Spec) -> Vec<LogTarget> {
        written.iter().filter_map(|log| self.log(log, spec)).collect()
    }

    /// Compiles the targets of a `log-forward` section with the format of each; `None` for the message's own.
    pub(super) fn relay_targets(&mut self, written: &[LogSpec], spec: &Spec) -> Vec<(LogTarget, Option<SyslogFormat>)> {
        let targets = written.iter().filter_map(|log| {
            let target = self.log(log, spec)?;
            let of_ring = match &target.address {
                LogAddress::Ring(index) => self.rings.get(*index).and_then(|ring| ring.format),
                _ => None,
            };
            Some((target, of_ring.or(log.format)))
        });
        targets.collect()
    }

    fn log(&mut self, written: &LogSpec, spec: &Spec) -> Option<LogTarget> {
        let address = match &written.target {
            LogTargetSpec::Descriptor(fd) => LogAddress::Descriptor(*fd),
            LogTargetSpec::Address(address) => match self.log_address(address) {
                Ok(address) => address,
                Err(name) => {
                    let message = format!("log : invalid address: '{name}' in '{}'", address::written(address));
                    self.alert(written.span, Form::Parsing, message);
                    return None;
                }
            },
            // The parser has rejected unknown rings.
            LogTargetSpec::Ring(name) => {
                LogAddress::Ring(self.rings.iter().position(|ring| *ring.name == *name.value)?)
            }
            LogTargetSpec::Stream(address) => self.stream_target(address, written)?,
            LogTargetSpec::Telemetry => {
                if spec.global.otel_exporter.is_none() {
                    let message = "'log otel@' needs an 'otel-exporter' in section 'global'.".to_owned();
                    self.alert(written.span, Form::LateParsing, message);
                }
                self.sends_logs = true;
                LogAddress::Telemetry
            }
            // The parser has rejected unknown backends, and those in another mode.
            LogTargetSpec::Backend(name) => LogAddress::Backend(self.shared.indexes.log_backend(spec, &name.value)?),
        };
        let format = match &address {
            LogAddress::Ring(index) => self.rings.get(*index).and_then(|ring| ring.format),
            _ => None,
        };
        Some(LogTarget {
            address,
            length: written.length as usize,
            format: format.or(written.format).unwrap_or_else(|| default_format(&spec.global)),
            profile: self.profile(written, spec),
            sample: written.sample.as_ref().map(|(ranges, size)| Sample { ranges: ranges.clone(), size: *size }),
            facility: written.facility,
            max_level: written.max_level,
            min_level: written.min_level.unwrap_or(LogLevel::Emerg),
        })
    }

    /// Compiles the target of `log tcp@…`.
    fn stream_target(&mut self, address: &AddressSpec, written: &LogSpec) -> Option<LogAddress> {
        let server = self.ring_server("", "", &Spanned::new(address.clone(), written.span), LogProtocol::Legacy)?;
        let ring = Ring {
            name: "".into(),
            description: "".into(),
            format: None,
            maxlen: u16::MAX.into(),
            size: RING_SIZE as usize,
            backing_file: None,
            connect_timeout: Duration::from_secs(1),
            server_timeout: Duration::from_secs(5),
            servers: vec![server],
        };
        Some(LogAddress::Stream(Arc::new(ring)))
    }

    /// Compiles a server of a backend in `mode log`: over TCP it has a ring of its own.
    pub(super) fn log_server(
        &mut self,
        proxy: &ProxySpec,
        written: &ServerSpec,
        address: &ServerAddress,
        tls: Option<&ServerTls>,
        bufsize: Option<u32>,
    ) -> Option<LogServer> {
        // The parser has rejected other address families.
        let (AddressSpec::Inet { kind, .. }, Some(address)) = (&written.address.value, address.of_syslog()) else {
            return None;
        };
        let tls = tls.filter(|tls| tls.carries_traffic());
        if *kind == SocketKind::Datagram {
            if tls.is_some() {
                let message = format!(
                    "log backend '{}': 'ssl' has no effect over UDP, lines are sent in the clear.",
                    proxy.name.value
                );
                self.warn(Diagnostic::warning(written.span, message).with_form(Form::Placed));
            }
            return Some(LogServer::Datagrams);
        }
        let name = format!("{}/{}", proxy.name.value, written.name.value).into_boxed_str();
        let or_seconds = |millis: Option<u64>, seconds| {
            millis.filter(|millis| *millis > 0).map_or(Duration::from_secs(seconds), Duration::from_millis)
        };
        let file = self.shared.files.get(proxy.span.file as usize).map_or("", String::as_str);
        let line = proxy.span.line;
        Some(LogServer::Stream(Arc::new(Ring {
            description: format!("created from log backend declared into '{file}' at line {line}").into(),
            format: None,
            maxlen: u16::MAX.into(),
            size: written.log.bufsize.or(bufsize).unwrap_or(RING_SIZE) as usize,
            backing_file: None,
            connect_timeout: or_seconds(proxy.timeouts.connect, 1),
            server_timeout: or_seconds(proxy.timeouts.server, 5),
            servers: vec![RingServer {
                name: written.name.value.as_str().into(),
                address,
                protocol: written.log.protocol,
                tls: tls.map(|tls| self.fixed(tls)),
            }],
            name,
        })))
    }

    /// Compiles the converters of `balance log-hash`.
    pub(super) fn log_key(&mut self, spec: &Spec, index: usize, written: &ProxySpec) -> Option<Conversion> {
        let BalanceSpec::LogHash(converters) = &written.balance else { return None };
        match Conversion::parse(&converters.value, Type::Str, EvalPlace::Log, &self.names(spec, Some(index))) {
            Ok(conversion) => Some(conversion),
            Err(error) => {
                let message = format!(
                    "log backend '{}': failed to initialize: {} (from converter list argument in \"balance log-hash\").",
                    written.name.value, error.message
                );
                self.alert_with_hint(converters.span, Form::Bare, message, error.hint);
                None
            }
        }
    }

    pub(super) fn rings(&mut self, spec: &Spec) {
        for (name, description) in [(EVENTS, "in-memory ring buffer"), (PROVISIONING, "DPAPI ring buffer")] {
            self.rings.push(Ring {
                name: name.into(),
                description: description.into(),
                format: Some(SyslogFormat::Timed),
                maxlen: u16::MAX.into(),
                size: EVENTS_SIZE,
                backing_file: None,
                connect_timeout: Duration::from_secs(1),
                server_timeout: Duration::from_secs(5),
                servers: Vec::new(),
            });
        }
        for ring in &spec.sections.rings {
            let size = ring.size.or(spec.global.tune.bufsize).unwrap_or(RING_SIZE);
            let maxlen = self.longest_line(ring, size);
            let servers = ring.servers.iter().filter_map(|server| {
                let name = server.name.value.as_str();
                let mut ready = self.ring_server(&ring.name, name, &server.address, server.protocol)?;
                let head = format!("'server {}/{name}' : ", ring.name);
                ready.tls = self.link_tls(server.tls.as_deref(), &ring.name, name, server.span, spec, &head);
                Some(ready)
            });
            let servers = servers.collect();
            self.rings.push(Ring {
                name: ring.name.as_str().into(),
                description: ring.description.as_deref().unwrap_or(&ring.name).into(),
                // As in HAProxy 3.5; its manual states this for two formats.
                format: Some(ring.format.unwrap_or(SyslogFormat::Raw)),
                maxlen: maxlen as usize,
                size: size as usize,
                backing_file: ring.backing_file.as_deref().map(Into::into),
                connect_timeout: Duration::from_millis(ring.timeout_connect),
                server_timeout: Duration::from_millis(ring.timeout_server),
                servers,
            });
        }
    }

    /// Returns `maxlen`, reduced if no line of that length fits into the ring: its overhead is 194 bytes, plus one to
    /// three for the length of a line.
    fn longest_line(&mut self, ring: &RingSpec, size: u32) -> u32 {
        let payload = match size.saturating_sub(194) {
            room @ 0..=240 => room.saturating_sub(1),
            room @ 241..=2_289 => room - 2,
            room => room - 3,
        };
        if ring.maxlen == DEFAULT_MAXLEN || ring.maxlen <= payload {
            return ring.maxlen;
        }
        let message = format!(
            "ring '{}' event max length '{}' exceeds max payload size, forced to '{payload}'.",
            ring.name, ring.maxlen
        );
        self.warn(Diagnostic::warning(ring.span, message).with_form(Form::Config));
        payload
    }

    fn ring_server(
        &mut self,
        ring: &str,
        name: &str,
        address: &Spanned<AddressSpec>,
        protocol: LogProtocol,
    ) -> Option<RingServer> {
        let failed = match self.log_address(&address.value) {
            Ok(LogAddress::Inet(address)) => {
                return Some(RingServer { name: name.into(), address, protocol, tls: None });
            }
            Ok(_) => "log server address family not supported for log backend server.".to_owned(),
            Err(host) => {
                format!("'server {ring}/{name}' : invalid address: '{host}' in '{}'", address::written(&address.value))
            }
        };
        self.alert(address.span, Form::Placed, failed);
        None
    }

    pub(super) fn log_lines(&mut self, spec: &Spec, index: usize, written: &ProxySpec) -> LogLines {
        let lines = &written.log_lines;
        let names = &self.names(spec, Some(index));
        let format = match &written.log_format {
            LogFormatSpec::Custom(text) => self.format("log-format", text, names),
            LogFormatSpec::Https if written.mode == Mode::Http && speaks_tls(written) => {
                LogFormat::for_log(LogFormat::HTTPS, names).ok()
            }
            _ => None,
        };
        LogLines {
            format: format.unwrap_or_else(|| LogFormat::predefined(&written.log_format, written.mode)),
            error: lines.error.as_ref().and_then(|text| self.format("error-log-format", text, names)),
            structured_data: lines.structured_data.as_ref().and_then(|text| self.format("log-format-sd", text, names)),
            // `option logasap` also sets the time of logging, and takes precedence.
            steps: lines.steps.filter(|_| !lines.as_soon_as_possible),
            dontlog_normal: lines.dontlog_normal,
            separate_errors: lines.separate_errors,
            as_soon_as_possible: lines.as_soon_as_possible,
        }
    }

    /// Returns the profile of a `log` line. HAProxy silently ignores an unknown one.
    fn profile(&mut self, written: &LogSpec, spec: &Spec) -> Option<usize> {
        let wanted = written.profile.as_ref()?;
        let found = self.shared.indexes.log_profile(spec, &wanted.value);
        let said = |out: &[Diagnostic]| out.iter().any(|known| known.span == Some(wanted.span));
        if found.is_none() && !said(self.out) {
            let message = format!("log : there is no log-profile '{}', lines stay as they are.", wanted.value);
            self.out.push(Diagnostic::warning(wanted.span, message));
        }
        found
    }

    /// Compiles the `log-profile` sections.
    pub(super) fn profiles(&mut self, spec: &Spec) -> Box<[LogProfile]> {
        let names = &self.names(spec, None);
        let mut profiles = Vec::new();
        for written in &spec.sections.log_profiles {
            let mut steps = [const { None }; LogStep::COUNT];
            for step in &written.steps {
                let format = step.format.as_ref().and_then(|text| self.profile_format(text, names));
                let data = step.structured_data.as_ref().and_then(|text| self.profile_format(text, names));
                steps[step.step as usize] = Some(ProfileStep { drop: step.drop, format, structured_data: data });
            }
            let tag = written.tag.as_deref().map(Into::into);
            profiles.push(LogProfile { name: written.name.as_str().into(), tag, steps });
        }
        profiles.into()
    }

    fn profile_format(&mut self, text: &Spanned<String>, names: &SpecNames<'_>) -> Option<LogFormat> {
        match LogFormat::for_log(&text.value, names) {
            Ok(format) => Some(format),
            Err(error) => {
                let message = format!("failed to parse logformat: {error}.");
                self.alert_with_hint(text.span, Form::LateParsing, message, error.hint());
                None
            }
        }
    }

    /// Compiles `unique-id-format`. That of a backend is only for checks.
    pub(super) fn unique_id(&mut self, spec: &Spec, index: usize, written: &ProxySpec) -> Option<UniqueId> {
        let text = written.log_lines.unique_id.as_ref()?;
        let place = match written.kind {
            ProxyKind::Backend | ProxyKind::Listen => EvalPlace::BackRequestHead,
            ProxyKind::Frontend => EvalPlace::FrontRequestHead,
        };
        let names = &self.names(spec, Some(index));
        match LogFormat::for_rule(&text.value, Purpose::Identifier, place, names) {
            Ok(format) => {
                let name = written.log_lines.unique_id_header.as_deref();
                Some(UniqueId { format, header: name.map(|name| name.to_ascii_lowercase().into_bytes().into()) })
            }
            Err(error) => {
                let message = format!("failed to parse unique-id : {error}.");
                self.alert_with_hint(text.span, Form::LateParsing, message, error.hint());
                None
            }
        }
    }

    /// Compiles the format of a keyword. `None` if errors were reported.
    pub(super) fn format(&mut self, keyword: &str, text: &Spanned<String>, names: &SpecNames<'_>) -> Option<LogFormat> {
        let mut left = text.value.clone();
        for round in 0..MOST_ERRORS {
            let error = match LogFormat::for_log(&left, names) {
                Ok(format) => return Some(format).filter(|_| round == 0),
                Err(error) => error,
            };
            let message = format!("failed to parse {keyword} : {error}.");
            let item = error.item();
            self.alert_with_hint(within(text, &item), Form::LateParsing, message, error.hint());
            // The rest is parsed without the invalid item.
            let blank = " ".repeat(item.len());
            left.replace_range(item, &blank);
        }
        None
    }
}

/// Whether clients may connect over TLS.
fn speaks_tls(written: &ProxySpec) -> bool {
    written.binds.iter().any(|bind| bind.tls.as_ref().is_some_and(|tls| tls.ssl))
}

/// Maximum number of reported errors per format.
const MOST_ERRORS: usize = 16;

/// Returns the location of a part of a text, if the text is written verbatim or between quotes.
fn within(text: &Spanned<String>, part: &Range<usize>) -> Span {
    let (Ok(length), whole) = (u32::try_from(text.value.len()), text.span) else { return text.span };
    let quote = match (whole.end - whole.start).checked_sub(length) {
        Some(0) => 0,
        Some(2) => 1,
        _ => return whole,
    };
    let at = |offset: usize| whole.start + quote + u32::try_from(offset).unwrap_or(0);
    Span { start: at(part.start), end: at(part.end), ..whole }
}

/// Returns the default format. The manual: "local" is the default, and log-send-hostname switches the default to
/// rfc3164.
fn default_format(global: &GlobalSpec) -> SyslogFormat {
    if global.log_send_hostname.is_some() { SyslogFormat::Rfc3164 } else { SyslogFormat::Local }
}
