//! Named, typed values and the forms in which they are printed: plain, typed, JSON (management manual, section 9.2).
//! Must never read a value.

use std::fmt::{self, Write};

/// The name and the metadata of a value.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Field {
    pub(crate) name: &'static str,
    /// Origin, nature, scope and persistence, one letter each (management manual, section 9.2).
    pub(crate) tags: &'static str,
    /// Description.
    pub(crate) doc: &'static str,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Value {
    /// Missing.
    None,
    U32(u32),
    S32(i32),
    U64(u64),
    Float(f64),
    Text(String),
}

impl Value {
    /// Creates a 32-bit count; larger values saturate.
    pub(crate) fn count(value: u64) -> Self {
        Self::U32(u32::try_from(value).unwrap_or(u32::MAX))
    }

    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    pub(crate) const fn kind(&self) -> &'static str {
        match self {
            Self::None => "",
            Self::U32(_) => "u32",
            Self::S32(_) => "s32",
            Self::U64(_) => "u64",
            Self::Float(_) => "flt",
            Self::Text(_) => "str",
        }
    }
}

impl fmt::Display for Value {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => Ok(()),
            Self::U32(value) => value.fmt(out),
            Self::S32(value) => value.fmt(out),
            Self::U64(value) => value.fmt(out),
            Self::Float(value) => value.fmt(out),
            Self::Text(value) => value.fmt(out),
        }
    }
}

/// Output formats.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Form {
    /// `Name: value`, or a line of comma-separated values.
    #[default]
    Plain,
    /// One value per line, with kind and type.
    Typed,
    /// JSON.
    Json,
}

/// Writes `0.Name.1:POSV:str:value`, with `prefix` before the position, and the description if `desc` is set.
pub(crate) fn typed(out: &mut impl Write, prefix: &str, at: usize, field: &Field, value: &Value, desc: bool) {
    let _ = write!(out, "{prefix}{at}.{}.1:{}:{}:{value}", field.name, field.tags, value.kind());
    describe(out, field, desc);
}

/// Writes the description if `desc` is set, and the end of the line.
pub(crate) fn describe(out: &mut impl Write, field: &Field, desc: bool) {
    let _ = if desc { writeln!(out, ":\"{}\"", field.doc) } else { out.write_char('\n') };
}

/// Writes the JSON members of a value; the caller opens and closes the object.
pub(crate) fn json(out: &mut impl Write, at: usize, field: &Field, value: &Value) {
    let _ = write!(out, "\"field\":{{\"pos\":{at},\"name\":\"{}\"}},\"processNum\":1,\"tags\":{{", field.name);
    json_of_value(out, field, value);
}

/// The same without the process number.
pub(crate) fn json_without_process(out: &mut impl Write, at: usize, field: &Field, value: &Value) {
    let _ = write!(out, "\"field\":{{\"pos\":{at},\"name\":\"{}\"}},\"tags\":{{", field.name);
    json_of_value(out, field, value);
}

fn json_of_value(out: &mut impl Write, field: &Field, value: &Value) {
    let mut letters = field.tags.bytes();
    let (origin, nature, scope) = (letters.next(), letters.next(), letters.next());
    let _ = write!(
        out,
        "\"origin\":\"{}\",\"nature\":\"{}\",\"scope\":\"{}\"}},\"value\":{{\"type\":\"{}\",\"value\":",
        name(ORIGINS, origin),
        name(NATURES, nature),
        name(SCOPES, scope),
        value.kind()
    );
    let _ = match value {
        Value::Text(text) => quoted(out, text),
        number => write!(out, "{number}"),
    };
    let _ = out.write_char('}');
}

fn quoted(out: &mut impl Write, text: &str) -> fmt::Result {
    out.write_char('"')?;
    for character in text.chars() {
        match character {
            '"' => out.write_str("\\\"")?,
            '\\' => out.write_str("\\\\")?,
            control if u32::from(control) < 0x20 => write!(out, "\\u{:04x}", u32::from(control))?,
            other => out.write_char(other)?,
        }
    }
    out.write_char('"')
}

fn name(table: &[(u8, &'static str)], letter: Option<u8>) -> &'static str {
    table.iter().find(|row| Some(row.0) == letter).map_or("Unknown", |row| row.1)
}

const ORIGINS: &[(u8, &str)] =
    &[(b'M', "Metric"), (b'S', "Status"), (b'K', "Key"), (b'C', "Config"), (b'P', "Product")];

const NATURES: &[(u8, &str)] = &[
    (b'A', "Age"),
    (b'a', "Avg"),
    (b'C', "Counter"),
    (b'D', "Duration"),
    (b'G', "Gauge"),
    (b'L', "Limit"),
    (b'M', "Max"),
    (b'm', "Min"),
    (b'N', "Name"),
    (b'O', "Output"),
    (b'R', "Rate"),
    (b'T', "Time"),
];

const SCOPES: &[(u8, &str)] = &[(b'C', "Cluster"), (b'P', "Process"), (b'S', "Service"), (b'N', "System")];
