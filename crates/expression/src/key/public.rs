//! Public keys and signature verification (RFC 7518, section 3). Must never accept a signature of another algorithm
//! than the requested one.

use super::der::{EXPLICIT_0, IDENTIFIER, INTEGER, Reader, SEQUENCE};
use aws_lc_rs::signature::{self as lc, ParsedPublicKey, VerificationAlgorithm};
use std::fmt;

/// A signature algorithm with a key pair.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scheme {
    /// `RS…`: RSASSA-PKCS1-v1_5.
    Pkcs1(Hash),
    /// `ES…`: ECDSA.
    Elliptic(Hash),
    /// `PS…`: RSASSA-PSS.
    Pss(Hash),
}

/// The digest of a scheme.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

impl Scheme {
    /// Returns the scheme of an `alg` value.
    pub fn named(name: &[u8]) -> Option<Self> {
        let (family, bits) = name.split_at_checked(2)?;
        let hash = match bits {
            b"256" => Hash::Sha256,
            b"384" => Hash::Sha384,
            b"512" => Hash::Sha512,
            _ => return None,
        };
        match family {
            b"RS" => Some(Self::Pkcs1(hash)),
            b"ES" => Some(Self::Elliptic(hash)),
            b"PS" => Some(Self::Pss(hash)),
            _ => None,
        }
    }
}

/// Why a key could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KeyError {
    /// The file contains no PEM block of that label.
    Missing(&'static str),
    /// The key is malformed.
    Malformed,
    /// An RSA key of fewer than 2048 bits (RFC 7518, section 3.3).
    Short,
}

impl fmt::Display for KeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Missing(label) => write!(f, "no '-----BEGIN {label}-----' in it"),
            Self::Malformed => f.write_str("the key cannot be read"),
            Self::Short => f.write_str("RSA keys of fewer than 2048 bits are not supported by Weir"),
        }
    }
}

/// A public key for verification.
pub struct PublicKey(Kind);

enum Kind {
    Rsa {
        /// `None`: the key is for RSASSA-PSS only.
        pkcs1: Option<[ParsedPublicKey; 3]>,
        pss: [ParsedPublicKey; 3],
    },
    /// By digest; `None` if the library does not support the pair of curve and digest.
    Elliptic([Option<ParsedPublicKey>; 3]),
    /// A key that no scheme uses.
    Other,
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.0 {
            Kind::Rsa { .. } => "PublicKey(RSA)",
            Kind::Elliptic(_) => "PublicKey(EC)",
            Kind::Other => "PublicKey(other)",
        })
    }
}

const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1];
const RSA_PSS: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 10];
const EC: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 2, 1];
const P256: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7];
const P384: &[u8] = &[0x2b, 0x81, 4, 0, 34];
const P521: &[u8] = &[0x2b, 0x81, 4, 0, 35];
const K256: &[u8] = &[0x2b, 0x81, 4, 0, 10];

impl PublicKey {
    /// Loads the first public key of a PEM file: `PUBLIC KEY` or `RSA PUBLIC KEY`.
    ///
    /// # Errors
    /// The file has none, or it is malformed.
    pub fn from_pem(file: &[u8]) -> Result<Self, KeyError> {
        let (label, der) = pem(file, &["PUBLIC KEY", "RSA PUBLIC KEY"]).ok_or(KeyError::Missing("PUBLIC KEY"))?;
        match label {
            "PUBLIC KEY" => Self::from_info(&der),
            _ => rsa(&der, true),
        }
    }

    /// Loads the key of the first certificate in a PEM file.
    ///
    /// # Errors
    /// The file has none, or it is malformed.
    pub fn from_certificate(file: &[u8]) -> Result<Self, KeyError> {
        let der = Self::certificate(file).ok_or(KeyError::Missing("CERTIFICATE"))?;
        Self::from_certificate_der(&der)
    }

    /// The first certificate of a file, in DER.
    pub(super) fn certificate(file: &[u8]) -> Option<Vec<u8>> {
        pem(file, &["CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE"]).map(|(_, der)| der)
    }

    /// The key of a certificate in DER.
    ///
    /// # Errors
    /// The certificate or its key is malformed.
    pub fn from_certificate_der(der: &[u8]) -> Result<Self, KeyError> {
        let info = info_of_certificate(der).ok_or(KeyError::Malformed)?;
        Self::from_info(info)
    }

