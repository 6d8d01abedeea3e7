//! A certificate with its chain and its key: what is shown to peers. Must never read a file: the caller has read it.

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

/// A certificate that peers may be shown.
#[derive(Debug)]
pub struct Certificate {
    /// Where it is from, as the configuration names it.
    pub name: Box<str>,
    /// With its chain and its key.
    plain: Arc<CertifiedKey>,
    /// The same with an OCSP answer, and that; exchanged while it is in use.
    stapled: RwLock<Option<(Arc<CertifiedKey>, Arc<Answer>)>>,
    /// Its private key, for callers that may have it.
    private: PrivateKeyDer<'static>,
    /// The names that it is for, in lower case, wildcards as they stand: those of `subjectAltName` and the common name.
    pub names: Vec<Box<str>>,
    /// What its key signs with.
    pub kind: Kind,
    /// Certificates of its chain that are not shown (`ssl-skip-self-issued-ca`).
    held_back: Vec<CertificateDer<'static>>,
    /// That of its issuer, from a file of its own.
    issuer: Option<CertificateDer<'static>>,
    /// What OCSP calls it, once that was asked for.
    ocsp_id: OnceLock<Option<CertId>>,
    /// Its responder, likewise.
    responder: OnceLock<Option<String>>,
    /// Where its parts are from.
    pub files: Files,
    /// What is to be done with it.
    pub usage: Usage,
}

/// Names of the files that a certificate was put together from, as far as they are known.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Files {
    /// The certificate itself.
    pub certificate: Option<String>,
    /// Its key, which may be in the same one.
    pub key: Option<String>,
    /// Where an OCSP answer is looked for.
    pub ocsp: Option<String>,
    /// The issuer of the certificate.
    pub issuer: Option<String>,
    /// Where timestamps are looked for.
    pub timestamps: Option<String>,
    /// The file of `issuers-chain-path` that completes it.
    pub chain: Option<String>,
}

/// What a certificate is for beside handshakes (configuration manual, section 12.7.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// `ocsp-update`; `None`: as the process does.
    pub ocsp_update: Option<bool>,
    /// `jwt`
    pub jwt: bool,
}

/// What a certificate is put together from.
#[derive(Debug)]
pub struct Parts {
    /// Its name in the configuration.
    pub name: String,
    /// It, and its chain behind it.
    pub chain: Vec<CertificateDer<'static>>,
    /// Its key.
    pub key: PrivateKeyDer<'static>,
    /// Its issuer, where the chain does not have it.
    pub issuer: Option<CertificateDer<'static>>,
    /// Whether self-issued certificates of the chain are not shown.
    pub skips_self_issued: bool,
    /// Where all that is from.
    pub files: Files,
    /// What it is for.
    pub usage: Usage,
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
        self.name == other.name
            && self.usage == other.usage
            && self.plain.cert == other.plain.cert
            && self.ocsp() == other.ocsp()
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
            Self::EncryptedKey => format!("unable to load private key from file '{name}': it is encrypted"),
            Self::BadKey(why) => format!("unable to load private key from file '{name}': {why}"),
            Self::Mismatch => format!("inconsistencies between private key and certificate loaded '{name}'"),
        }
    }
}

impl Certificate {
    /// All of it as text: the private key, the certificate, those behind it.
    pub fn to_pem(&self) -> String {
        let own = self.plain.cert.iter().chain(&self.held_back);
        std::iter::once(pem::encode_key(&self.private)).chain(own.map(|one| pem::encode_certificate(one))).collect()
    }

    /// Its private key, in DER: PKCS#8, PKCS#1 or SEC 1, as it came.
    pub fn private_der(&self) -> &[u8] {
        self.private.secret_der()
    }

    /// The certificates behind it, in DER.
    pub fn chain(&self) -> impl Iterator<Item = &[u8]> {
        self.plain.cert.iter().skip(1).chain(&self.held_back).map(|one| one.as_ref())
    }

    /// Those of them that peers are shown.
    pub fn shown_chain(&self) -> impl Iterator<Item = &[u8]> {
        self.plain.cert.iter().skip(1).map(|one| one.as_ref())
    }

