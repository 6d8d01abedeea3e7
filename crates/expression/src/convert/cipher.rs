//! Converters that encrypt and decrypt. Keys, nonces and additional authenticated data are base64 or variables.

use super::Converter;
use super::aes::Cipher;
use super::digest::{secret, to_secret};
use crate::sample::{Context, Type, Value};
use crate::variable::Variable;
use crate::{Argument, Arguments, Checking, Kind, Signature};
use base::base64;

const CBC: Signature = Signature::new(3, &[Kind::Int, Kind::Str, Kind::Str, Kind::Str]);
const GCM: Signature = Signature::new(4, &[Kind::Int, Kind::Str, Kind::Str, Kind::Str, Kind::Str]);

/// Every converter of the family.
pub const TABLE: &[Converter] = &[
    Converter::new(
        "aes_cbc_dec",
        CBC,
        Type::Bin,
        Type::Bin,
        "Decrypts by AES-CBC and removes the padding.",
        decrypt_cbc,
    )
    .checked(check_cbc),
    Converter::new("aes_cbc_enc", CBC, Type::Bin, Type::Bin, "Pads and encrypts by AES-CBC.", encrypt_cbc)
        .checked(check_cbc),
    Converter::new(
        "aes_gcm_dec",
        GCM,
        Type::Bin,
        Type::Bin,
        "Decrypts by AES-GCM if the tag matches the bytes and the additional data.",
        decrypt_gcm,
    )
    .checked(|arguments, _| {
        check_key(arguments)?;
        to_secret(arguments, 3).map_err(|why| format!("failed to parse aead_tag : {why}"))?;
        check_extra(arguments, 4)
    }),
    Converter::new(
        "aes_gcm_enc",
        GCM,
        Type::Bin,
        Type::Bin,
        "Encrypts by AES-GCM and stores the tag in a variable.",
        encrypt_gcm,
    )
    .checked(|arguments, checking| {
        check_key(arguments)?;
        let name = arguments.utf8(3).unwrap_or_default();
        let variable = Variable::parse(name).map_err(|why| format!("failed to parse aead_tag : {why}"))?;
        checking.names.declare(&variable);
        arguments.set(3, Argument::Variable(variable));
        check_extra(arguments, 4)
    }),
];

fn check_key(arguments: &mut Arguments) -> Result<(), String> {
    if !matches!(arguments.int(0), Some(128 | 192 | 256)) {
        return Err("key size must be 128, 192 or 256 (bits).".to_owned());
    }
    to_secret(arguments, 1).map_err(|why| format!("failed to parse nonce : {why}"))?;
    to_secret(arguments, 2).map_err(|why| format!("failed to parse key : {why}"))
}

fn check_extra(arguments: &mut Arguments, index: usize) -> Result<(), String> {
    if !arguments.has(index) {
        return Ok(());
    }
    to_secret(arguments, index).map_err(|why| format!("failed to parse aad : {why}"))
}

fn check_cbc(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    check_key(arguments)?;
    check_extra(arguments, 3)
}

/// Returns the cipher and the nonce. Bytes of a key beyond its length are ignored, as in HAProxy.
fn start<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<(Cipher, &'a [u8])> {
    let nonce = secret(context, arguments, 1)?;
    let (bits, key) = (arguments.int(0)?, secret(context, arguments, 2)?);
    let length = usize::try_from(bits / 8).ok()?;
    Some((Cipher::new(bits, key.get(..length)?)?, nonce))
}

/// Returns the additional authenticated data; empty if omitted.
fn extra<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<&'a [u8]> {
    if arguments.has(4) { secret(context, arguments, 4) } else { Some(b"") }
}

/// The first block of CBC: as in HAProxy, a short nonce is padded with zeros and a long one is truncated to a block.
fn first_block(nonce: &[u8]) -> [u8; 16] {
    let mut block = [0; 16];
    block.iter_mut().zip(nonce).for_each(|(place, byte)| *place = *byte);
    block
}

fn encrypt_cbc<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (cipher, nonce) = start(context, arguments)?;
    cipher.encrypt_cbc(context, &first_block(nonce), value.bytes()?).map(Value::Bin)
}

fn decrypt_cbc<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (cipher, nonce) = start(context, arguments)?;
    cipher.decrypt_cbc(context, &first_block(nonce), value.bytes()?).map(Value::Bin)
}

fn encrypt_gcm<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (cipher, nonce) = start(context, arguments)?;
    let extra = extra(context, arguments)?;
    let (coded, tag) = cipher.encrypt_gcm(context, nonce, value.bytes()?, extra)?;
    let mut text = context.text(24);
    base64::encode(&tag, |byte| text.push(byte));
    context.variables.set(arguments.variable(3)?, Value::Str(text.finish()?)).then_some(Value::Bin(coded))
}

