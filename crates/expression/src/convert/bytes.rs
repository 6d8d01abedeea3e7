//! Converters of binary samples: parts of them, and their bytes as digits.

use super::Converter;
use super::operand::{number, to_number};
use crate::sample::{Context, Text, Type, Value};
use crate::{Argument, Arguments, Checking, Kind, Signature};
use std::fmt::Write as _;

const CHUNKS: Signature = Signature::new(1, &[Kind::Str, Kind::Int, Kind::Int]);

/// Every converter of the family.
pub const TABLE: &[Converter] = &[
    Converter::new("base2", Signature::NONE, Type::Bin, Type::Str, "Converts to binary digits.", binary_digits),
    Converter::new(
        "be2dec",
        CHUNKS,
        Type::Bin,
        Type::Str,
        "Converts chunks of that number of big-endian bytes to decimal numbers, separated by a delimiter.",
        big_endian,
    )
    .checked(check_decimal),
    Converter::new(
        "be2hex",
        CHUNKS,
        Type::Bin,
        Type::Str,
        "Converts chunks of that number of bytes to hexadecimal digits, separated by a delimiter.",
        hex_chunks,
    )
    .checked(check_hex),
    Converter::new(
        "bytes",
        Signature::new(1, &[Kind::Str, Kind::Str]),
        Type::Bin,
        Type::Bin,
        "Extracts bytes from an offset on, up to a length.",
        part,
    )
    .checked(check_part),
    Converter::new(
        "has_ctl",
        Signature::new(0, &[Kind::Str]),
        Type::Bin,
        Type::Bool,
        "True if the string contains control characters: all but tabs, or those of a mask.",
        has_control,
    )
    .checked(check_control),
    Converter::new(
        "hex",
        Signature::NONE,
        Type::Bin,
        Type::Str,
        "Converts to hexadecimal digits, two for each byte.",
        hex,
    ),
    Converter::new(
        "hex2i",
        Signature::NONE,
        Type::Str,
        Type::Int,
        "Converts hexadecimal digits to an integer.",
        hex_to_integer,
    ),
    Converter::new(
        "htonl",
        Signature::NONE,
        Type::Int,
        Type::Bin,
        "Lower 32 bits in network byte order.",
        network_order,
    ),
    Converter::new(
        "le2dec",
        CHUNKS,
        Type::Bin,
        Type::Str,
        "Converts chunks of that number of little-endian bytes to decimal numbers, separated by a delimiter.",
        little_endian,
    )
    .checked(check_decimal),
];

fn push_hex(text: &mut Text<'_>, byte: u8) {
    text.extend(&base::hex::upper(byte));
}

fn hex<'a>(context: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let bytes = value.bytes()?;
    let mut text = context.text(bytes.len() * 2);
    bytes.iter().for_each(|byte| push_hex(&mut text, *byte));
    text.finish().map(Value::Str)
}

fn binary_digits<'a>(context: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let bytes = value.bytes()?;
    let mut text = context.text(bytes.len() * 8);
    for byte in bytes {
        (0..8).rev().for_each(|bit| text.push(b'0' + (byte >> bit & 1)));
    }
    text.finish().map(Value::Str)
}

fn hex_to_integer<'a>(_: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let digits = value.bytes()?.iter().map(|byte| base::hex::digit(*byte));
    let sum = digits.into_iter().try_fold(0_u64, |sum, digit| Some(sum << 4 | u64::from(digit?)))?;
    Some(Value::Int(sum as i64))
}

fn network_order<'a>(context: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    context.copy(&(value.integer()? as u32).to_be_bytes()).map(Value::Bin)
}

fn check_part(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    to_number(arguments, 0)?;
    to_number(arguments, 1)?;
    if arguments.int(0).is_some_and(|offset| offset < 0) {
        return Err("expects a non-negative integer".to_owned());
    }
    if arguments.int(1).is_some_and(|length| length <= 0) {
        return Err("expects a positive integer".to_owned());
    }
    Ok(())
}

fn part<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let bytes = value.bytes()?;
    let offset = usize::try_from(number(context, arguments, 0)?).ok()?;
    let rest = bytes.get(offset..).unwrap_or_default();
    if !arguments.has(1) {
        return Some(Value::Bin(rest));
    }
    let length = usize::try_from(number(context, arguments, 1)?).ok()?;
    Some(Value::Bin(&rest[..length.min(rest.len())]))
}

fn check_truncate(arguments: &Arguments) -> Result<(), String> {
    match arguments.int(2) {
        None | Some(0 | 1) => Ok(()),
        Some(other) => Err(format!("Unsupported truncate value ({other})")),
    }
}