    /// Puts a certificate together: `text` has it, its chain and mostly its key; `key` is what stands in a file of its own.
    ///
    /// # Errors
    /// What is missing or does not fit.
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

    /// Puts a certificate together.
    ///
    /// # Errors
    /// What is missing or does not fit.
    pub fn assemble(parts: Parts) -> Result<Self, Error> {
        let Parts { name, mut chain, key: private, issuer, skips_self_issued, files, usage } = parts;
        let own = chain.first().ok_or(Error::NoCertificate(Wrong::Nothing))?;
        let names = names(own)?;
        let signing = any_supported_type(&private).map_err(|error| Error::BadKey(error.to_string()))?;
        let kind = if signing.algorithm() == SignatureAlgorithm::RSA { Kind::Rsa } else { Kind::Ecdsa };
        // Of certificates of every version, which rustls does not read.
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

    /// The same for other purposes.
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

    /// Its private key.
    pub(crate) fn private_key(&self) -> &PrivateKeyDer<'static> {
        &self.private
    }

    /// The certificate itself, in DER.
    pub fn der(&self) -> &[u8] {
        self.plain.cert.first().map_or(&[], |first| first.as_ref())
    }

    /// What is shown to peers that do not want to know whether it is revoked.
    pub(crate) fn unstapled(&self) -> &Arc<CertifiedKey> {
        &self.plain
    }

    /// What is shown at that moment: with the OCSP answer as long as that holds.
    pub(crate) fn shown(&self, now: UnixTime) -> Arc<CertifiedKey> {
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        match &*self.stapled.read().unwrap_or_else(PoisonError::into_inner) {
            Some((stapled, answer)) if now < answer.next_update => Arc::clone(stapled),
            _ => Arc::clone(&self.plain),
        }
    }

    /// The OCSP answer that is stapled to it.
    pub fn ocsp(&self) -> Option<Arc<Answer>> {
        let stapled = self.stapled.read().unwrap_or_else(PoisonError::into_inner);
        stapled.as_ref().map(|(_, answer)| Arc::clone(answer))
    }

    /// Staples an answer to it in handshakes that begin from now on; `None`: no more. The caller has found that it is about
    /// this certificate ([`Answer::read`]).
    pub fn staple(&self, answer: Option<Arc<Answer>>) {
        let stapled = answer.map(|answer| {
            let CertifiedKey { cert, key, .. } = &*self.plain;
            let key = CertifiedKey { cert: cert.clone(), key: Arc::clone(key), ocsp: Some(answer.der.clone()) };
            (Arc::new(key), answer)
        });
        *self.stapled.write().unwrap_or_else(PoisonError::into_inner) = stapled;
    }

    /// The certificate of its issuer, in DER: that of its chain, else the one from a file of its own.
    pub fn issuer(&self) -> Option<&[u8]> {
        let (own, behind) = self.plain.cert.split_first()?;
        let all = behind.iter().chain(&self.held_back).chain(&self.issuer);
        all.into_iter().find(|one| x509::is_issuer(one, own)).map(|one| one.as_ref())
    }

    /// What OCSP calls it. `None`: its issuer is not known.
    pub fn ocsp_id(&self) -> Option<CertId> {
        self.ocsp_id.get_or_init(|| CertId::of(self.der(), self.issuer()?)).clone()
    }

    /// The URI that is asked for OCSP answers: the first one that the certificate names.
    pub fn responder(&self) -> Option<&str> {
        self.responder.get_or_init(|| responder(self.der())).as_deref()
    }
}

/// The private key in a text.
#[derive(Debug)]
pub enum Key {
    /// As it is.
    Plain(PrivateKeyDer<'static>),
    /// It needs a passphrase.
    Encrypted(EncryptedKey),
}

impl Key {
    /// The first one. `None`: there is none.
    ///
    /// # Errors
    /// It is broken.
    pub fn find(text: &[u8]) -> Result<Option<Self>, Error> {
        // What is encrypted in the older form looks like a broken plain one.
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
