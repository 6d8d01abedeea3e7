//! A certificate with its chain and its key, as presented to peers. Must never read a file: the caller has read it.

mod draft;

pub use draft::Draft;

use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use rustls::SignatureAlgorithm;
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use rustls::sign::CertifiedKey;
use x509_parser::prelude::{FromDer, GeneralName, ParsedExtension, X509Certificate};

use crate::ocsp::{Answer, CertId, responder};
use crate::passphrase::EncryptedKey;
use crate::pem::{self, Wrong};
use crate::x509;

/// A certificate that can be presented to peers.
#[derive(Debug)]
pub struct Certificate {
    /// Its name in the configuration.
    pub name: Box<str>,
    /// The certificate with its chain and its key.
    plain: Arc<CertifiedKey>,
    /// The same with a stapled OCSP response, and that response; replaced while in use.
    stapled: RwLock<Option<(Arc<CertifiedKey>, Arc<Answer>)>>,
    /// Its private key, for callers that need it.
    private: PrivateKeyDer<'static>,
    /// The names that it is valid for, in lower case, wildcards unexpanded: those of `subjectAltName` and the common
    /// name.
    pub names: Vec<Box<str>>,
    /// The type of its key.
    pub kind: Kind,
    /// Certificates of its chain that are not sent (`ssl-skip-self-issued-ca`).
    held_back: Vec<CertificateDer<'static>>,
    /// The issuer's certificate, from a separate file.
    issuer: Option<CertificateDer<'static>>,
    /// Its `CertID` in OCSP, computed on first use.
    ocsp_id: OnceLock<Option<CertId>>,
    /// The URI of its OCSP responder, likewise.
    responder: OnceLock<Option<String>>,
    /// The files of its parts.
    pub files: Files,
    /// Its uses besides handshakes.
    pub usage: Usage,
}

/// Names of the files of a certificate's parts, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Files {
    pub certificate: Option<String>,
    /// The private key; possibly the file of the certificate.
    pub key: Option<String>,
    /// The OCSP response.
    pub ocsp: Option<String>,
    /// The issuer's certificate.
    pub issuer: Option<String>,
    /// Signed certificate timestamps.
    pub timestamps: Option<String>,
    /// The file of `issuers-chain-path` that completes the chain.
    pub chain: Option<String>,
}

/// Uses of a certificate besides handshakes (configuration manual, section 12.7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// `ocsp-update`; `None`: the global setting.
    pub ocsp_update: Option<bool>,
    /// `jwt`
    pub jwt: bool,
}

/// The parts of a certificate.
#[derive(Debug)]
pub struct Parts {
    /// Its name in the configuration.
    pub name: String,
    /// The certificate, followed by its chain.
    pub chain: Vec<CertificateDer<'static>>,
    pub key: PrivateKeyDer<'static>,
    /// The issuer's certificate, if the chain does not contain it.
    pub issuer: Option<CertificateDer<'static>>,
    /// Whether self-issued certificates of the chain are not sent.
    pub skips_self_issued: bool,
    /// The files of the parts.
    pub files: Files,
    /// Its uses besides handshakes.
    pub usage: Usage,
}

/// Key types; a name may have one certificate of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// ECDSA, EdDSA.
    Ecdsa,
    /// RSA.
    Rsa,
}

/// Why a certificate cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Error {
    /// The text contains no certificate.
    NoCertificate(Wrong),
    /// The certificate cannot be parsed.
    BadCertificate(String),
    /// There is no private key in either text.
    NoKey,
    /// The key is encrypted.
    EncryptedKey,
    /// The key is invalid or unsupported.
    BadKey(String),
    /// The key belongs to another certificate.
    Mismatch,
}

/// Certificates are equal if their bytes are. The key follows from the certificate.
impl PartialEq for Certificate {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.usage == other.usage
            && self.plain.cert == other.plain.cert
            && self.ocsp() == other.ocsp()
    }
}

