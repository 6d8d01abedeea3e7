//! Fetches of the client's offers in its TLS hello (section 7.3.3, `tune.ssl.capture-buffer-size`). Must never parse a
//! hello: it was captured when the handshake began.

use super::{Fetch, SampleOf, plain};
use crate::sample::{Context, Places, Type, Value};
use crate::{Arguments, Kind, Signature};
use tls::capture::{Capture, List, without_grease};
use tls::suites;

const CLIENT: Places = Places::CLIENT_LAYER5;
/// Whether reserved values are left out (GREASE, RFC 8701).
const FILTER: Signature = Signature::new(0, &[Kind::Int]);

/// Every fetch of the family.
#[rustfmt::skip]
pub const TABLE: &[Fetch] = &[
    filtered("ssl_fc_cipherlist_bin", Type::Bin, "Cipher suites that the client offers.", |c, a| list(c, a, List::Ciphers)),
    filtered("ssl_fc_cipherlist_hex", Type::Str, "Cipher suites that the client offers, in hexadecimal.", hex),
    filtered("ssl_fc_cipherlist_str", Type::Str, "Names of the cipher suites that the client offers.", names),
    plain("ssl_fc_cipherlist_xxh", Type::Int, CLIENT, "XXH64 hash of the cipher suites that the client offers.", |c, _| {
        Some(Value::Int(capture(c)?.hash as i64))
    }),
    plain("ssl_fc_ecformats_bin", Type::Bin, CLIENT, "Elliptic curve point formats that the client offers.", |c, a| list(c, a, List::PointFormats)),
    filtered("ssl_fc_eclist_bin", Type::Bin, "Groups that the client offers.", |c, a| list(c, a, List::Groups)),
    filtered("ssl_fc_extlist_bin", Type::Bin, "Types of the extensions of the ClientHello.", |c, a| list(c, a, List::Extensions)),
    plain("ssl_fc_protocol_hello_id", Type::Int, CLIENT, "Version of the ClientHello.", |c, _| {
        Some(Value::Int(capture(c)?.version.into()))
    }),
    filtered("ssl_fc_sigalgs_bin", Type::Bin, "Signature algorithms that the client offers.", |c, a| list(c, a, List::SignatureAlgorithms)),
    filtered("ssl_fc_supported_versions_bin", Type::Bin, "TLS versions that the client offers.", |c, a| list(c, a, List::Versions)),
];

const fn filtered(name: &'static str, kind: Type, doc: &'static str, eval: SampleOf) -> Fetch {
    Fetch::new(name, FILTER, kind, CLIENT, doc, eval)
}

fn capture<'a>(context: &Context<'a>) -> Option<&'a Capture> {
    context.probes.session()?.tls?.hello.as_deref()
}

/// Returns a list as captured, or without reserved values.
fn captured_list(context: &Context<'_>, arguments: &Arguments, list: List) -> Option<Vec<u8>> {
    let bytes = capture(context)?.list(list);
    Some(if arguments.int(0).unwrap_or(0) == 0 { bytes.to_vec() } else { without_grease(bytes) })
}

fn list<'a>(context: &Context<'a>, arguments: &Arguments, list: List) -> Option<Value<'a>> {
    context.copy(&captured_list(context, arguments, list)?).map(Value::Bin)
}

fn hex<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let text: String =
        captured_list(context, arguments, List::Ciphers)?.iter().map(|byte| format!("{byte:02X}")).collect();
    context.copy(text.as_bytes()).map(Value::Str)
}

fn names<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let bytes = captured_list(context, arguments, List::Ciphers)?;
    let numbers = bytes.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
    let names =
        numbers.map(|number| suites::name(number).map_or_else(|| format!("UNKNOWN({number:04x})"), str::to_owned));
    context.copy(names.collect::<Vec<_>>().join(",").as_bytes()).map(Value::Str)
}
