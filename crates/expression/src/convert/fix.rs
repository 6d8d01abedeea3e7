//! Converters of FIX (Financial Information eXchange): validation of a message, and its tags.

use super::Converter;
use crate::sample::{Context, MissingInput, Type, Value};
use crate::{Argument, Arguments, Checking, Kind, Signature};

/// Every converter of the family.
pub const TABLE: &[Converter] = &[
    Converter::new(
        "fix_is_valid",
        Signature::NONE,
        Type::Bin,
        Type::Bool,
        "Whether the data starts with a FIX message with valid first tags, length and checksum.",
        is_valid,
    ),
    Converter::new(
        "fix_tag_value",
        Signature::new(1, &[Kind::Str]),
        Type::Bin,
        Type::Bin,
        "Value of a FIX tag, by number or name.",
        tag_value,
    )
    .checked(check_tag),
];

/// The delimiter that ends a tag.
const END: u8 = 1;
/// The tag that ends a message.
const CHECKSUM: u32 = 10;

const VERSIONS: [&[u8]; 6] = [b"FIX.4.0", b"FIX.4.1", b"FIX.4.2", b"FIX.4.3", b"FIX.4.4", b"FIXT.1.1"];

fn check_tag(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    let name = arguments.utf8(0).unwrap_or_default();
    let tag = match name {
        "BeginString" => 8,
        "BodyLength" => 9,
        "CheckSum" => 10,
        "MsgType" => 35,
        "SenderCompID" => 49,
        "TargetCompID" => 56,
        other => match other.parse::<u32>() {
            Ok(tag) if tag > 0 => tag,
            _ => return Err(format!("Unknown FIX tag name '{name}'")),
        },
    };
    arguments.set(0, Argument::Int(i64::from(tag)));
    Ok(())
}

/// Takes a tag from the front: its number and its value. `None`: no delimiter.
fn take<'a>(rest: &mut &'a [u8]) -> Option<(Option<u32>, &'a [u8])> {
    let end = memchr::memchr(END, rest)?;
    let (tag, behind) = (&rest[..end], &rest[end + 1..]);
    *rest = behind;
    let at = memchr::memchr(b'=', tag).unwrap_or(tag.len());
    Some((number(&tag[..at]), tag.get(at + 1..).unwrap_or_default()))
}

/// Parses the number of a tag.
fn number(text: &[u8]) -> Option<u32> {
    std::str::from_utf8(text).ok().filter(|digits| !digits.starts_with('+'))?.parse().ok()
}

fn tag_value<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (mut rest, wanted) = (value.bytes()?, arguments.int(0)?);
    loop {
        let Some(named) = memchr::memchr(b'=', rest) else { return context.missing(MissingInput::Bytes) };
        let tag = number(&rest[..named]);
        let Some(end) = memchr::memchr(END, &rest[named..]) else { return context.missing(MissingInput::Bytes) };
        let found = &rest[named + 1..named + end];
        if tag.is_some_and(|tag| i64::from(tag) == wanted) {
            if found.is_empty() {
                return None;
            }
            context.settled();
            return Some(Value::Bin(found));
        }
        if matches!(tag, None | Some(CHECKSUM)) {
            // The message ends with this tag.
            context.settled();
            return None;
        }
        rest = &rest[named + end + 1..];
    }
}

fn is_valid<'a>(context: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    match validate(value.bytes()?) {
        Some(is_valid) => {
            context.settled();
            Some(Value::Bool(is_valid))
        }
        None => context.missing(MissingInput::Bytes),
    }
}

