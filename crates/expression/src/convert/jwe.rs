//! Converters that decrypt JSON Web Tokens in their compact serialization (RFC 7516, RFC 7518). Must never return
//! plaintext of a token whose tag does not match.

use super::Converter;
use super::aes::Cipher;
use super::algorithm::{Algorithm, is_same};
use super::base64::decoded_url;
use super::digest::{secret, to_secret};
use super::json_path::{JsonValue, Path, find};
use super::operand::{bytes, to_text_or_variable};
use crate::key::{Curve, Padding, PrivateKey, TokenLimits, Unusable};
use crate::sample::{Context, Type, Value};
use crate::{Argument, Arguments, Checking, Kind, Signature};
use std::sync::Arc;

const ONE: Signature = Signature::new(1, &[Kind::Str]);

/// Every converter of the family.
pub const TABLE: &[Converter] = &[
    Converter::new(
        "jwt_decrypt_cert",
        ONE,
        Type::Bin,
        Type::Bin,
        "Decrypts a JWT with the private key of a loaded certificate.",
        |context, value, arguments| {
            let name = bytes(context, arguments, 0)?;
            let keys = context.program?.keys().tokens().find(name).ok()?;
            decrypt(context, value.bytes()?, keys.private.as_deref()?).map(Value::Bin)
        },
    )
    .checked(check_certificate),
    Converter::new(
        "jwt_decrypt_jwk",
        ONE,
        Type::Bin,
        Type::Bin,
        "Decrypts a JWT with a JSON Web Key.",
        |context, value, arguments| {
            let made = arguments.made::<PrivateKey>(0);
            let read;
            let key = match made {
                Some(key) => key,
                None => {
                    read = read_key(bytes(context, arguments, 0)?).ok()?;
                    &read
                }
            };
            decrypt(context, value.bytes()?, key).map(Value::Bin)
        },
    )
    .checked(check_jwk),
    Converter::new(
        "jwt_decrypt_secret",
        ONE,
        Type::Bin,
        Type::Bin,
        "Decrypts a JWT with a secret in base64 or in a variable.",
        |context, value, arguments| {
            let key = PrivateKey::Secret(secret(context, arguments, 0)?.into());
            decrypt(context, value.bytes()?, &key).map(Value::Bin)
        },
    )
    .checked(|arguments, _| to_secret(arguments, 0).map_err(|why| format!("failed to parse secret: {why}"))),
];

/// Checks that a certificate named in the configuration exists and is enabled for tokens.
fn check_certificate(arguments: &mut Arguments, checking: &Checking<'_>) -> Result<(), String> {
    to_text_or_variable(arguments, 0);
    let Some(name) = arguments.utf8(0) else { return Ok(()) };
    let keys = checking.names.keys();
    match keys.borrow().tokens().find(name.as_bytes()) {
        Ok(_) => Ok(()),
        Err(Unusable::Unknown) => Err(format!("unknown certificate {name}")),
        Err(Unusable::Unavailable) => Err(format!("unusable certificate {name} (\"jwt\" option not set to \"on\")")),
    }
}

fn check_jwk(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    to_text_or_variable(arguments, 0);
    if let Some(text) = arguments.text(0) {
        let key = read_key(text)?;
        arguments.set(0, Argument::Made(Arc::new(key)));
    }
    Ok(())
}

/// Returns the string at a path of an object.
fn text_of<'a>(json: &'a [u8], path: &str) -> Option<&'a [u8]> {
    match find(json, &Path::read(path.as_bytes()))? {
        JsonValue::Text(text) => Some(text),
        _ => None,
    }
}

/// Returns the decoded base64url at a path of an object.
fn bytes_of(json: &[u8], path: &str) -> Option<Vec<u8>> {
    base::base64::decoded_url(text_of(json, path)?)
}

/// Parses a JSON Web Key (RFC 7517).
fn read_key(json: &[u8]) -> Result<PrivateKey, String> {
    let field = |name: &str| {
        let missing = || format!("Missing '{name}' field in JWK");
        bytes_of(json, &format!("$.{name}")).ok_or_else(missing)
    };
    match text_of(json, "$.kty") {
        Some(b"oct") => Ok(PrivateKey::Secret(field("k")?.into())),
        Some(b"RSA") => {
            let [n, e, d] = [field("n")?, field("e")?, field("d")?];
            let [p, q, dp, dq, qi] = [field("p")?, field("q")?, field("dp")?, field("dq")?, field("qi")?];
            let key = PrivateKey::rsa(&[&n, &e, &d, &p, &q, &dp, &dq, &qi]);
            key.ok_or_else(|| "Failed to build RSA key from JWK".to_owned())
        }
        Some(b"EC") => {
            let curve = text_of(json, "$.crv").and_then(Curve::named);
            let curve =
                curve.ok_or_else(|| "Unmanaged curve in JWK (expected 'P-256', 'P-384' or 'P-521')".to_owned())?;
            let key = PrivateKey::elliptic(curve, &field("d")?, &field("x")?, &field("y")?);
            key.ok_or_else(|| "Failed to build EC key from JWK".to_owned())
        }
        Some(_) => Err("Unmanaged key type (expected 'oct', 'RSA' or 'EC'".to_owned()),
        None => Err("Missing key type (expected 'oct', 'RSA' or 'EC')".to_owned()),
    }
}

