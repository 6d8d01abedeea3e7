//! Verifies a peer's certificate: its chain, and the name of a server. Must never accept one because a check could not
//! be performed.

use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved, SignatureScheme};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::certificate::names;
use crate::chain::{Judge, Purpose, Refusal, Store, verify_message};
use crate::details::note_fault;
use crate::faults::{Fault, Ignored, error_of};
use crate::signature::accepted;
use crate::trust::{TrustFile, session_context};
use crate::x509;

pub use crate::trust::Authorities;

/// The verifier of servers.
#[derive(Debug, Clone)]
pub(crate) struct OfServers {
    /// `None`: `verify none`.
    store: Option<Arc<Store>>,
    /// `verifyhost`: the name required in the certificate if the connection sends no SNI.
    host: Option<String>,
    /// The host of the connection, if it cannot be sent as SNI.
    asked: Option<String>,
    provider: Arc<CryptoProvider>,
    /// Permitted signature algorithms; `None`: all supported ones.
    signatures: Option<Vec<SignatureScheme>>,
}

impl OfServers {
    /// # Errors
    /// There is no trusted certificate.
    pub(crate) fn new(
        authorities: Option<&Authorities>,
        host: Option<&str>,
        provider: &Arc<CryptoProvider>,
        signatures: Option<Vec<SignatureScheme>>,
    ) -> Result<Self, String> {
        let store = authorities.map(|authorities| usable([authorities])).transpose()?;
        let host = host.map(str::to_ascii_lowercase);
        Ok(Self { store, host, asked: None, provider: Arc::clone(provider), signatures })
    }

    /// Returns a copy for certificates of a host that cannot be sent as SNI.
    pub(crate) fn asking(&self, host: &str) -> Self {
        Self { asked: Some(host.to_ascii_lowercase()), ..self.clone() }
    }

    /// Returns the name required in the certificate; `None`: its names are not checked.
    fn wanted(&self, server_name: &ServerName<'_>) -> Option<String> {
        match server_name {
            ServerName::DnsName(name) => Some(name.as_ref().to_ascii_lowercase()),
            _ => self.asked.clone().or_else(|| self.host.clone()),
        }
    }

    fn verify_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
        is_tls13: bool,
    ) -> Result<HandshakeSignatureValid, Error> {
        is_allowed(signature, self.signatures.as_ref())?;
        if self.store.is_none() {
            // The key is not trusted, so a signature would prove nothing.
            return Ok(HandshakeSignatureValid::assertion());
        }
        verify_message(message, certificate, signature, &self.provider.signature_verification_algorithms, is_tls13)
    }
}

/// Collects the certificates and lists of these authorities.
fn usable<'a>(authorities: impl IntoIterator<Item = &'a Authorities>) -> Result<Arc<Store>, String> {
    let store = Store::new(authorities);
    if store.is_empty() {
        return Err("no certificate to verify with".to_owned());
    }
    Ok(Arc::new(store))
}

fn error_of_refusal(refusal: Refusal) -> Error {
    match refusal {
        Refusal::Unreadable => Error::InvalidCertificate(CertificateError::BadEncoding),
        Refusal::Fault(fault) => error_of(fault),
    }
}

impl ServerCertVerifier for OfServers {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        _: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some(store) = &self.store else { return Ok(ServerCertVerified::assertion()) };
        let algorithms = &self.provider.signature_verification_algorithms;
        let judge = Judge { store, purpose: Purpose::Server, algorithms };
        judge.judge(end_entity, intermediates, now, &|_| false).map_err(error_of_refusal)?;
        match self.wanted(server_name) {
            Some(wanted) if !is_for(end_entity, &wanted) => {
                Err(Error::InvalidCertificate(CertificateError::NotValidForName))
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, certificate, signature, false)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, certificate, signature, true)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        accepted(self.provider.signature_verification_algorithms.supported_schemes(), self.signatures.as_ref())
    }
}

/// Checks that a peer signed with an algorithm that it was offered.
fn is_allowed(signature: &DigitallySignedStruct, allowed: Option<&Vec<SignatureScheme>>) -> Result<(), Error> {
    match allowed {
        Some(allowed) if !allowed.contains(&signature.scheme) => {
            Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into())
        }
        _ => Ok(()),
    }
}

/// Whether a certificate is valid for a host, in lower case: by a DNS name, a common name, or an address.
fn is_for(certificate: &CertificateDer<'_>, wanted: &str) -> bool {
    names(certificate).is_ok_and(|names| names.iter().any(|name| is_name_of(name, wanted)))
        || wanted.trim_matches(['[', ']']).parse().is_ok_and(|ip| x509::is_address_of(certificate, ip))
}

/// Whether a name of a certificate matches `wanted`; both in lower case. Its first label may contain one wildcard, for
/// any characters of a label (RFC 6125, section 6.4.3).
fn is_name_of(name: &str, wanted: &str) -> bool {
    let (label, rest) = name.split_once('.').unwrap_or((name, ""));
    let Some((begin, end)) = label.split_once('*').filter(|_| !rest.is_empty()) else { return name == wanted };
    wanted.split_once('.').is_some_and(|(own, behind)| {
        behind == rest
            && !own.is_empty()
            && own.len() >= begin.len() + end.len()
            && own.starts_with(begin)
            && own.ends_with(end)
            && !end.contains('*')
    })
}

/// The terms of verifying clients.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClientTerms {
    /// Whether a certificate is required.
    pub is_required: bool,
    /// The trusted authorities.
    pub authorities: Arc<Authorities>,
    /// Further trusted authorities, never sent to clients (`ca-verify-file`).
    pub silent: Option<Arc<Authorities>>,
    /// Whether names of authorities are sent to clients.
    pub announces: bool,
    /// Ignored errors of a client's own certificate (`crt-ignore-err`).
    pub ignored: Ignored,
    /// Ignored errors of the certificates above it (`ca-ignore-err`).
    pub ignored_behind: Ignored,
}

