//! Converters that split a string: words and fields between delimiters, parameters, hosts and ports, languages.

use super::Converter;
use crate::sample::{Context, Type, Value};
use crate::{Argument, Arguments, Checking, Kind, Signature};

const PARTS: Signature = Signature::new(2, &[Kind::Int, Kind::Str, Kind::Int]);
const WITH_DEFAULT: Signature = Signature::new(1, &[Kind::Str, Kind::Str]);

/// Every converter of the family.
pub const TABLE: &[Converter] = &[
    Converter::new(
        "field",
        PARTS,
        Type::Str,
        Type::Str,
        "Extracts the nth field between delimiters, or that number of fields from it on.",
        field,
    )
    .checked(check_parts),
    Converter::new(
        "host_only",
        Signature::NONE,
        Type::Str,
        Type::Str,
        "Host name without port, in lower case.",
        host_only,
    ),
    Converter::new(
        "language",
        WITH_DEFAULT,
        Type::Str,
        Type::Str,
        "Preferred language of an Accept-Language field among a list separated by semicolons.",
        language,
    ),
    Converter::new("param", WITH_DEFAULT, Type::Str, Type::Str, "Value of the first parameter of that name.", param)
        .checked(check_param),
    Converter::new("port_only", Signature::NONE, Type::Str, Type::Int, "Port of a host name, or 0.", port_only),
    Converter::new(
        "word",
        PARTS,
        Type::Str,
        Type::Str,
        "Extracts the nth word between delimiters, or that number of words from it on.",
        word,
    )
    .checked(check_parts),
];

fn check_parts(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    if arguments.int(0) == Some(0) {
        return Err("Unexpected value 0 for index".to_owned());
    }
    if arguments.text(1).is_none_or(<[u8]>::is_empty) {
        return Err("Empty separators list".to_owned());
    }
    Ok(())
}

/// The arguments of `field` and `word`: whether to count from the end, the index from 1, the delimiters, and the number
/// of parts.
fn part_arguments(arguments: &Arguments) -> Option<(bool, u64, &[u8], u64)> {
    let index = arguments.int(0)?;
    let count = match arguments.int(2).unwrap_or(1) {
        count if count <= 0 => u64::MAX,
        count => count.unsigned_abs(),
    };
    Some((index < 0, index.unsigned_abs(), arguments.text(1)?, count))
}

fn field<'a>(_: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let bytes = value.bytes()?;
    let (from_end, index, delimiters, count) = part_arguments(arguments)?;
    let is_delimiter = |byte: &u8| delimiters.contains(byte);
    let next = |rest: &[u8]| {
        if from_end { rest.iter().rposition(is_delimiter) } else { rest.iter().position(is_delimiter) }
    };
    // `rest` is the text after (or before) the parts counted so far.
    let mut rest = bytes;
    for _ in 1..index {
        let at = next(rest)?;
        rest = if from_end { &rest[..at] } else { &rest[at + 1..] };
    }
    let mut taken = 0;
    let mut left = rest;
    for _ in 0..count {
        let Some(at) = next(left) else {
            return Some(Value::Str(rest));
        };
        taken += if from_end { left.len() - at } else { at + 1 };
        left = if from_end { &left[..at] } else { &left[at + 1..] };
    }
    Some(Value::Str(if from_end { &rest[rest.len() + 1 - taken..] } else { &rest[..taken - 1] }))
}

fn word<'a>(_: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let bytes = value.bytes()?;
    let (from_end, index, delimiters, count) = part_arguments(arguments)?;
    let is_delimiter = |byte: &u8| delimiters.contains(byte);
    let mut words = Words { bytes, start: 0, end: bytes.len(), from_end };
    let mut found = words.next(is_delimiter)?;
    for _ in 1..index {
        found = words.next(is_delimiter)?;
    }
    let (mut start, mut end) = found;
    for _ in 1..count {
        let Some((further_start, further_end)) = words.next(is_delimiter) else {
            // There are fewer words than requested: the remaining text is included, delimiters and all.
            (start, end) = if from_end { (0, end) } else { (start, bytes.len()) };
            break;
        };
        (start, end) = (start.min(further_start), end.max(further_end));
    }
    Some(Value::Str(&bytes[start..end]))
}

