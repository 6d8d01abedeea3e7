//! The samples of one metric for one object: labels and values. Must never choose a metric.

use std::borrow::Cow;
use std::fmt::{self, Write};

use live::Checker;
use live::health::CheckStatus;

use super::metric::{Check, Shape};
use crate::field::Value;
use crate::statistics::{Column, Kind, Object};

/// States of a server (`state`).
const SERVER: &[&str] = &["DOWN", "UP", "MAINT", "DRAIN", "NOLB"];
/// States of a frontend or a backend.
const PROXY: &[&str] = &["DOWN", "UP"];
/// States of a listener.
const LISTENER: &[&str] = &["WAITING", "OPEN", "FULL"];

/// Check results that have a sample.
const RESULTS: [CheckStatus; 16] = [
    CheckStatus::Analyzed,
    CheckStatus::SocketError,
    CheckStatus::L4Ok,
    CheckStatus::L4Timeout,
    CheckStatus::L4Connection,
    CheckStatus::L6Ok,
    CheckStatus::L6Timeout,
    CheckStatus::L6Response,
    CheckStatus::L7Timeout,
    CheckStatus::L7Response,
    CheckStatus::L7Ok,
    CheckStatus::L7Conditional,
    CheckStatus::L7Status,
    CheckStatus::ProgramError,
    CheckStatus::ProgramTimeout,
    CheckStatus::ProgramOk,
];

impl Check {
    const fn checker(self) -> Checker {
        match self {
            Self::Health => Checker::Health,
            Self::Agent => Checker::Agent,
        }
    }
}

/// A metric of an object.
pub(super) struct Samples<'a> {
    pub(super) object: &'a Object<'a>,
    pub(super) column: &'a Column,
    /// The full name of the metric.
    pub(super) name: &'a str,
    /// The cached output of [`labels_of`] for the object.
    pub(super) labels: Option<&'a str>,
    /// Whether the section's description is a label.
    pub(super) descriptions: bool,
}