fn check_decimal(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    let size = arguments.int(1).unwrap_or(0);
    if !(1..=8).contains(&size) {
        return Err(format!("chunk_size out of [1..8] range ({size})"));
    }
    check_truncate(arguments)
}

fn check_hex(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    let is_plain = arguments.text(0).is_none_or(<[u8]>::is_empty) && !arguments.has(1);
    let size = arguments.int(1).unwrap_or(0);
    if size <= 0 && !is_plain {
        return Err(format!("chunk_size needs to be positive ({size})"));
    }
    check_truncate(arguments)
}

/// Writes every chunk into a text, with the separator between them.
fn chunks<'a>(
    context: &Context<'a>,
    bytes: &[u8],
    arguments: &Arguments,
    size: usize,
    put: impl Fn(&mut Text<'a>, &[u8]),
) -> Option<Value<'a>> {
    let whole_only = arguments.int(2) == Some(1);
    let separator = arguments.text(0).unwrap_or_default();
    let mut text = context.text(bytes.len() * 3);
    for (index, chunk) in bytes.chunks(size).enumerate() {
        if whole_only && chunk.len() < size {
            break;
        }
        if index > 0 {
            text.extend(separator);
        }
        put(&mut text, chunk);
        if text.overflowed() {
            return None;
        }
    }
    text.finish().map(Value::Str)
}

fn size(arguments: &Arguments) -> Option<usize> {
    usize::try_from(arguments.int(1)?).ok()
}

fn hex_chunks<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let bytes = value.bytes()?;
    let size = size(arguments).unwrap_or(bytes.len().max(1));
    chunks(context, bytes, arguments, size, |text, chunk| chunk.iter().for_each(|byte| push_hex(text, *byte)))
}

fn big_endian<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    chunks(context, value.bytes()?, arguments, size(arguments)?, |text, chunk| {
        put_number(text, chunk.iter().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
    })
}

fn little_endian<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    chunks(context, value.bytes()?, arguments, size(arguments)?, |text, chunk| {
        put_number(text, chunk.iter().rev().fold(0, |sum, byte| sum << 8 | u64::from(*byte)));
    })
}

/// The text records an overflow itself.
fn put_number(text: &mut Text<'_>, number: u64) {
    let _ = write!(text, "{number}");
}

/// Bit n: the control character n; bit 32: DEL.
const ALL_CONTROL: u64 = 0x1_ffff_ffff;
const ALL_BUT_TAB: i64 = 0x1_ffff_fdff;

fn check_control(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    let text = match arguments.utf8(0) {
        None | Some("") => {
            arguments.set(0, Argument::Int(ALL_BUT_TAB));
            return Ok(());
        }
        Some("any") => "0x1FFFFFFFF",
        Some("http") => "0x2401",
        Some(text) => text,
    };
    let (radix, start) = match text.get(..2) {
        Some("0x" | "0X") => (16, 2),
        _ => (10, usize::from(text.starts_with('-'))),
    };
    if let Some(at) = text[start..].find(|letter: char| !letter.is_digit(radix)).filter(|_| text.len() > start) {
        return Err(format!(
            "cannot parse value '{text}', problem at position {}; expecting an integer value (decimal or hex with '0x' \
             prefix)",
            start + at
        ));
    }
    let number =
        i128::from_str_radix(if radix == 16 { &text[2..] } else { text }, radix).unwrap_or(i128::from(u64::MAX));
    let mask = number as u64;
    if mask & !ALL_CONTROL != 0 {
        let excess = mask & !ALL_CONTROL;
        return Err(format!("unsupported excess bits {excess:#x} in argument value {text}"));
    }
    arguments.set(0, Argument::Int(mask as i64));
    Ok(())
}

