//! Converters of JSON: escaping for strings of JSON, and queries by path.

use super::Converter;
use super::json_path::{JsonValue, Path, find};
use crate::sample::{Context, Text, Type, Value};
use crate::{Argument, Arguments, Checking, Kind, Signature, TokenAlgorithmUse};
use std::fmt::Write as _;
use std::sync::Arc;

/// The JSON path of a token's algorithm in its header.
pub(super) const ALGORITHM_PATH: &[u8] = b"$.alg";

/// Every converter of the family.
pub const TABLE: &[Converter] = &[
    Converter::new(
        "json",
        Signature::new(1, &[Kind::Str]),
        Type::Str,
        Type::Str,
        "Escapes for a JSON string; the input is ascii, utf8, utf8s, utf8p or utf8ps.",
        escape,
    )
    .checked(check_escape),
    Converter::new(
        "json_query",
        Signature::new(1, &[Kind::Str, Kind::Str]),
        Type::Str,
        Type::Any,
        "Value at a JSON path: a number as a string, or with `int` as an integer.",
        |context, value, arguments| query(context, value.bytes()?, arguments),
    )
    .checked(check_query),
];

/// How the input of an escaped string is decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Reading {
    utf8: bool,
    /// Overlong encodings of UTF-8 are accepted.
    permissive: bool,
    /// Invalid characters are left out.
    silent: bool,
}

fn check_escape(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    let (utf8, permissive, silent) = match arguments.utf8(0).unwrap_or_default() {
        "" | "ascii" => (false, false, false),
        "utf8" => (true, false, false),
        "utf8s" => (true, false, true),
        "utf8p" => (true, true, false),
        "utf8ps" => (true, true, true),
        _ => {
            return Err("Unexpected input code type. Allowed value are 'ascii', 'utf8', 'utf8s', 'utf8p' and 'utf8ps'"
                .to_owned());
        }
    };
    arguments.set(0, Argument::Made(Arc::new(Reading { utf8, permissive, silent })));
    Ok(())
}

fn escape<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (bytes, reading) = (value.bytes()?, arguments.made::<Reading>(0)?);
    let mut text = context.text(bytes.len() + 16);
    let mut rest = bytes;
    while let Some((first, behind)) = rest.split_first() {
        if first.is_ascii() || !reading.utf8 {
            rest = behind;
            put_escaped(&mut text, u32::from(*first));
            continue;
        }
        let (character, length) = decode(rest, reading.permissive);
        rest = &rest[length..];
        match character {
            Some(character) => put_escaped(&mut text, character),
            None if reading.silent => {}
            None => return None,
        }
    }
    text.finish().map(Value::Str)
}

fn put_escaped(text: &mut Text<'_>, character: u32) {
    let short = match character {
        0x08 => b'b',
        0x09 => b't',
        0x0a => b'n',
        0x0c => b'f',
        0x0d => b'r',
        0x22 | 0x2f | 0x5c => character as u8,
        0x20..0x7f => return text.push(character as u8),
        _ => {
            // The text records an overflow itself.
            let _ = write!(text, "\\u{character:04x}");
            return;
        }
    };
    text.extend(&[b'\\', short]);
}

/// Decodes the first character of UTF-8, if `\uXXXX` can express it, and returns the number of bytes read.
fn decode(bytes: &[u8], permissive: bool) -> (Option<u32>, usize) {
    let (length, bits, least) = match bytes[0] {
        0xc0..=0xdf => (2, 0x1f, 0x80),
        0xe0..=0xef => (3, 0x0f, 0x800),
        0xf0..=0xf7 => (4, 0x07, 0x1_0000),
        _ => return (None, 1),
    };
    let mut character = u32::from(bytes[0]) & bits;
    for read in 1..length {
        match bytes.get(read) {
            Some(byte @ 0x80..=0xbf) => character = character << 6 | u32::from(byte & 0x3f),
            _ => return (None, read),
        }
    }
    let is_long = character < least && !permissive;
    let is_forbidden = matches!(character, 0xd800..=0xdfff | 0xfffe | 0xffff) || character > 0xffff;
    ((!is_long && !is_forbidden).then_some(character), length)
}

fn check_query(arguments: &mut Arguments, checking: &Checking<'_>) -> Result<(), String> {
    if arguments.text(0) == Some(ALGORITHM_PATH) {
        checking.names.note_token_algorithm(TokenAlgorithmUse::Read);
    }
    to_query(arguments)
}

/// Replaces the first argument with its parsed path, and checks the second one.
pub(super) fn to_query(arguments: &mut Arguments) -> Result<(), String> {
    let path = arguments.text(0).unwrap_or_default();
    if path.is_empty() {
        return Err("json_path must not be empty".to_owned());
    }
    if arguments.has(1) && arguments.text(1) != Some(b"int") {
        return Err("output_type only supports \"int\" as argument".to_owned());
    }
    let path = Path::read(path);
    arguments.set(0, Argument::Made(Arc::new(path)));
    Ok(())
}