/// The words of a text, from either end.
struct Words<'a> {
    bytes: &'a [u8],
    start: usize,
    end: usize,
    from_end: bool,
}

impl Words<'_> {
    /// Returns the bounds of the next word.
    fn next(&mut self, is_delimiter: impl Fn(&u8) -> bool) -> Option<(usize, usize)> {
        let rest = &self.bytes[self.start..self.end];
        if self.from_end {
            let end = self.start + rest.iter().rposition(|byte| !is_delimiter(byte))? + 1;
            let start = self.bytes[self.start..end].iter().rposition(&is_delimiter);
            let start = start.map_or(self.start, |at| self.start + at + 1);
            self.end = start;
            Some((start, end))
        } else {
            let start = self.start + rest.iter().position(|byte| !is_delimiter(byte))?;
            let end = self.bytes[start..self.end].iter().position(&is_delimiter).map_or(self.end, |at| start + at);
            self.start = end;
            Some((start, end))
        }
    }
}

fn check_param(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    let Some(text) = arguments.text(1) else {
        return Ok(());
    };
    let hex = |text: &[u8]| u8::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok();
    let delimiter = match text {
        [one] => Some(*one),
        [b'0', b'x', digits @ ..] if digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit) => hex(digits),
        _ => None,
    };
    let Some(delimiter) = delimiter else {
        return Err("Delimiter must be either exactly 1 character, or 0xHH for an ASCII code .".to_owned());
    };
    arguments.set(1, Argument::Int(i64::from(delimiter)));
    Ok(())
}

fn param<'a>(_: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (bytes, name) = (value.bytes()?, arguments.text(0)?);
    let delimiter = arguments.int(1).unwrap_or(i64::from(b'&')) as u8;
    let rest = bytes.split(|byte| *byte == delimiter).find_map(|part| match part.strip_prefix(name)? {
        [] => Some(&[][..]),
        [b'=', value @ ..] => Some(value),
        _ => None,
    });
    rest.map(Value::Str)
}

/// The offset of a host's port, at its colon.
fn port_at(host: &[u8]) -> Option<usize> {
    let at = host.iter().rposition(|byte| matches!(byte, b':' | b']'))?;
    (host[at] == b':').then_some(at)
}

fn host_only<'a>(context: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let bytes = value.bytes()?;
    let host = port_at(bytes).map_or(bytes, |at| &bytes[..at]);
    let mut text = context.text(host.len());
    host.iter().for_each(|byte| text.push(byte.to_ascii_lowercase()));
    text.finish().map(Value::Str)
}

/// As in HAProxy, characters other than digits are computed as if they were digits.
fn port_only<'a>(_: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let bytes = value.bytes()?;
    let digits = port_at(bytes).map_or(&[][..], |at| &bytes[at + 1..]);
    let port = digits
        .iter()
        .fold(0_u32, |port, digit| port.wrapping_mul(10).wrapping_add(u32::from(*digit)).wrapping_sub(u32::from(b'0')));
    Some(Value::Int(i64::from(port)))
}

fn language<'a>(_: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (bytes, known) = (value.bytes()?, arguments.text(0)?);
    let mut best: Option<(&[u8], u32)> = None;
    for part in bytes.split(|byte| *byte == b',') {
        let part = part.trim_ascii();
        let end = part.iter().position(|byte| matches!(byte, b';' | b' ' | b'\t')).unwrap_or(part.len());
        let (tag, quality) = (&part[..end], quality(&part[end..]));
        if tag.is_empty() || quality == 0 || best.is_some_and(|(_, best)| best >= quality) {
            continue;
        }
        let base = tag.split(|byte| *byte == b'-').next().unwrap_or_default();
        let mut list = known.split(|byte| *byte == b';');
        if let Some(found) = list.find(|known| *known == tag || *known == base) {
            best = Some((found, quality));
        }
    }
    best.map(|(found, _)| found).or_else(|| arguments.text(1)).map(Value::Str)
}

