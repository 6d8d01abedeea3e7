//! Converters of digests and message authentication codes.

use super::Converter;
use super::algorithm::{Algorithm, is_same};
use super::base64::decoded;
use super::operand::{self, to_named_variable};
use crate::sample::{Context, Type, Value};
use crate::variable::Variable;
use crate::{Argument, Arguments, Checking, Kind, Signature};
use std::sync::Arc;

/// Every converter of the family.
pub const TABLE: &[Converter] = &[
    Converter::new(
        "digest",
        Signature::new(1, &[Kind::Str]),
        Type::Bin,
        Type::Bin,
        "Message digest by the named algorithm.",
        |context, value, arguments| {
            let algorithm = arguments.made::<Algorithm>(0)?;
            algorithm.digest(context, value.bytes()?).map(Value::Bin)
        },
    )
    .checked(check_digest),
    Converter::new(
        "hmac",
        Signature::new(2, &[Kind::Str, Kind::Str]),
        Type::Bin,
        Type::Bin,
        "HMAC by the named algorithm, with a key in base64 or in a variable.",
        code,
    )
    .checked(check_code),
    Converter::new(
        "secure_memcmp",
        Signature::new(1, &[Kind::Str]),
        Type::Bin,
        Type::Bool,
        "Compares with a variable in constant time.",
        compare,
    )
    .checked(|arguments, _| to_named_variable(arguments, 0)),
    Converter::new("sha1", Signature::NONE, Type::Bin, Type::Bin, "SHA-1 digest.", |context, value, _| {
        Algorithm::Sha1.digest(context, value.bytes()?).map(Value::Bin)
    }),
    Converter::new(
        "sha2",
        Signature::new(0, &[Kind::Int]),
        Type::Bin,
        Type::Bin,
        "SHA-2 digest of 224, 256, 384 or 512 bits.",
        sha2,
    )
    .checked(check_sha2),
];

fn check_digest(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    let algorithm = Algorithm::named(arguments.utf8(0).unwrap_or_default())?;
    arguments.set(0, Argument::Made(Arc::new(algorithm)));
    Ok(())
}

fn check_code(arguments: &mut Arguments, checking: &Checking<'_>) -> Result<(), String> {
    check_digest(arguments, checking)?;
    to_secret(arguments, 1).map_err(|why| format!("failed to parse key : {why}"))
}

/// Replaces the nth argument, a variable or base64, with the variable or the decoded bytes.
pub(super) fn to_secret(arguments: &mut Arguments, index: usize) -> Result<(), String> {
    let text = arguments.utf8(index).unwrap_or_default();
    if let Ok(variable) = Variable::parse(text) {
        arguments.set(index, Argument::Variable(variable));
        return Ok(());
    }
    let bytes = base::base64::decoded(text.as_bytes())
        .ok_or_else(|| "argument needs to be base64 encoded, and can either be a string or a variable".to_owned())?;
    arguments.set(index, Argument::Str(bytes.into()));
    Ok(())
}

/// Returns the nth argument after [`to_secret`]; a variable's value is decoded from base64.
pub(super) fn secret<'a>(context: &Context<'a>, arguments: &'a Arguments, index: usize) -> Option<&'a [u8]> {
    match arguments.get(index) {
        Argument::Variable(variable) => decoded(context, operand::variable_as(context, variable, Type::Str)?.bytes()?),
        _ => arguments.text(index),
    }
}

fn code<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let algorithm = arguments.made::<Algorithm>(0)?;
    algorithm.authenticate(context, secret(context, arguments, 1)?, value.bytes()?).map(Value::Bin)
}

fn check_sha2(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    match arguments.int(0) {
        None | Some(224 | 256 | 384 | 512) => Ok(()),
        Some(bits) => Err(format!("Unsupported number of bits: '{bits}'")),
    }
}

fn sha2<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let algorithm = match arguments.int(0) {
        Some(224) => Algorithm::Sha224,
        Some(384) => Algorithm::Sha384,
        Some(512) => Algorithm::Sha512,
        _ => Algorithm::Sha256,
    };
    algorithm.digest(context, value.bytes()?).map(Value::Bin)
}