    /// Parses a `SubjectPublicKeyInfo`.
    fn from_info(der: &[u8]) -> Result<Self, KeyError> {
        let read = || {
            let mut info = Reader::new(der).sequence()?;
            let mut algorithm = info.sequence()?;
            Some((algorithm.take(IDENTIFIER)?, algorithm.take(IDENTIFIER), info.bits()?))
        };
        match read().ok_or(KeyError::Malformed)? {
            (RSA, _, key) => rsa(key, true),
            (RSA_PSS, _, key) => rsa(key, false),
            (EC, Some(curve), point) => elliptic(curve, point),
            _ => Ok(Self(Kind::Other)),
        }
    }

    /// Whether the signature is that of the message.
    pub fn verifies(&self, scheme: Scheme, message: &[u8], signature: &[u8]) -> bool {
        match (&self.0, scheme) {
            (Kind::Rsa { pkcs1: Some(keys), .. }, Scheme::Pkcs1(hash)) => {
                keys[hash as usize].verify_sig(message, signature).is_ok()
            }
            (Kind::Rsa { pss, .. }, Scheme::Pss(hash)) => pss[hash as usize].verify_sig(message, signature).is_ok(),
            (Kind::Elliptic(keys), Scheme::Elliptic(hash)) => {
                let key = keys[hash as usize].as_ref();
                key.is_some_and(|key| with_pair(signature, |pair| key.verify_sig(message, pair).is_ok()))
            }
            _ => false,
        }
    }
}

fn rsa(key: &[u8], for_pkcs1: bool) -> Result<PublicKey, KeyError> {
    let modulus = Reader::new(key).sequence().and_then(|mut key| key.take(INTEGER)).ok_or(KeyError::Malformed)?;
    let digits = modulus.iter().skip_while(|digit| **digit == 0);
    if digits.count() < 256 {
        return Err(KeyError::Short);
    }
    let parse = |algorithm: &'static dyn VerificationAlgorithm| {
        ParsedPublicKey::new(algorithm, key).map_err(|_| KeyError::Malformed)
    };
    let pkcs1 = [&lc::RSA_PKCS1_2048_8192_SHA256, &lc::RSA_PKCS1_2048_8192_SHA384, &lc::RSA_PKCS1_2048_8192_SHA512];
    let pss = [&lc::RSA_PSS_2048_8192_SHA256, &lc::RSA_PSS_2048_8192_SHA384, &lc::RSA_PSS_2048_8192_SHA512];
    let all = |[one, two, three]: [&'static lc::RsaParameters; 3]| Ok([parse(one)?, parse(two)?, parse(three)?]);
    Ok(PublicKey(Kind::Rsa { pkcs1: if for_pkcs1 { Some(all(pkcs1)?) } else { None }, pss: all(pss)? }))
}

fn elliptic(curve: &[u8], point: &[u8]) -> Result<PublicKey, KeyError> {
    type Algorithms = [Option<&'static lc::EcdsaVerificationAlgorithm>; 3];
    let algorithms: Algorithms = match curve {
        P256 => [&lc::ECDSA_P256_SHA256_ASN1, &lc::ECDSA_P256_SHA384_ASN1, &lc::ECDSA_P256_SHA512_ASN1].map(Some),
        P384 => [&lc::ECDSA_P384_SHA256_ASN1, &lc::ECDSA_P384_SHA384_ASN1, &lc::ECDSA_P384_SHA512_ASN1].map(Some),
        P521 => [&lc::ECDSA_P521_SHA256_ASN1, &lc::ECDSA_P521_SHA384_ASN1, &lc::ECDSA_P521_SHA512_ASN1].map(Some),
        K256 => [Some(&lc::ECDSA_P256K1_SHA256_ASN1), None, None],
        _ => return Ok(PublicKey(Kind::Other)),
    };
    let parse = |algorithm: Option<&'static lc::EcdsaVerificationAlgorithm>| {
        let parsed = algorithm.map(|algorithm| ParsedPublicKey::new(algorithm, point));
        parsed.transpose().map_err(|_| KeyError::Malformed)
    };
    let [one, two, three] = algorithms;
    Ok(PublicKey(Kind::Elliptic([parse(one)?, parse(two)?, parse(three)?])))
}

