//! Parser of the `log` line of `global` and of proxies (configuration manual, section 4.2 "log"). Must never open the
//! target.

use super::report::Report;
use crate::address::{self, AddressRules};
use crate::diagnostic::Diagnostic;
use crate::document::{Line, Word};
use crate::environment::Environment;
use crate::span::{Span, Spanned};
use crate::spec::{AddressSpec, LogLevel, LogSpec, LogTargetSpec, SocketKind, SyslogFormat};
use std::collections::VecDeque;

/// Meaning of a `log` line.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Entry {
    /// `log global`.
    Global(Span),
    /// A target defined by the line itself.
    Own(Box<LogSpec>),
    /// `no log`.
    Clear,
}

impl Entry {
    /// Whether it is `log global`.
    pub(crate) fn is_global(&self) -> bool {
        matches!(self, Self::Global(_))
    }
}

/// Context of a `log` line.
pub(crate) struct Asker<'a> {
    /// The line is in `global`, where `log global` is an error.
    pub(crate) global: bool,
    /// The section, for messages.
    pub(crate) place: &'a str,
    pub(crate) environment: &'a Environment,
    /// The line is preceded by `no`.
    pub(crate) negated: bool,
}

const FACILITIES: &[&str] = &[
    "kern", "user", "mail", "daemon", "auth", "syslog", "lpr", "news", "uucp", "cron", "auth2", "ftp", "ntp", "audit",
    "alert", "cron2", "local0", "local1", "local2", "local3", "local4", "local5", "local6", "local7",
];

const LEVELS: &[(&str, LogLevel)] = LogLevel::NAMES;

const FORMATS: &[(&str, SyslogFormat)] = &[
    ("local", SyslogFormat::Local),
    ("rfc3164", SyslogFormat::Rfc3164),
    ("rfc5424", SyslogFormat::Rfc5424),
    ("priority", SyslogFormat::Priority),
    ("short", SyslogFormat::Short),
    ("timed", SyslogFormat::Timed),
    ("iso", SyslogFormat::Iso),
    ("raw", SyslogFormat::Raw),
];

/// Returns the format with that name.
pub(crate) fn syslog_format(name: &str) -> Option<SyslogFormat> {
    FORMATS.iter().find(|row| row.0 == name).map(|row| row.1)
}

/// Returns the most similar name of a format.
pub(crate) fn nearest_format(name: &str) -> Option<&'static str> {
    crate::suggest::nearest(name, FORMATS.iter().map(|row| row.0))
}

/// Whether log lines can be sent to such an address over a connection.
pub(crate) fn can_take_lines(address: &AddressSpec) -> bool {
    matches!(address, AddressSpec::Inet { .. })
}

/// Default of `len`, in bytes.
const DEFAULT_LENGTH: u32 = 1024;

/// Parses the line after an optional `no`. Returns `None` after an error, which has been reported.
pub(crate) fn read(line: &Line, asker: &Asker<'_>, report: &mut Report<'_>) -> Option<Entry> {
    if asker.negated {
        if let Some(word) = line.words.get(1) {
            report.alert(word.span, "log : 'no log' does not expect arguments");
            return None;
        }
        return Some(Entry::Clear);
    }
    if line.words.len() == 2 && line.text(1) == "global" {
        if asker.global {
            report.alert(line.span(1), "log : 'global' is not supported for a global syslog server");
            return None;
        }
        return Some(Entry::Global(line.whole()));
    }
    if line.words.len() < 3 {
        let or_global = if asker.global { " " } else { " or global" };
        report.alert(
            line.span(line.words.len()),
            format!("log : expects <address> and <facility>{or_global} as arguments"),
        );
        return None;
    }
    let mut words: VecDeque<&Word> = line.arguments().iter().collect();
    let target = read_target(words.pop_front()?, asker, report)?;
    let mut log = LogSpec {
        span: line.whole(),
        target,
        length: DEFAULT_LENGTH,
        format: None,
        sample: None,
        profile: None,
        facility: 0,
        max_level: LogLevel::Debug,
        min_level: None,
    };
    read_options(&mut words, line, &mut log, report)?;
    read_levels(&mut words, line, &mut log, report)?;
    Some(Entry::Own(Box::new(log)))
}

