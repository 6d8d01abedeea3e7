//! Any bytes as a key: in PEM files, certificates, JSON Web Keys and the tokens that they decrypt. No panic, a file
//! parses to the same key for any line length and any bytes after it, and the result of a signature check does not
//! change.
//!
//! The first byte selects the form. For files, the second byte selects the scheme and the length of lines, the third
//! one is the length of the signature that follows it, and the rest is the file or its DER.
//! is the length of the signature that follows it, and the rest is the file or its DER.

use crate::evaluation::{FewNames, with_context};
use expression::Conversion;
use expression::key::{Curve, KeyError, Padding, PrivateKey, PublicKey, Scheme};
use expression::sample::{EvalPlace, Type, Value};

const MESSAGE: &[u8] = b"weir";
const SCHEMES: [&[u8]; 9] = [b"RS256", b"RS384", b"RS512", b"ES256", b"ES384", b"ES512", b"PS256", b"PS384", b"PS512"];
const CURVES: [Curve; 3] = [Curve::P256, Curve::P384, Curve::P521];
const PADDINGS: [Padding; 3] = [Padding::Pkcs1, Padding::OaepSha1, Padding::OaepSha256];

type Reading = fn(&[u8]) -> Result<PublicKey, KeyError>;

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let [form, rest @ ..] = data else { return };
    match form % 8 {
        0 => file(PublicKey::from_pem, None, rest),
        1 => file(PublicKey::from_pem, Some("PUBLIC KEY"), rest),
        2 => file(PublicKey::from_pem, Some("RSA PUBLIC KEY"), rest),
        3 => file(PublicKey::from_certificate, None, rest),
        4 => file(PublicKey::from_certificate, Some("CERTIFICATE"), rest),
        5 => numbers(rest),
        _ => token(rest),
    }
}

/// Tests a file unchanged, or DER in a file with that label.
fn file(read: Reading, label: Option<&str>, data: &[u8]) {
    let [choice, length, rest @ ..] = data else { return };
    let Some((signature, content)) = rest.split_at_checked(usize::from(*length)) else { return };
    let scheme = SCHEMES[usize::from(*choice) % SCHEMES.len()];
    let scheme = Scheme::named(scheme).expect("it is in RFC 7518");
    let Some(label) = label else {
        let _ = read(content).map(|key| key.verifies(scheme, MESSAGE, signature));
        return;
    };
    let width = 1 + usize::from(*choice);
    let [first, again] = [pem(label, content, 64), [&pem(label, content, width)[..], b"junk\n"].concat()].map(|file| {
        let read = read(&file);
        read.map(|key| (format!("{key:?}"), key.verifies(scheme, MESSAGE, signature)))
    });
    assert_eq!(first, again);
}

/// Tests both types of private keys from their numbers, and their decryption. Two bytes precede each number: its
/// length.
fn numbers(data: &[u8]) {
    let Some((choice, mut rest)) = data.split_first() else { return };
    let mut next = || -> &[u8] {
        let Some((length, after)) = rest.split_first_chunk::<2>() else { return &[] };
        let length = usize::from(u16::from_be_bytes(*length)).min(after.len());
        let (number, after) = after.split_at(length);
        rest = after;
        number
    };
    if choice & 1 == 0 {
        let numbers: [&[u8]; 8] = std::array::from_fn(|_| next());
        let Some(key) = PrivateKey::rsa(&numbers) else { return };
        let hidden = next();
        for padding in PADDINGS {
            let revealed = key.reveal(padding, hidden);
            assert!(revealed.is_none_or(|plain| plain.len() <= numbers[0].len()));
        }
        return;
    }
    let curve = CURVES[usize::from(choice >> 1) % CURVES.len()];
    let [d, x, y, other_x, other_y] = std::array::from_fn(|_| next());
    let Some(key) = PrivateKey::elliptic(curve, d, x, y) else { return };
    for asked in CURVES {
        let agreed = key.agree(asked, other_x, other_y, |secret| Some(secret.to_vec()));
        assert!(agreed.is_none() || asked == curve);
        let again = key.agree(asked, other_x, other_y, |secret| Some(secret.to_vec()));
        assert_eq!(agreed, again);
    }
}

/// Tests a JSON Web Key, followed by 0xFF and a token that it may decrypt.
fn token(data: &[u8]) {
    let mut halves = data.splitn(2, |byte| *byte == 0xFF);
    let key = config::text::from_bytes(halves.next().unwrap_or_default());
    let token = halves.next().unwrap_or_default();
    if key.contains('\'') {
        return;
    }
    let text = format!("jwt_decrypt_jwk('{key}')");
    let Ok(conversion) = Conversion::parse(&text, Type::Str, EvalPlace::FrontRequestHead, &FewNames) else { return };
    with_context(b"", |context| {
        let opened = conversion.convert(context, Value::Str(token));
        // The content is not longer than its base64 text.
        assert!(opened.and_then(|value| value.bytes()).is_none_or(|bytes| bytes.len() <= token.len()));
    });
}

/// Encodes a file as in RFC 7468, with `width` characters per line.
fn pem(label: &str, der: &[u8], width: usize) -> Vec<u8> {
    let mut out = format!("-----BEGIN {label}-----\n").into_bytes();
    for line in base::base64::encoded(der).as_bytes().chunks(width) {
        out.extend_from_slice(line);
        out.push(b'\n');
    }
    out.extend_from_slice(format!("-----END {label}-----\n").as_bytes());
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_written_as_files_that_are_read() {
        let file = pem("PUBLIC KEY", &[0x30, 0], 64);
        assert_eq!(PublicKey::from_pem(&file).err(), Some(KeyError::Malformed));
    }
}
