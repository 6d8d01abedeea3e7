//! `log` lines, what lines look like, and the rings they go to.

use super::{Compiler, address};
use crate::log_format::LogFormat;
use crate::program::{LogAddress, LogLines, LogTarget, Ring, RingServer, Sample};
use config::diagnostic::Form;
use config::span::Spanned;
use config::spec::{
    AddressSpec, GlobalSpec, LogFormatSpec, LogLevel, LogProtocol, LogSpec, LogTargetSpec, ProxySpec, RingSpec,
    SyslogFormat,
};
use std::time::Duration;

/// Bytes of a ring unless `size` is written: HAProxy's BUFSIZE.
const RING_SIZE: u32 = 16_384;

impl Compiler<'_> {
    pub(super) fn logs(&mut self, written: &[LogSpec], global: &GlobalSpec) -> Vec<LogTarget> {
        written.iter().filter_map(|log| self.log(log, global)).collect()
    }

    fn log(&mut self, written: &LogSpec, global: &GlobalSpec) -> Option<LogTarget> {
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
            // The language has refused rings that do not exist.
            LogTargetSpec::Ring(name) => {
                LogAddress::Ring(self.rings.iter().position(|ring| *ring.name == *name.value)?)
            }
            LogTargetSpec::Stream(address) => self.stream_target(address, written)?,
        };
        let format = match &address {
            LogAddress::Ring(index) => self.rings.get(*index).and_then(|ring| ring.format),
            _ => None,
        };
        Some(LogTarget {
            address,
            length: written.length as usize,
            format: format.or(written.format).unwrap_or_else(|| default_format(global)),
            sample: written.sample.as_ref().map(|(ranges, size)| Sample { ranges: ranges.clone(), size: *size }),
            facility: written.facility,
            max_level: written.max_level,
            min_level: written.min_level.unwrap_or(LogLevel::Emerg),
        })
    }

    /// The ring behind `log tcp@…`, one for each address.
    fn stream_target(&mut self, address: &AddressSpec, written: &LogSpec) -> Option<LogAddress> {
        let server = self.ring_server("", "", &Spanned::new(address.clone(), written.span), LogProtocol::Legacy)?;
        let known = self.rings.iter().position(|ring| {
            ring.name.is_empty() && ring.servers.first().is_some_and(|known| known.address == server.address)
        });
        let index = known.unwrap_or(self.rings.len());
        if known.is_none() {
            self.rings.push(Ring {
                name: "".into(),
                format: None,
                maxlen: u16::MAX.into(),
                size: RING_SIZE as usize,
                connect_timeout: Duration::from_secs(1),
                server_timeout: Duration::from_secs(5),
                servers: vec![server],
            });
        }
        Some(LogAddress::Ring(index))
    }

    pub(super) fn rings(&mut self, written: &[RingSpec], global: &GlobalSpec) {
        for ring in written {
            let servers = ring
                .servers
                .iter()
                .filter_map(|server| self.ring_server(&ring.name, &server.name.value, &server.address, server.protocol))
                .collect();
            self.rings.push(Ring {
                name: ring.name.as_str().into(),
                format: Some(ring.format.unwrap_or_else(|| default_format(global))),
                maxlen: ring.maxlen as usize,
                size: ring.size.or(global.tune.bufsize).unwrap_or(RING_SIZE) as usize,
                connect_timeout: Duration::from_millis(ring.timeout_connect),
                server_timeout: Duration::from_millis(ring.timeout_server),
                servers,
            });
        }
    }

    fn ring_server(
        &mut self,
        ring: &str,
        name: &str,
        address: &Spanned<AddressSpec>,
        protocol: LogProtocol,
    ) -> Option<RingServer> {
        let failed = match self.log_address(&address.value) {
            Ok(LogAddress::Inet(address)) => return Some(RingServer { name: name.into(), address, protocol }),
            Ok(_) => "log server address family not supported for log backend server.".to_owned(),
            Err(host) => {
                format!("'server {ring}/{name}' : invalid address: '{host}' in '{}'", address::written(&address.value))
            }
        };
        self.alert(address.span, Form::Parsing, failed);
        None
    }

    pub(super) fn log_lines(&mut self, written: &ProxySpec) -> LogLines {
        let lines = &written.log_lines;
        let format = match &written.log_format {
            LogFormatSpec::Custom(text) => self.format("log-format", text),
            _ => None,
        };
        LogLines {
            format: format.unwrap_or_else(|| LogFormat::predefined(&written.log_format, written.mode)),
            error: lines.error.as_ref().and_then(|text| self.format("error-log-format", text)),
            structured_data: lines.structured_data.as_ref().and_then(|text| self.format("log-format-sd", text)),
            dontlog_normal: lines.dontlog_normal,
            separate_errors: lines.separate_errors,
            as_soon_as_possible: lines.as_soon_as_possible,
        }
    }

    /// Compiles the format that a keyword takes. `None`: it is wrong, which has been said.
    fn format(&mut self, keyword: &str, text: &Spanned<String>) -> Option<LogFormat> {
        match LogFormat::compile(&text.value) {
            Ok(format) => Some(format),
            Err(error) => {
                let message = format!("failed to parse {keyword} : {error}.");
                self.alert_with_hint(text.span, Form::LateParsing, message, error.hint());
                None
            }
        }
    }
}

/// The manual: "local" is the default, and log-send-hostname switches the default to rfc3164.
fn default_format(global: &GlobalSpec) -> SyslogFormat {
    if global.log_send_hostname.is_some() { SyslogFormat::Rfc3164 } else { SyslogFormat::Local }
}