/// Converts a signature from two concatenated numbers, as in a token, to DER, and passes it.
fn with_pair(signature: &[u8], with: impl FnOnce(&[u8]) -> bool) -> bool {
    /// Length of a number on the largest curve in bytes.
    const LONGEST: usize = 66;
    let (one, other) = signature.split_at(signature.len() / 2);
    let mut out = [0; 2 * LONGEST + 16];
    let mut end = 3;
    for number in [one, other] {
        let digits = &number[number.iter().position(|digit| *digit != 0).unwrap_or(number.len())..];
        if digits.len() > LONGEST {
            return false;
        }
        // A leading zero if the number is empty or would be negative.
        let zero = usize::from(digits.first().is_none_or(|digit| *digit >= 0x80));
        let start = end + 2 + zero;
        out[end..end + 2].copy_from_slice(&[INTEGER, (zero + digits.len()) as u8]);
        out[start..start + digits.len()].copy_from_slice(digits);
        end = start + digits.len();
    }
    let length = (end - 3) as u8;
    if length < 0x80 {
        out[1..3].copy_from_slice(&[SEQUENCE, length]);
        return with(&out[1..end]);
    }
    out[..3].copy_from_slice(&[SEQUENCE, 0x81, length]);
    with(&out[..end])
}

/// Returns the `SubjectPublicKeyInfo` of a certificate.
fn info_of_certificate(der: &[u8]) -> Option<&[u8]> {
    let mut fields = Reader::new(der).sequence()?.sequence()?;
    // Version, serial number, signature algorithm, issuer, validity, subject.
    let _ = fields.take(EXPLICIT_0);
    fields.take(INTEGER)?;
    for _ in 0..4 {
        fields.take(SEQUENCE)?;
    }
    fields.whole(SEQUENCE)
}

/// Returns the first PEM block with one of these labels, decoded, and its label.
fn pem<'l>(file: &[u8], labels: &[&'l str]) -> Option<(&'l str, Vec<u8>)> {
    let text = String::from_utf8_lossy(file);
    let mut lines = text.lines().map(str::trim);
    let label = lines.find_map(|line| {
        let label = line.strip_prefix("-----BEGIN ")?.strip_suffix("-----")?;
        labels.iter().find(|wanted| **wanted == label)
    })?;
    let mut body = String::new();
    for line in lines {
        if line.starts_with("-----END ") {
            return Some((label, base::base64::decoded(body.as_bytes())?));
        }
        body.push_str(line);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_a_key_is_one() {
        for (file, expected) in [
            ("", KeyError::Missing("PUBLIC KEY")),
            ("-----BEGIN PUBLIC KEY-----\nAAAA\n", KeyError::Missing("PUBLIC KEY")),
            ("-----BEGIN PUBLIC KEY-----\nAAAA\n-----END PUBLIC KEY-----\n", KeyError::Malformed),
            ("-----BEGIN RSA PUBLIC KEY-----\nMAYCAQMCAQM=\n-----END RSA PUBLIC KEY-----\n", KeyError::Short),
        ] {
            assert_eq!(PublicKey::from_pem(file.as_bytes()).err(), Some(expected), "{file}");
        }
        assert_eq!(PublicKey::from_certificate(b"x").err(), Some(KeyError::Missing("CERTIFICATE")));
    }

    #[test]
    fn a_certificate_that_is_cut_or_damaged_anywhere_gives_a_key_or_none() {
        let file = include_bytes!("../../tests/keys/rsa.crt");
        let (_, whole) = pem(file, &["CERTIFICATE"]).unwrap();
        let read = |der: &[u8]| info_of_certificate(der).map(|info| PublicKey::from_info(info).is_ok());
        assert_eq!(read(&whole), Some(true));
        for length in 0..whole.len() {
            assert_eq!(read(&whole[..length]), None, "{length} bytes");
        }
        for at in 0..whole.len() {
            for bit in [1, 0x80] {
                let mut damaged = whole.clone();
                damaged[at] ^= bit;
                let _ = read(&damaged);
            }
        }
    }
}