/// Parses the quality of a language, per mille; 1000 when it cannot be parsed.
fn quality(parameters: &[u8]) -> u32 {
    let text = parameters.trim_ascii();
    let Some(text) = text.strip_prefix(b";").map(<[u8]>::trim_ascii) else { return 1000 };
    let Some(text) = text.strip_prefix(b"q=") else { return 1000 };
    match text {
        [b'0', b'.', digits @ ..] => {
            let mut digits = digits.iter().take(3).map_while(|byte| byte.is_ascii_digit().then(|| byte - b'0'));
            (0..3).fold(0, |sum, _| sum * 10 + u32::from(digits.next().unwrap_or(0)))
        }
        [b'0', ..] => 0,
        _ => 1000,
    }
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn fields_are_found() {
        let rows: &[(&str, &str, &str)] = &[
            ("f1_f2_f3__f5", "4,_", ""),
            ("f1_f2_f3__f5", "5,_", "f5"),
            ("f1_f2_f3__f5", "6,_", "<none>"),
            ("f1_f2_f3__f5", "2,_,0", "f2_f3__f5"),
            ("f1_f2_f3__f5", "2,_,2", "f2_f3"),
            ("f1_f2_f3__f5", "-2,_,3", "f2_f3_"),
            ("f1_f2_f3__f5", "-3,_,0", "f1_f2_f3"),
            ("f1_f2_f3__f5", "-1,_", "f5"),
            ("f1_f2_f3__f5", "-9,_", "<none>"),
            ("f1_f2_f3__f5", "2,_,99", "f2_f3__f5"),
            ("f1_f2_f3__f5", "-2,_,99", "f1_f2_f3_"),
            ("f1_f2_f3__f5", "1,_,-1", "f1_f2_f3__f5"),
            ("_a_", "1,_", ""),
            ("_a_", "3,_", ""),
            ("_a_", "4,_", "<none>"),
            ("_a_", "-1,_", ""),
            ("", "1,_", ""),
            ("", "2,_", "<none>"),
            ("", "-1,_", ""),
            ("a b;c", "2,' ;',0", "b;c"),
            ("a", "0,_", "!invalid args in converter 'field' : Unexpected value 0 for index"),
            ("a", "1,''", "!invalid args in converter 'field' : Empty separators list"),
        ];
        for (text, arguments, expected) in rows {
            let text = format!("str({text}),field({arguments})");
            assert_eq!(Scene::default().eval(&text), *expected, "{text}");
        }
    }

    #[test]
    fn words_are_found() {
        let rows: &[(&str, &str, &str)] = &[
            ("f1_f2_f3__f5", "4,_", "f5"),
            ("f1_f2_f3__f5", "5,_", "<none>"),
            ("f1_f2_f3__f5", "2,_,0", "f2_f3__f5"),
            ("f1_f2_f3__f5", "3,_,2", "f3__f5"),
            ("f1_f2_f3__f5", "-2,_,3", "f1_f2_f3"),
            ("f1_f2_f3__f5", "-3,_,0", "f1_f2"),
            ("/f1////f2/f3/f4", "2,/", "f2"),
            ("__", "1,_", "<none>"),
            ("__", "-1,_", "<none>"),
            ("", "1,_", "<none>"),
            ("abc", "-1,_", "abc"),
            ("abc__", "1,_,2", "abc__"),
            ("__abc__d__", "1,_,2", "abc__d"),
            ("__abc__d__", "1,_,9", "abc__d__"),
            ("__abc__d__", "-1,_,9", "__abc__d"),
            ("__abc__d__", "-2,_,0", "__abc"),
            ("__abc__d__", "-2,_,1", "abc"),
            ("__abc__d__", "2,_,0", "d__"),
            ("__abc__d__", "-3,_,0", "<none>"),
            ("__abc__d__", "2,_,-1", "d__"),
        ];
        for (text, arguments, expected) in rows {
            let text = format!("str({text}),word({arguments})");
            assert_eq!(Scene::default().eval(&text), *expected, "{text}");
        }
    }

    #[test]
    fn parameters_are_found() {
        check_rows(
            &Scene::default(),
            &[
                ("str(a=b&c=d&a=r),param(a)", "b"),
                ("str(a&b=c),param(a)", ""),
                ("str(a=&b&c=a),param(b)", ""),
                ("str(a=1;b=2;c=4),param(b,;)", "2"),
                ("str(a=1;b=2;c=4),param(b,0x3B)", "2"),
                ("str(a=1&b=2),param(z)", "<none>"),
                ("str(ab=1&b=2),param(b)", "2"),
                ("str(a=1=2&b),param(a)", "1=2"),
                (
                    "str(a=1),param(b,ab)",
                    "!invalid args in converter 'param' : Delimiter must be either exactly 1 character, or 0xHH for an ASCII code .",
                ),
            ],
        );
    }

    #[test]
    fn hosts_and_ports_are_parted() {
        let rows: &[(&str, &str, &str)] = &[
            ("Example.COM:80", "example.com", "80"),
            ("127.0.0.1", "127.0.0.1", "0"),
            ("[::1]:80", "[::1]", "80"),
            ("[::1]", "[::1]", "0"),
            ("[::1", "[:", "1"),
            ("a:", "a", "0"),
            (":80", "", "80"),
            ("", "", "0"),
            ("a:b:80", "a:b", "80"),
            ("::1", ":", "1"),
            ("a:99999", "a", "99999"),
            ("a:80x", "a", "872"),
            ("a:!", "a", "4294967281"),
            ("a:99999999999", "a", "1215752191"),
        ];
        for (text, host, port) in rows {
            assert_eq!(Scene::default().eval(&format!("str({text}),host_only")), *host, "{text}");
            assert_eq!(Scene::default().eval(&format!("str({text}),port_only")), *port, "{text}");
        }
    }

    #[test]
    fn languages_are_chosen() {
        let rows: &[(&str, &str, &str)] = &[
            ("es", "es;fr;en", "es"),
            ("de;q=0.8,fr;q=0.9,en", "es;fr;en", "en"),
            ("de;q=0.8,fr;q=0.9,en;q=0.1", "es;fr;en", "fr"),
            ("de-at;q=0.8,fr;q=0.7", "de;fr;de-at", "de"),
            ("xx", "de;fr", "<none>"),
            ("xx", "de;fr,zz", "zz"),
            ("fr;q=0", "de;fr,zz", "zz"),
            ("fr;q=0.5,de;q=0.5", "de;fr,zz", "fr"),
            ("*", "de;fr,zz", "zz"),
            ("FR", "de;fr,zz", "zz"),
            ("fr ; q=0.5 , de;q=0.6", "de;fr,zz", "de"),
            ("fr; q=0.5, de; q=0.6", "de;fr,zz", "de"),
            ("de;q=1.5,fr", "de;fr,zz", "de"),
            ("de;q=x,fr", "de;fr,zz", "de"),
            ("de;foo=1,fr;q=0.5", "de;fr,zz", "de"),
            ("fr-CA,de", "de;fr", "fr"),
            (",,fr", "de;fr", "fr"),
            ("", "de;fr", "<none>"),
        ];
        for (text, arguments, expected) in rows {
            let text = format!("str('{text}'),language({arguments})");
            assert_eq!(Scene::default().eval(&text), *expected, "{text}");
        }
    }
}
