//! Converters of JSON Web Tokens (RFC 7515, RFC 7519) in their compact serialization: queries of their parts, and
//! verification of their signature. Must never read a key from a file while requests are served.

use super::Converter;
use super::algorithm::{Algorithm, is_same};
use super::base64::decoded_url;

use super::json::{ALGORITHM_PATH, query, to_query};
use super::operand::{bytes, to_text_or_variable};
use crate::key::{PublicKey, Scheme, Unusable};
use crate::sample::{Context, Type, Value};
use crate::{Argument, Arguments, Checking, Kind, Signature, TokenAlgorithmUse};
use config::text::from_bytes;
use std::sync::Arc;

const QUERY: Signature = Signature::new(0, &[Kind::Str, Kind::Str]);

/// Every converter of the family.
pub const TABLE: &[Converter] = &[
    Converter::new(
        "jwt_header_query",
        QUERY,
        Type::Bin,
        Type::Any,
        "Header of a JWT, or the value at a JSON path in it.",
        |context, value, arguments| {
            let parts = parts(value.bytes()?)?;
            part(context, parts.0, arguments)
        },
    )
    .checked(check_header_query),
    Converter::new(
        "jwt_payload_query",
        QUERY,
        Type::Bin,
        Type::Any,
        "Payload of a signed JWT, or the value at a JSON path in it.",
        |context, value, arguments| {
            let parts = signed_parts(value.bytes()?)?;
            part(context, parts.1, arguments)
        },
    )
    .checked(check_query),
    Converter::new(
        "jwt_verify",
        Signature::new(2, &[Kind::Str, Kind::Str]),
        Type::Bin,
        Type::Int,
        "1 if the signature of a JWT is valid for the algorithm and the key, 0 if not; negative on errors.",
        verify,
    )
    .checked(check_verify),
    Converter::new(
        "jwt_verify_cert",
        Signature::new(2, &[Kind::Str, Kind::Str]),
        Type::Bin,
        Type::Int,
        "1 if the signature of a JWT is valid for the algorithm and the certificate, 0 if not; negative on errors.",
        verify_cert,
    )
    .checked(check_verify_cert),
];

fn check_query(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    if arguments.text(0).is_none_or(<[u8]>::is_empty) && !arguments.has(1) {
        arguments.set(0, Argument::Absent);
        return Ok(());
    }
    to_query(arguments)
}

fn check_header_query(arguments: &mut Arguments, checking: &Checking<'_>) -> Result<(), String> {
    if arguments.text(0) == Some(ALGORITHM_PATH) {
        checking.names.note_token_algorithm(TokenAlgorithmUse::Read);
    }
    check_query(arguments, checking)
}

/// Returns the first two parts of a token with three or five parts.
fn parts(token: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut parts = token.splitn(6, |byte| *byte == b'.');
    let found = (parts.next()?, parts.next()?);
    matches!(parts.count(), 1 | 3).then_some(found)
}

/// Returns header, payload and signature of a token with three parts.
fn signed_parts(token: &[u8]) -> Option<(&[u8], &[u8], &[u8])> {
    let mut parts = token.splitn(4, |byte| *byte == b'.');
    let found = (parts.next()?, parts.next()?, parts.next()?);
    parts.next().is_none().then_some(found)
}

fn part<'a>(context: &Context<'a>, part: &[u8], arguments: &'a Arguments) -> Option<Value<'a>> {
    let decoded = decoded_url(context, part)?;
    if arguments.has(0) { query(context, decoded, arguments) } else { Some(Value::Bin(decoded)) }
}

/// The signature algorithm of a token (RFC 7518, section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Signing {
    Secret(Algorithm),
    PublicKey(Scheme),
    Unsigned,
}

impl Signing {
    fn named(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"HS256" => Self::Secret(Algorithm::Sha256),
            b"HS384" => Self::Secret(Algorithm::Sha384),
            b"HS512" => Self::Secret(Algorithm::Sha512),
            b"none" => Self::Unsigned,
            name => Self::PublicKey(Scheme::named(name)?),
        })
    }
}

/// HAProxy's result codes when a token cannot be verified.
const UNKNOWN_ALGORITHM: i64 = -1;
const UNMANAGED_ALGORITHM: i64 = -2;
const INVALID_TOKEN: i64 = -3;
const UNKNOWN_KEY: i64 = -5;
const UNAVAILABLE_CERTIFICATE: i64 = -7;

/// A key written in the configuration: a secret, or the path of a file that may have been loaded.
struct ConfiguredKey {
    text: Box<[u8]>,
    key: Option<Arc<PublicKey>>,
}

impl PartialEq for ConfiguredKey {
    /// Equal paths alone do not make keys equal: the loaded keys are compared, too.
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text && self.key.as_ref().map(Arc::as_ptr) == other.key.as_ref().map(Arc::as_ptr)
    }
}