impl Error {
    /// Returns HAProxy's message for a certificate of that name, without a full stop.
    pub fn sentence(&self, name: &str) -> String {
        match self {
            Self::NoCertificate(Wrong::Nothing) => {
                format!("unable to load certificate from file '{name}': no start line")
            }
            Self::NoCertificate(Wrong::Broken(why)) | Self::BadCertificate(why) => {
                format!("unable to load certificate from file '{name}': {why}")
            }
            Self::NoKey => format!("No Private Key found in '{name}.key'"),
            Self::EncryptedKey => format!("unable to load private key from file '{name}': it is encrypted"),
            Self::BadKey(why) => format!("unable to load private key from file '{name}': {why}"),
            Self::Mismatch => format!("inconsistencies between private key and certificate loaded '{name}'"),
        }
    }
}

impl Certificate {
    /// Returns the private key, the certificate and its chain in PEM.
    pub fn to_pem(&self) -> String {
        let own = self.plain.cert.iter().chain(&self.held_back);
        std::iter::once(pem::encode_key(&self.private)).chain(own.map(|one| pem::encode_certificate(one))).collect()
    }

    /// Returns its private key in DER: PKCS#8, PKCS#1 or SEC 1, as loaded.
    pub fn private_der(&self) -> &[u8] {
        self.private.secret_der()
    }

    /// Returns the certificates of its chain, in DER.
    pub fn chain(&self) -> impl Iterator<Item = &[u8]> {
        self.plain.cert.iter().skip(1).chain(&self.held_back).map(|one| one.as_ref())
    }

    /// Returns the certificates of its chain that are sent to peers.
    pub fn shown_chain(&self) -> impl Iterator<Item = &[u8]> {
        self.plain.cert.iter().skip(1).map(|one| one.as_ref())
    }

    /// Parses a certificate: `text` contains it, its chain and usually its key; `key` is the content of a separate key
    /// file.
    ///
    /// # Errors
    /// The missing or invalid part.
    pub fn read(name: &str, text: &[u8], key: Option<&[u8]>) -> Result<Self, Error> {
        let chain = pem::certificates(text).map_err(Error::NoCertificate)?;
        let key = match Key::find(text)? {
            Some(key) => Some(key),
            None => key.map_or(Ok(None), Key::find)?,
        };
        let key = match key {
            Some(Key::Plain(key)) => key,
            Some(Key::Encrypted(_)) => return Err(Error::EncryptedKey),
            None => return Err(Error::NoKey),
        };
        Self::assemble(Parts {
            name: name.to_owned(),
            chain,
            key,
            issuer: None,
            skips_self_issued: false,
            files: Files::default(),
            usage: Usage::default(),
        })
    }

    /// Assembles a certificate from its parts.
    ///
    /// # Errors
    /// The missing or invalid part.
    pub fn assemble(parts: Parts) -> Result<Self, Error> {
        let Parts { name, mut chain, key: private, issuer, skips_self_issued, files, usage } = parts;
        let own = chain.first().ok_or(Error::NoCertificate(Wrong::Nothing))?;
        let names = names(own)?;
        let signing = any_supported_type(&private).map_err(|error| Error::BadKey(error.to_string()))?;
        let kind = if signing.algorithm() == SignatureAlgorithm::RSA { Kind::Rsa } else { Kind::Ecdsa };
        // Accepts certificates of every version, whereas rustls does not parse all.
        let (_, parsed) = X509Certificate::from_der(own).map_err(|error| Error::BadCertificate(error.to_string()))?;
        if signing.public_key().is_some_and(|key| key.as_ref() != parsed.public_key().raw) {
            return Err(Error::Mismatch);
        }
        let behind = chain.split_off(1);
        let (held_back, behind): (Vec<_>, Vec<_>) =
            behind.into_iter().partition(|one| skips_self_issued && x509::is_issuer(one, one));
        chain.extend(behind);
        let (plain, stapled) = (Arc::new(CertifiedKey::new(chain, signing)), RwLock::default());
        let (name, ocsp_id, responder) = (name.into(), OnceLock::new(), OnceLock::new());
        Ok(Self { name, plain, stapled, private, names, kind, held_back, issuer, ocsp_id, responder, files, usage })
    }

