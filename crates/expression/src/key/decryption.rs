//! Decryption keys: private keys of pairs, and secrets. Must never print their contents.

use super::der::{self, SEQUENCE};
use aws_lc_rs::agreement::{self, ECDH_P256, ECDH_P384, ECDH_P521, UnparsedPublicKey};
use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OAEP_SHA256_MGF1SHA256, OaepAlgorithm, OaepPrivateDecryptingKey, Pkcs1PrivateDecryptingKey,
    PrivateDecryptingKey,
};
use std::fmt;

/// The padding of a content key that RSA encrypts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// `RSA1_5`.
    Pkcs1,
    /// `RSA-OAEP`.
    OaepSha1,
    /// `RSA-OAEP-256`.
    OaepSha256,
}

/// A curve for key agreement (RFC 7518, section 6.2.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Curve {
    P256,
    P384,
    P521,
}

impl Curve {
    /// Returns the curve of that name.
    pub fn named(name: &[u8]) -> Option<Self> {
        Some(match name {
            b"P-256" => Self::P256,
            b"P-384" => Self::P384,
            b"P-521" => Self::P521,
            _ => return None,
        })
    }

    /// Length of a coordinate in bytes.
    const fn size(self) -> usize {
        match self {
            Self::P256 => 32,
            Self::P384 => 48,
            Self::P521 => 66,
        }
    }

    const fn algorithm(self) -> &'static agreement::Algorithm {
        match self {
            Self::P256 => &ECDH_P256,
            Self::P384 => &ECDH_P384,
            Self::P521 => &ECDH_P521,
        }
    }

    /// Encodes a point in uncompressed form.
    fn point(self, x: &[u8], y: &[u8]) -> Option<Vec<u8>> {
        let mut point = vec![4];
        for part in [x, y] {
            point.extend(self.padded(part)?);
        }
        Some(point)
    }

    /// Pads a number with leading zeros to the length of a coordinate.
    fn padded(self, number: &[u8]) -> Option<Vec<u8>> {
        let mut padded = vec![0; self.size().checked_sub(number.len())?];
        padded.extend_from_slice(number);
        Some(padded)
    }
}

/// A key that decrypts tokens.
pub enum PrivateKey {
    /// A shared secret.
    Secret(Box<[u8]>),
    /// An RSA private key.
    Rsa {
        /// For OAEP padding.
        oaep: OaepPrivateDecryptingKey,
        /// For PKCS#1 v1.5 padding.
        pkcs1: Pkcs1PrivateDecryptingKey,
    },
    /// A private key on a curve.
    Elliptic(Curve, agreement::PrivateKey),
}

impl fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Secret(_) => "PrivateKey(secret)",
            Self::Rsa { .. } => "PrivateKey(RSA)",
            Self::Elliptic(..) => "PrivateKey(EC)",
        })
    }
}

impl PrivateKey {
    /// Builds an RSA key from its numbers, in the order of RFC 8017, section A.1.2: n, e, d, p, q, dp, dq, qi.
    pub fn rsa(numbers: &[&[u8]; 8]) -> Option<Self> {
        let mut key = Vec::new();
        der::put_number(&mut key, &[0]);
        numbers.iter().for_each(|number| der::put_number(&mut key, number));
        let mut whole = Vec::new();
        der::put(&mut whole, SEQUENCE, &key);
        Self::rsa_from_pkcs1(&whole)
    }

    /// Parses an `RSAPrivateKey` (RFC 8017, section A.1.2).
    fn rsa_from_pkcs1(key: &[u8]) -> Option<Self> {
        /// `rsaEncryption` without parameters.
        const ALGORITHM: &[u8] = &[6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
        const OCTETS: u8 = 4;
        let mut info = Vec::new();
        der::put_number(&mut info, &[0]);
        der::put(&mut info, SEQUENCE, ALGORITHM);
        der::put(&mut info, OCTETS, key);
        let mut document = Vec::new();
        der::put(&mut document, SEQUENCE, &info);
        Self::rsa_from_pkcs8(&document)
    }

    fn rsa_from_pkcs8(document: &[u8]) -> Option<Self> {
        let key = PrivateDecryptingKey::from_pkcs8(document).ok()?;
        let oaep = OaepPrivateDecryptingKey::new(key.clone()).ok()?;
        Some(Self::Rsa { oaep, pkcs1: Pkcs1PrivateDecryptingKey::new(key).ok()? })
    }

    /// Parses a certificate's private key in DER: PKCS#8, PKCS#1 for RSA, SEC 1 for a curve. `None`: of another kind.
    pub fn from_der(document: &[u8]) -> Option<Self> {
        let on = |curve: Curve| {
            let key = agreement::PrivateKey::from_private_key_der(curve.algorithm(), document).ok()?;
            Some(Self::Elliptic(curve, key))
        };
        Self::rsa_from_pkcs8(document)
            .or_else(|| Self::rsa_from_pkcs1(document))
            .or_else(|| [Curve::P256, Curve::P384, Curve::P521].into_iter().find_map(on))
    }

    /// Builds a key from the number `d` on a curve; its public point must be (x, y).
    pub fn elliptic(curve: Curve, d: &[u8], x: &[u8], y: &[u8]) -> Option<Self> {
        let key = agreement::PrivateKey::from_private_key(curve.algorithm(), &curve.padded(d)?).ok()?;
        let public = key.compute_public_key().ok()?;
        (public.as_ref() == curve.point(x, y)?).then_some(Self::Elliptic(curve, key))
    }

    /// Decrypts with RSA.
    pub fn reveal(&self, padding: Padding, hidden: &[u8]) -> Option<Vec<u8>> {
        let Self::Rsa { oaep, pkcs1 } = self else { return None };
        let mut out = vec![0; oaep.min_output_size()];
        let open = |algorithm: &'static OaepAlgorithm, out: &mut [u8]| {
            oaep.decrypt(algorithm, hidden, out, None).ok().map(|plain| plain.len())
        };
        let length = match padding {
            Padding::Pkcs1 => pkcs1.decrypt(hidden, &mut out).ok().map(|plain| plain.len()),
            Padding::OaepSha1 => open(&OAEP_SHA1_MGF1SHA1, &mut out),
            Padding::OaepSha256 => open(&OAEP_SHA256_MGF1SHA256, &mut out),
        }?;
        out.truncate(length);
        Some(out)
    }

    /// Passes the shared secret of this key and a peer's point on its curve.
    pub fn agree<T>(&self, curve: Curve, x: &[u8], y: &[u8], with: impl FnOnce(&[u8]) -> Option<T>) -> Option<T> {
        let Self::Elliptic(own, key) = self else { return None };
        if *own != curve {
            return None;
        }
        let peer = UnparsedPublicKey::new(curve.algorithm(), curve.point(x, y)?);
        agreement::agree(key, peer, (), |secret| with(secret).ok_or(())).ok()
    }
}