fn read_target(word: &Word, asker: &Asker<'_>, report: &mut Report<'_>) -> Option<LogTargetSpec> {
    match word.text.as_str() {
        "stdout" => return Some(LogTargetSpec::Descriptor(1)),
        "stderr" => return Some(LogTargetSpec::Descriptor(2)),
        "otel@" => return Some(LogTargetSpec::Telemetry),
        _ => {}
    }
    if let Some(name) = word.text.strip_prefix("backend@") {
        return Some(LogTargetSpec::Backend(Spanned::new(name.to_owned(), word.span)));
    }
    if let Some(name) = word.text.strip_prefix("ring@") {
        return Some(LogTargetSpec::Ring(Spanned::new(name.to_owned(), word.span)));
    }
    match address::parse(&word.text, &AddressRules::LOG, asker.environment) {
        Ok(AddressSpec::Descriptor { fd, .. }) => Some(LogTargetSpec::Descriptor(fd)),
        Ok(spec) if stream(&spec) && can_take_lines(&spec) => Some(LogTargetSpec::Stream(spec)),
        Ok(spec) if stream(&spec) => {
            report.not_yet(word.span, &format!("log {}", word.text), asker.place);
            None
        }
        Ok(spec) => Some(LogTargetSpec::Address(spec)),
        Err(error) => {
            let mut diagnostic = Diagnostic::alert(word.span, format!("log : {error}"));
            diagnostic.hint = error.hint().map(str::to_owned);
            report.push(diagnostic);
            None
        }
    }
}

fn stream(spec: &AddressSpec) -> bool {
    match spec {
        AddressSpec::Inet { kind, .. } | AddressSpec::Unix { kind, .. } | AddressSpec::Abstract { kind, .. } => {
            *kind == SocketKind::Stream
        }
        AddressSpec::Descriptor { .. } | AddressSpec::Reverse { .. } => false,
    }
}

/// Returns the word after an option's name.
fn value<'a>(words: &mut VecDeque<&'a Word>) -> Option<&'a Word> {
    words.pop_front();
    words.pop_front()
}

/// Parses `len`, `format`, `sample` and `profile`, in this order.
fn read_options(words: &mut VecDeque<&Word>, line: &Line, log: &mut LogSpec, report: &mut Report<'_>) -> Option<()> {
    let next = |words: &VecDeque<&Word>, name: &str| words.front().is_some_and(|word| word.text == name);
    let end = line.span(line.words.len());
    if next(words, "len") {
        let word = value(words);
        let text = word.map_or("", |word| &word.text);
        let (length, _) = super::argument::leading_number(text);
        let Some(length) = u32::try_from(length).ok().filter(|length| (80..=65535).contains(length)) else {
            let message = format!("log : invalid log length '{text}', must be between 80 and 65535");
            report.alert(word.map_or(end, |word| word.span), message);
            return None;
        };
        log.length = length;
    }
    if next(words, "format") {
        let word = value(words);
        let text = word.map_or("", |word| &word.text);
        let Some(format) = syslog_format(text) else {
            let known = nearest_format(text);
            let mut diagnostic =
                Diagnostic::alert(word.map_or(end, |word| word.span), format!("log : unknown log format '{text}'"));
            diagnostic.hint = known.map(|known| format!("write '{known}'"));
            report.push(diagnostic);
            return None;
        };
        log.format = Some(format);
    }
    if next(words, "sample") {
        let word = value(words);
        match read_sample(word.map_or("", |word| &word.text)) {
            Ok(sample) => log.sample = Some(sample),
            Err(message) => {
                report.alert(word.map_or(end, |word| word.span), format!("log : {message}"));
                return None;
            }
        }
    }
    if next(words, "profile") {
        log.profile = value(words).map(|word| Spanned::new(word.text.clone(), word.span));
    }
    Some(())
}

type Sample = (Vec<(u32, u32)>, u32);