impl Samples<'_> {
    /// Writes the samples. False: the object has none.
    pub(super) fn write(&self, shape: Shape, out: &mut String) -> bool {
        match shape {
            Shape::Http if !self.object.is_http() => return false,
            Shape::Number | Shape::Http => self.sample(out, None, &sample_value(&self.column.of(self.object))),
            Shape::Class(code) => {
                if !self.object.is_http() {
                    return false;
                }
                self.sample(out, Some(("code", code)), &sample_value(&self.column.of(self.object)));
            }
            Shape::Seconds => self.sample(out, None, &SampleValue::Seconds(whole(&self.column.of(self.object)))),
            Shape::Code(check) => {
                if self.result(check).is_none() {
                    return false;
                }
                self.sample(out, None, &SampleValue::Count(whole(&self.column.of(self.object))));
            }
            Shape::Duration(check) => {
                let health = self.object.checks(check.checker());
                let Some(last) = health.as_ref().map(|health| health.last()).filter(|last| has_ended(last.status))
                else {
                    return false;
                };
                self.sample(out, None, &SampleValue::Seconds(u64::try_from(last.took.as_millis()).unwrap_or(u64::MAX)));
            }
            Shape::Status => self.status(out),
            Shape::Result(check) => {
                let Some(result) = self.result(check) else { return false };
                RESULTS.iter().for_each(|one| self.count(out, one.name(), u64::from(*one == result)));
            }
            Shape::Servers => return self.servers(out),
            Shape::Results => return self.results(out),
        }
        true
    }

    /// Writes a counter of a protocol. False: the object has none.
    pub(super) fn write_module(&self, out: &mut String) -> bool {
        let value = self.column.of(self.object);
        if value == Value::None {
            return false;
        }
        let module = match self.column.field.name.split('_').next().unwrap_or_default() {
            // Two of the names, one of them misspelt, of counters of HTTP/3.
            "qpack" | "pack" => "h3",
            module => module,
        };
        self.labelled(out, Some(module), None, &sample_value(&value));
        true
    }

    /// Returns the result of the last check of a server, if the check is enabled and applies.
    fn result(&self, check: Check) -> Option<CheckStatus> {
        let health = self.object.checks(check.checker()).filter(|health| health.is_enabled())?;
        let hidden = check == Check::Health && self.object.is_in_maintenance();
        (!hidden).then(|| health.last().status)
    }

    fn status(&self, out: &mut String) {
        let status = self.object.status();
        let (states, state) = match self.object.kind {
            Kind::Listener(_) => (LISTENER, &*status),
            // A paused frontend counts as up.
            Kind::Frontend => (PROXY, if status == "STOP" { "DOWN" } else { "UP" }),
            Kind::Backend => (PROXY, if status.starts_with("UP") { "UP" } else { "DOWN" }),
            Kind::Server(_) => (SERVER, state_of(&status)),
        };
        states.iter().for_each(|one| self.count(out, one, u64::from(*one == state)));
    }

    fn servers(&self, out: &mut String) -> bool {
        let states: Vec<String> = self.object.servers_of_backend().map(|server| server.status()).collect();
        for state in SERVER {
            let count = states.iter().filter(|one| state_of(one) == *state).count();
            self.count_if(!states.is_empty(), out, state, count as u64);
        }
        !states.is_empty()
    }

    fn results(&self, out: &mut String) -> bool {
        let servers: Vec<Option<CheckStatus>> = self
            .object
            .servers_of_backend()
            .map(|server| Samples { object: &server, labels: None, ..*self }.result(Check::Health))
            .collect();
        for result in RESULTS {
            let count = servers.iter().filter(|one| **one == Some(result)).count();
            self.count_if(!servers.is_empty(), out, result.name(), count as u64);
        }
        !servers.is_empty()
    }

    fn count_if(&self, has: bool, out: &mut String, state: &str, count: u64) {
        if has {
            self.count(out, state, count);
        }
    }

    fn count(&self, out: &mut String, state: &str, count: u64) {
        self.sample(out, Some(("state", state)), &SampleValue::Count(count));
    }

    fn sample(&self, out: &mut String, more: Option<(&str, &str)>, value: &SampleValue) {
        self.labelled(out, None, more, value);
    }

    /// Avoids formatting macros: most of the time of a scrape with many servers is spent here.
    fn labelled(&self, out: &mut String, module: Option<&str>, more: Option<(&str, &str)>, value: &SampleValue) {
        if let (Some(labels), Kind::Server(_)) = (self.labels, self.object.kind) {
            out.push_str(self.name);
            out.push_str(labels);
            let module = module.map(|module| ("mod", module));
            return end(out, module.into_iter().chain(more), value);
        }
        let name = self.object.name();
        let own = match self.object.kind {
            Kind::Frontend | Kind::Backend => None,
            Kind::Listener(_) => Some(("listener", &*name)),
            Kind::Server(_) => Some(("server", &*name)),
        };
        let module = module.map(|module| ("mod", module));
        let (before, after) = if own.is_none() { (module, None) } else { (None, module) };
        let description = self.object.proxy.description.as_deref().filter(|_| self.descriptions);
        let description = description.map(|text| ("desc", text));
        out.push_str(self.name);
        out.push_str("{proxy=\"");
        push_escaped(out, &self.object.proxy.name);
        end(out, [before, description, own, after, more].into_iter().flatten(), value);
    }
}

/// Writes the start of all samples of a server after the metric's name: its labels without the last quote.
pub(super) fn labels_of(object: &Object<'_>, descriptions: bool, out: &mut String) {
    out.push_str("{proxy=\"");
    push_escaped(out, &object.proxy.name);
    if let Some(text) = object.proxy.description.as_deref().filter(|_| descriptions) {
        out.push_str("\",desc=\"");
        push_escaped(out, text);
    }
    out.push_str("\",server=\"");
    push_escaped(out, &object.name());
}

/// Writes the rest of a sample: more labels, and the value.
fn end<'t>(out: &mut String, labels: impl Iterator<Item = (&'t str, &'t str)>, value: &SampleValue) {
    for (label, text) in labels {
        out.push_str("\",");
        out.push_str(label);
        out.push_str("=\"");
        push_escaped(out, text);
    }
    out.push_str("\"} ");
    value.push(out);
    out.push('\n');
}

/// Whether a check has completed.
fn has_ended(status: CheckStatus) -> bool {
    !matches!(status, CheckStatus::Unknown | CheckStatus::Initializing)
}

/// Returns the state at the start of a server's status text.
fn state_of(status: &str) -> &'static str {
    match status.split([' ', '(']).next() {
        Some("UP" | "no") => "UP",
        Some("MAINT") => "MAINT",
        Some("DRAIN") => "DRAIN",
        Some("NOLB") => "NOLB",
        _ => "DOWN",
    }
}

