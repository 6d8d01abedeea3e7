//! Parser of the arguments of `stick-table` (configuration manual, section 11.1), and of a `table` of a
//! `peers` section. Owns HAProxy's sentences about it; must never look up another table.

use super::report::Report;
use crate::diagnostic::{Diagnostic, Form};
use crate::document::Line;
use crate::span::Spanned;
use crate::spec::{DataForm, DataKind, ServerKeySpec, StoreSpec, TableKeySpec, TableSpec};
use crate::units::{self, TimeError};

/// Default length of a string in bytes: 32 including HAProxy's terminating NUL.
const DEFAULT_TEXT: u32 = 31;
/// Default length of a binary key, in bytes.
const DEFAULT_BLOCK: u32 = 32;
/// Maximum length of a string or a binary key, in bytes; each entry stores one.
const LONGEST_KEY: u32 = 1 << 20;
/// Maximum number of elements of an array.
const LARGEST_ARRAY: u32 = 100;
/// Maximum number of bytes that count as one event of a rate.
const LARGEST_FACTOR: u32 = 1024;

/// Parser state of a table.
struct Reader<'a, 'r> {
    line: &'a Line,
    at: usize,
    report: &'a mut Report<'r>,
    spec: TableSpec,
    key: Option<TableKeySpec>,
}

/// Parses the arguments from the word at `at` on; `None` after an alert.
pub(crate) fn read(line: &Line, at: usize, report: &mut Report<'_>) -> Option<TableSpec> {
    let spec = TableSpec {
        span: line.whole(),
        key: TableKeySpec::Ipv4,
        size: 0,
        expire: None,
        nopurge: false,
        recv_only: false,
        write_to: None,
        server_key: ServerKeySpec::Name,
        byte_rate_factor: 1,
        store: Vec::new(),
        peers: None,
    };
    let mut reader = Reader { line, at, report, spec, key: None };
    while reader.at < line.words.len() {
        reader.argument()?;
    }
    if reader.spec.size == 0 {
        return reader.refuse(0, "missing size.");
    }
    let Some(key) = reader.key else { return reader.refuse(0, "missing type.") };
    Some(TableSpec { key, ..reader.spec })
}

impl Reader<'_, '_> {
    fn refuse<T>(&mut self, at: usize, message: &str) -> Option<T> {
        self.report.alert(self.line.span(at), format!("{}: {message}", self.line.keyword()));
        None
    }

    /// Takes the next word.
    fn word(&mut self) -> &str {
        self.at += 1;
        self.line.text(self.at - 1)
    }

    /// Returns the index of the word after an argument's name; reports an alert if there is none.
    fn value(&mut self, name: &str) -> Option<usize> {
        if self.at >= self.line.words.len() {
            return self.refuse(self.at, &format!("missing argument after '{name}'."));
        }
        self.at += 1;
        Some(self.at - 1)
    }

    fn argument(&mut self) -> Option<()> {
        let at = self.at;
        let name = self.word().to_owned();
        match name.as_str() {
            "size" => self.size(),
            "expire" => self.expire(),
            "type" => self.key_type(),
            "store" => self.store(),
            "srvkey" => self.server_key(),
            "brates-factor" => self.factor(),
            "peers" if self.line.keyword() != "table" => {
                let at = self.value("peers")?;
                self.spec.peers = Some(Spanned::new(self.line.text(at).to_owned(), self.line.span(at)));
                Some(())
            }
            "write-to" => {
                if self.at >= self.line.words.len() {
                    let message = format!("{} : write-to requires table name.", self.line.keyword());
                    self.report.alert(self.line.span(self.at), message);
                    return None;
                }
                let at = self.value("write-to")?;
                self.spec.write_to = Some(Spanned::new(self.line.text(at).to_owned(), self.line.span(at)));
                Some(())
            }
            "nopurge" => {
                self.spec.nopurge = true;
                Some(())
            }
            "recv-only" => {
                self.spec.recv_only = true;
                Some(())
            }
            other => self.unknown(at, other),
        }
    }

    fn unknown(&mut self, at: usize, name: &str) -> Option<()> {
        const NAMES: [&str; 10] =
            ["brates-factor", "expire", "nopurge", "peers", "recv-only", "size", "srvkey", "store", "type", "write-to"];
        let message = format!("{}: unknown argument '{name}'.", self.line.keyword());
        let mut diagnostic = Diagnostic::alert(self.line.span(at), message);
        diagnostic.hint = match name {
            "len" => Some("'len' stands right behind 'type string' or 'type binary'".to_owned()),
            // Valid in `stick-table`, but not for a table of a `peers` section.
            "peers" => Some("the tables of a 'peers' section are shared through it".to_owned()),
            name => crate::suggest::nearest(name, NAMES).map(|known| format!("write '{known}'")),
        };
        self.report.push(diagnostic);
        None
    }

