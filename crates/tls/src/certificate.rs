//! A certificate with its chain and its key: what is shown to peers. Must never read a file: the caller has read it.

use std::sync::Arc;

use rustls::SignatureAlgorithm;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate};

use crate::pem::{self, Wrong};

/// A certificate that peers may be shown.
#[derive(Debug)]
pub struct Certificate {
    /// Where it is from, as the configuration names it.
    pub name: Box<str>,
    /// With its chain and its key.
    pub(crate) key: Arc<CertifiedKey>,
    /// Its private key, for callers that may have it.
    private: PrivateKeyDer<'static>,
    /// The names that it is for, in lower case, wildcards as they stand: those of `subjectAltName` and the common name.
    pub names: Vec<Box<str>>,
    /// What its key signs with.
    pub kind: Kind,
    /// Its key is from a file of its own, of that name with `.key` behind it.
    pub has_key_file: bool,
}

/// Kinds of keys, of which a name may have one certificate each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// ECDSA, EdDSA.
    Ecdsa,
    /// RSA.
    Rsa,
}

/// Why there is no certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// No certificate in the text.
    NoCertificate(Wrong),
    /// It cannot be read.
    BadCertificate(String),
    /// No private key, in neither text.
    NoKey,
    /// The key is encrypted.
    EncryptedKey,
    /// The key cannot be used.
    BadKey(String),
    /// The key is another certificate's.
    Mismatch,
}

/// Certificates are the same where their bytes are. A key belongs to its certificate.
impl PartialEq for Certificate {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.key.cert == other.key.cert && self.key.ocsp == other.key.ocsp
    }
}

impl Error {
    /// What HAProxy says of a certificate of that name, without a full stop.
    pub fn sentence(&self, name: &str) -> String {
        match self {
            Self::NoCertificate(Wrong::Nothing) => {
                format!("unable to load certificate from file '{name}': no start line")
            }
            Self::NoCertificate(Wrong::Broken(why)) | Self::BadCertificate(why) => {
                format!("unable to load certificate from file '{name}': {why}")
            }
            Self::NoKey => format!("No Private Key found in '{name}.key'"),
            Self::EncryptedKey => {
                format!("the private key of '{name}' is encrypted: 'ssl-passphrase-cmd' is not supported yet by Weir")
            }
            Self::BadKey(why) => format!("unable to load private key from file '{name}': {why}"),
            Self::Mismatch => format!("inconsistencies between private key and certificate loaded '{name}'"),
        }
    }
}

impl Certificate {
    /// All of it as text: the private key, the certificate, those behind it.
    pub fn to_pem(&self) -> String {
        let certificates = self.key.cert.iter().map(|one| pem::encode_certificate(one));
        std::iter::once(pem::encode_key(&self.private)).chain(certificates).collect()
    }

    /// The certificates behind it that are shown with it, in DER.
    pub fn chain(&self) -> impl Iterator<Item = &[u8]> {
        self.key.cert.iter().skip(1).map(|one| one.as_ref())
    }

    /// Puts a certificate together: `text` has it, its chain and mostly its key; `key` is what stands in a file of its own.
    ///
    /// # Errors
    /// What is missing or does not fit.
    pub fn read(name: &str, text: &[u8], key: Option<&[u8]>) -> Result<Self, Error> {
        let chain = pem::certificates(text).map_err(Error::NoCertificate)?;
        let private = match pem::private_key(text) {
            Err(Wrong::Nothing) if pem::has_encrypted_key(text) => Err(Error::EncryptedKey),
            Err(Wrong::Nothing) => match key.map(|key| (pem::private_key(key), pem::has_encrypted_key(key))) {
                None => Err(Error::NoKey),
                Some((Ok(private), _)) => Ok(private),
                Some((Err(Wrong::Nothing), true)) => Err(Error::EncryptedKey),
                Some((Err(Wrong::Nothing), false)) => Err(Error::NoKey),
                Some((Err(Wrong::Broken(why)), _)) => Err(Error::BadKey(why)),
            },
            Err(Wrong::Broken(why)) => Err(Error::BadKey(why)),
            Ok(private) => Ok(private),
        }?;
        let names = names(&chain[0])?;
        let signing = any_supported_type(&private).map_err(|error| Error::BadKey(error.to_string()))?;
        let kind = if signing.algorithm() == SignatureAlgorithm::RSA { Kind::Rsa } else { Kind::Ecdsa };
        // Of certificates of every version, which rustls does not read.
        let (_, parsed) =
            X509Certificate::from_der(&chain[0]).map_err(|error| Error::BadCertificate(error.to_string()))?;
        if signing.public_key().is_some_and(|key| key.as_ref() != parsed.public_key().raw) {
            return Err(Error::Mismatch);
        }
        let key = CertifiedKey::new(chain, signing);
        let has_key_file = pem::private_key(text) == Err(Wrong::Nothing);
        Ok(Self { name: name.into(), key: Arc::new(key), private, names, kind, has_key_file })
    }

    /// The certificate itself, in DER.
    pub fn der(&self) -> &[u8] {
        self.key.cert.first().map_or(&[], |first| first.as_ref())
    }
}

/// The names in a certificate: DNS names of `subjectAltName`, then the common names that are not among them.
pub(crate) fn names(certificate: &CertificateDer<'_>) -> Result<Vec<Box<str>>, Error> {
    let (_, parsed) =
        X509Certificate::from_der(certificate).map_err(|error| Error::BadCertificate(error.to_string()))?;
    let mut names: Vec<Box<str>> = Vec::new();
    let mut add = |name: &str| {
        let name = name.to_ascii_lowercase().into_boxed_str();
        if !name.is_empty() && !name.contains('\0') && !names.contains(&name) {
            names.push(name);
        }
    };
    for extension in parsed.extensions() {
        if let ParsedExtension::SubjectAlternativeName(alternative) = extension.parsed_extension() {
            for name in &alternative.general_names {
                if let GeneralName::DNSName(name) = name {
                    add(name);
                }
            }
        }
    }
    for name in parsed.subject().iter_common_name() {
        if let Ok(name) = name.as_str() {
            add(name);
        }
    }
    Ok(names)
}