/// Parses the name of the algorithm; `None`: a variable holds it.
fn check_signing(
    converter: &'static str,
    arguments: &mut Arguments,
    checking: &Checking<'_>,
) -> Result<Option<Signing>, String> {
    to_text_or_variable(arguments, 0);
    if let Some(variable) = arguments.variable(0) {
        checking.names.note_token_algorithm(TokenAlgorithmUse::Verified(converter, variable));
    }
    let Some(name) = arguments.utf8(0) else { return Ok(None) };
    Signing::named(name.as_bytes()).map(Some).ok_or_else(|| format!("unknown JWT algorithm: {name}"))
}

fn check_verify(arguments: &mut Arguments, checking: &Checking<'_>) -> Result<(), String> {
    let signing = check_signing("jwt_verify", arguments, checking)?;
    to_text_or_variable(arguments, 1);
    let Some(text) = arguments.text(1).map(Box::<[u8]>::from) else { return Ok(()) };
    let key = match signing {
        Some(Signing::Secret(_)) => None,
        _ => {
            let path = from_bytes(&text);
            let found = checking.names.keys().borrow_mut().load(&text, || checking.names.read_file(&path));
            match found {
                Ok(key) => Some(key),
                // With the algorithm in a variable the text may be a secret.
                Err(_) if signing.is_none() => None,
                Err(why) => return Err(format!("failed to load public key '{path}': {why}")),
            }
        }
    };
    arguments.set(1, Argument::Found(Arc::new(ConfiguredKey { text, key })));
    Ok(())
}

fn check_verify_cert(arguments: &mut Arguments, checking: &Checking<'_>) -> Result<(), String> {
    if let Some(Signing::Secret(_)) = check_signing("jwt_verify_cert", arguments, checking)? {
        return Err("HMAC-signed tokens can't be processed by this converter".to_owned());
    }
    to_text_or_variable(arguments, 1);
    let Some(text) = arguments.text(1).map(Box::<[u8]>::from) else { return Ok(()) };
    let path = from_bytes(&text);
    // As in HAProxy, a missing certificate is reported when a token is verified.
    let found = checking.names.keys().borrow_mut().load_certificate(&text, || checking.names.read_file(&path));
    arguments.set(1, Argument::Found(Arc::new(ConfiguredKey { text, key: found.ok() })));
    Ok(())
}

/// Returns the algorithm of a verification, `None` if a variable for it has no value. The inner error is HAProxy's
/// result code.
fn signing(context: &Context<'_>, arguments: &Arguments) -> Option<Result<Signing, i64>> {
    let found = Signing::named(bytes(context, arguments, 0)?).ok_or(UNKNOWN_ALGORITHM);
    let is_rejected = found == Ok(Signing::Unsigned)
        && arguments.variable(0).is_some()
        && context.program.is_some_and(|program| program.tokens().rejects_unsigned());
    Some(if is_rejected { Err(UNMANAGED_ALGORITHM) } else { found })
}

fn verify<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let signing = signing(context, arguments)?;
    let (text, key) = match arguments.made::<ConfiguredKey>(1) {
        Some(written) => (&*written.text, written.key.as_deref()),
        None => (bytes(context, arguments, 1)?, None),
    };
    let find = || key.or_else(|| context.program?.keys().public(text));
    answer(context, value.bytes()?, signing, text, find).map(Value::Int)
}

fn verify_cert<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let signing = match signing(context, arguments)? {
        Ok(Signing::Secret(_)) => return Some(Value::Int(UNMANAGED_ALGORITHM)),
        signing => signing,
    };
    let (text, key) = match arguments.made::<ConfiguredKey>(1) {
        Some(written) => (&*written.text, written.key.as_deref()),
        None => (bytes(context, arguments, 1)?, None),
    };
    if text.is_empty() {
        return None;
    }
    // The process's certificates take precedence over a file loaded for the argument.
    let found = match context.program.map(|program| program.keys().tokens().find(text)) {
        Some(Ok(keys)) => Some(keys.public),
        Some(Err(Unusable::Unavailable)) => return Some(Value::Int(UNAVAILABLE_CERTIFICATE)),
        Some(Err(Unusable::Unknown)) | None => None,
    };
    let find = || found.as_deref().or(key).or_else(|| context.program?.keys().certificate(text));
    answer(context, value.bytes()?, signing, text, find).map(Value::Int)
}