    fn unexpected<T>(&mut self, at: usize, found: Option<char>, name: &str) -> Option<T> {
        let found = found.unwrap_or(' ');
        self.refuse(at, &format!("unexpected character '{found}' in argument of '{name}'."))
    }

    fn size(&mut self) -> Option<()> {
        let at = self.value("size")?;
        match units::size(self.line.text(at), u64::from(u32::MAX)) {
            Ok(size) => self.spec.size = u32::try_from(size).unwrap_or(u32::MAX),
            Err(error) => return self.unexpected(at, error.rest.chars().next(), "size"),
        }
        Some(())
    }

    fn expire(&mut self) -> Option<()> {
        let at = self.value("expire")?;
        let text = self.line.text(at);
        match units::milliseconds(text) {
            Ok(time) => self.spec.expire = u32::try_from(time.value).ok().filter(|millis| *millis > 0),
            Err(TimeError::Unexpected(found)) => return self.unexpected(at, Some(found), "expire"),
            Err(TimeError::Empty) => return self.unexpected(at, None, "expire"),
            Err(TimeError::Overflow) => {
                let message = format!(
                    "{}: timer overflow in argument <{text}> to <expire>, maximum value is 2147483647 ms (~24.8 days).",
                    self.line.keyword()
                );
                let diagnostic = Diagnostic::alert(self.line.span(at), message).with_form(Form::ParsingTight);
                self.report
                    .push(diagnostic.with_hint("leave 'expire' out if entries shall stay until there is no room"));
                return None;
            }
        }
        Some(())
    }

    fn key_type(&mut self) -> Option<()> {
        let at = self.at;
        let name = self.word().to_owned();
        let key = match name.as_str() {
            "ip" | "ipv4" => TableKeySpec::Ipv4,
            "ipv6" => TableKeySpec::Ipv6,
            "integer" => TableKeySpec::Integer,
            "string" => TableKeySpec::Text(self.length(DEFAULT_TEXT)?),
            "binary" => TableKeySpec::Binary(self.length(DEFAULT_BLOCK)?),
            _ => {
                let message = format!("{}: unknown type '{name}'.", self.line.keyword());
                let known = crate::suggest::nearest(&name, ["ip", "ipv4", "ipv6", "integer", "string", "binary"]);
                let mut diagnostic = Diagnostic::alert(self.line.span(at.min(self.line.words.len())), message);
                diagnostic.hint = known.map(|known| format!("write 'type {known}'"));
                self.report.push(diagnostic);
                return None;
            }
        };
        self.key = Some(key);
        Some(())
    }

    /// Parses `len` after a type, if present.
    fn length(&mut self, default: u32) -> Option<u32> {
        if self.line.text(self.at) != "len" {
            return Some(default);
        }
        self.at += 2;
        match self.line.text(self.at - 1).parse::<u32>() {
            Ok(length @ 1..=LONGEST_KEY) => Some(length),
            Ok(length) if length > LONGEST_KEY => {
                let message = format!("'len' is limited to {LONGEST_KEY} by Weir.");
                self.report.alert(self.line.span(self.at - 1), message);
                None
            }
            _ => {
                self.report.alert(self.line.span(self.at - 1), "'len' expects a positive integer argument.");
                None
            }
        }
    }

    fn server_key(&mut self) -> Option<()> {
        let at = self.at;
        self.at += 1;
        self.spec.server_key = match self.line.text(at) {
            "name" => ServerKeySpec::Name,
            "addr" => ServerKeySpec::Address,
            other => {
                let message = format!("{} : unknown server key type '{other}'.", self.line.keyword());
                self.report.alert(self.line.span(at), message);
                return None;
            }
        };
        Some(())
    }

    fn factor(&mut self) -> Option<()> {
        let at = self.value("brates-factor")?;
        let text = self.line.text(at);
        if text.starts_with('+') {
            let message = "stick-table: unexpected character '+' in argument of 'brates-factor'.";
            self.report.alert(self.line.span(at), message);
            return None;
        }
        match text.parse::<u32>() {
            Ok(factor @ 1..=LARGEST_FACTOR) => self.spec.byte_rate_factor = factor,
            _ => {
                let message = "argument 'brates-factor' must be greater than 0 and lower or equal than 1024.";
                return self.refuse(at, message);
            }
        }
        Some(())
    }

