//! Converters of base64 (RFC 4648, sections 4 and 5), and the decoder that others use.

use super::Converter;
use crate::expression::{Arguments, Signature};
use crate::sample::{Context, Text, Type, Value};

/// Every converter of the family.
pub const TABLE: &[Converter] = &[
    Converter::new("b64dec", Signature::NONE, (Type::Str, Type::Bin), "Decoded from base64.", decode),
    Converter::new("base64", Signature::NONE, (Type::Bin, Type::Str), "Encoded in base64.", encode),
    Converter::new("ub64dec", Signature::NONE, (Type::Str, Type::Bin), "Decoded from base64url.", decode_url),
    Converter::new("ub64enc", Signature::NONE, (Type::Bin, Type::Str), "Encoded in base64url.", encode_url),
];

const STANDARD: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const URL_SAFE: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

/// What a character stands for; 64 and more: it is none of the alphabet.
const fn values(alphabet: &[u8; 64]) -> [u8; 256] {
    let mut values = [0xff; 256];
    let mut index = 0;
    while index < 64 {
        values[alphabet[index] as usize] = index as u8;
        index += 1;
    }
    values
}

static STANDARD_VALUES: [u8; 256] = values(STANDARD);
static URL_SAFE_VALUES: [u8; 256] = values(URL_SAFE);

/// Appends the code of some bytes.
pub(super) fn put(text: &mut Text<'_>, bytes: &[u8]) {
    put_in(text, bytes, STANDARD, true);
}

fn put_in(text: &mut Text<'_>, bytes: &[u8], alphabet: &[u8; 64], padded: bool) {
    for chunk in bytes.chunks(3) {
        let at = |index: usize| u32::from(chunk.get(index).copied().unwrap_or(0));
        let bits = at(0) << 16 | at(1) << 8 | at(2);
        for index in 0..4 {
            if index <= chunk.len() {
                text.push(alphabet[(bits >> (18 - 6 * index) & 63) as usize]);
            } else if padded {
                text.push(b'=');
            }
        }
    }
}

fn encode<'a>(context: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let bytes = value.bytes()?;
    let mut text = context.text(bytes.len().div_ceil(3) * 4);
    put(&mut text, bytes);
    text.finish().map(Value::Str)
}

fn encode_url<'a>(context: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let bytes = value.bytes()?;
    let mut text = context.text(bytes.len().div_ceil(3) * 4);
    put_in(&mut text, bytes, URL_SAFE, false);
    text.finish().map(Value::Str)
}

/// Decodes base64. Every four characters may end in padding; bits that are left over are ignored.
pub(crate) fn decoded<'a>(context: &Context<'a>, bytes: &[u8]) -> Option<&'a [u8]> {
    let mut text = context.text(bytes.len() / 4 * 3);
    each_decoded(bytes, |bytes| text.extend(bytes))?;
    text.finish()
}

/// The same while a configuration is read.
pub(crate) fn decoded_vec(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::new();
    each_decoded(bytes, |bytes| decoded.extend_from_slice(bytes))?;
    Some(decoded)
}

fn each_decoded(bytes: &[u8], mut take: impl FnMut(&[u8])) -> Option<()> {
    let (chunks, []) = bytes.as_chunks::<4>() else {
        return None;
    };
    for chunk in chunks {
        let padding = chunk.iter().rev().take_while(|byte| **byte == b'=').count();
        if padding > 2 {
            return None;
        }
        let mut bits = 0_u32;
        for byte in &chunk[..4 - padding] {
            let value = STANDARD_VALUES[usize::from(*byte)];
            bits = bits << 6 | u32::from((value < 64).then_some(value)?);
        }
        let bits = (bits << (6 * padding)).to_be_bytes();
        take(&bits[1..4 - padding]);
    }
    Some(())
}

/// Decodes base64url without padding. A `=` counts as 63, as HAProxy counts it.
pub(super) fn decoded_url<'a>(context: &Context<'a>, bytes: &[u8]) -> Option<&'a [u8]> {
    let mut text = context.text(bytes.len() / 4 * 3 + 2);
    each_decoded_url(bytes, |bytes| text.extend(bytes))?;
    text.finish()
}

/// The same into memory of its own.
pub(super) fn decoded_url_vec(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut decoded = Vec::with_capacity(bytes.len() / 4 * 3 + 2);
    each_decoded_url(bytes, |bytes| decoded.extend_from_slice(bytes))?;
    Some(decoded)
}

fn each_decoded_url(bytes: &[u8], mut take: impl FnMut(&[u8])) -> Option<()> {
    if bytes.len() % 4 == 1 {
        return None;
    }
    for chunk in bytes.chunks(4) {
        let mut bits = 0;
        for byte in chunk {
            let value = if *byte == b'=' { 63 } else { URL_SAFE_VALUES[usize::from(*byte)] };
            bits = bits << 6 | u32::from((value < 64).then_some(value)?);
        }
        let bits = (bits << (6 * (4 - chunk.len()))).to_be_bytes();
        take(&bits[1..chunk.len()]);
    }
    Some(())
}

fn decode<'a>(context: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    decoded(context, value.bytes()?).map(Value::Bin)
}

fn decode_url<'a>(context: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    decoded_url(context, value.bytes()?).map(Value::Bin)
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn blocks_are_encoded_and_decoded() {
        check_rows(
            &Scene::default(),
            &[
                ("str(abc),base64", "YWJj"),
                ("str(abcd),base64", "YWJjZA=="),
                ("str(ab?>),base64", "YWI/Pg=="),
                ("str(ab?>),ub64enc", "YWI_Pg"),
                ("bin(fffefdfc),ub64enc", "__79_A"),
                ("str(),base64", ""),
                ("str(YWJjZA==),b64dec", "61626364"),
                ("str(YWJjZA=),b64dec", "<none>"),
                ("str(YWJjZA),b64dec", "<none>"),
                ("str(YW==YW==),b64dec", "6161"),
                ("str(YW=j),b64dec", "<none>"),
                ("str(YWJjZB==),b64dec", "61626364"),
                ("str(!!!!),b64dec", "<none>"),
                ("str(),b64dec", ""),
                ("str(YWJjZA),ub64dec", "61626364"),
                ("str(YWI_Pg),ub64dec", "61623f3e"),
                ("str(YWI/Pg),ub64dec", "<none>"),
                ("str(YWI_P),ub64dec", "<none>"),
                ("str(YWJjZA==),ub64dec", "616263640fff"),
                ("str(YW=j),ub64dec", "616fe3"),
                ("str(YW=),ub64dec", "616f"),
                ("str(Y=),ub64dec", "63"),
            ],
        );
    }
}
