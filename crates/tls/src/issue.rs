//! Keys, certificate signing requests (RFC 2986) and self-signed certificates: temporary ones, and those of TLS-ALPN
//! challenges (RFC 8737). Must never open a file. Generating an RSA key takes a second: do not do it on a worker.

use std::net::IpAddr;

use rcgen::{
    CertificateParams, CustomExtension, DistinguishedName, DnType, KeyPair, PKCS_ECDSA_P256_SHA256,
    PKCS_ECDSA_P384_SHA384, PKCS_ECDSA_P521_SHA512, PKCS_RSA_SHA256, RsaKeySize, SanType,
};

use crate::certificate::Certificate;

/// A type of key to generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// RSA with 2048 bits.
    Rsa2048,
    /// RSA with 3072 bits.
    Rsa3072,
    /// RSA with 4096 bits.
    Rsa4096,
    /// ECDSA with P-256.
    P256,
    /// ECDSA with P-384.
    P384,
    /// ECDSA with P-521.
    P521,
}

impl KeyKind {
    /// Returns the type of RSA keys with that number of bits. `None`: not supported.
    pub const fn rsa(bits: u32) -> Option<Self> {
        match bits {
            2048 => Some(Self::Rsa2048),
            3072 => Some(Self::Rsa3072),
            4096 => Some(Self::Rsa4096),
            _ => None,
        }
    }

    /// Returns the type of ECDSA keys with the curve of that name.
    pub fn ecdsa(curve: &str) -> Option<Self> {
        match curve {
            "P-256" | "prime256v1" | "secp256r1" => Some(Self::P256),
            "P-384" | "secp384r1" => Some(Self::P384),
            "P-521" | "secp521r1" => Some(Self::P521),
            _ => None,
        }
    }
}

/// A private key.
pub struct Key(KeyPair);

impl std::fmt::Debug for Key {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Key")
    }
}

fn error_text(error: rcgen::Error) -> String {
    error.to_string()
}

impl Key {
    /// Generates a key.
    ///
    /// # Errors
    /// The random number generator fails.
    pub fn generate(kind: KeyKind) -> Result<Self, String> {
        let made = match kind {
            KeyKind::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
            KeyKind::Rsa3072 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_3072),
            KeyKind::Rsa4096 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_4096),
            KeyKind::P256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
            KeyKind::P384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
            KeyKind::P521 => KeyPair::generate_for(&PKCS_ECDSA_P521_SHA512),
        };
        made.map(Self).map_err(error_text)
    }

    /// Returns the key of a certificate.
    ///
    /// # Errors
    /// Its type is not supported.
    pub fn of(certificate: &Certificate) -> Result<Self, String> {
        KeyPair::try_from(certificate.private_key()).map(Self).map_err(error_text)
    }

    /// Returns it in PEM (PKCS #8).
    pub fn to_pem(&self) -> String {
        self.0.serialize_pem()
    }

    /// Returns a certificate signing request for these names and addresses, in DER. The first name is the common name.
    ///
    /// # Errors
    /// A name is not valid in a certificate.
    pub fn request(&self, domains: &[Box<str>], ips: &[IpAddr]) -> Result<Vec<u8>, String> {
        let params = params(domains, ips)?;
        Ok(params.serialize_request(&self.0).map_err(error_text)?.der().to_vec())
    }

    /// Returns a self-signed certificate in PEM.
    ///
    /// # Errors
    /// A name is not valid in a certificate.
    pub fn self_signed(&self, domains: &[Box<str>], ips: &[IpAddr]) -> Result<String, String> {
        Ok(params(domains, ips)?.self_signed(&self.0).map_err(error_text)?.pem())
    }

    /// Like [`Key::self_signed`], already expired: a placeholder until a certificate is obtained.
    ///
    /// # Errors
    /// As for [`Key::self_signed`].
    pub fn expired(&self, domains: &[Box<str>], ips: &[IpAddr]) -> Result<String, String> {
        let mut params = params(domains, ips)?;
        (params.not_before, params.not_after) = (rcgen::date_time_ymd(2000, 1, 1), rcgen::date_time_ymd(2000, 1, 2));
        Ok(params.self_signed(&self.0).map_err(error_text)?.pem())
    }
}

fn params(domains: &[Box<str>], ips: &[IpAddr]) -> Result<CertificateParams, String> {
    let mut params =
        CertificateParams::new(domains.iter().map(|name| name.to_string()).collect::<Vec<_>>()).map_err(error_text)?;
    params.subject_alt_names.extend(ips.iter().map(|ip| SanType::IpAddress(*ip)));
    params.distinguished_name = DistinguishedName::new();
    // A common name has at most 64 characters (RFC 5280, appendix A.1).
    if let Some(first) = domains.first().filter(|name| name.len() <= 64) {
        params.distinguished_name.push(DnType::CommonName, &**first);
    }
    Ok(params)
}

/// Returns the certificate of a TLS-ALPN challenge: `digest` is the SHA-256 of the key authorization (RFC 8737, section
/// 3).
///
/// # Errors
/// The name is not valid in a certificate.
pub fn proof(domain: &str, digest: &[u8; 32]) -> Result<Certificate, String> {
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).map_err(error_text)?;
    let mut params = CertificateParams::new(vec![domain.to_owned()]).map_err(error_text)?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest)];
    let text = params.self_signed(&key).map_err(error_text)?.pem() + &key.serialize_pem();
    Certificate::read(domain, text.as_bytes(), None).map_err(|error| error.sentence(domain))
}

#[cfg(test)]
mod tests {
    use super::*;
    use x509_parser::prelude::{FromDer, X509CertificationRequest};

    #[test]
    fn keys_of_every_kind_sign_requests_and_certificates() {
        let (domains, ips) = ([Box::from("a.example"), Box::from("*.b.example")], ["192.0.2.1".parse().unwrap()]);
        for kind in [KeyKind::Rsa2048, KeyKind::P256, KeyKind::P384, KeyKind::P521] {
            let key = Key::generate(kind).unwrap();
            let request = key.request(&domains, &ips).unwrap();
            let (rest, request) = X509CertificationRequest::from_der(&request).unwrap();
            assert!(rest.is_empty());
            let subject = &request.certification_request_info.subject;
            assert_eq!(subject.iter_common_name().next().unwrap().as_str(), Ok("a.example"));
            let text = key.to_pem() + &key.self_signed(&domains, &ips).unwrap();
            let certificate = Certificate::read("x", text.as_bytes(), None).unwrap();
            assert_eq!(certificate.names, ["a.example".into(), "*.b.example".into()]);
            let again = Key::of(&certificate).unwrap();
            assert_eq!(again.0.public_key_raw(), key.0.public_key_raw());
        }
    }

    #[test]
    fn a_proof_has_the_digest_in_a_critical_extension() {
        let certificate = proof("a.example", &[7; 32]).unwrap();
        let der = certificate.der().to_vec();
        let (_, parsed) = x509_parser::prelude::X509Certificate::from_der(&der).unwrap();
        let found = parsed.extensions().iter().find(|one| one.oid.to_id_string() == "1.3.6.1.5.5.7.1.31").unwrap();
        assert!(found.critical);
        assert_eq!(found.value, [&[4, 32][..], &[7; 32]].concat());
    }

    #[test]
    fn curves_and_sizes_have_names() {
        assert_eq!(KeyKind::ecdsa("secp384r1"), Some(KeyKind::P384));
        assert_eq!((KeyKind::ecdsa("P-999"), KeyKind::rsa(1024)), (None, None));
    }
}
