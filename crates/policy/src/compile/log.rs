//! `log` lines.

use super::{Compiler, address};
use crate::program::{LogAddress, LogTarget, Sample};
use config::diagnostic::Form;
use config::spec::{GlobalSpec, LogLevel, LogSpec, LogTargetSpec, SyslogFormat};

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
        };
        // The manual: "local" is the default, and log-send-hostname switches the default to rfc3164.
        let by_default = if global.log_send_hostname.is_some() { SyslogFormat::Rfc3164 } else { SyslogFormat::Local };
        Some(LogTarget {
            address,
            length: written.length as usize,
            format: written.format.unwrap_or(by_default),
            sample: written.sample.as_ref().map(|(ranges, size)| Sample { ranges: ranges.clone(), size: *size }),
            facility: written.facility,
            max_level: written.max_level,
            min_level: written.min_level.unwrap_or(LogLevel::Emerg),
        })
    }
}
