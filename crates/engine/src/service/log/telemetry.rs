//! Log lines for a collector (`log otel@`): each becomes an OpenTelemetry log record. Must never wait.

use std::sync::{Arc, Mutex, PoisonError};

use wire::otlp::{LogRecord, SpanContext, Value};

use super::lines::Lines;
use crate::telemetry::Channel;

/// Fields of a line's record other than its text.
#[derive(Clone, Copy)]
pub(super) struct RecordHead<'a> {
    /// Nanoseconds since the UNIX epoch.
    pub(super) time: u64,
    /// Syslog severity: 0 is the most severe.
    pub(super) severity: u8,
    pub(super) facility: u8,
    pub(super) tag: &'a [u8],
    pub(super) structured_data: &'a [u8],
    /// Span of the line's stream, if it is traced.
    pub(super) span: Option<SpanContext>,
}

impl RecordHead<'_> {
    /// Encodes a line.
    pub(super) fn write(&self, text: &[u8], out: &mut Vec<u8>) {
        let (severity, severity_text) = severity(self.severity);
        let record =
            LogRecord { time: self.time, severity, severity_text, event: "", body: Value::Text(text), span: self.span };
        let facility = Some(("syslog.facility.code", Value::Int(self.facility.into())));
        let tag = (!self.tag.is_empty()).then_some(("syslog.appname", Value::Text(self.tag)));
        let data =
            (!self.structured_data.is_empty()).then_some(("syslog.structured_data", Value::Text(self.structured_data)));
        record.write(out, [facility, tag, data].into_iter().flatten());
    }
}

/// Returns OpenTelemetry's number and name of a severity (its data model of logs, appendix B).
fn severity(syslog: u8) -> (u8, &'static str) {
    match syslog {
        0 => (21, "emerg"),
        1 => (19, "alert"),
        2 => (18, "crit"),
        3 => (17, "err"),
        4 => (13, "warning"),
        5 => (10, "notice"),
        6 => (9, "info"),
        _ => (5, "debug"),
    }
}

/// The channel of the newest configuration, for lines of all generations.
#[derive(Default)]
pub(super) struct LogChannel(Mutex<Option<Arc<Channel>>>);

impl std::fmt::Debug for LogChannel {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("LogChannel")
    }
}

impl LogChannel {
    pub(super) fn set(&self, channel: Option<Arc<Channel>>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = channel;
    }

    /// Passes encoded records to the channel; returns their number. Records that the channel drops are counted there.
    pub(super) fn push(&self, worker: usize, records: &Lines) -> usize {
        let channel = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(channel) = channel else { return 0 };
        records.iter().for_each(|record| channel.push(worker, record.to_vec()));
        records.count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn severities_grow_as_those_of_syslog_fall() {
        let numbers: Vec<u8> = (0..8).map(|syslog| severity(syslog).0).collect();
        assert_eq!(numbers, [21, 19, 18, 17, 13, 10, 9, 5]);
        for (syslog, (name, level)) in config::spec::LogLevel::NAMES.iter().enumerate() {
            assert_eq!(severity(*level as u8).1, *name);
            assert_eq!(usize::from(*level as u8), syslog);
        }
    }
}
