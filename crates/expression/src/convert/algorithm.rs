//! Digests by their OpenSSL names, and HMAC with them (RFC 2104). Must never depend on the meaning of the bytes.

use crate::sample::Context;
use blake2::{Blake2b512, Blake2s256};
use hmac::digest::{Digest, ExtendableOutput, Update, XofReader, block_api::BlockSizeUser};
use hmac::{KeyInit, Mac, SimpleHmac};
use md5::Md5;
use ripemd::Ripemd160;
use sha1::Sha1;
use sha2::{Sha224, Sha256, Sha384, Sha512, Sha512_224, Sha512_256};
use sha3::{Sha3_224, Sha3_256, Sha3_384, Sha3_512, Shake128, Shake256};
use sm3::Sm3;
use subtle::ConstantTimeEq;

/// A digest algorithm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Algorithm {
    Blake2b512,
    Blake2s256,
    Md5,
    /// The concatenation of MD5 and SHA-1.
    Md5Sha1,
    Ripemd160,
    Sha1,
    Sha224,
    Sha256,
    Sha384,
    Sha512,
    Sha512_224,
    Sha512_256,
    Sha3_224,
    Sha3_256,
    Sha3_384,
    Sha3_512,
    /// SHAKE128 with OpenSSL's default length of 16 bytes.
    Shake128,
    /// SHAKE256 with OpenSSL's default length of 32 bytes.
    Shake256,
    Sm3,
    /// A digest that OpenSSL still names but no longer implements.
    Retired,
}

/// The names of each digest, in lower case.
#[rustfmt::skip]
const NAMES: &[(Algorithm, &[&str])] = &[
    (Algorithm::Blake2b512, &["blake2b512", "blake2b-512", "1.3.6.1.4.1.1722.12.2.1.16"]),
    (Algorithm::Blake2s256, &["blake2s256", "blake2s-256", "1.3.6.1.4.1.1722.12.2.2.8"]),
    (Algorithm::Md5, &["md5", "ssl3-md5", "rsa-md5", "md5withrsaencryption", "1.2.840.113549.2.5"]),
    (Algorithm::Md5Sha1, &["md5-sha1"]),
    (Algorithm::Ripemd160, &[
        "ripemd160", "ripemd-160", "ripemd", "rmd160", "rsa-ripemd160", "ripemd160withrsa", "1.3.36.3.2.1",
    ]),
    (Algorithm::Sha1, &[
        "sha1", "sha-1", "ssl3-sha1", "rsa-sha1", "rsa-sha1-2", "sha1withrsa", "sha1withrsaencryption", "1.3.14.3.2.26",
    ]),
    (Algorithm::Sha224, &[
        "sha224", "sha-224", "sha2-224", "rsa-sha224", "sha224withrsaencryption", "2.16.840.1.101.3.4.2.4",
    ]),
    (Algorithm::Sha256, &[
        "sha256", "sha-256", "sha2-256", "rsa-sha256", "sha256withrsaencryption", "2.16.840.1.101.3.4.2.1",
    ]),
    (Algorithm::Sha384, &[
        "sha384", "sha-384", "sha2-384", "rsa-sha384", "sha384withrsaencryption", "2.16.840.1.101.3.4.2.2",
    ]),
    (Algorithm::Sha512, &[
        "sha512", "sha-512", "sha2-512", "rsa-sha512", "sha512withrsaencryption", "2.16.840.1.101.3.4.2.3",
    ]),
    (Algorithm::Sha512_224, &[
        "sha512-224", "sha-512/224", "sha2-512/224", "rsa-sha512/224", "sha512-224withrsaencryption",
        "2.16.840.1.101.3.4.2.5",
    ]),
    (Algorithm::Sha512_256, &[
        "sha512-256", "sha-512/256", "sha2-512/256", "rsa-sha512/256", "sha512-256withrsaencryption",
        "2.16.840.1.101.3.4.2.6",
    ]),
    (Algorithm::Sha3_224, &[
        "sha3-224", "rsa-sha3-224", "id-rsassa-pkcs1-v1_5-with-sha3-224", "2.16.840.1.101.3.4.2.7",
    ]),
    (Algorithm::Sha3_256, &[
        "sha3-256", "rsa-sha3-256", "id-rsassa-pkcs1-v1_5-with-sha3-256", "2.16.840.1.101.3.4.2.8",
    ]),
    (Algorithm::Sha3_384, &[
        "sha3-384", "rsa-sha3-384", "id-rsassa-pkcs1-v1_5-with-sha3-384", "2.16.840.1.101.3.4.2.9",
    ]),
    (Algorithm::Sha3_512, &[
        "sha3-512", "rsa-sha3-512", "id-rsassa-pkcs1-v1_5-with-sha3-512", "2.16.840.1.101.3.4.2.10",
    ]),
    (Algorithm::Shake128, &["shake128", "shake-128", "2.16.840.1.101.3.4.2.11"]),
    (Algorithm::Shake256, &["shake256", "shake-256", "2.16.840.1.101.3.4.2.12"]),
    (Algorithm::Sm3, &["sm3", "rsa-sm3", "sm3withrsaencryption", "1.2.156.10197.1.401"]),
    (Algorithm::Retired, &["md4", "rsa-md4", "md4withrsaencryption", "1.2.840.113549.2.4", "whirlpool"]),
];