fn compare<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    Some(Value::Bool(is_same(value.bytes()?, operand::bytes(context, arguments, 0)?)))
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn digests_are_made() {
        let rows: &[(&str, &str)] = &[
            ("sha1", "a9993e364706816aba3e25717850c26c9cd0d89d"),
            ("sha2(224)", "23097d223405d8228642a477bda255b32aadbce4bda0b3f7e36c9da7"),
            ("sha2", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"),
            ("sha2(512),bytes(0,8)", "ddaf35a193617aba"),
            ("sha2(384),bytes(0,8)", "cb00753f45a35e8b"),
            ("sha2(100)", "!invalid args in converter 'sha2' : Unsupported number of bits: '100'"),
            ("digest(md5)", "900150983cd24fb0d6963f7d28e17f72"),
            ("digest(SHA256),bytes(0,4)", "ba7816bf"),
            ("digest(sha-256),bytes(0,4)", "ba7816bf"),
            ("digest(RSA-SHA256),bytes(0,4)", "ba7816bf"),
            ("digest(sha512-256),bytes(0,4)", "53048e26"),
            ("digest(SHA2-512/256),bytes(0,4)", "53048e26"),
            ("digest(sha512-224),bytes(0,4)", "4634270f"),
            ("digest(sha3-224),bytes(0,4)", "e642824c"),
            ("digest(sha3-256),bytes(0,4)", "3a985da7"),
            ("digest(sha3-384),bytes(0,4)", "ec014982"),
            ("digest(sha3-512),bytes(0,4)", "b751850b"),
            ("digest(rsa-sha3-256),bytes(0,4)", "3a985da7"),
            ("digest(shake128)", "5881092dd818bf5cf8a3ddb793fbcba7"),
            ("digest(SHAKE-256)", "483366601360a8771c6863080cc4114d8db44530f8f1e1ee4f94ea37e78b5739"),
            ("digest(blake2b512),bytes(0,8)", "ba80a53f981c4d0d"),
            ("digest(BLAKE2s-256),bytes(0,8)", "508c5e8c327c14e2"),
            ("digest(ripemd),bytes(0,8)", "8eb208f7e05d987a"),
            ("digest(sm3),bytes(0,8)", "66c7f0f462eeedd9"),
            ("digest(md5-sha1)", "900150983cd24fb0d6963f7d28e17f72a9993e364706816aba3e25717850c26c9cd0d89d"),
            ("digest(2.16.840.1.101.3.4.2.1),bytes(0,4)", "ba7816bf"),
            ("digest(md4)", "<none>"),
            ("digest(whirlpool)", "<none>"),
            ("hmac(shake128,a2V5)", "<none>"),
            ("hmac(md4,a2V5)", "<none>"),
            ("hmac(blake2b512,a2V5),bytes(0,8)", "05cc4815438d5cfe"),
            ("hmac(blake2s256,a2V5),bytes(0,8)", "0018bfddc0c878b3"),
            ("hmac(rmd160,a2V5)", "67fdce738ebfc7372bcd38f03c023b5746724d18"),
            ("hmac(sm3,a2V5),bytes(0,8)", "28e63256e7c5a087"),
            ("hmac(md5-sha1,a2V5)", "a76e5cc4bdaa99b87cc7de69e0606e7d74fd2771909f120bb3b9a4649bb99bea2b4cec32"),
            (
                "digest(mdc2)",
                "!invalid args in converter 'digest' : algorithm must be a valid OpenSSL message digest name.",
            ),
            (
                "digest(nope)",
                "!invalid args in converter 'digest' : algorithm must be a valid OpenSSL message digest name.",
            ),
            ("hmac(md5,a2V5)", "d2fe98063f876b03193afb49b4979591"),
            ("hmac(sha256,a2V5),bytes(0,8)", "9c196e32dc0175f8"),
            ("hmac(sha512,a2V5),bytes(0,8)", "3926a207c8c42b0c"),
            ("hmac(sha384,a2V5),bytes(0,8)", "30ddb9c8f347cffb"),
            ("hmac(sha3-256,a2V5),bytes(0,8)", "09b6dbab8d11795c"),
            ("hmac(sha256,),bytes(0,8)", "fd7adb152c05ef80"),
            ("hmac(sha256,txn.nope)", "<none>"),
            (
                "hmac(sha256,xx)",
                "!invalid args in converter 'hmac' : failed to parse key : argument needs to be base64 encoded, and can either be a string or a variable",
            ),
        ];
        for (converters, expected) in rows {
            let text = format!("str(abc),{converters}");
            assert_eq!(Scene::default().eval(&text), *expected, "{text}");
        }
        let with_variable = "str(a2V5),set-var(txn.k),b64dec,hmac(sha1,txn.k)";
        assert_eq!(Scene::default().eval(with_variable), "6d68412c185ce04c0c15e623803939f895e80580");
    }

    #[test]
    fn secrets_are_compared() {
        check_rows(
            &Scene::default(),
            &[
                ("str(abc),set-var(txn.s),secure_memcmp(txn.s)", "1"),
                ("str(abc),set-var(txn.s),bytes(1),secure_memcmp(txn.s)", "0"),
                ("str(abc),secure_memcmp(txn.nope)", "<none>"),
                ("int(5),set-var(txn.n),concat,secure_memcmp(txn.n)", "0"),
                (
                    "str(abc),secure_memcmp(foo)",
                    "!invalid args in converter 'secure_memcmp' : failed to register variable name 'foo'",
                ),
            ],
        );
    }
}