    /// Returns a copy for other uses.
    #[must_use]
    pub fn used_as(&self, usage: Usage) -> Self {
        let stapled = self.stapled.read().unwrap_or_else(PoisonError::into_inner).clone();
        Self {
            name: self.name.clone(),
            plain: Arc::clone(&self.plain),
            stapled: RwLock::new(stapled),
            private: self.private.clone_key(),
            names: self.names.clone(),
            kind: self.kind,
            held_back: self.held_back.clone(),
            issuer: self.issuer.clone(),
            ocsp_id: self.ocsp_id.clone(),
            responder: self.responder.clone(),
            files: self.files.clone(),
            usage,
        }
    }

    pub(crate) fn private_key(&self) -> &PrivateKeyDer<'static> {
        &self.private
    }

    /// Returns the certificate itself in DER.
    pub fn der(&self) -> &[u8] {
        self.plain.cert.first().map_or(&[], |first| first.as_ref())
    }

    /// Returns the certificate for peers that do not request its revocation status.
    pub(crate) fn unstapled(&self) -> &Arc<CertifiedKey> {
        &self.plain
    }

    /// Returns the certificate for a handshake at `now`: with the OCSP response while that is valid.
    pub(crate) fn shown(&self, now: UnixTime) -> Arc<CertifiedKey> {
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        match &*self.stapled.read().unwrap_or_else(PoisonError::into_inner) {
            Some((stapled, answer)) if now < answer.next_update => Arc::clone(stapled),
            _ => Arc::clone(&self.plain),
        }
    }

    /// Returns the stapled OCSP response.
    pub fn ocsp(&self) -> Option<Arc<Answer>> {
        let stapled = self.stapled.read().unwrap_or_else(PoisonError::into_inner);
        stapled.as_ref().map(|(_, answer)| Arc::clone(answer))
    }

    /// Staples a response in handshakes from now on; `None`: removes it. The caller has checked that it is for this
    /// certificate ([`Answer::read`]).
    pub fn staple(&self, answer: Option<Arc<Answer>>) {
        let stapled = answer.map(|answer| {
            let CertifiedKey { cert, key, .. } = &*self.plain;
            let key = CertifiedKey { cert: cert.clone(), key: Arc::clone(key), ocsp: Some(answer.der.clone()) };
            (Arc::new(key), answer)
        });
        *self.stapled.write().unwrap_or_else(PoisonError::into_inner) = stapled;
    }

    /// Returns the issuer's certificate in DER: from its chain, otherwise from the separate file.
    pub fn issuer(&self) -> Option<&[u8]> {
        let (own, behind) = self.plain.cert.split_first()?;
        let all = behind.iter().chain(&self.held_back).chain(&self.issuer);
        all.into_iter().find(|one| x509::is_issuer(one, own)).map(|one| one.as_ref())
    }

    /// Returns its `CertID` in OCSP. `None`: its issuer's certificate is missing.
    pub fn ocsp_id(&self) -> Option<CertId> {
        self.ocsp_id.get_or_init(|| CertId::of(self.der(), self.issuer()?)).clone()
    }

    /// Returns the URI of the OCSP responder: the first one in the certificate.
    pub fn responder(&self) -> Option<&str> {
        self.responder.get_or_init(|| responder(self.der())).as_deref()
    }
}

/// A private key found in a text.
#[derive(Debug)]
pub enum Key {
    Plain(PrivateKeyDer<'static>),
    /// Encrypted with a passphrase.
    Encrypted(EncryptedKey),
}

impl Key {
    /// Finds the first private key. `None`: there is none.
    ///
    /// # Errors
    /// It cannot be parsed.
    pub fn find(text: &[u8]) -> Result<Option<Self>, Error> {
        // Checked first: a key in the traditional encrypted format looks like an invalid plain one.
        if let Some(encrypted) = EncryptedKey::find(text) {
            return encrypted.map(|key| Some(Self::Encrypted(key))).map_err(Error::BadKey);
        }
        match pem::private_key(text) {
            Ok(key) => Ok(Some(Self::Plain(key))),
            Err(Wrong::Nothing) => Ok(None),
            Err(Wrong::Broken(why)) => Err(Error::BadKey(why)),
        }
    }
}

/// Returns the names in a certificate: DNS names of `subjectAltName`, then the common names that are not among them.
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