impl Algorithm {
    /// Returns the digest of that name, case-insensitively.
    ///
    /// # Errors
    /// HAProxy's message.
    pub(super) fn named(name: &str) -> Result<Self, String> {
        let name = name.to_ascii_lowercase();
        let found = NAMES.iter().find(|(_, names)| names.contains(&&*name));
        let unknown = || "algorithm must be a valid OpenSSL message digest name.".to_owned();
        found.map(|(algorithm, _)| *algorithm).ok_or_else(unknown)
    }

    /// Computes the digest; `None` if it is not implemented.
    pub(super) fn digest<'a>(self, context: &Context<'a>, bytes: &[u8]) -> Option<&'a [u8]> {
        fn of<'a, D: Digest>(context: &Context<'a>, bytes: &[u8]) -> Option<&'a [u8]> {
            context.copy(&D::digest(bytes))
        }
        fn long<'a, D: Default + Update + ExtendableOutput, const LENGTH: usize>(
            context: &Context<'a>,
            bytes: &[u8],
        ) -> Option<&'a [u8]> {
            let (mut digest, mut out) = (D::default(), [0; LENGTH]);
            digest.update(bytes);
            digest.finalize_xof().read(&mut out);
            context.copy(&out)
        }
        match self {
            Self::Blake2b512 => of::<Blake2b512>(context, bytes),
            Self::Blake2s256 => of::<Blake2s256>(context, bytes),
            Self::Md5 => of::<Md5>(context, bytes),
            Self::Md5Sha1 => context.copy(&md5_sha1(&[bytes])),
            Self::Ripemd160 => of::<Ripemd160>(context, bytes),
            Self::Sha1 => of::<Sha1>(context, bytes),
            Self::Sha224 => of::<Sha224>(context, bytes),
            Self::Sha256 => of::<Sha256>(context, bytes),
            Self::Sha384 => of::<Sha384>(context, bytes),
            Self::Sha512 => of::<Sha512>(context, bytes),
            Self::Sha512_224 => of::<Sha512_224>(context, bytes),
            Self::Sha512_256 => of::<Sha512_256>(context, bytes),
            Self::Sha3_224 => of::<Sha3_224>(context, bytes),
            Self::Sha3_256 => of::<Sha3_256>(context, bytes),
            Self::Sha3_384 => of::<Sha3_384>(context, bytes),
            Self::Sha3_512 => of::<Sha3_512>(context, bytes),
            Self::Shake128 => long::<Shake128, 16>(context, bytes),
            Self::Shake256 => long::<Shake256, 32>(context, bytes),
            Self::Sm3 => of::<Sm3>(context, bytes),
            Self::Retired => None,
        }
    }

    /// Computes the HMAC of a message; `None` if the digest cannot be used for one.
    pub(super) fn authenticate<'a>(self, context: &Context<'a>, key: &[u8], message: &[u8]) -> Option<&'a [u8]> {
        fn of<'a, D: Digest + BlockSizeUser>(context: &Context<'a>, key: &[u8], message: &[u8]) -> Option<&'a [u8]> {
            let mut code = SimpleHmac::<D>::new_from_slice(key).ok()?;
            Mac::update(&mut code, message);
            context.copy(&code.finalize().into_bytes())
        }
        match self {
            Self::Blake2b512 => of::<Blake2b512>(context, key, message),
            Self::Blake2s256 => of::<Blake2s256>(context, key, message),
            Self::Md5 => of::<Md5>(context, key, message),
            Self::Md5Sha1 => context.copy(&md5_sha1_code(key, message)),
            Self::Ripemd160 => of::<Ripemd160>(context, key, message),
            Self::Sha1 => of::<Sha1>(context, key, message),
            Self::Sha224 => of::<Sha224>(context, key, message),
            Self::Sha256 => of::<Sha256>(context, key, message),
            Self::Sha384 => of::<Sha384>(context, key, message),
            Self::Sha512 => of::<Sha512>(context, key, message),
            Self::Sha512_224 => of::<Sha512_224>(context, key, message),
            Self::Sha512_256 => of::<Sha512_256>(context, key, message),
            Self::Sha3_224 => of::<Sha3_224>(context, key, message),
            Self::Sha3_256 => of::<Sha3_256>(context, key, message),
            Self::Sha3_384 => of::<Sha3_384>(context, key, message),
            Self::Sha3_512 => of::<Sha3_512>(context, key, message),
            Self::Sm3 => of::<Sm3>(context, key, message),
            Self::Shake128 | Self::Shake256 | Self::Retired => None,
        }
    }
}

fn md5_sha1(parts: &[&[u8]]) -> [u8; 36] {
    let (mut md5, mut sha1) = (Md5::default(), Sha1::default());
    for part in parts {
        Update::update(&mut md5, part);
        Update::update(&mut sha1, part);
    }
    let mut out = [0; 36];
    out[..16].copy_from_slice(&md5.finalize());
    out[16..].copy_from_slice(&sha1.finalize());
    out
}

/// HMAC with MD5-SHA1 as one digest and a block size of 64 bytes.
fn md5_sha1_code(key: &[u8], message: &[u8]) -> [u8; 36] {
    let mut block = [0; 64];
    match block.get_mut(..key.len()) {
        Some(start) => start.copy_from_slice(key),
        None => block[..36].copy_from_slice(&md5_sha1(&[key])),
    }
    let inner = md5_sha1(&[&block.map(|byte| byte ^ 0x36), message]);
    md5_sha1(&[&block.map(|byte| byte ^ 0x5c), &inner])
}

/// Whether both are equal, in a time that depends on their lengths alone.
pub(super) fn is_same(left: &[u8], right: &[u8]) -> bool {
    left.ct_eq(right).into()
}
