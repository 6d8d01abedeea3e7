//! The account key of an ACME client, and the requests signed with it (RFC 7515, RFC 7518, RFC 8555 section 6.2). Must
//! never interpret what is signed.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac;
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, ECDSA_P521_SHA512_FIXED_SIGNING, EcdsaKeyPair,
    EcdsaSigningAlgorithm, KeyPair, RSA_PKCS1_SHA256, RsaKeyPair,
};
use base::base64;
use rustls::pki_types::PrivateKeyDer;
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::RSAPublicKey;

use crate::pem;

/// Encodes bytes in base64url without padding (RFC 7515, section 2).
pub fn base64url(bytes: &[u8]) -> String {
    base64::encoded_url(bytes)
}

/// Returns the SHA-256 digest of a text.
pub fn sha256(text: &[u8]) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, text).as_ref());
    bytes
}

/// The key of an account.
#[derive(Debug)]
pub struct AccountKey {
    pair: Pair,
    /// The public key (RFC 7517), its members sorted by name, as its thumbprint requires (RFC 7638).
    jwk: String,
}

#[derive(Debug)]
enum Pair {
    Rsa(Box<RsaKeyPair>),
    Ecdsa(EcdsaKeyPair, &'static str),
}

/// Two keys are equal if their public parts are.
impl PartialEq for AccountKey {
    fn eq(&self, other: &Self) -> bool {
        self.jwk == other.jwk
    }
}

/// MAC algorithms for external account binding (RFC 8555, section 7.3.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MacAlgorithm {
    /// HMAC with SHA-256.
    #[default]
    Hs256,
    /// HMAC with SHA-384.
    Hs384,
    /// HMAC with SHA-512.
    Hs512,
}

impl MacAlgorithm {
    const fn name(self) -> &'static str {
        match self {
            Self::Hs256 => "HS256",
            Self::Hs384 => "HS384",
            Self::Hs512 => "HS512",
        }
    }
}

/// Credentials from a CA for external account binding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Binding {
    /// The key identifier.
    pub id: String,
    pub key: Vec<u8>,
    /// The MAC algorithm.
    pub algorithm: MacAlgorithm,
}

impl Binding {
    /// Parses credentials; the key is in base64url. `None`: invalid base64url.
    pub fn read(id: &str, key: &str, algorithm: MacAlgorithm) -> Option<Self> {
        let key = base64::decoded_url_strictly(key.trim_end_matches('=').as_bytes())?;
        Some(Self { id: id.to_owned(), key, algorithm })
    }

    /// Returns the member `externalAccountBinding` of a new-account request.
    pub fn bind(&self, account: &AccountKey, url: &str) -> String {
        let algorithm = match self.algorithm {
            MacAlgorithm::Hs256 => hmac::HMAC_SHA256,
            MacAlgorithm::Hs384 => hmac::HMAC_SHA384,
            MacAlgorithm::Hs512 => hmac::HMAC_SHA512,
        };
        let protected =
            format!(r#"{{"alg":"{}","kid":{},"url":{}}}"#, self.algorithm.name(), quoted(&self.id), quoted(url));
        let key = hmac::Key::new(algorithm, &self.key);
        joined(&protected, account.jwk.as_bytes(), |input| Some(hmac::sign(&key, input).as_ref().to_vec()))
            .unwrap_or_default()
    }
}

/// The sender of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender<'a> {
    /// A client without an account yet: the public key is included.
    Key,
    /// The account with this URL.
    Account(&'a str),
}

/// Encodes a text as a JSON string.
fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for found in text.chars() {
        match found {
            '"' | '\\' => out.extend(['\\', found]),
            '\0'..='\x1f' => out.push_str(&format!("\\u{:04x}", u32::from(found))),
            _ => out.push(found),
        }
    }
    out.push('"');
    out
}