fn decrypt_gcm<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let (cipher, nonce) = start(context, arguments)?;
    let (extra, tag) = (extra(context, arguments)?, secret(context, arguments, 3)?);
    cipher.decrypt_gcm(context, nonce, value.bytes()?, extra, tag).map(Value::Bin)
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::Scene;

    const KEY: &str = "Zm9vb2Zvb29mb29wZm9vbw==";
    const NONCE: &str = "AAAAAAAAAAAAAAAAAAAAAA==";

    #[track_caller]
    fn check(rows: &[(&str, &str)]) {
        for (text, expected) in rows {
            let text = text.replace("KEY", KEY).replace("NONCE", NONCE).replace("TWELVE", "AAAAAAAAAAAAAAAA");
            assert_eq!(Scene::default().eval(&text), *expected, "{text}");
        }
    }

    #[test]
    fn gcm_goes_both_ways() {
        check(&[
            ("str(hello),aes_gcm_enc(128,NONCE,KEY,txn.tag)", "694e2d97bc"),
            ("str(hello),aes_gcm_enc(128,AAAA,KEY,txn.tag)", "de391007bf"),
            ("str(hello),aes_gcm_enc(128,TWELVE,KEY,txn.tag)", "aee9a1c5c6"),
            (
                "str(hello),aes_gcm_enc(128,TWELVE,KEY,txn.tag),concat(,txn.tag),bytes(5)",
                "546d3930563147537733506646647a3659644e5544773d3d",
            ),
            (
                "str(hello),aes_gcm_enc(128,TWELVE,KEY,txn.tag,YWFk),concat(,txn.tag),bytes(5)",
                "716c337442745068364c4d79623548584f78325651513d3d",
            ),
            ("str(hello),aes_gcm_enc(192,TWELVE,Zm9vb2Zvb29mb29wZm9vb2Zvb29mb29w,txn.tag)", "d7329f4589"),
            ("str(hello),aes_gcm_enc(256,TWELVE,Zm9vb2Zvb29mb29wZm9vb2Zvb29mb29wZm9vb2Zvb28=,txn.tag)", "253171e6d4"),
            ("str(hello),aes_gcm_enc(192,TWELVE,KEY,txn.tag)", "<none>"),
            ("str(hello),aes_gcm_enc(128,TWELVE,Zm9vb2Zvb29mb29wZm9vb2Zvb28=,txn.tag)", "aee9a1c5c6"),
            ("str(hello),aes_gcm_enc(128,,KEY,txn.tag)", "<none>"),
            ("str(),aes_gcm_enc(128,TWELVE,KEY,txn.tag)", ""),
            (
                "str(hello),aes_gcm_enc(128,NONCE,KEY,txn.tag,YWFk),aes_gcm_dec(128,NONCE,KEY,txn.tag,YWFk)",
                "68656c6c6f",
            ),
            ("str(hello),aes_gcm_enc(128,NONCE,KEY,txn.tag,YWFk),aes_gcm_dec(128,NONCE,KEY,txn.tag)", "<none>"),
            ("str(hello),aes_gcm_dec(128,TWELVE,KEY,AAAA)", "<none>"),
            (
                "str(hello),aes_gcm_enc(100,TWELVE,KEY,txn.tag)",
                "!invalid args in converter 'aes_gcm_enc' : key size must be 128, 192 or 256 (bits).",
            ),
        ]);
    }

    #[test]
    fn cbc_goes_both_ways() {
        check(&[
            ("str(hello),aes_cbc_enc(128,NONCE,KEY)", "9cbad6533f161469f6637ff7e3622189"),
            ("str(hello),aes_cbc_enc(128,NONCE,KEY),aes_cbc_dec(128,NONCE,KEY)", "68656c6c6f"),
            ("str(hello),aes_cbc_enc(128,NONCE,KEY,YWFk)", "9cbad6533f161469f6637ff7e3622189"),
            (
                "str(0123456789abcdef),aes_cbc_enc(128,NONCE,KEY)",
                "331a3abd4884ddb6ee818234f8db637cf2ef2169ff54368a5196db74a81765b9",
            ),
            (
                "str(0123456789abcdef),aes_cbc_enc(256,NONCE,Zm9vb2Zvb29mb29wZm9vb2Zvb29mb29wZm9vb2Zvb28=)",
                "0863fef3b165963e48c3b33876525ea25c7061f3e4240b9a8263780b010281e5",
            ),
            (
                "str(0123456789abcdef),aes_cbc_enc(192,NONCE,Zm9vb2Zvb29mb29wZm9vb2Zvb29mb29w)",
                "f21eda6fac23c2774a928148995a751caeb09f74aa4d4a1cdd561c249efabfcf",
            ),
            // A short nonce is padded with zeros; the nonce and the key may be longer than needed.
            ("str(hello),aes_cbc_enc(128,AAAA,KEY)", "9cbad6533f161469f6637ff7e3622189"),
            ("str(hello),aes_cbc_enc(128,,KEY)", "9cbad6533f161469f6637ff7e3622189"),
            ("str(hello),aes_cbc_enc(128,NONCE,Zm9vb2Zvb29mb29wZm9vb2Zvb28=)", "9cbad6533f161469f6637ff7e3622189"),
            ("str(hello),aes_cbc_enc(128,YWFh,KEY),aes_cbc_dec(128,YWFhAAAAAAAAAAAAAAAAAAAA,KEY)", "68656c6c6f"),
            ("str(hello),aes_cbc_enc(192,NONCE,KEY)", "<none>"),
            ("str(hello),aes_cbc_dec(128,NONCE,KEY)", "<none>"),
            ("str(0123456789abcdef),aes_cbc_dec(128,NONCE,KEY)", "<none>"),
        ]);
    }
}