/// HAProxy's result code for a token.
fn answer<'a, 'k>(
    context: &Context<'a>,
    token: &'a [u8],
    signing: Result<Signing, i64>,
    secret: &[u8],
    key: impl FnOnce() -> Option<&'k PublicKey>,
) -> Option<i64> {
    let signing = match signing {
        Ok(signing) => signing,
        Err(code) => return Some(code),
    };
    let Some((header, payload, signature)) = signed_parts(token) else { return Some(INVALID_TOKEN) };
    if signing == Signing::Unsigned {
        return Some(i64::from(signature.is_empty()));
    }
    let Some(signature) = decoded_url(context, signature).filter(|signature| !signature.is_empty()) else {
        return Some(INVALID_TOKEN);
    };
    let message = &token[..header.len() + 1 + payload.len()];
    Some(match signing {
        Signing::Unsigned => 0,
        Signing::Secret(algorithm) => i64::from(is_same(algorithm.authenticate(context, secret, message)?, signature)),
        Signing::PublicKey(scheme) => match key() {
            None => UNKNOWN_KEY,
            // A signature of ECDSA is two numbers of equal length.
            Some(_) if matches!(scheme, Scheme::Elliptic(_)) && signature.len() % 2 == 1 => INVALID_TOKEN,
            Some(key) => i64::from(key.verifies(scheme, message, signature)),
        },
    })
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::Scene;

    const TOKEN: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIiwibmFtZSI6IkpvaG4gRG9lIiwiaWF0IjoxNTE2MjM5MDIyfQ.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV_adQssw5c";

    #[test]
    fn tokens_are_read_and_verified() {
        let rows: &[(&str, &str, &str)] = &[
            (TOKEN, "jwt_header_query('$.alg')", "HS256"),
            (TOKEN, "jwt_payload_query('$.iat')", "1.51624e+09"),
            (TOKEN, "jwt_payload_query('$.iat','int')", "1516239022"),
            (TOKEN, "jwt_payload_query('$.name')", "John Doe"),
            (TOKEN, "jwt_header_query,bytes(0,5)", "7b22616c67"),
            ("a.b", "jwt_payload_query", "<none>"),
            ("YWJj.YWJj.a.b.c", "jwt_header_query", "616263"),
            ("YWJj.YWJj.a.b.c", "jwt_payload_query", "<none>"),
            (TOKEN, "jwt_verify(HS256,your-256-bit-secret)", "1"),
            (TOKEN, "jwt_verify(HS256,wrong)", "0"),
            (TOKEN, "jwt_verify(HS384,your-256-bit-secret)", "0"),
            (TOKEN, "jwt_verify(txn.nope,x)", "<none>"),
            (TOKEN, "jwt_verify(HS256,txn.nope)", "<none>"),
            (TOKEN, "jwt_verify(foo,x)", "!invalid args in converter 'jwt_verify' : unknown JWT algorithm: foo"),
            ("a.b", "jwt_verify(HS256,x)", "-3"),
            ("a.b.c.d", "jwt_verify(HS256,x)", "-3"),
            ("a.b.c", "jwt_verify(HS256,x)", "-3"),
            ("YQ.YQ.YQ", "jwt_verify(HS256,x)", "0"),
            ("YQ.YQ.", "jwt_verify(HS256,x)", "-3"),
            ("..", "jwt_verify(HS256,x)", "-3"),
            ("YQ..YQ", "jwt_verify(HS256,x)", "0"),
            ("XX256", "set-var(txn.alg),jwt_verify(txn.alg,x)", "-1"),
            ("none", "set-var(txn.alg),concat(.YQ.),jwt_verify(txn.alg,x)", "1"),
            ("none", "set-var(txn.alg),concat(.YQ.YQ),jwt_verify(txn.alg,x)", "0"),
            ("RS256", "set-var(txn.alg),concat(.YQ.YQ),jwt_verify(txn.alg,x)", "-5"),
            (
                "YQ.YQ.YQ",
                "jwt_verify(RS256,x)",
                "!invalid args in converter 'jwt_verify' : failed to load public key 'x': no file 'x' here",
            ),
            (
                "YQ.YQ.YQ",
                "jwt_verify(RS256,m.map)",
                "!invalid args in converter 'jwt_verify' : failed to load public key 'm.map': no '-----BEGIN PUBLIC KEY-----' in it",
            ),
            (
                "YQ.YQ.YQ",
                "jwt_verify_cert(HS256,x)",
                "!invalid args in converter 'jwt_verify_cert' : HMAC-signed tokens can't be processed by this converter",
            ),
            (
                "YQ.YQ.YQ",
                "jwt_verify_cert(foo,x)",
                "!invalid args in converter 'jwt_verify_cert' : unknown JWT algorithm: foo",
            ),
            ("HS256", "set-var(txn.alg),concat(.YQ.YQ),jwt_verify_cert(txn.alg,x)", "-2"),
            ("YQ.YQ.YQ", "jwt_verify_cert(RS256,x)", "-5"),
            ("YQ.YQ.YQ", "jwt_verify_cert(RS256,)", "<none>"),
            ("YQ.YQ.", "jwt_verify_cert(none,x)", "1"),
        ];
        for (token, converters, expected) in rows {
            let text = format!("str({token}),{converters}");
            assert_eq!(Scene::default().eval(&text), *expected, "{text}");
        }
    }

    const RSA: &str = "eyJhbGciOiAiUlMyNTYiLCAidHlwIjogIkpXVCJ9.eyJzdWIiOiJ4In0.VMJ9Hp0kvbAFaRyZzKI7cEZGDN7gxbrzk-4RGunRYYtLt9vOR83ecpug-COPrtowidyb81pwF94gQSdywGF7aBcpsxNoDyjp1jYJQnj-0H5UMtmtq3PsLdnjwpoiPinF68u-CfRWZLv35rwTHlL14dIKDj_WGnVznYp_oFJY3Wk2YgWNUATtuTZHPOX75fa9xG0sCXflMAJKGsAlE2VgBf75rInY98XE4spaDh6uIP6_AtTJ00L7MC55FEz3oAWO9GdvgpNugkOBLkefpPhHs-ZgW8yLN6kz6QZKfBhgImKVIHW-s8YYoDkD32j9e9P3Vci_gUC7_QVVigc7rOImjw";
    const P256: &str = "eyJhbGciOiAiRVMyNTYiLCAidHlwIjogIkpXVCJ9.eyJzdWIiOiJ4In0.CFCMPa736PYQbiMXELMpGdTSdRijV-N9sKYxMDWVq3lEtoPWB-ZNC02Vu6r7L6tHu_FKmgtp9OPPCRgGoNeaBg";
    const P521: &str = "eyJhbGciOiAiRVM1MTIiLCAidHlwIjogIkpXVCJ9.eyJzdWIiOiJ4In0.AEtyGAS2SYyCd8VW_9xnVcrOO7tRPjww-RVIrjFdYEspg4qVC2kuY7kLHEVyHzvHGkylp0QTZcrIfMa5wAbkoUgYAcIDrOk2HRQLaKqvCAz4W_rR4oZoAG0Jr395llS9mXm3CltdYh6yX7QDlviLlGd1coAuoe-RpoCFPE5t3Ti7LFxu";
    const PSS: &str = "eyJhbGciOiAiUFMyNTYiLCAidHlwIjogIkpXVCJ9.eyJzdWIiOiJ4In0.pdAsa6iLXqTmUA72XpqV__wzlJIDnr8zuOWyvVkE_J-xuBSoSzrH00YNLBkJSBkReliTPmZfKIv1anMC0FYXs0ac7iRynrr4CWK8FJWReljmpD7zoF2OCQplx-BSBRRFo2Aw4V4rmw4-Cv2DcCqJFiwGV0Y3sRF_a3kuVOajaBi2xGFnWvyCsdlGAhvfWR6SYp11cPZx5RvXjXfbVeHJYWMNkd2dK0qUOlhivmqYoaerR8Q2E2OzCyYT4Jg7wMw4OvzErAGaWZPbMLbay2H5bmp87b1B_SxOUTS1b8a76D-57u5LLzJgw6JX7NOWiWCMyrPqKd4Up3m4kMbSExIYPg";

    #[test]
    fn key_pairs_verify() {
        let rows: &[(&str, &str, &str)] = &[
            (RSA, "jwt_verify(RS256,rsa.pub)", "1"),
            (RSA, "jwt_verify(RS384,rsa.pub)", "0"),
            (RSA, "jwt_verify(PS256,rsa.pub)", "0"),
            (RSA, "jwt_verify(ES256,rsa.pub)", "0"),
            (RSA, "jwt_verify(RS256,p256.pub)", "0"),
            (RSA, "jwt_verify_cert(RS256,rsa.crt)", "1"),
            (RSA, "concat(A),jwt_verify(RS256,rsa.pub)", "0"),
            (PSS, "jwt_verify(PS256,rsa.pub)", "1"),
            (PSS, "jwt_verify(RS256,rsa.pub)", "0"),
            (P256, "jwt_verify(ES256,p256.pub)", "1"),
            (P256, "jwt_verify(ES384,p256.pub)", "0"),
            (P256, "jwt_verify(ES256,p521.pub)", "0"),
            (P521, "jwt_verify(ES512,p521.pub)", "1"),
            ("YQ.YQ.YQ", "jwt_verify(ES256,p256.pub)", "-3"),
            ("YQ.YQ.YWE", "jwt_verify(ES256,p256.pub)", "0"),
            ("YQ.YQ.", "jwt_verify(none,p256.pub)", "1"),
            ("ES256", "set-var(txn.alg),concat(.YQ.YWE),jwt_verify(txn.alg,p256.pub)", "0"),
        ];
        for (token, converters, expected) in rows {
            let text = format!("str({token}),{converters}");
            assert_eq!(Scene::default().eval(&text), *expected, "{text}");
        }
    }
}
