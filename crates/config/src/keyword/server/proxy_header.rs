//! Options that send a PROXY header at the start of a connection (configuration manual, section 5.2; PROXY protocol,
//! section 2).

use super::{ServerContext, ServerOption, supported};
use crate::document::Word;
use crate::keyword::argument::Arity;
use crate::span::Spanned;
use crate::spec::ProxyFieldSpec;

/// Every keyword of the family.
pub(super) const TABLE: &[ServerOption] = &[
    supported(Arity::None, "send-proxy", "", "Sends a PROXY header.", send),
    supported(Arity::None, "send-proxy-v2", "", "Sends a PROXY v2 header.", send_v2),
    supported(
        Arity::One,
        "proxy-v2-options",
        "<option>[,<option>...]",
        "Optional contents of the PROXY v2 header; 'pass-tlv' is Weir's own.",
        options,
    ),
    supported(Arity::One, "set-proxy-v2-tlv-fmt", "(<type>) <format>", "Adds a field to the PROXY v2 header.", field),
    supported(Arity::None, "send-proxy-v2-ssl", "", "Sends a PROXY v2 header with TLS details.", send_v2_ssl),
    supported(
        Arity::None,
        "send-proxy-v2-ssl-cn",
        "",
        "Sends a PROXY v2 header with TLS details and the client's common name.",
        send_v2_ssl,
    ),
    supported(Arity::None, "no-send-proxy", "", "Undoes an inherited \"send-proxy\".", no_send),
    supported(Arity::None, "no-send-proxy-v2", "", "Undoes an inherited \"send-proxy-v2\".", no_send_v2),
    supported(Arity::None, "no-send-proxy-v2-ssl", "", "Undoes an inherited \"send-proxy-v2-ssl\".", no_send_v2_ssl),
    supported(
        Arity::None,
        "no-send-proxy-v2-ssl-cn",
        "",
        "Undoes an inherited \"send-proxy-v2-ssl-cn\".",
        no_send_v2_ssl,
    ),
];

fn send(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.connecting.proxy_header.v1 = true;
}

fn no_send(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.connecting.proxy_header.v1 = false;
}

fn send_v2(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.connecting.proxy_header.v2 = true;
}

fn no_send_v2(context: &mut ServerContext<'_>, _: &Word, _: Option<&Word>) {
    context.draft.connecting.proxy_header.v2 = false;
}

/// The TLS details exist in version 2 only, and are switched with it.
fn send_v2_ssl(context: &mut ServerContext<'_>, keyword: &Word, _: Option<&Word>) {
    let header = &mut context.draft.connecting.proxy_header;
    (header.v2, header.ssl) = (true, true);
    header.client_name |= keyword.text.ends_with("-cn");
}

fn no_send_v2_ssl(context: &mut ServerContext<'_>, keyword: &Word, _: Option<&Word>) {
    let header = &mut context.draft.connecting.proxy_header;
    (header.v2, header.ssl) = (false, false);
    header.client_name &= !keyword.text.ends_with("-cn");
}

fn options(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    let span = value.map_or(keyword.span, |word| word.span);
    let header = &mut context.draft.connecting.proxy_header;
    for option in value.map_or("", |word| &word.text).split(',') {
        let of_tls = match option {
            "crc32c" => {
                header.checksum = true;
                continue;
            }
            "unique-id" => {
                header.unique_id = true;
                continue;
            }
            "authority" => {
                header.authority = true;
                continue;
            }
            "pass-tlv" => {
                header.pass_tlvs = Some(span);
                continue;
            }
            "ssl" => &mut header.ssl,
            "cert-cn" => &mut header.client_name,
            "ssl-cipher" => &mut header.cipher,
            "cert-sig" => &mut header.signature,
            "cert-key" => &mut header.key,
            unknown => {
                context.error(span, format!("'{unknown}' : proxy v2 option not implemented."));
                return;
            }
        };
        *of_tls = true;
        header.ssl = true;
    }
}

fn field(context: &mut ServerContext<'_>, keyword: &Word, value: Option<&Word>) {
    let name = &keyword.text;
    // The default type is 0.
    let kind = name.split_once('(').map_or("0)", |(_, rest)| rest);
    let hexadecimal = kind.strip_prefix("0x").or_else(|| kind.strip_prefix("0X"));
    let (digits, base) = hexadecimal.map_or((kind, 10), |digits| (digits, 16));
    let end = digits.find(|found: char| !found.is_digit(base)).unwrap_or(digits.len());
    let number = i64::from_str_radix(&digits[..end], base);
    if number.is_ok() && !digits[end..].starts_with(')') {
        return context.error(keyword.span, format!("'{name}' : expects set-proxy-v2-tlv(<TLV ID>)."));
    }
    match number.map(u8::try_from) {
        Err(_) => context.error(keyword.span, format!("'{name}' : could not convert TLV ID.")),
        Ok(Err(_)) => context.error(keyword.span, format!("'{name}' : the maximum allowed TLV ID is 255.")),
        Ok(Ok(kind)) => {
            let format = match value {
                Some(word) => Spanned::new(word.text.clone(), word.span),
                None => Spanned::new(String::new(), keyword.span),
            };
            context.draft.connecting.proxy_header.fields.push(ProxyFieldSpec { kind, format });
        }
    }
}