/// Returns the value at the path in some JSON.
pub(super) fn query<'a>(context: &Context<'a>, json: &'a [u8], arguments: &'a Arguments) -> Option<Value<'a>> {
    match find(json, arguments.made::<Path>(0)?)? {
        JsonValue::Bool(flag) => Some(Value::Bool(flag)),
        JsonValue::Array(text) => Some(Value::Str(text)),
        JsonValue::Text(text) => unescape(context, text).map(Value::Str),
        JsonValue::Number(text) if arguments.has(1) => integer(text).map(Value::Int),
        JsonValue::Number(text) => number(context, text).map(Value::Str),
    }
}

/// Parses the leading digits as an integer; `None` at the bounds of the range.
fn integer(text: &[u8]) -> Option<i64> {
    let end = text.iter().skip(1).position(|byte| !byte.is_ascii_digit()).map_or(text.len(), |at| at + 1);
    let number: i64 = std::str::from_utf8(&text[..end]).ok()?.parse().ok()?;
    (number != i64::MIN && number != i64::MAX).then_some(number)
}

/// Formats a number as `%g` of printf(3) does.
fn number<'a>(context: &Context<'a>, text: &[u8]) -> Option<&'a [u8]> {
    let number: f64 = std::str::from_utf8(text).ok()?.parse().unwrap_or(0.0);
    let mut shown = context.text(32);
    if number.is_infinite() {
        shown.extend(if number < 0.0 { b"-inf" } else { b"inf" });
        return shown.finish();
    }
    let mut scientific = context.text(32);
    write!(scientific, "{number:.5e}").ok()?;
    let scientific = scientific.finish()?;
    let (mantissa, exponent) = scientific.split_at(scientific.iter().position(|byte| *byte == b'e')?);
    let exponent: i32 = std::str::from_utf8(&exponent[1..]).ok()?.parse().ok()?;
    if (-4..6).contains(&exponent) {
        let digits = (5 - exponent) as usize;
        write!(shown, "{number:.digits$}").ok()?;
        let length = trimmed(shown.bytes());
        shown.truncate(length);
    } else {
        shown.extend(&mantissa[..trimmed(mantissa)]);
        let sign = if exponent < 0 { '-' } else { '+' };
        write!(shown, "e{sign}{:02}", exponent.unsigned_abs()).ok()?;
    }
    shown.finish()
}

/// The length of a number without trailing zeros after its decimal point.
fn trimmed(number: &[u8]) -> usize {
    if !number.contains(&b'.') {
        return number.len();
    }
    let end = number.iter().rposition(|byte| *byte != b'0').map_or(0, |last| last + 1);
    if number[end - 1] == b'.' { end - 1 } else { end }
}