/// Formats a value as the text format requires.
pub(super) fn number(value: &Value) -> String {
    let mut text = String::new();
    sample_value(value).push(&mut text);
    text
}

/// A value to be formatted.
enum SampleValue {
    Count(u64),
    /// Milliseconds, shown as seconds.
    Seconds(u64),
    Text(Cow<'static, str>),
}

fn sample_value(value: &Value) -> SampleValue {
    match value {
        Value::None | Value::Text(_) => SampleValue::Text("NaN".into()),
        Value::U32(number) => SampleValue::Count(u64::from(*number)),
        Value::U64(number) => SampleValue::Count(*number),
        Value::S32(number) => {
            u64::try_from(*number).map_or_else(|_| SampleValue::Text(number.to_string().into()), SampleValue::Count)
        }
        Value::Float(number) => SampleValue::Text(format!("{number:.6}").into()),
    }
}

impl SampleValue {
    fn push(&self, out: &mut String) {
        match self {
            Self::Count(number) => push_digits(out, *number),
            Self::Seconds(milliseconds) => {
                push_digits(out, milliseconds / 1000);
                out.push('.');
                for unit in [100, 10, 1] {
                    push_digits(out, milliseconds / unit % 10);
                }
                out.push_str("000");
            }
            Self::Text(text) => out.push_str(text),
        }
    }
}

/// Several times as fast as formatting macros.
fn push_digits(out: &mut String, number: u64) {
    let (mut digits, mut at, mut rest) = ([0_u8; 20], 20, number);
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.push_str(std::str::from_utf8(&digits[at..]).unwrap_or_default());
}

/// Returns an unsigned value; 0 for anything else.
fn whole(value: &Value) -> u64 {
    match value {
        Value::U32(number) => u64::from(*number),
        Value::U64(number) => *number,
        _ => 0,
    }
}

/// Writes the value of a label: quotes, backslashes and line feeds are escaped.
pub(super) fn escape(out: &mut impl Write, text: &str) -> fmt::Result {
    let mut rest = text;
    // All three are ASCII, so each split is at a character boundary.
    while let Some(at) = memchr::memchr3(b'"', b'\\', b'\n', rest.as_bytes()) {
        let (plain, special) = rest.split_at(at);
        out.write_str(plain)?;
        out.write_str(match special.as_bytes().first() {
            Some(b'"') => "\\\"",
            Some(b'\\') => "\\\\",
            _ => "\\n",
        })?;
        rest = special.get(1..).unwrap_or_default();
    }
    out.write_str(rest)
}

fn push_escaped(out: &mut String, text: &str) {
    // Writing to a string never fails.
    let _ = escape(out, text);
}

#[cfg(test)]
mod tests {
    use super::super::lines::Labels;
    use super::*;

    #[test]
    fn values_are_written_as_the_text_format_has_them() {
        for (value, wanted) in [
            (Value::None, "NaN"),
            (Value::U32(7), "7"),
            (Value::S32(-1), "-1"),
            (Value::U64(u64::MAX), "18446744073709551615"),
            (Value::Float(1.5), "1.500000"),
        ] {
            assert_eq!(number(&value), wanted);
        }
        for (milliseconds, wanted) in [(0, "0.000000"), (61_005, "61.005000"), (999, "0.999000"), (1_250, "1.250000")] {
            let mut text = String::new();
            SampleValue::Seconds(milliseconds).push(&mut text);
            assert_eq!(text, wanted);
        }
        let labels = [("a", "b \"c\"\\\nd"), ("e", "")];
        assert_eq!(format!("x{}", Labels(&labels)), "x{a=\"b \\\"c\\\"\\\\\\nd\",e=\"\"}");
        assert_eq!(Labels(&[]).to_string(), "");
    }

    #[test]
    fn the_status_of_a_server_names_its_state() {
        for (status, state) in [
            ("UP", "UP"),
            ("UP 1/3", "UP"),
            ("no check", "UP"),
            ("DOWN (agent)", "DOWN"),
            ("EJECTED", "DOWN"),
            ("MAINT (via b/s1)", "MAINT"),
            ("DRAIN (agent)", "DRAIN"),
            ("NOLB 1/2", "NOLB"),
        ] {
            assert_eq!(state_of(status), state, "{status}");
        }
    }
}