    /// Parses a list of data types; a missing argument of `store` is an empty list.
    fn store(&mut self) -> Option<()> {
        let at = self.at;
        let list = self.word().to_owned();
        for item in split(&list) {
            self.item(at, item)?;
        }
        Some(())
    }

    fn item(&mut self, at: usize, item: &str) -> Option<()> {
        if item.is_empty() {
            return Some(());
        }
        let (name, argument) = match item.split_once('(') {
            Some((name, rest)) => match rest.strip_suffix(')') {
                Some(argument) => (name, Some(argument)),
                None => {
                    let message = format!("missing closing parenthesis after store option '{name}'.");
                    return self.refuse(at, &message);
                }
            },
            None => (item, None),
        };
        let Some(kind) = DataKind::find(name) else {
            let message = format!("{}: unknown store option '{name}'.", self.line.keyword());
            let mut diagnostic = Diagnostic::alert(self.line.span(at), message);
            let known = crate::suggest::nearest(name, DataKind::ALL.map(DataKind::name));
            diagnostic.hint = known.map(|known| format!("did you mean '{known}'?"));
            self.report.push(diagnostic);
            return None;
        };
        let store = self.arguments(at, kind, argument)?;
        if self.spec.store.iter().any(|known| known.kind == kind) {
            let message = format!("{}: store option '{name}' already enabled, ignored.", self.line.keyword());
            self.report.push(Diagnostic::warning(self.line.span(at), message).with_form(Form::ParsingTight));
            return Some(());
        }
        self.conflict(at, kind)?;
        self.spec.store.push(store);
        Some(())
    }

    /// Parses the arguments in parentheses of a data type.
    fn arguments(&mut self, at: usize, kind: DataKind, argument: Option<&str>) -> Option<StoreSpec> {
        let name = kind.name();
        let wants_period = kind.form() == DataForm::Rate;
        let mut written = argument.map(|argument| argument.split(','));
        let mut next = || written.as_mut().and_then(Iterator::next).map(str::trim);
        let wrong = || format!("error when processing store option '{name}'.");
        let missing = || format!("missing argument to store option '{name}'.");
        let (mut elements, mut period) = (1, 0);
        if kind.is_array() {
            let Some(text) = next() else { return self.refuse(at, &missing()) };
            match text.parse::<u32>() {
                Ok(count @ 1..=LARGEST_ARRAY) => elements = count,
                Ok(_) => {
                    let message = format!("array size is out of allowed range (1-100) for store option '{name}'.");
                    return self.refuse(at, &message);
                }
                Err(_) => return self.refuse(at, &wrong()),
            }
        }
        if wants_period {
            let Some(text) = next() else { return self.refuse(at, &missing()) };
            match units::milliseconds(text) {
                Ok(time) if time.leftover.is_none() => period = u32::try_from(time.value).unwrap_or(u32::MAX),
                _ => return self.refuse(at, &wrong()),
            }
        }
        if next().is_some() {
            return self.refuse(at, &format!("unexpected argument to store option '{name}'."));
        }
        Some(StoreSpec { kind, elements, period })
    }

    /// Reports the combination of an array with the scalar types of the same name.
    fn conflict(&mut self, at: usize, kind: DataKind) -> Option<()> {
        const OVERRIDES: [(DataKind, &[DataKind], &str); 3] = [
            (DataKind::Gpc, &[DataKind::Gpc0, DataKind::Gpc1], "gpc[0/1]"),
            (DataKind::GpcRate, &[DataKind::Gpc0Rate, DataKind::Gpc1Rate], "gpc[0/1]_rate"),
            (DataKind::Gpt, &[DataKind::Gpt0], "gpt0"),
        ];
        let has = |kind: &DataKind| self.spec.store.iter().any(|known| known.kind == *kind);
        for (array, others, names) in OVERRIDES {
            if kind == array && others.iter().any(has) || others.contains(&kind) && has(&array) {
                let array = array.name();
                let message = format!(
                    "simultaneous usage of '{array}' and '{names}' in a same table is not permitted as '{array}' \
                     overrides '{names}'."
                );
                return self.refuse(at, &message);
            }
        }
        Some(())
    }
}

/// Splits a list at its commas, except those inside of parentheses.
fn split(list: &str) -> impl Iterator<Item = &str> {
    let mut depth = 0_usize;
    list.split(move |found| {
        match found {
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        found == ',' && depth == 0
    })
}