/// Whether a message is valid; `None` when it is incomplete.
fn validate(bytes: &[u8]) -> Option<bool> {
    /// `10=ddd` and its delimiter.
    const TRAILER: usize = 7;
    /// Length of the shortest possible message.
    const SHORTEST: usize = 26;
    let mut rest = bytes;
    if bytes.len() < SHORTEST {
        return None;
    }
    // Without a `=` there is no complete tag name yet.
    memchr::memchr(b'=', rest)?;
    match take(&mut rest)? {
        (Some(8), version) if VERSIONS.contains(&version) => {}
        _ => return Some(false),
    }
    let (Some(9), length) = take(&mut rest)? else {
        return Some(false);
    };
    let Some(length) = std::str::from_utf8(length).ok().and_then(|digits| digits.parse::<u32>().ok()) else {
        return Some(false);
    };
    let length = length as usize;
    if rest.len() < length.saturating_add(TRAILER) {
        // A checksum ends the message, whatever the announced length.
        while let Some((tag, _)) = take(&mut rest) {
            if tag == Some(CHECKSUM) {
                return Some(false);
            }
        }
        return None;
    }
    let (mut body, trailer) = rest.split_at(length);
    let summed = &bytes[..bytes.len() - trailer.len()];
    if !body.starts_with(b"35=") || body.last() != Some(&END) {
        return Some(false);
    }
    while !body.is_empty() {
        if !matches!(take(&mut body), Some((Some(_), _))) {
            return Some(false);
        }
    }
    let sum = summed.iter().fold(0_u8, |sum, byte| sum.wrapping_add(*byte));
    let mut trailer = &trailer[..TRAILER];
    let (Some((Some(CHECKSUM), digits)), []) = (take(&mut trailer), trailer) else {
        return Some(false);
    };
    let told = std::str::from_utf8(digits).ok().and_then(|digits| digits.parse::<u8>().ok());
    Some(told == Some(sum))
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::Scene;

    /// A message with that body; `|` is replaced with the delimiter.
    fn message(version: &str, body: &str) -> Vec<u8> {
        let start = format!("8={version}|9={}|{body}", body.len()).replace('|', "\x01");
        let sum = start.bytes().fold(0_u8, u8::wrapping_add);
        format!("{start}10={sum:03}\x01").into_bytes()
    }

    #[track_caller]
    fn check(bytes: &[u8], converter: &str, expected: &str) {
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        let text = format!("bin({hex}),{converter}");
        let scene = Scene { complete: true, ..Scene::default() };
        assert_eq!(scene.eval(&text), expected, "{converter} {}", String::from_utf8_lossy(bytes));
    }

    #[test]
    fn messages_are_judged() {
        let ok = message("FIX.4.4", "35=A|49=S|56=T|");
        check(&ok, "fix_is_valid", "1");
        check(&message("FIXT.1.1", "35=A|"), "fix_is_valid", "1");
        check(&message("FIX.4.4", "35=A|49=|"), "fix_is_valid", "1");
        check(&message("FIX.4.4", "35=A|58=a=b|"), "fix_is_valid", "1");
        check(&message("FIX.5.0", "35=A|"), "fix_is_valid", "0");
        check(&message("FIX.4.4", "49=S|"), "fix_is_valid", "0");
        check(&message("FIX.4.4", "35=A|x=1|"), "fix_is_valid", "0");
        check(&ok[..ok.len() - 3], "fix_is_valid", "<none>");
        check(b"8=FIX.4.4\x01", "fix_is_valid", "<none>");
        check(&[&b"35=A\x01"[..], &ok].concat(), "fix_is_valid", "0");
        check(&[&ok[..], b"8=FIX"].concat(), "fix_is_valid", "1");
        let mut wrong = ok.clone();
        let digit = wrong.len() - 2;
        wrong[digit] ^= 1;
        check(&wrong, "fix_is_valid", "0");
    }

    #[test]
    fn tags_are_found() {
        let ok = message("FIX.4.4", "35=A|49=S|56=T|");
        for (tag, expected) in [
            ("35", "41"),
            ("MsgType", "41"),
            ("SenderCompID", "53"),
            ("56", "54"),
            ("BodyLength", "3135"),
            ("CheckSum", "323234"),
            ("99", "<none>"),
            ("foo", "!invalid args in converter 'fix_tag_value' : Unknown FIX tag name 'foo'"),
            ("0", "!invalid args in converter 'fix_tag_value' : Unknown FIX tag name '0'"),
        ] {
            check(&ok, &format!("fix_tag_value({tag})"), expected);
        }
        check(&message("FIX.4.4", "35=A|49=|"), "fix_tag_value(49)", "<none>");
        check(&message("FIX.4.4", "35=A|58=a=b|"), "fix_tag_value(58)", "613d62");
    }
}
