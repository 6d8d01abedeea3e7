//! A certificate that is modified part by part before it is used (management manual, "set ssl cert"). Must never be
//! presented to a peer: [`Draft::finish`] makes a certificate of it.

use std::sync::Arc;

use rustls::pki_types::{CertificateDer, PrivateKeyDer};

use super::{Certificate, Error, Files, Key, Parts, Usage};
use crate::ocsp::{Answer, OcspError};
use crate::pem::{self, Wrong};

/// The parts of a certificate, some of which may still be missing.
#[derive(Debug)]
pub struct Draft {
    /// Its name in the configuration.
    pub name: Box<str>,
    /// The files of its parts.
    pub files: Files,
    /// Its uses besides handshakes.
    pub usage: Usage,
    chain: Vec<CertificateDer<'static>>,
    key: Option<PrivateKeyDer<'static>>,
    issuer: Option<CertificateDer<'static>>,
    skips_self_issued: bool,
    answer: Option<(Vec<u8>, Origin)>,
}

/// The origin of an OCSP response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// From the previous certificate: dropped if it does not match the new one.
    Former,
    /// Set explicitly: an error is returned if it does not match.
    Set,
}

impl Draft {
    /// Creates a draft without any part.
    pub fn empty(name: &str) -> Self {
        Self {
            name: name.into(),
            files: Files::default(),
            usage: Usage::default(),
            chain: Vec::new(),
            key: None,
            issuer: None,
            skips_self_issued: false,
            answer: None,
        }
    }

    /// Creates a draft with the parts of a certificate.
    pub fn of(certificate: &Certificate) -> Self {
        Self {
            name: certificate.name.clone(),
            files: certificate.files.clone(),
            usage: certificate.usage,
            chain: certificate.plain.cert.iter().chain(&certificate.held_back).cloned().collect(),
            key: Some(certificate.private.clone_key()),
            issuer: certificate.issuer.clone(),
            skips_self_issued: !certificate.held_back.is_empty(),
            answer: certificate.ocsp().map(|answer| (answer.der.clone(), Origin::Former)),
        }
    }

    /// Takes the certificate, its chain and its key from a text; if it contains no key, the draft has none.
    ///
    /// # Errors
    /// The text contains no certificate, or an invalid one.
    pub fn set_text(&mut self, text: &[u8]) -> Result<(), Error> {
        let chain = pem::certificates(text).map_err(Error::NoCertificate)?;
        let first = chain.first().ok_or(Error::NoCertificate(Wrong::Nothing))?;
        super::names(first)?;
        let key = match Key::find(text)? {
            Some(Key::Encrypted(_)) => return Err(Error::EncryptedKey),
            Some(Key::Plain(key)) => Some(key),
            None => None,
        };
        (self.chain, self.key) = (chain, key);
        Ok(())
    }

    /// Takes the key from a text.
    ///
    /// # Errors
    /// The text contains no valid key.
    pub fn set_key(&mut self, text: &[u8]) -> Result<(), Error> {
        match Key::find(text)? {
            Some(Key::Plain(key)) => self.key = Some(key),
            Some(Key::Encrypted(_)) => return Err(Error::EncryptedKey),
            None => return Err(Error::BadKey("no start line".to_owned())),
        }
        Ok(())
    }

    /// Takes the issuer's certificate from a text.
    ///
    /// # Errors
    /// The text contains no certificate.
    pub fn set_issuer(&mut self, text: &[u8]) -> Result<(), Error> {
        let found = pem::certificates(text).map_err(Error::NoCertificate)?.into_iter().next();
        self.issuer = Some(found.ok_or(Error::NoCertificate(Wrong::Nothing))?);
        Ok(())
    }

    /// Sets the OCSP response in DER, which is parsed when the draft is finished.
    pub fn set_answer(&mut self, der: Vec<u8>) {
        self.answer = Some((der, Origin::Set));
    }

    /// Returns the certificate in DER; empty: there is none yet.
    pub fn der(&self) -> &[u8] {
        self.chain.first().map_or(&[], |first| first.as_ref())
    }

    /// Returns the certificates of its chain, in DER.
    pub fn chain(&self) -> impl Iterator<Item = &[u8]> {
        self.chain.iter().skip(1).map(|one| one.as_ref())
    }

    /// Returns the OCSP response in DER.
    pub fn answer(&self) -> Option<&[u8]> {
        self.answer.as_ref().map(|(der, _)| der.as_slice())
    }

    /// Assembles a certificate from the parts. The second value is the reason why an explicitly set OCSP response is
    /// ignored at `now`, in seconds of Unix time.
    ///
    /// # Errors
    /// A part is missing, or the key belongs to another certificate.
    pub fn finish(&self, now: i64) -> Result<(Certificate, Option<OcspError>), Error> {
        let certificate = Certificate::assemble(Parts {
            name: self.name.to_string(),
            chain: self.chain.clone(),
            key: self.key.as_ref().ok_or(Error::NoKey)?.clone_key(),
            issuer: self.issuer.clone(),
            skips_self_issued: self.skips_self_issued,
            files: self.files.clone(),
            usage: self.usage,
        })?;
        let Some((der, origin)) = self.answer.as_ref().filter(|(der, _)| !der.is_empty()) else {
            return Ok((certificate, None));
        };
        let read = match certificate.ocsp_id() {
            Some(id) => Answer::read(der, &id, now),
            None => Err(OcspError::OtherCertificate),
        };
        let refused = match read {
            Ok(answer) => {
                certificate.staple(Some(Arc::new(answer)));
                None
            }
            Err(why) => Some(why).filter(|_| *origin == Origin::Set),
        };
        Ok((certificate, refused))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &[u8] = include_bytes!("../../tests/ocsp/good.der");

    fn text(name: &str, key: &crate::issue::Key) -> String {
        key.self_signed(&[name.into()], &[]).unwrap()
    }

    #[test]
    fn parts_are_exchanged_one_by_one() {
        let (one, other) =
            [crate::issue::KeyKind::P256; 2].map(|kind| crate::issue::Key::generate(kind).unwrap()).into();
        let first = Certificate::read("a", (text("a.example", &one) + &one.to_pem()).as_bytes(), None).unwrap();
        let mut draft = Draft::of(&first);
        draft.usage.ocsp_update = Some(true);
        assert_eq!(draft.der(), first.der());
        // A certificate without a key, and a key that does not match.
        draft.set_text(text("b.example", &other).as_bytes()).unwrap();
        assert_eq!(draft.finish(0).unwrap_err(), Error::NoKey);
        draft.set_key(one.to_pem().as_bytes()).unwrap();
        assert_eq!(draft.finish(0).unwrap_err(), Error::Mismatch);
        draft.set_key(other.to_pem().as_bytes()).unwrap();
        let (second, refused) = draft.finish(0).unwrap();
        assert_eq!((&*second.names, refused), (&["b.example".into()][..], None));
        assert_eq!(second.usage.ocsp_update, Some(true), "what it is for stays");
        // A response for another certificate.
        draft.set_answer(GOOD.to_vec());
        let (third, refused) = draft.finish(0).unwrap();
        assert_eq!((third.ocsp(), refused), (None, Some(OcspError::OtherCertificate)));
        assert!(draft.set_text(b"x").is_err() && draft.set_key(b"x").is_err() && draft.set_issuer(b"x").is_err());
        assert_eq!(draft.der(), second.der(), "what cannot be read changes nothing");
        assert_eq!(Draft::empty("n").finish(0).unwrap_err(), Error::NoKey);
    }
}