/// The key management algorithm (RFC 7518, section 4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Management {
    Rsa(Padding),
    /// AES key wrap with a secret of that many bits.
    Wrap(i64),
    /// AES-GCM key wrap with a secret of that many bits.
    GcmWrap(i64),
    Direct,
    /// Key agreement.
    Agree,
    /// Key agreement; the agreed key unwraps the content key.
    AgreeAndWrap(i64),
}

impl Management {
    fn named(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"RSA1_5" => Self::Rsa(Padding::Pkcs1),
            b"RSA-OAEP" => Self::Rsa(Padding::OaepSha1),
            b"RSA-OAEP-256" => Self::Rsa(Padding::OaepSha256),
            b"A128KW" => Self::Wrap(128),
            b"A192KW" => Self::Wrap(192),
            b"A256KW" => Self::Wrap(256),
            b"A128GCMKW" => Self::GcmWrap(128),
            b"A192GCMKW" => Self::GcmWrap(192),
            b"A256GCMKW" => Self::GcmWrap(256),
            b"dir" => Self::Direct,
            b"ECDH-ES" => Self::Agree,
            b"ECDH-ES+A128KW" => Self::AgreeAndWrap(128),
            b"ECDH-ES+A192KW" => Self::AgreeAndWrap(192),
            b"ECDH-ES+A256KW" => Self::AgreeAndWrap(256),
            _ => return None,
        })
    }
}

/// The content encryption algorithm (RFC 7518, section 5.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Encryption {
    Gcm(i64),
    /// CBC with a key of that many bits, and HMAC with that digest.
    Cbc(i64, Algorithm),
}

impl Encryption {
    fn named(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"A128GCM" => Self::Gcm(128),
            b"A192GCM" => Self::Gcm(192),
            b"A256GCM" => Self::Gcm(256),
            b"A128CBC-HS256" => Self::Cbc(128, Algorithm::Sha256),
            b"A192CBC-HS384" => Self::Cbc(192, Algorithm::Sha384),
            b"A256CBC-HS512" => Self::Cbc(256, Algorithm::Sha512),
            _ => return None,
        })
    }

    /// Length of its key in bytes.
    fn key_length(self) -> usize {
        match self {
            Self::Gcm(bits) => bits as usize / 8,
            Self::Cbc(bits, _) => bits as usize / 4,
        }
    }
}

/// The parts of a token.
struct Token<'a> {
    /// As written: the additional authenticated data.
    header: &'a [u8],
    /// The decoded header.
    fields: &'a [u8],
    key: &'a [u8],
    vector: &'a [u8],
    content: &'a [u8],
    tag: &'a [u8],
}

impl<'a> Token<'a> {
    fn read(context: &Context<'a>, token: &'a [u8]) -> Option<Self> {
        let mut parts = token.splitn(6, |byte| *byte == b'.');
        let header = parts.next()?;
        let mut next = || decoded_url(context, parts.next()?);
        let (key, vector, content, tag) = (next()?, next()?, next()?, next()?);
        let fields = decoded_url(context, header)?;
        parts.next().is_none().then_some(Self { header, fields, key, vector, content, tag })
    }
}

/// Decrypts a token; `None` if that fails, whatever the reason.
fn decrypt<'a>(context: &Context<'a>, token: &'a [u8], key: &PrivateKey) -> Option<&'a [u8]> {
    let token = Token::read(context, token)?;
    let (management, encryption) = (text_of(token.fields, "$.alg")?, text_of(token.fields, "$.enc")?);
    let limits = context.program.map_or(&TokenLimits::DEFAULT, |program| program.tokens());
    if !limits.allows_algorithm(management) || !limits.allows_encoding(encryption) {
        return None;
    }
    let content_key = content_key(context, &token, key, management, encryption)?;
    open(context, &token, Encryption::named(encryption)?, &content_key)
}

