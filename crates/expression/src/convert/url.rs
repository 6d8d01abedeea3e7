//! Converters of percent-encoding.

use super::Converter;
use crate::sample::{Context, Type, Value};
use crate::{Arguments, Checking, Kind, Signature};
use base::hex;

/// Every converter of the family.
pub const TABLE: &[Converter] = &[
    Converter::new(
        "url_dec",
        Signature::new(0, &[Kind::Int]),
        Type::Str,
        Type::Str,
        "Decodes percent-encoding; a plus sign after a question mark, or with 1 anywhere, becomes a space.",
        decode,
    ),
    Converter::new(
        "url_enc",
        Signature::new(1, &[Kind::Str]),
        Type::Str,
        Type::Str,
        "Percent-encodes for a query string.",
        encode,
    )
    .checked(check_encode),
];

fn decode<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let bytes = value.bytes()?;
    let mut in_form = arguments.int(0).is_some_and(|flag| flag != 0);
    if memchr::memchr3(b'%', b'+', b'?', bytes).is_none() {
        return Some(Value::Str(bytes));
    }
    let mut text = context.text(bytes.len());
    let mut rest = bytes;
    while let Some((byte, behind)) = rest.split_first() {
        rest = behind;
        text.push(match byte {
            b'+' if in_form => b' ',
            b'%' => {
                let (digits, behind) = rest.split_first_chunk::<2>()?;
                rest = behind;
                hex::byte(*digits)?
            }
            other => {
                in_form |= *other == b'?';
                *other
            }
        });
    }
    text.finish().map(Value::Str)
}

fn check_encode(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    match arguments.utf8(0) {
        None | Some("" | "query") => Ok(()),
        Some(_) => Err("Unexpected encode type. Allowed value is 'query'".to_owned()),
    }
}

/// Returns a percent-encoded byte.
fn percent_encoded(byte: u8) -> [u8; 3] {
    let [high, low] = hex::upper(byte);
    [b'%', high, low]
}

fn encode<'a>(context: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let bytes = value.bytes()?;
    let mut text = context.text(bytes.len() * 3);
    for byte in bytes {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            text.push(*byte);
        } else {
            text.extend(&percent_encoded(*byte));
        }
    }
    text.finish().map(Value::Str)
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn texts_are_encoded_and_decoded() {
        check_rows(
            &Scene::default(),
            &[
                ("str(a%20b+c?d+e),url_dec", "a b+c?d e"),
                ("str(a%20b+c?d+e),url_dec(1)", "a b c?d e"),
                ("str(a%20b+c?d+e),url_dec(0)", "a b+c?d e"),
                ("str(a%2),url_dec", "<none>"),
                ("str(a%zz),url_dec", "<none>"),
                ("str(a%),url_dec", "<none>"),
                ("str(a%00b),url_dec,hex", "610062"),
                ("str(%41%4a%4A),url_dec", "AJJ"),
                ("str(%3f+a),url_dec", "?+a"),
                ("str(),url_dec", ""),
                ("str(a b),url_enc", "a%20b"),
                ("str(a b),url_enc(query)", "a%20b"),
                ("str(c?d&e/f~g-h_i.j!k*=:@[]{}),url_enc", "c%3Fd%26e%2Ff~g-h_i.j%21k%2A%3D%3A%40%5B%5D%7B%7D"),
                ("bin(00ff80),url_enc", ""),
                (
                    "str(x),url_enc(path)",
                    "!invalid args in converter 'url_enc' : Unexpected encode type. Allowed value is 'query'",
                ),
            ],
        );
    }
}