impl ClientTerms {
    /// Returns the files of the authorities.
    pub fn files(&self) -> impl Iterator<Item = TrustFile> {
        self.authorities.files().chain(self.silent.iter().flat_map(|silent| silent.files()))
    }

    /// Returns a copy with the content of a file replaced. `None`: the file is not used here.
    #[must_use]
    pub fn with(&self, file: &TrustFile) -> Option<Self> {
        let authorities = self.authorities.with(file).map(Arc::new);
        let silent = self.silent.as_ref().and_then(|silent| silent.with(file)).map(Arc::new);
        (authorities.is_some() || silent.is_some()).then(|| Self {
            authorities: authorities.unwrap_or_else(|| Arc::clone(&self.authorities)),
            silent: silent.or_else(|| self.silent.clone()),
            ..self.clone()
        })
    }

    /// A digest of everything that a full handshake checks and a resumed one does not: of these terms, and of the algorithms that
    /// clients may sign with.
    pub(crate) fn session_context(&self, signatures: Option<&[SignatureScheme]>) -> [u8; 8] {
        let mut demands = vec![u8::from(self.is_required), u8::from(signatures.is_some())];
        demands.extend(self.ignored.bits().to_be_bytes());
        demands.extend(self.ignored_behind.bits().to_be_bytes());
        demands.extend(signatures.unwrap_or_default().iter().flat_map(|scheme| u16::from(*scheme).to_be_bytes()));
        session_context(&demands, &[Some(&self.authorities), self.silent.as_deref()])
    }
}

/// The verifier of clients.
#[derive(Debug)]
pub(crate) struct OfClients {
    store: Arc<Store>,
    /// The names of authorities that are sent to clients.
    announced: Vec<DistinguishedName>,
    terms: ClientTerms,
    provider: Arc<CryptoProvider>,
    /// Permitted signature algorithms; `None`: all supported ones.
    signatures: Option<Vec<SignatureScheme>>,
}

impl OfClients {
    /// # Errors
    /// As for [`OfServers::new`].
    pub(crate) fn new(
        terms: &ClientTerms,
        provider: &Arc<CryptoProvider>,
        signatures: Option<Vec<SignatureScheme>>,
    ) -> Result<Self, String> {
        let store = usable([Some(&*terms.authorities), terms.silent.as_deref()].into_iter().flatten())?;
        let announced = if terms.announces { subjects(&terms.authorities.roots) } else { Vec::new() };
        Ok(Self { store, announced, terms: terms.clone(), provider: Arc::clone(provider), signatures })
    }

    /// Whether any error of a certificate is ignored.
    pub(crate) fn ignores(&self) -> bool {
        !(self.terms.ignored.is_empty() && self.terms.ignored_behind.is_empty())
    }

    /// Returns the errors of a chain, all of them ignored.
    ///
    /// # Errors
    /// The first error that is not ignored.
    pub(crate) fn judge(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<Vec<Fault>, Refusal> {
        let algorithms = &self.provider.signature_verification_algorithms;
        let judge = Judge { store: &self.store, purpose: Purpose::Client, algorithms };
        judge.judge(end_entity, intermediates, now, &|fault| self.is_ignored(fault))
    }

    fn is_ignored(&self, fault: Fault) -> bool {
        if fault.depth == 0 { self.terms.ignored.has(fault.code) } else { self.terms.ignored_behind.has(fault.code) }
    }

    fn verify_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
        is_tls13: bool,
    ) -> Result<HandshakeSignatureValid, Error> {
        is_allowed(signature, self.signatures.as_ref())?;
        verify_message(message, certificate, signature, &self.provider.signature_verification_algorithms, is_tls13)
    }
}

/// Returns the subjects of certificates, without duplicates.
fn subjects(certificates: &[CertificateDer<'_>]) -> Vec<DistinguishedName> {
    let mut names: Vec<DistinguishedName> = Vec::new();
    for certificate in certificates {
        let Ok((_, parsed)) = X509Certificate::from_der(certificate) else { continue };
        let name = DistinguishedName::from(parsed.subject().as_raw().to_vec());
        if !names.iter().any(|known| known.as_ref() == name.as_ref()) {
            names.push(name);
        }
    }
    names
}

impl ClientCertVerifier for OfClients {
    fn client_auth_mandatory(&self) -> bool {
        self.terms.is_required
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.announced
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        match self.judge(end_entity, intermediates, now) {
            Ok(_) => Ok(ClientCertVerified::assertion()),
            Err(refusal) => {
                if let Refusal::Fault(fault) = refusal {
                    note_fault(fault);
                }
                Err(error_of_refusal(refusal))
            }
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, certificate, signature, false)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_signature(message, certificate, signature, true)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        accepted(self.provider.signature_verification_algorithms.supported_schemes(), self.signatures.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_is_within_the_first_label() {
        let rows = [
            ("a.example", "a.example", true),
            ("*.example", "a.example", true),
            ("*.example", "a.b.example", false),
            ("*.example", "example", false),
            ("*.example", ".example", false),
            ("w*.example", "www.example", true),
            ("w*w.example", "w.example", false),
            ("a.*.example", "a.b.example", false),
            ("*", "a", false),
            ("**.example", "a.example", false),
            ("a.example", "b.example", false),
        ];
        for (name, wanted, is) in rows {
            assert_eq!(is_name_of(name, wanted), is, "{name} {wanted}");
        }
    }
}