fn content_key(
    context: &Context<'_>,
    token: &Token<'_>,
    key: &PrivateKey,
    management: &[u8],
    encryption: &[u8],
) -> Option<Vec<u8>> {
    let length = Encryption::named(encryption)?.key_length();
    match (Management::named(management)?, key) {
        (Management::Rsa(padding @ Padding::Pkcs1), PrivateKey::Rsa { .. }) => {
            // A missing key is treated like a wrong one (RFC 7516, section 11.5).
            let random = || (0..length.div_ceil(8)).flat_map(|_| context.probes.random().to_ne_bytes());
            let unknown: Vec<u8> = random().take(length).collect();
            Some(key.reveal(padding, token.key).filter(|found| found.len() == length).unwrap_or(unknown))
        }
        (Management::Rsa(padding), PrivateKey::Rsa { .. }) => key.reveal(padding, token.key),
        (Management::Wrap(bits), PrivateKey::Secret(secret)) => Cipher::new(bits, secret)?.unwrap(token.key),
        (Management::GcmWrap(bits), PrivateKey::Secret(secret)) => {
            let (vector, tag) = (bytes_of(token.fields, "$.iv")?, bytes_of(token.fields, "$.tag")?);
            let cipher = Cipher::new(bits, secret)?;
            cipher.decrypt_gcm(context, &vector, token.key, b"", &tag).map(<[u8]>::to_vec)
        }
        (Management::Direct, PrivateKey::Secret(secret)) => Some(secret.to_vec()),
        (Management::Agree, PrivateKey::Elliptic(..)) => agreed(context, token, key, encryption, length),
        (Management::AgreeAndWrap(bits), PrivateKey::Elliptic(..)) => {
            let wrapping = agreed(context, token, key, management, bits as usize / 8)?;
            Cipher::new(bits, &wrapping)?.unwrap(token.key)
        }
        _ => None,
    }
}

/// Derives the agreed key (RFC 7518, section 4.6.2): `length` bytes for the algorithm of that name.
fn agreed(context: &Context<'_>, token: &Token<'_>, key: &PrivateKey, name: &[u8], length: usize) -> Option<Vec<u8>> {
    let fields = token.fields;
    let curve = Curve::named(text_of(fields, "$.epk.crv")?)?;
    let (x, y) = (bytes_of(fields, "$.epk.x")?, bytes_of(fields, "$.epk.y")?);
    let party = |path| match text_of(fields, path) {
        Some(_) => bytes_of(fields, path),
        None => Some(Vec::new()),
    };
    let mut info = Vec::new();
    for part in [name, &party("$.apu")?, &party("$.apv")?] {
        info.extend(u32::try_from(part.len()).ok()?.to_be_bytes());
        info.extend(part);
    }
    info.extend((length as u32 * 8).to_be_bytes());
    key.agree(curve, &x, &y, |secret| {
        let mut derived = Vec::with_capacity(length + 32);
        for round in 1_u32.. {
            let input = [&round.to_be_bytes(), secret, &info].concat();
            derived.extend(Algorithm::Sha256.digest(context, &input)?);
            if derived.len() >= length {
                break;
            }
        }
        derived.truncate(length);
        Some(derived)
    })
}