fn has_control<'a>(_: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let mask = arguments.int(0).unwrap_or(ALL_BUT_TAB);
    let found = value.bytes()?.iter().any(|byte| match byte {
        0..32 => mask >> byte & 1 == 1,
        0x7f => mask >> 32 & 1 == 1,
        _ => false,
    });
    Some(Value::Bool(found))
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn parts_are_taken() {
        check_rows(
            &Scene::default(),
            &[
                ("str(abc),bytes(1)", "6263"),
                ("str(abc),bytes(1,1)", "62"),
                ("str(abc),bytes(1,9)", "6263"),
                ("str(abc),bytes(3)", ""),
                ("str(abc),bytes(4)", ""),
                ("str(abc),bytes", "616263"),
                ("int(1),set-var(txn.n),str(abc)", "!unknown converter 'str'"),
                ("int(1),set-var(txn.n),bytes(7,txn.n)", "01"),
                ("str(abc),length,set-var(txn.n),bytes(txn.n)", "0000000003"),
                ("int(-3),set-var(txn.n),bytes(txn.n)", "<none>"),
                ("int(-3),set-var(txn.n),bytes(1,txn.n)", "<none>"),
                ("str(abc),bytes(txn.nope)", "<none>"),
                ("str(abc),bytes(1,txn.nope)", "<none>"),
                ("str(abc),bytes(-1)", "!invalid args in converter 'bytes' : expects a non-negative integer"),
                ("str(abc),bytes(0,0)", "!invalid args in converter 'bytes' : expects a positive integer"),
                ("str(abc),bytes(1,)", "!invalid args in converter 'bytes' : expects a positive integer"),
                ("str(abc),bytes(x)", "!invalid args in converter 'bytes' : expects an integer or a variable name"),
            ],
        );
    }

    #[test]
    fn bytes_become_digits() {
        check_rows(
            &Scene::default(),
            &[
                ("str(abc),hex", "616263"),
                ("int(-1),htonl", "ffffffff"),
                ("int(-1),htonl,hex", "FFFFFFFF"),
                ("int(4294967297),htonl", "00000001"),
                ("str(ff),hex2i", "255"),
                ("str(abc),hex2i", "2748"),
                ("str(fffffffffffffffff),hex2i", "-1"),
                ("str(xyz),hex2i", "<none>"),
                ("str(0xff),hex2i", "<none>"),
                ("str(),hex2i", "0"),
                ("str(abc),base2", "011000010110001001100011"),
                ("bin(01020304050607),be2dec(:,2)", "258:772:1286:7"),
                ("bin(01020304050607),be2dec(-,2,1)", "258-772-1286"),
                ("bin(01020304050607),be2dec(,2,0)", "25877212867"),
                ("bin(01020304050607),be2dec(:,8,1)", ""),
                ("bin(7f000001),be2dec(.,1)", "127.0.0.1"),
                ("bin(ffffffffffffffffff),be2dec(:,8,0)", "18446744073709551615:255"),
                ("bin(01020304050607),le2dec(:,2)", "513:1027:1541:7"),
                ("bin(01020304050607),le2dec(,2,1)", "51310271541"),
                ("bin(01020304050607),be2hex", "01020304050607"),
                ("bin(01020304050607),be2hex(:,2)", "0102:0304:0506:07"),
                ("bin(01020304050607),be2hex(--,2,1)", "0102--0304--0506"),
                ("bin(0102030405060708),be2hex(,3,1)", "010203040506"),
                ("bin(0102030405060708),be2hex(:,100,1)", ""),
                ("bin(01),be2dec(:,9)", "!invalid args in converter 'be2dec' : chunk_size out of [1..8] range (9)"),
                ("bin(01),be2dec", "!invalid args in converter 'be2dec' : chunk_size out of [1..8] range (0)"),
                ("bin(01),be2dec(:,2,2)", "!invalid args in converter 'be2dec' : Unsupported truncate value (2)"),
                ("bin(01),be2hex(:)", "!invalid args in converter 'be2hex' : chunk_size needs to be positive (0)"),
                ("bin(01),be2hex(,0,1)", "!invalid args in converter 'be2hex' : chunk_size needs to be positive (0)"),
            ],
        );
    }

    #[test]
    fn control_characters_are_seen() {
        check_rows(
            &Scene::default(),
            &[
                ("str(abc),has_ctl", "0"),
                ("bin(6109),has_ctl", "0"),
                ("bin(6109),has_ctl(any)", "1"),
                ("bin(610a),has_ctl(http)", "1"),
                ("bin(6101),has_ctl(http)", "0"),
                ("bin(617f),has_ctl()", "1"),
                ("bin(617f),has_ctl(0x100000000)", "1"),
                ("bin(617f),has_ctl(4294967296)", "1"),
                ("bin(617f),has_ctl(0)", "0"),
                ("bin(6101),has_ctl(0X2)", "1"),
                (
                    "bin(61),has_ctl(0x200000000)",
                    "!invalid args in converter 'has_ctl' : unsupported excess bits 0x200000000 in argument value 0x200000000",
                ),
                (
                    "bin(61),has_ctl(-1)",
                    "!invalid args in converter 'has_ctl' : unsupported excess bits 0xfffffffe00000000 in argument value -1",
                ),
                (
                    "bin(61),has_ctl(0x1x)",
                    "!invalid args in converter 'has_ctl' : cannot parse value '0x1x', problem at position 3; expecting an integer value (decimal or hex with '0x' prefix)",
                ),
            ],
        );
    }
}