/// Returns a signature in the flattened JWS JSON serialization (RFC 7515, section 7.2.2).
fn joined(protected: &str, payload: &[u8], sign: impl Fn(&[u8]) -> Option<Vec<u8>>) -> Option<String> {
    let (protected, payload) = (base64url(protected.as_bytes()), base64url(payload));
    let signature = base64url(&sign(format!("{protected}.{payload}").as_bytes())?);
    Some(format!(r#"{{"protected":"{protected}","payload":"{payload}","signature":"{signature}"}}"#))
}

impl AccountKey {
    /// Parses a private key in PEM: RSA, or ECDSA with P-256, P-384 or P-521, in PKCS #1, PKCS #8 or SEC 1.
    ///
    /// # Errors
    /// The reason why it cannot be used.
    pub fn read(text: &[u8]) -> Result<Self, String> {
        let key = pem::private_key(text).map_err(|_| "no private key found".to_owned())?;
        let der = key.secret_der();
        let rsa = match &key {
            PrivateKeyDer::Pkcs1(_) => RsaKeyPair::from_der(der).ok(),
            PrivateKeyDer::Pkcs8(_) => RsaKeyPair::from_pkcs8(der).ok(),
            _ => None,
        };
        if let Some(pair) = rsa {
            let (_, public) = RSAPublicKey::from_der(pair.public_key().as_ref()).map_err(|error| error.to_string())?;
            // Numbers have no leading zeros (RFC 7518, section 2).
            let bytes = |number: &[u8]| base64url(&number[number.iter().take_while(|byte| **byte == 0).count()..]);
            let (exponent, modulus) = (bytes(public.exponent), bytes(public.modulus));
            let jwk = format!(r#"{{"e":"{exponent}","kty":"RSA","n":"{modulus}"}}"#);
            return Ok(Self { pair: Pair::Rsa(Box::new(pair)), jwk });
        }
        type Row = (&'static EcdsaSigningAlgorithm, &'static str, &'static str);
        const CURVES: [Row; 3] = [
            (&ECDSA_P256_SHA256_FIXED_SIGNING, "P-256", "ES256"),
            (&ECDSA_P384_SHA384_FIXED_SIGNING, "P-384", "ES384"),
            (&ECDSA_P521_SHA512_FIXED_SIGNING, "P-521", "ES512"),
        ];
        for (algorithm, curve, name) in CURVES {
            let Ok(pair) = EcdsaKeyPair::from_private_key_der(algorithm, der) else { continue };
            // An uncompressed point: one byte, then both coordinates.
            let point = pair.public_key().as_ref();
            let Some((x, y)) = point.get(1..).map(|both| both.split_at(both.len() / 2)) else { continue };
            let (x, y) = (base64url(x), base64url(y));
            let jwk = format!(r#"{{"crv":"{curve}","kty":"EC","x":"{x}","y":"{y}"}}"#);
            return Ok(Self { pair: Pair::Ecdsa(pair, name), jwk });
        }
        Err("the key is neither RSA nor ECDSA with P-256, P-384 or P-521".to_owned())
    }

    /// Returns the thumbprint of the public key (RFC 7638).
    pub fn thumbprint(&self) -> String {
        base64url(&sha256(self.jwk.as_bytes()))
    }

    /// Returns a signed request to `url` (RFC 8555, section 6.2). An empty payload makes it a POST-as-GET (section
    /// 6.3).
    ///
    /// # Errors
    /// The random number generator fails.
    pub fn sign(&self, sender: Sender<'_>, url: &str, nonce: &str, payload: &str) -> Result<String, String> {
        let algorithm = match &self.pair {
            Pair::Rsa(_) => "RS256",
            Pair::Ecdsa(_, name) => name,
        };
        let sender = match sender {
            Sender::Key => format!(r#""jwk":{}"#, self.jwk),
            Sender::Account(account) => format!(r#""kid":{}"#, quoted(account)),
        };
        let protected = format!(r#"{{"alg":"{algorithm}",{sender},"nonce":{},"url":{}}}"#, quoted(nonce), quoted(url));
        joined(&protected, payload.as_bytes(), |input| self.signature(input)).ok_or_else(|| "cannot sign".to_owned())
    }

    fn signature(&self, input: &[u8]) -> Option<Vec<u8>> {
        let random = SystemRandom::new();
        match &self.pair {
            Pair::Rsa(pair) => {
                let mut signature = vec![0; pair.public_modulus_len()];
                pair.sign(&RSA_PKCS1_SHA256, &random, input, &mut signature).ok()?;
                Some(signature)
            }
            Pair::Ecdsa(pair, _) => Some(pair.sign(&random, input).ok()?.as_ref().to_vec()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::issue::{Key, KeyKind};
    use aws_lc_rs::signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, ECDSA_P521_SHA512_FIXED, RSA_PKCS1_2048_8192_SHA256,
        UnparsedPublicKey, VerificationAlgorithm,
    };

    /// Returns the value of a member of a flat object.
    fn member(text: &str, name: &str) -> String {
        let (_, behind) = text.split_once(&format!("\"{name}\":\"")).unwrap();
        behind.split_once('"').unwrap().0.to_owned()
    }

    fn decoded(text: &str) -> Vec<u8> {
        base64::decoded_url_strictly(text.as_bytes()).unwrap()
    }

    #[test]
    fn requests_are_signed_by_every_kind_of_key() {
        type Row = (KeyKind, &'static str, &'static dyn VerificationAlgorithm);
        let rows: [Row; 4] = [
            (KeyKind::Rsa2048, "RS256", &RSA_PKCS1_2048_8192_SHA256),
            (KeyKind::P256, "ES256", &ECDSA_P256_SHA256_FIXED),
            (KeyKind::P384, "ES384", &ECDSA_P384_SHA384_FIXED),
            (KeyKind::P521, "ES512", &ECDSA_P521_SHA512_FIXED),
        ];
        for (kind, name, algorithm) in rows {
            let key = AccountKey::read(Key::generate(kind).unwrap().to_pem().as_bytes()).unwrap();
            let text = key.sign(Sender::Account("https://ca/\"1"), "https://ca/x", "abc", "{}").unwrap();
            let protected = String::from_utf8(decoded(&member(&text, "protected"))).unwrap();
            let expected = format!(r#"{{"alg":"{name}","kid":"https://ca/\"1","nonce":"abc","url":"https://ca/x"}}"#);
            assert_eq!(protected, expected);
            assert_eq!(decoded(&member(&text, "payload")), b"{}");
            let public = match &key.pair {
                Pair::Rsa(pair) => pair.public_key().as_ref().to_vec(),
                Pair::Ecdsa(pair, _) => pair.public_key().as_ref().to_vec(),
            };
            let input = format!("{}.{}", member(&text, "protected"), member(&text, "payload"));
            let public = UnparsedPublicKey::new(algorithm, public);
            public.verify(input.as_bytes(), &decoded(&member(&text, "signature"))).unwrap();
            assert!(key.sign(Sender::Key, "u", "n", "").unwrap().contains(r#""payload":"""#));
        }
    }

    /// The form of the key and the thumbprint of RFC 7638, section 3.1.
    #[test]
    fn a_public_key_is_written_in_the_order_of_its_members() {
        let key = AccountKey::read(Key::generate(KeyKind::Rsa2048).unwrap().to_pem().as_bytes()).unwrap();
        assert!(key.jwk.starts_with(r#"{"e":"AQAB","kty":"RSA","n":""#), "{}", key.jwk);
        assert_eq!(decoded(&key.thumbprint()), sha256(key.jwk.as_bytes()));
    }

    #[test]
    fn accounts_are_bound_by_the_keys_of_others() {
        let key = AccountKey::read(Key::generate(KeyKind::P256).unwrap().to_pem().as_bytes()).unwrap();
        let binding = Binding::read("kid-1", "c2VjcmV0", MacAlgorithm::Hs384).unwrap();
        assert_eq!(binding.key, b"secret");
        let text = binding.bind(&key, "https://ca/new");
        let protected = decoded(&member(&text, "protected"));
        assert_eq!(protected, br#"{"alg":"HS384","kid":"kid-1","url":"https://ca/new"}"#);
        assert_eq!(decoded(&member(&text, "payload")), key.jwk.as_bytes());
        let input = format!("{}.{}", member(&text, "protected"), member(&text, "payload"));
        let mac = hmac::Key::new(hmac::HMAC_SHA384, b"secret");
        hmac::verify(&mac, input.as_bytes(), &decoded(&member(&text, "signature"))).unwrap();
        assert_eq!(Binding::read("kid-1", "!", MacAlgorithm::Hs256), None);
    }
}