/// Decrypts the content, if the tag matches.
fn open<'a>(context: &Context<'a>, token: &Token<'a>, encryption: Encryption, key: &[u8]) -> Option<&'a [u8]> {
    if key.len() != encryption.key_length() {
        return None;
    }
    match encryption {
        Encryption::Gcm(bits) => {
            let cipher = Cipher::new(bits, key)?;
            cipher.decrypt_gcm(context, token.vector, token.content, token.header, token.tag)
        }
        Encryption::Cbc(bits, algorithm) => {
            let (code_key, key) = key.split_at(key.len() / 2);
            let length = token.header.len() as u64 * 8;
            let message = [token.header, token.vector, token.content, &length.to_be_bytes()].concat();
            let code = algorithm.authenticate(context, code_key, &message)?;
            if token.vector.len() != 16 || !is_same(&code[..code_key.len()], token.tag) {
                return None;
            }
            Cipher::new(bits, key)?.decrypt_cbc(context, token.vector, token.content)
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::Scene;

    #[track_caller]
    fn check(token: &str, converter: &str, expected: &str) {
        let text = format!("str({token}),{converter}");
        assert_eq!(Scene::default().eval(&text), expected, "{text}");
    }

    #[test]
    fn private_keys_of_certificates_decrypt() {
        use super::*;
        let keys: [&[u8]; 4] = [
            include_bytes!("../../tests/keys/token.rsa.pkcs8"),
            include_bytes!("../../tests/keys/token.rsa.pkcs1"),
            include_bytes!("../../tests/keys/token.p384.pkcs8"),
            include_bytes!("../../tests/keys/token.p384.sec1"),
        ];
        let tokens = [
            "eyJhbGciOiJSU0EtT0FFUC0yNTYiLCJlbmMiOiJBMjU2R0NNIn0.Zv2F8oK0bQCnowofqffFzY10z3rTwMCxMR8DzPLbXpKLOaqbZ2IcC55k45L8D3VkU7k4LDpitEYxYFdG0wWrhrJEZuahUqa8x4oJXTK5genu6qQTUCZniHoBAvnx3K6jV3qudTyQeJK2gfMgXkwVNRyRujGKpKrl3715-OWah8ujhPEYGlvRn4fAI7Q0sBn0JM3Z5w0X9q2rd9gMjCcdAOfms7mV981Vvu324pO2BG91B6uEh5lzidmpN4VzY6zLJ-mqTdLO20tGVSZjJOdMCLAieMqDd11tgtOvVebHkuJH-DfgkrZXY7Q4fVJAwuuekos7yFuzD3J_7r1embzSsg.bW7u1X5RRknSE1ka.tLr-UQX_Drass_Q.TaI-nlX8wo5BYW1qFS2C7A",
            "eyJhbGciOiJFQ0RILUVTIiwiZW5jIjoiQTI1NkdDTSIsImVwayI6eyJrdHkiOiJFQyIsImNydiI6IlAtMzg0IiwieCI6ImFVRUF3UFFUcUpFVTQzTVhPSXNnb2dJYnRxd3QzLVB6eU1sQlFhVUNoRFFKamZ1RFZzU09Vanc2dkswOUMydk4iLCJ5IjoiOEN2NWI0dXNUUDNacTlMQXdyM0xmVWpxZE41bmNDYjktV3o1UjVyWDBNV3JJUUZ1THROUUJWRGdyNVVVVlpYUSJ9fQ..JrPui59lrLXM68zN.p_O_1oL84pmTp6s.gwnBiZ_RKieZt8XI46Bbbg",
        ];
        let scene = Scene::default();
        scene.with(|context| {
            for (place, key) in keys.iter().enumerate() {
                let key = PrivateKey::from_der(key).unwrap();
                for (number, token) in tokens.iter().enumerate() {
                    let plain = decrypt(context, token.as_bytes(), &key);
                    assert_eq!(plain, (number == place / 2).then_some(&b"hello world"[..]), "{place} {number}");
                }
                assert!(PrivateKey::from_der(b"x").is_none());
            }
        });
        check(
            tokens[0],
            "jwt_decrypt_cert(a.pem)",
            "!invalid args in converter 'jwt_decrypt_cert' : unknown certificate a.pem",
        );
    }

    #[test]
    fn secrets_decrypt() {
        #[rustfmt::skip]
        let rows: &[(&str, &str, &str)] = &[
            ("eyJhbGciOiJBMTI4S1ciLCJlbmMiOiJBMTI4Q0JDLUhTMjU2In0.J0Z1jX4NUY8eUum1gaLMXUP2yC0fSjy8y3LLCAHY3abscigogHQsUw.Q8L69Qvb1t5wenlm_A_lfA.lYpZBfNVKINa4ey6G0NzYw.gIRLF_uKlqHKrNf2nMaG2w", "jwt_decrypt_secret(Ku8U0txeF55zXJHFcIU3Xw==)", "68656c6c6f20776f726c64"),
            ("eyJhbGciOiJBMTkyS1ciLCJlbmMiOiJBMTkyQ0JDLUhTMzg0In0.-84Pqus8gB1paxJlUv24UquJueXchEk7mrvJ7oB_oh4Y-q08wZFouPfB6JqiTL13dWAAxh6e85g.1KsmNBOmAwzVkLeMO0PNBg.OfziTYAI54bL7jXLBHK_sA.GUggtKitaBykG4XT-QKX8xveGklHqwfb", "jwt_decrypt_secret(eAfkOEkCaH2/i41LBWfgr7bUotFbAIwf)", "68656c6c6f20776f726c64"),
            ("eyJhbGciOiJBMjU2S1ciLCJlbmMiOiJBMjU2Q0JDLUhTNTEyIn0.SQgRKpSEwk1mnSIP01rMYTfqp0B6rYmmtFPP4ygl-AzaRQcTxHfsYX2DchiJs8vuq7gq_Z5MQcpl-ZR0q3pl_HfPK0XMNfr7.XvTazRgMorKn092eZHxIwA.b9d76tX6IA8k5hj0ZEp-CQ.x0s_gYyCYC8mUEggw1otH6UCGjiF2v7ikqbsy215hnA", "jwt_decrypt_secret(xERNsi3g7MMoXUpxJvcMtVDZDY1Nwka6iRJ/+pyhzAM=)", "68656c6c6f20776f726c64"),
            ("eyJhbGciOiJBMTI4R0NNS1ciLCJlbmMiOiJBMTI4R0NNIiwiaXYiOiJPbGNueDlTMUtXN0dwb2V5IiwidGFnIjoid1M3eXdYYVg2Rm54a19xdnFEX0g3dyJ9.vqXT9ivK9LIBzGMovGdQWA.jqhZJ_-J3jXuf-GL.wm9XxQ4og5C1Ar4.SGbzLn9MwRYHO3r5s7TzAw", "jwt_decrypt_secret(Ku8U0txeF55zXJHFcIU3Xw==)", "68656c6c6f20776f726c64"),
            ("eyJhbGciOiJBMTkyR0NNS1ciLCJlbmMiOiJBMTkyR0NNIiwiaXYiOiJ4UW9iaG85SHJqQm9pWFJfIiwidGFnIjoiZlVEQl9QM0o4RjY5UmFpaG9sVHEyZyJ9.OnBq5NbFoly3WoycGAL7gc9xOPwAMO4-.Fr4KaYFBE_4cdOTq.54oXlDYPLbDQb2E.g2q6UWKX-4lNOnR49JNr-g", "jwt_decrypt_secret(eAfkOEkCaH2/i41LBWfgr7bUotFbAIwf)", "68656c6c6f20776f726c64"),
            ("eyJhbGciOiJBMjU2R0NNS1ciLCJlbmMiOiJBMjU2R0NNIiwiaXYiOiJMdXRfdEphZlpSUS1NSHZpIiwidGFnIjoiQm90M3phcmVEekRIV2EtUlQ4bTZJZyJ9.KvuLUK-ZM8Iy41X2i0_svxQjDxJcbFWXhWJE4w1zGco.1n1dolZeSdz4pHXC.TiyQ4b2XTodNxpM.EpyuB9ZV6FvifdxHhdPwuw", "jwt_decrypt_secret(xERNsi3g7MMoXUpxJvcMtVDZDY1Nwka6iRJ/+pyhzAM=)", "68656c6c6f20776f726c64"),
            ("eyJhbGciOiJkaXIiLCJlbmMiOiJBMTI4R0NNIn0.._a4Q6qLUVsJ947cm.bzD_Xy_zz52Oly8.boAC8oxxUi8kYimqG714Cw", "jwt_decrypt_secret(Ku8U0txeF55zXJHFcIU3Xw==)", "68656c6c6f20776f726c64"),
            ("eyJhbGciOiJkaXIiLCJlbmMiOiJBMjU2Q0JDLUhTNTEyIn0..aDqSPOUaTrL1XPGIAyTPkw.fhVBFHJ5WRwWS0-YUDM1dg.DpgsJ7pGJK9ksMo6EWin2yir5XqCQJCtl3rxTqvbnmw", "jwt_decrypt_secret(cKldnuE1ffB8ZorvJBI47FM9v/6NRPucuVWcgkcx4Kibiww9LwoM7JIFOs/htG4NSwohFrtbPZsJS99wLHIX+A==)", "68656c6c6f20776f726c64"),
            ("eyJhbGciOiJkaXIiLCJlbmMiOiJBMTI4R0NNIn0..dnvwa6t8sBSIo6vD.HOKiHT8rTG6ZDas.eonAwpcdTN5ijeRAJDFoAA", "jwt_decrypt_secret(Ku8U0txeF55zXJHFcIU3Xw==)", "<none>"),
            ("eyJhbGciOiJkaXIiLCJlbmMiOiJBMTI4R0NNIn0..dnvwa6t8sBSIo6vD.HOKiHT8rTG6ZDas.eonAwpcdTN5ijeRAJDFoxQ", "jwt_decrypt_secret(xERNsi3g7MMoXUpxJvcMtVDZDY1Nwka6iRJ/+pyhzAM=)", "<none>"),
            ("a.b.c.d", "jwt_decrypt_secret(xERNsi3g7MMoXUpxJvcMtVDZDY1Nwka6iRJ/+pyhzAM=)", "<none>"),
            ("a.b.c.d.e", "jwt_decrypt_secret(AAA)", "!invalid args in converter 'jwt_decrypt_secret' : failed to parse secret: argument needs to be base64 encoded, and can either be a string or a variable"),
            ("a", "jwt_decrypt_jwk(x)", "!invalid args in converter 'jwt_decrypt_jwk' : Missing key type (expected 'oct', 'RSA' or 'EC')"),
        ];
        for (token, converter, expected) in rows {
            check(token, converter, expected);
        }
    }

    /// An RSA key, for tests only.
    #[rustfmt::skip]
    const RSA: &str = r#"{"n":"pfIiq2N6mggW_dhRivZYwilwGYZHjuGFcpYSx_J3WhzReLJCUSNBYVyVqQTuJFge4wAlE2qNk7ypLq0My43MHW75dx3lLZuPnvynNqcBvlDA7zP-3LIQelYyG5B409x72CT3Yv6t5rDQJ2cGKJuPvxgYFDp8pY31Znp7WtTG7jl8v4yjwP2Zm7h-Hrys6Q8SJdnDy43cXBbg-7nQgaZq9I81vF9E_muye76zWbtI0mJLsrfCzgykZaTwgsZbmoD-9VlMSecJ7SCfcxMwzfIKt9MKZt-8Fzkw-hStOspeW8M9V8dIqBc5X3A3W_uN1_MzqjK_MyTxklO7_H5xhbdIlw","e":"AQAB","d":"CfK2EvUBVVj4Z-Dr705NWKmhrfLXn1n0GHM-tPxBtp-iC-ZD0eSXKssHsPygRuixd7iugFETvUn2ENvdUUz_pSDd-6VJjXsuscB1SPJCFhkPnkdm4-9L_y_jpegtr79SY7ONN3YLeGTpImbFGIu0b_RCnUcHg4IH6bJpN3_1Kc3xQUNakhC_VNnr23dpeQlvS8wnaBOyfq7eHOe4bjOuSxLOew9srfBEQwz5E6Of30jYl12Q6RprTG08dDtoeGHuJ7ie-ihSHc7LfN1ywTWYOJHJfN3-zRgJ9FL2DPJtbuMJ28r4McI0yaCvPF1joKq9oR46vshYQMpEYP0ab3fXYQ","p":"3zpwfEwnJKCGsyMoVQKv0kxTeHOF7dXDyUArbURk4p8cUl9jlyM19_tNsfkPkvj5eab2wFrVTPWmMZVNY8UMSCcUIcjhpRf07TcImi8tQ_z0ktp8rbr6tJ_DLacOV-HIvSNjYJVmnIyCQvjFAx5fB0QMDHVdghOydsYZ1iFHELU","q":"vk7beWnHZ72nc5P_MklUb--BmkAcTXNq6lgUvQjcN0B5TYfCnbZLN9yTPr6POm3tVm_a84YhUUHhFG0J1nxRNL5LZuVBsB9_bvWo7O1az7YZSiDhfODu2CBYOXiYycQgMVv0F9Oq0R54nFPLa2sg35JdY6ZGy20ox19E2LWpX5s","dp":"f7MbtE-QOOjIBeR_5xnRYRmeypIztJoMFa3q6egtWmMxPYIqI8TV09XkXYKgQTDC7q_wCpwr14nTmBvUGNYZr5EDeExFoT8yMx2_gwyn9XPYqcXpey0yzG90pUIi921He8Opzw_Ikpfi0NMlSSJvtGVeCyZ85rPD7SRolVGWKN0","dq":"Ywa5oaXvQwYm-jdKlaoeq9hfAhrWH18thR-sOuk_XejIthUsqdBPt5Opcv7JnMfStiWiMxHaiGPVcUGD2v35a46RwcsNsU3Si7R84DxqAqdo5W_SpZ6N6hx6i_0609KgRc7pZvSXcBWBASeBNDYcdvm8arv9HqGAlK34LyPoLH0","qi":"btiV_bFAhfs72IVYT5Xm9LHkzGf78uOLJicAWSJ9FL_XZzCU8D1SoJSIgG0Kjk8GkhdMVB-U-Wo7_lWIwqxh2WIWEWWNv2JrwtwSBUQCMd9nHon2dzpp_czSeaMAtHRkVmdLQdCNrD4-NDAkLatZ5-cvX4C5b3BEMinTS5y8-K4","kty":"RSA"}"#;

    #[test]
    fn keys_decrypt() {
        #[rustfmt::skip]
        let rows: &[(&str, &str, &str)] = &[
            ("eyJhbGciOiJBMjU2S1ciLCJlbmMiOiJBMTI4R0NNIn0.Kkpi3nYK_sD_gg-97bdaweIEQF5yin7j.1LrAqbxYpqavSz92.QFdCFxfjtuv06p8.NwdmWnhHEk94nmZ0SQX4EA", r#"{"kty":"oct","k":"xERNsi3g7MMoXUpxJvcMtVDZDY1Nwka6iRJ_-pyhzAM"}"#, "68656c6c6f20776f726c64"),
            ("eyJhbGciOiJFQ0RILUVTIiwiZW5jIjoiQTEyOEdDTSIsImVwayI6eyJjcnYiOiJQLTI1NiIsIngiOiJzNkxET1JKa1ktcFFWR0xFOUVSVlRHY180bS1JMlg0T0FqT21HdVk1Z284IiwieSI6Iml6anNoUVB2RGczR3Y3aG04TGFiVGs0YXgwdGZ0Ykp1by1fRUJsZXExN2ciLCJrdHkiOiJFQyJ9fQ..6u4bfIgTTX5RbOpr.uCxWenz0MCvV5Is.WDRJOE7fpFyU_n3bDibi7g", r#"{"crv":"P-256","x":"rxPR6GK9NulUOWyyx4FKzu5W_rbZbNJp-ku1blOajPg","y":"rE3OW92P6sP_Mlr2UKxoqyO9KQNNWwSQaNM3th_Uho8","d":"Rj1r0YIIPiJAFMUtQom84fo3XFwiPx2CdaLmDyY5wzc","kty":"EC"}"#, "68656c6c6f20776f726c64"),
            ("eyJhbGciOiJFQ0RILUVTK0ExOTJLVyIsImVuYyI6IkExMjhHQ00iLCJlcGsiOnsiY3J2IjoiUC0zODQiLCJ4IjoiVktqWkFoUWN2YWF0YnVQMGdJSEc1UnlObUN2R3FOMXFzYTZfMmdSdHNvMlJoOUdkMlRZdXVTcEdvLVRrcVVMZCIsInkiOiJrOWlxLWZyZjRhUDdSQ3p3dHkxTkJJWFZtbkwtczhsaFhfWTZvRXlMSlJrMk1yZ09talFsczBRVXloMWpMcWZXIiwia3R5IjoiRUMifX0.KiFCY-ARRmWR7c2QSQVYXjp5CYfS1V62.GKU4JI5n-oNkNXVI.E4X4eNJOwQpHK8g.Dyi6NjwJYVxM2bLc6wAd9A", r#"{"crv":"P-384","x":"ShZaUClwDL9VclTqqk8iIBajTgd0CubNtFb7A-b2OaPqJs_T2jO3tPcOTpgY_hmi","y":"f3zMGTuWjzPx1QVqmK3q5V5_Gq3nsiXbwC9AA8d9Kh2i5LdJpC2fL-ofXqXrZ_Kg","d":"UdQohSG4KLFx6caq5yiJw4u7ohor5rUiNC7_KHzzeuGdc1SFZbLRx4xvwiFGIe3B","kty":"EC"}"#, "68656c6c6f20776f726c64"),
            ("eyJhbGciOiJFQ0RILUVTK0EyNTZLVyIsImVuYyI6IkExMjhHQ00iLCJlcGsiOnsiY3J2IjoiUC01MjEiLCJ4IjoiQUo3RVFfT1U4T3VtNHVoSWhuNVBrelJ2R1RSbUJ4TWg3SEtwLTZZcWpuZmtkSE1BTXBqVjlodS12UDdhWkpLcnRscmIwN3FsRy0wWXItU0pDUXA2Vl9iMCIsInkiOiJBU21MVEprYkp1RmxuOGRzSTF0Q0RJMzJSeUg0T0hoZWk1NUp5b1VKbEN2T2tyODJ2ejlTMlJZck1BSzNqODZyYVdpT05kNnFvMEw2SjdQUkFwU3AtUHk5Iiwia3R5IjoiRUMifX0.FI7AbaSUda8QAzk3-E9RBm1oUVPy6zys.YHGM0VzYL7sofHrc._jp8uHMUjpExczY.rovOvn6IqWLOjhRNDd1Q-w", r#"{"crv":"P-521","x":"AMIQux6EJ3unKpZa6ifTBBrpK4yPyoYSAvWaJgPGlmiCeDyjM8k3zUffFFJj6npiq_oAeeIA53KilM11r2Ps4Bsl","y":"AKVc6sTbHZlRFundvADYKG00sJzWVvzA5Dp1w3tD8vtZapDfTDSb4aSdcNpD2a5XpWvKs7BkiFeOwHVcZ-LhuhyC","d":"AIzwX6xgIicVe3RE84LhRY_w5RVqAtLqp1-Un3Fqly2IdoKvwTx71mDYEB5UgxpwijdgoTWu5-6WZ_IgNLUZTf5N","kty":"EC"}"#, "68656c6c6f20776f726c64"),
            ("eyJhbGciOiJFQ0RILUVTIiwiZW5jIjoiQTEyOEdDTSIsImFwdSI6IlFXeHBZMlUiLCJhcHYiOiJRbTlpIiwiZXBrIjp7ImNydiI6IlAtMjU2IiwieCI6ImdWLThxbzh0SHR6Z3podWVnc2JqRWJkUGw5V3JXMFRROFB1bndzWWxwdEUiLCJ5IjoiSWNpWGV0eG1NeThnU1ptWGptR1RreG43ZzE2SlJQNk1FOTd1OUFDUS15cyIsImt0eSI6IkVDIn19..PU06-6zcl28XtN0P.CTemIX_1FPGTV58.saAsGnBhPyFi7JZMcPz4ZQ", r#"{"crv":"P-256","x":"rxPR6GK9NulUOWyyx4FKzu5W_rbZbNJp-ku1blOajPg","y":"rE3OW92P6sP_Mlr2UKxoqyO9KQNNWwSQaNM3th_Uho8","d":"Rj1r0YIIPiJAFMUtQom84fo3XFwiPx2CdaLmDyY5wzc","kty":"EC"}"#, "68656c6c6f20776f726c64"),
            ("eyJhbGciOiJFQ0RILUVTIiwiZW5jIjoiQTEyOEdDTSIsImVwayI6eyJjcnYiOiJQLTI1NiIsIngiOiI2V1l1UjliWHlsSVBGVm5lSWQyYU5JZXpGdmRDQmxiQjUxSjc1R3hocE04IiwieSI6Il9rd1RxUF9NQTNuMHlFMHZuQ1czUnZOWTNydXdURU1VR0ZwVXdiN3ZxRnMiLCJrdHkiOiJFQyJ9fQ..Y9q6bdYUwM3g6SHj.3-ZQw_5Pn6N9fY8.jmCmbwc5lngxLtgK8c-Wew", r#"{"crv":"P-384","x":"ShZaUClwDL9VclTqqk8iIBajTgd0CubNtFb7A-b2OaPqJs_T2jO3tPcOTpgY_hmi","y":"f3zMGTuWjzPx1QVqmK3q5V5_Gq3nsiXbwC9AA8d9Kh2i5LdJpC2fL-ofXqXrZ_Kg","d":"UdQohSG4KLFx6caq5yiJw4u7ohor5rUiNC7_KHzzeuGdc1SFZbLRx4xvwiFGIe3B","kty":"EC"}"#, "<none>"),
            ("eyJhbGciOiJSU0EtT0FFUCIsImVuYyI6IkExMjhHQ00ifQ.ZkT85_aI3oi6lneVUXDHrY75iXkV4T8TgY5QTYWYa0M-if-SMfYlBEQQwFqU4zUURiP3yIBy_wB1uH63378Gkr3ZxIX4yfcw4Yx7ZV4tVU7enTWXGbpaASrkgBySHsB8yna5j1XlqYon_4wMaVwgjZmRMKkyLF4aBfVy0NoeMjkfLbjdHMqcdTcBUCAgv2FroPRPE76We3GOiZloC6BIfKuVKINcIKRaiW25vTEohEj5szYagiwIT8XkUNNCWy3PQSVCMEv0rfYL272cVRkwDPyhDT8Ma2u9p20ewm_VYpO6T9jreD_UMualWVu41COJSzwtjja-kqi79nYn9-9xxg.cUbDx6Dx_ztYFAO5.9IxPYM9k13rwGEs.FcX7sk1pYyMpNKcdsvMkHQ", RSA, "68656c6c6f20776f726c64"),
            ("eyJhbGciOiJSU0EtT0FFUC0yNTYiLCJlbmMiOiJBMTI4R0NNIn0.nnnOl3WmckF9Syq8K3nva6JH6PUJv5Top1QF-k3xrSqOZf-aVMX4LVwm-xP-AqSFVgKA-TVXec2xw_XjniWYNIsD4ibyrffbOwGT5akmorqV0kHw6gicLj8WeKVGzZ6s39hqBjJVvSdJLA58XO8cMOoSi13mnxKqlAiWMlK33d5aY0kRJixLpONmBfMpzbPORHymuDYf6dkzSTfLWU2GvPFROUdnYBs92bkrzIYWK4hvyG7wCbO5uBLE9ylW_5QKo0c_yJFQm2BCAhZHzXpiLpO8FkOp40lZjpbuiM-gs1YFGLLvq2d3fvB-WZa9fq2h9i8b3MwYa43LVmUyJ-lfuw.W_Kqh2upe6MRaCtn.NAeb_wvlZ3wpO8s.mNMaso4kbTCZORR3UC-3gw", RSA, "68656c6c6f20776f726c64"),
            ("eyJhbGciOiJSU0ExXzUiLCJlbmMiOiJBMTI4R0NNIn0.LoJws2KkNzjVR3b4BGm0Fqze3wK-njVsGxjDFJX6DTKXT4VBAR7UyysHGaxcZAcl3m9WBQbjXl2cMfZs7bCZs2FEL1rnAA7AxYHzNRAQS0ZmtTNMt2obWUq52prA1zEKEzqf8djhRZfJSNt0JFlNGsltnwdS1sVeN9YRoor0jyDxm_DNurKa6aLTmd4NxSmp1g9H1pAhJlK_wpyb1rHUWiSmGKkF_60-iKjn_Lr-yEpRip2710rJmDjMA3OtUCe4EU1CgJ2wzdMDwhe3gWgppAfSb7z3RSpxxz_-fTzavhCs9Xxo3KKSkm-fau0dUE9rQb4soNnTqwgK135ukKabBg.io178l-tASuB2g3G._vg22HmbLMq_t_8.ltAyqflbAQowb2V8SPcn-A", RSA, "<none>"),
        ];
        for (token, key, expected) in rows {
            check(token, &format!("jwt_decrypt_jwk('{key}')"), expected);
        }
        let missing = "!invalid args in converter 'jwt_decrypt_jwk' : Missing 'k' field in JWK";
        check("a", r#"jwt_decrypt_jwk('{"kty":"oct"}')"#, missing);
        let without = RSA.replace("\"dq\"", "\"xx\"");
        let missing = "!invalid args in converter 'jwt_decrypt_jwk' : Missing 'dq' field in JWK";
        check("a", &format!("jwt_decrypt_jwk('{without}')"), missing);
    }
}
