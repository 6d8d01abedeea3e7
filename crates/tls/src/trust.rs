//! The authorities that chains are verified with: certificates, revocation lists, and the files of both. Must never
//! read a file.

use aws_lc_rs::digest::{Context, SHA256};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer};

use crate::pem::{self, Wrong};

/// A file of certificates or of revocation lists, with its current content.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TrustFile {
    /// Its name in the configuration.
    pub name: Box<str>,
    pub content: Trusted,
}

/// The content of a [`TrustFile`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trusted {
    /// From `ca-file` and `ca-verify-file`.
    Certificates(Vec<CertificateDer<'static>>),
    /// From `crl-file`.
    Lists(Vec<CertificateRevocationListDer<'static>>),
}

impl Trusted {
    /// Parses certificates. Revocation lists among them are ignored, as in OpenSSL's `ca-file`.
    ///
    /// # Errors
    /// There is no certificate, or one is malformed.
    pub fn read_certificates(text: &[u8]) -> Result<Self, Wrong> {
        pem::certificates(text).map(Self::Certificates)
    }

    /// Parses revocation lists.
    ///
    /// # Errors
    /// There is no list, or one is malformed.
    pub fn read_lists(text: &[u8]) -> Result<Self, Wrong> {
        pem::revocation_lists(text).map(Self::Lists)
    }

    /// Returns the certificates; none for a file of lists.
    pub fn certificates(&self) -> &[CertificateDer<'static>] {
        if let Self::Certificates(certificates) = self { certificates } else { &[] }
    }

    /// Returns the revocation lists; none for a file of certificates.
    pub fn lists(&self) -> &[CertificateRevocationListDer<'static>] {
        if let Self::Lists(lists) = self { lists } else { &[] }
    }
}

/// Certificates and revocation lists that chains are verified with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Authorities {
    /// Certificates to build chains with (`ca-file`): a chain ends at a self-signed one.
    pub roots: Vec<CertificateDer<'static>>,
    /// Revocation lists (`crl-file`).
    pub revoked: Vec<CertificateRevocationListDer<'static>>,
    /// The file of the certificates.
    pub ca_file: Option<Box<str>>,
    /// The file of the lists.
    pub crl_file: Option<Box<str>>,
}

impl Authorities {
    /// Returns the files with their current content.
    pub fn files(&self) -> impl Iterator<Item = TrustFile> {
        let certificates = self.ca_file.clone().map(|name| (name, Trusted::Certificates(self.roots.clone())));
        let lists = self.crl_file.clone().map(|name| (name, Trusted::Lists(self.revoked.clone())));
        certificates.into_iter().chain(lists).map(|(name, content)| TrustFile { name, content })
    }

    /// Returns a copy with the content of a file replaced. `None`: the file is not used here.
    #[must_use]
    pub fn with(&self, file: &TrustFile) -> Option<Self> {
        match &file.content {
            Trusted::Certificates(roots) if self.ca_file.as_ref() == Some(&file.name) => {
                Some(Self { roots: roots.clone(), ..self.clone() })
            }
            Trusted::Lists(revoked) if self.crl_file.as_ref() == Some(&file.name) => {
                Some(Self { revoked: revoked.clone(), ..self.clone() })
            }
            _ => None,
        }
    }

    /// Adds the trusted content to a digest that identifies the terms.
    pub(crate) fn describe(&self, digest: &mut Context) {
        for part in self.roots.iter().map(|root| root.as_ref()).chain(self.revoked.iter().map(|list| list.as_ref())) {
            digest.update(&(part.len() as u64).to_be_bytes());
            digest.update(part);
        }
    }
}

/// What sessions of clients depend on: a session is resumed under the terms alone that its client was verified by. It is the
/// same in every process with the same files, so that they can share tickets. `demands`: what is asked of certificates besides.
pub(crate) fn session_context(demands: &[u8], parts: &[Option<&Authorities>]) -> [u8; 8] {
    let mut digest = Context::new(&SHA256);
    digest.update(&(demands.len() as u64).to_be_bytes());
    digest.update(demands);
    for part in parts {
        digest.update(&[u8::from(part.is_some())]);
        if let Some(part) = part {
            part.describe(&mut digest);
        }
    }
    let digest = digest.finish();
    digest.as_ref().first_chunk().copied().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn authorities() -> Authorities {
        Authorities {
            roots: vec![CertificateDer::from(vec![1])],
            revoked: vec![CertificateRevocationListDer::from(vec![2])],
            ca_file: Some("ca".into()),
            crl_file: Some("crl".into()),
        }
    }

    #[test]
    fn files_are_exchanged_by_name_and_kind() {
        let before = authorities();
        assert_eq!(before.files().map(|file| file.name).collect::<Vec<_>>(), ["ca".into(), "crl".into()]);
        let certificates = Trusted::Certificates(vec![CertificateDer::from(vec![3])]);
        let lists = Trusted::Lists(Vec::new());
        let rows: &[(&str, &Trusted, bool)] = &[
            ("ca", &certificates, true),
            ("crl", &lists, true),
            ("crl", &certificates, false),
            ("ca", &lists, false),
            ("other", &certificates, false),
        ];
        for (name, content, is) in rows {
            let file = TrustFile { name: (*name).into(), content: (*content).clone() };
            let after = before.with(&file);
            assert_eq!(after.is_some(), *is, "{file:?}");
            assert!(after.is_none_or(|after| after.files().any(|other| other == file)), "{file:?}");
        }
    }

    #[test]
    fn sessions_depend_on_everything_that_is_believed() {
        let own = authorities();
        let more = Authorities { revoked: Vec::new(), ..own.clone() };
        let other = Authorities { roots: Vec::new(), ..own.clone() };
        let renamed = Authorities { ca_file: None, ..own.clone() };
        let of = |terms: &Authorities, silent: Option<&Authorities>| session_context(&[], &[Some(terms), silent]);
        assert_eq!(of(&own, None), of(&renamed, None));
        let all = [
            of(&own, None),
            of(&more, None),
            of(&other, None),
            of(&own, Some(&more)),
            session_context(&[], &[None, None]),
            session_context(&[0], &[Some(&own), None]),
            session_context(&[1], &[Some(&own), None]),
        ];
        for (place, one) in all.iter().enumerate() {
            assert!(all[place + 1..].iter().all(|other| other != one), "{place}");
        }
    }
}