/// Parses a number above 0 that consists of digits only.
fn positive(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number| *number > 0 && text.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Parses `1-2,5:10`: the selected lines of each group, and the size of a group.
fn read_sample(text: &str) -> Result<Sample, String> {
    let (list, size_text) = text.split_once(':').ok_or("Missing sample size")?;
    let mut ranges = Vec::new();
    for part in list.split(',') {
        let wrong = || format!("wrong sample range '{part}'");
        let (low, high) = part.split_once('-').unwrap_or((part, part));
        let number = |text: &str| positive(text).ok_or_else(wrong);
        let (low, high) = (number(low)?, number(high)?);
        if low > high {
            return Err(wrong());
        }
        ranges.push((low, high));
    }
    ranges.sort_unstable();
    if ranges.windows(2).any(|pair| pair[0].1 >= pair[1].0) {
        return Err("ranges are overlapping".into());
    }
    let highest = ranges.last().map_or(0, |range| range.1);
    match positive(size_text) {
        Some(size) if size >= highest => Ok((ranges, size)),
        Some(size) => Err(format!(
            "sample size {size} should be greater or equal to {highest} the maximum of the high ranges limits"
        )),
        None => Err(format!("wrong sample size '{size_text}' for sample range '{list}'")),
    }
}

/// Parses facility, level and minimum level.
fn read_levels(words: &mut VecDeque<&Word>, line: &Line, log: &mut LogSpec, report: &mut Report<'_>) -> Option<()> {
    let word = words.pop_front();
    let text = word.map_or("", |word| &word.text);
    let span = word.map_or(line.span(line.words.len()), |word| word.span);
    let Some(facility) = FACILITIES.iter().position(|&name| name == text) else {
        let mut diagnostic = Diagnostic::alert(span, format!("log : unknown log facility '{text}'"));
        diagnostic.hint = Some(match crate::suggest::nearest(text, FACILITIES.iter().copied()) {
            Some(known) => format!("write '{known}'"),
            None => "behind the target come len, format, sample and profile in this order, then the facility".into(),
        });
        report.push(diagnostic);
        return None;
    };
    log.facility = u8::try_from(facility).unwrap_or_default();
    if let Some(level) = read_level(words, "unknown optional log level", report)? {
        log.max_level = level;
    }
    log.min_level = read_level(words, "unknown optional minimum log level", report)?;
    if let Some(extra) = words.pop_front() {
        report.alert(extra.span, format!("log : cannot handle unexpected argument '{}'", extra.text));
        return None;
    }
    Some(())
}

#[allow(clippy::option_option)]
fn read_level(words: &mut VecDeque<&Word>, sentence: &str, report: &mut Report<'_>) -> Option<Option<LogLevel>> {
    let Some(word) = words.pop_front() else { return Some(None) };
    if let Some(row) = LEVELS.iter().find(|row| row.0 == word.text) {
        return Some(Some(row.1));
    }
    let known = crate::suggest::nearest(&word.text, LEVELS.iter().map(|row| row.0));
    let mut diagnostic = Diagnostic::alert(word.span, format!("log : {sentence} '{}'", word.text));
    diagnostic.hint = known.map(|known| format!("did you mean '{known}'?"));
    report.push(diagnostic);
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples() {
        let rows: &[(&str, Result<Sample, &str>)] = &[
            ("1:2", Ok((vec![(1, 1)], 2))),
            ("1:+3", Err("wrong sample size '+3' for sample range '1'")),
            ("1-+3,4:10", Err("wrong sample range '1-+3'")),
            ("4,1-2:7", Ok((vec![(1, 2), (4, 4)], 7))),
            ("1-3,5:2", Err("sample size 2 should be greater or equal to 5 the maximum of the high ranges limits")),
            ("1-3", Err("Missing sample size")),
            ("x:3", Err("wrong sample range 'x'")),
            ("0:3", Err("wrong sample range '0'")),
            ("3-1:5", Err("wrong sample range '3-1'")),
            ("1,1:5", Err("ranges are overlapping")),
            ("1:0", Err("wrong sample size '0' for sample range '1'")),
        ];
        for (text, expected) in rows {
            assert_eq!(read_sample(text), expected.clone().map_err(str::to_owned), "{text}");
        }
    }
}