/// Unescapes a string; `None` when an escape is unknown or its character is larger than a byte.
fn unescape<'a>(context: &Context<'a>, raw: &'a [u8]) -> Option<&'a [u8]> {
    if !raw.contains(&b'\\') {
        return Some(raw);
    }
    let mut text = context.text(raw.len());
    let mut rest = raw;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        if *byte != b'\\' {
            text.push(*byte);
            continue;
        }
        let (escape, behind) = rest.split_first()?;
        rest = behind;
        text.push(match escape {
            b'b' => 8,
            b'f' => 12,
            b'n' => b'\n',
            b'r' => b'\r',
            b't' => b'\t',
            b'"' | b'\\' => *escape,
            b'u' => {
                let (digits, behind) = rest.split_first_chunk::<4>()?;
                rest = behind;
                let digits = std::str::from_utf8(digits).ok().filter(|text| !text.starts_with('+'))?;
                u8::try_from(u16::from_str_radix(digits, 16).ok()?).ok()?
            }
            _ => return None,
        });
    }
    text.finish()
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::Scene;

    const JSON: &str = r#"{"integer":4,"neg":-3,"f":1.5,"s":"te\"xt","b":true,"bf":false,"n":null,"a":[1,"two",[3],{"x":1}, 5 ],"o":{"p":{"q":"deep"}},"my.key":"myvalue","big":99999999999999999999,"exp":1e3,"e":"","ea":[],"eo":{}, "sp" : "x" , "neg0":-0,"f2":-1.25e-2,"int2":"12","k k":1}"#;

    #[test]
    fn values_are_found() {
        let rows: &[(&str, &str)] = &[
            ("$.integer", "4"),
            ("$.integer','int", "4"),
            ("$.neg','int", "-3"),
            ("$.f", "1.5"),
            ("$.f','int", "1"),
            ("$.f2", "-0.0125"),
            ("$.f2','int", "-1"),
            ("$.s", "te\"xt"),
            ("$.b", "1"),
            ("$.bf", "0"),
            ("$.n", "<none>"),
            ("$.a", r#"[1,"two",[3],{"x":1}, 5 ]"#),
            ("$.a[0]", "1"),
            ("$.a[1]", "two"),
            ("$.a[2]", "[3]"),
            ("$.a[3]", "<none>"),
            ("$.a[3].x", "1"),
            ("$.a[9]", "<none>"),
            ("$.a[-1]", "<none>"),
            ("$.a[*]", "1"),
            ("$.o", "<none>"),
            ("$.o.p.q", "deep"),
            ("$.my\\.key", "myvalue"),
            ("$.my.key", "<none>"),
            ("$.big", "1e+20"),
            ("$.big','int", "<none>"),
            ("$.exp", "1000"),
            ("$.exp','int", "1"),
            ("$.e", ""),
            ("$.ea", "[]"),
            ("$.eo", "<none>"),
            ("$.sp", "x"),
            ("$.neg0", "-0"),
            ("$.int2','int", "12"),
            ("$.k k", "1"),
            ("$.nope", "<none>"),
            ("$", "<none>"),
            ("integer", "<none>"),
            ("$..q", "<none>"),
            ("$.integer.x", "<none>"),
        ];
        for (path, expected) in rows {
            let text = format!("str('{JSON}'),json_query('{path}')");
            assert_eq!(Scene::default().eval(&text), *expected, "{path}");
        }
    }

    #[test]
    fn texts_of_json_are_walked() {
        let deep = |depth| format!("{{\"a\":{}1{},\"b\":2}}", "[".repeat(depth), "]".repeat(depth));
        let rows: &[(&str, &str, &str)] = &[
            ("[1,2]", "$[1]", "2"),
            ("[1,2]", "$", "[1,2]"),
            ("\"abc\"", "$", "abc"),
            ("12", "$", "12"),
            ("true", "$", "1"),
            ("{\"a\":1", "$.a", "1"),
            ("{\"a\":1}x", "$.a", "1"),
            ("{\"a\":1,}", "$.a", "1"),
            ("{a:1}", "$.a", "<none>"),
            ("{\"a\":tru}", "$.a", "<none>"),
            ("{\"a\":\"x\",\"a\":\"y\"}", "$.a", "x"),
            ("{\"b\":{,\"a\":\"y\"}", "$.a", "<none>"),
            ("  { \"a\" :  \"y\" }", "$.a", "y"),
            ("{\"ab\":1,\"a\":2}", "$.a", "2"),
            ("{\"a\":{\"b\":1,\"c\":2},\"c\":3}", "$.c", "3"),
            ("{\"a\":[1,{\"c\":2}],\"c\":3}", "$.c", "3"),
            ("[[1,2],[3,[4,5]]]", "$[1][1][0]", "4"),
            ("[{\"a\":1},{\"a\":2}]", "$[1].a", "2"),
            ("[1,2", "$[1]", "2"),
            ("[1,2", "$", "<none>"),
            ("{\"a\":\"x", "$.a", "<none>"),
            ("{\"a\" \"x\"}", "$.a", "<none>"),
            ("{\"\":7}", "$.", "7"),
            ("{\"a\":1}", "$a", "<none>"),
            ("{\"a\":[1,2]}", "$.a[1", "<none>"),
            ("{\"a\":[1,2]}", "$.a[1]x", "<none>"),
            ("{\"e\":123456789}", "$.e", "1.23457e+08"),
            ("{\"e\":123456}", "$.e", "123456"),
            ("{\"e\":0.0001234567}", "$.e", "0.000123457"),
            ("{\"e\":0.00001234567}", "$.e", "1.23457e-05"),
            ("{\"e\":999999.5}", "$.e", "1e+06"),
            ("{\"e\":1e400}", "$.e", "inf"),
            ("{\"e\":100000}", "$.e", "100000"),
            ("{\"e\":9223372036854775807}", "$.e','int", "<none>"),
            ("{\"e\":+5}", "$.e", "<none>"),
            (&deep(19), "$.b", "2"),
            (&deep(24), "$.b", "<none>"),
        ];
        for (json, path, expected) in rows {
            let text = format!("str('{json}'),json_query('{path}')");
            assert_eq!(Scene::default().eval(&text), *expected, "{text}");
        }
    }

    #[test]
    fn texts_are_escaped() {
        let rows: &[(&str, &str)] = &[
            ("str('abc\"/\\ x'),json", "abc\\\"\\/\\\\ x"),
            ("bin(61c3a962),json", "a\\u00c3\\u00a9b"),
            ("bin(61c3a962),json(utf8)", "a\\u00e9b"),
            ("bin(61ff62),json(utf8)", "<none>"),
            ("bin(61ff62),json(utf8s)", "ab"),
            ("bin(61ff62),json(utf8p)", "<none>"),
            ("bin(61c1a162),json(utf8s)", "ab"),
            ("bin(61c1a162),json(utf8p)", "aab"),
            ("bin(610a0d09080c0b7f1f62),json", "a\\n\\r\\t\\b\\f\\u000b\\u007f\\u001fb"),
            ("bin(61f09f988062),json(utf8)", "<none>"),
            ("bin(61f09f988062),json(utf8ps)", "ab"),
            ("bin(61eda08062),json(utf8s)", "ab"),
            ("bin(61e28262),json(utf8s)", "ab"),
            ("bin(61c3),json(utf8s)", "a"),
            ("bin(61efbfbe62),json(utf8)", "<none>"),
            ("str(),json", ""),
        ];
        for (text, expected) in rows {
            assert_eq!(Scene::default().eval(text), *expected, "{text}");
        }
    }
}
