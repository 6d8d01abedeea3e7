//! Converters of base64 ([`crate::base64`]).

use super::Converter;
use crate::sample::{Context, Type, Value};
use crate::{Arguments, Signature};
use base::base64;

/// Every converter of the family.
pub const TABLE: &[Converter] = &[
    Converter::new("b64dec", Signature::NONE, Type::Str, Type::Bin, "Decodes base64.", decode),
    Converter::new("base64", Signature::NONE, Type::Bin, Type::Str, "Encodes in base64.", encode),
    Converter::new("ub64dec", Signature::NONE, Type::Str, Type::Bin, "Decodes base64url.", decode_url),
    Converter::new("ub64enc", Signature::NONE, Type::Bin, Type::Str, "Encodes in base64url.", encode_url),
];

fn encode<'a>(context: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let bytes = value.bytes()?;
    let mut text = context.text(bytes.len().div_ceil(3) * 4);
    base64::encode(bytes, |byte| text.push(byte));
    text.finish().map(Value::Str)
}

fn encode_url<'a>(context: &Context<'a>, value: Value<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let bytes = value.bytes()?;
    let mut text = context.text(bytes.len().div_ceil(3) * 4);
    base64::encode_url(bytes, |byte| text.push(byte));
    text.finish().map(Value::Str)
}

/// Decodes base64 into the memory of an evaluation.
pub(super) fn decoded<'a>(context: &Context<'a>, bytes: &[u8]) -> Option<&'a [u8]> {
    let mut text = context.text(bytes.len() / 4 * 3);
    base64::decode(bytes, |bytes| text.extend(bytes))?;
    text.finish()
}

/// Decodes base64url into the memory of an evaluation.
pub(super) fn decoded_url<'a>(context: &Context<'a>, bytes: &[u8]) -> Option<&'a [u8]> {
    let mut text = context.text(bytes.len() / 4 * 3 + 2);
    base64::decode_url(bytes, |bytes| text.extend(bytes))?;
    text.finish()
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
