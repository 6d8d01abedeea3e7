//! Whether a peer's certificate is believed: its chain by rustls and webpki, its names here. Must never believe one because
//! a check could not be made.

use std::sync::Arc;
use std::time::Duration;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, PeerMisbehaved, SignatureScheme};

use crate::certificate::names;
use crate::details::note_fault;
use crate::elder;
use crate::faults::{Fault, Ignored, NO_ISSUER, code, no_issuer};
use crate::signature::accepted;
use crate::trust::{TrustFile, session_context};
use crate::x509;

pub use crate::trust::Authorities;

/// Whether `error` says nothing against a certificate that is itself believed: one that may sign others is not believed as
/// a server's by webpki, where OpenSSL believes it.
fn concerns_use_alone(error: &Error) -> bool {
    match error {
        Error::InvalidCertificate(CertificateError::Other(other)) => other.to_string().contains("CaUsedAsEndEntity"),
        Error::InvalidCertificate(CertificateError::UnknownIssuer) => true,
        _ => false,
    }
}

/// What verifies servers.
#[derive(Debug)]
pub(crate) struct OfServers {
    /// `None`: `verify none`.
    chain: Option<(Arc<WebPkiServerVerifier>, Authorities)>,
    /// `verifyhost`; else the name that was asked for counts, if one was.
    host: Option<String>,
    provider: Arc<CryptoProvider>,
    /// Algorithms of signatures; `None`: all that there are.
    signatures: Option<Vec<SignatureScheme>>,
}

impl OfServers {
    /// # Errors
    /// The lists of revoked certificates cannot be used, or there is no root.
    pub(crate) fn new(
        authorities: Option<&Authorities>,
        host: Option<&str>,
        provider: &Arc<CryptoProvider>,
        signatures: Option<Vec<SignatureScheme>>,
    ) -> Result<Self, String> {
        let chain = authorities.map(|authorities| {
            WebPkiServerVerifier::builder_with_provider(authorities.store(), Arc::clone(provider))
                .build()
                .map(|verifier| (verifier, authorities.clone()))
                .map_err(|error| error.to_string())
        });
        let host = host.map(str::to_ascii_lowercase);
        Ok(Self { chain: chain.transpose()?, host, provider: Arc::clone(provider), signatures })
    }
}

impl OfServers {
    /// The same, for certificates of that host.
    pub(crate) fn with_host(&self, host: &str) -> Self {
        let host = Some(host.to_ascii_lowercase());
        let signatures = self.signatures.clone();
        Self { chain: self.chain.clone(), host, provider: Arc::clone(&self.provider), signatures }
    }

    fn elders<'a>(&'a self, authorities: &'a Authorities) -> elder::Judge<'a> {
        let Authorities { roots, revoked, .. } = authorities;
        elder::Judge { roots, revoked, algorithms: &self.provider.signature_verification_algorithms }
    }
}

/// What rustls calls a fault.
fn error_of(fault: Fault) -> Error {
    Error::InvalidCertificate(match fault.code {
        3 => CertificateError::UnknownRevocationStatus,
        7 => CertificateError::BadSignature,
        9 => CertificateError::NotValidYet,
        10 => CertificateError::Expired,
        12 => CertificateError::ExpiredRevocationList,
        18..=21 => CertificateError::UnknownIssuer,
        23 => CertificateError::Revoked,
        _ => CertificateError::ApplicationVerificationFailure,
    })
}

impl ServerCertVerifier for OfServers {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let Some((verifier, authorities)) = &self.chain else { return Ok(ServerCertVerified::assertion()) };
        let judged = if elder::is_elder(end_entity) {
            let faults = self.elders(authorities).faults(end_entity, intermediates, now);
            faults.first().map_or(Ok(ServerCertVerified::assertion()), |fault| Err(error_of(*fault)))
        } else {
            verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp, now)
        };
        match judged {
            Ok(_) => {}
            // The chain was judged before the name.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => {}
            Err(error) if concerns_use_alone(&error) && authorities.has(end_entity, now) => {}
            Err(error) => return Err(error),
        }
        if let Some(fault) = self.elders(authorities).revoked(end_entity, intermediates, now).first() {
            return Err(error_of(*fault));
        }
        let wanted = match (&self.host, server_name) {
            (Some(host), _) => Some(host.clone()),
            (None, ServerName::DnsName(name)) => Some(name.as_ref().to_ascii_lowercase()),
            (None, _) => None,
        };
        let is_named = |wanted: &str| {
            names(end_entity).is_ok_and(|names| names.iter().any(|name| is_name_of(name, wanted)))
                || wanted.trim_matches(['[', ']']).parse().is_ok_and(|ip| x509::is_address_of(end_entity, ip))
        };
        match wanted {
            Some(wanted) if !is_named(&wanted) => Err(Error::InvalidCertificate(CertificateError::NotValidForName)),
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        is_allowed(signature, self.signatures.as_ref())?;
        if self.chain.is_none() {
            // An unknown key proves nothing.
            return Ok(HandshakeSignatureValid::assertion());
        }
        if let Some((_, authorities)) = self.chain.as_ref().filter(|_| elder::is_elder(certificate)) {
            return self.elders(authorities).verify_message(message, certificate, signature, false);
        }
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        is_allowed(signature, self.signatures.as_ref())?;
        if self.chain.is_none() {
            return Ok(HandshakeSignatureValid::assertion());
        }
        if let Some((_, authorities)) = self.chain.as_ref().filter(|_| elder::is_elder(certificate)) {
            return self.elders(authorities).verify_message(message, certificate, signature, true);
        }
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        accepted(self.provider.signature_verification_algorithms.supported_schemes(), self.signatures.as_ref())
    }
}

/// A peer signs with what it was told that it may.
fn is_allowed(signature: &DigitallySignedStruct, allowed: Option<&Vec<SignatureScheme>>) -> Result<(), Error> {
    match allowed {
        Some(allowed) if !allowed.contains(&signature.scheme) => {
            Err(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme.into())
        }
        _ => Ok(()),
    }
}

/// Whether a name of a certificate, which may begin with a wildcard for one label, is `wanted`; both in lower case.
fn is_name_of(name: &str, wanted: &str) -> bool {
    match name.strip_prefix("*.") {
        None => name == wanted,
        Some(rest) => wanted.split_once('.').is_some_and(|(label, behind)| !label.is_empty() && behind == rest),
    }
}

/// How clients are verified.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClientTerms {
    /// Without a certificate there is no connection.
    pub is_required: bool,
    /// Who is believed.
    pub authorities: Arc<Authorities>,
    /// Who is believed beside them, and never announced (`ca-verify-file`).
    pub silent: Option<Arc<Authorities>>,
    /// Whether names are announced to clients.
    pub announces: bool,
    /// What is ignored of a client's own certificate (`crt-ignore-err`).
    pub ignored: Ignored,
    /// What is ignored of those behind it (`ca-ignore-err`).
    pub ignored_behind: Ignored,
}

impl ClientTerms {
    /// The files that they are from.
    pub fn files(&self) -> impl Iterator<Item = TrustFile> {
        self.authorities.files().chain(self.silent.iter().flat_map(|silent| silent.files()))
    }

    /// The same with another content of a file. `None`: nothing here is from that file.
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

    /// What tells sessions under these terms from those under others.
    pub(crate) fn session_context(&self) -> [u8; 8] {
        session_context(&[Some(&self.authorities), self.silent.as_deref()])
    }
}

/// What verifies clients.
#[derive(Debug)]
pub(crate) struct OfClients {
    chain: Arc<dyn ClientCertVerifier>,
    terms: ClientTerms,
    provider: Arc<CryptoProvider>,
    /// Algorithms of signatures; `None`: all that there are.
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
        let mut all = Authorities::clone(&terms.authorities);
        all.roots.extend(terms.silent.iter().flat_map(|silent| silent.roots.iter().cloned()));
        let store = all.store();
        let announced = if terms.announces { terms.authorities.store().subjects() } else { Vec::new() };
        let mut builder = WebPkiClientVerifier::builder_with_provider(store, Arc::clone(provider))
            .clear_root_hint_subjects()
            .add_root_hint_subjects(announced);
        if !terms.is_required {
            builder = builder.allow_unauthenticated();
        }
        Ok(Self {
            chain: builder.build().map_err(|error| error.to_string())?,
            terms: ClientTerms { authorities: Arc::new(all), silent: None, ..terms.clone() },
            provider: Arc::clone(provider),
            signatures,
        })
    }

    /// Whether something is ignored that could be wrong with a certificate.
    pub(crate) fn ignores(&self) -> bool {
        !(self.terms.ignored.is_empty() && self.terms.ignored_behind.is_empty())
    }

    /// Everything that is wrong with a certificate, as far as it can be known. The error is what cannot be ignored.
    ///
    /// A chain is judged at the moment at which its certificates are valid once more where their time has passed: behind one
    /// fault there may be others.
    pub(crate) fn judge(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<Vec<Fault>, Error> {
        if elder::is_elder(end_entity) {
            let faults = self.elders().faults(end_entity, intermediates, now);
            return match faults.iter().find(|fault| !self.is_ignored(**fault)) {
                Some(fault) => Err(error_of(*fault)),
                None => Ok(faults),
            };
        }
        let (mut faults, mut moment) = (Vec::new(), now);
        // Each round finds another fault of time, at either depth.
        for _ in 0..3 {
            let error = match self.chain.verify_client_cert(end_entity, intermediates, moment) {
                Ok(_) => break,
                Err(error) if concerns_use_alone(&error) && self.terms.authorities.has(end_entity, moment) => break,
                Err(error) => error,
            };
            let found = faults_of(&error, end_entity, intermediates, moment);
            if found.iter().any(|fault| !self.is_ignored(*fault) || faults.contains(fault)) {
                return Err(error);
            }
            faults.extend(&found);
            match found.first() {
                Some(Fault { code: 9 | 10, depth }) => {
                    let behind = if *depth == 0 { &[] } else { intermediates };
                    let Some(valid) = valid_moment([end_entity].into_iter().chain(behind), moment) else {
                        return Err(error);
                    };
                    moment = valid;
                }
                // Nothing behind it can be known.
                _ => return Ok(faults),
            }
        }
        faults.extend(self.elders().revoked(end_entity, intermediates, now));
        match faults.iter().find(|fault| !self.is_ignored(**fault)) {
            Some(fault) => Err(error_of(*fault)),
            None => Ok(faults),
        }
    }

    fn elders(&self) -> elder::Judge<'_> {
        let Authorities { roots, revoked, .. } = &*self.terms.authorities;
        elder::Judge { roots, revoked, algorithms: &self.provider.signature_verification_algorithms }
    }

    fn is_ignored(&self, fault: Fault) -> bool {
        if fault.depth == 0 { self.terms.ignored.has(fault.code) } else { self.terms.ignored_behind.has(fault.code) }
    }
}

/// What OpenSSL would say of a chain that webpki refuses.
fn faults_of(
    error: &Error,
    end_entity: &CertificateDer<'_>,
    intermediates: &[CertificateDer<'_>],
    now: UnixTime,
) -> Vec<Fault> {
    let fault = |code, depth| Fault { code, depth };
    match code(error) {
        // Of those behind the first, rustls does not tell which.
        code @ (9 | 10) => vec![fault(code, u8::from(is_valid_at(end_entity, now)))],
        NO_ISSUER => no_issuer(end_entity, intermediates),
        code => vec![fault(code, 0)],
    }
}

fn is_valid_at(certificate: &CertificateDer<'_>, now: UnixTime) -> bool {
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    x509::valid_between(certificate).is_some_and(|(begin, end)| (begin..=end).contains(&now))
}

/// A moment at which all of these are valid, the nearest one to `now`; `None`: there is none.
fn valid_moment<'a>(certificates: impl Iterator<Item = &'a CertificateDer<'a>>, now: UnixTime) -> Option<UnixTime> {
    let (mut begin, mut end) = (i64::MIN, i64::MAX);
    for certificate in certificates {
        let (own_begin, own_end) = x509::valid_between(certificate)?;
        (begin, end) = (begin.max(own_begin), end.min(own_end));
    }
    let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
    let moment = if begin <= end { now.clamp(begin, end) } else { return None };
    u64::try_from(moment).ok().map(|seconds| UnixTime::since_unix_epoch(Duration::from_secs(seconds)))
}

impl ClientCertVerifier for OfClients {
    fn offer_client_auth(&self) -> bool {
        self.chain.offer_client_auth()
    }

    fn client_auth_mandatory(&self) -> bool {
        self.chain.client_auth_mandatory()
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.chain.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<ClientCertVerified, Error> {
        let judged = self.judge(end_entity, intermediates, now);
        if let Err(error) = &judged {
            let faults = match concerns_use_alone(error) {
                true => no_issuer(end_entity, intermediates),
                false => faults_of(error, end_entity, intermediates, now),
            };
            faults.into_iter().take(1).for_each(note_fault);
        }
        judged.map(|_| ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        is_allowed(signature, self.signatures.as_ref())?;
        if elder::is_elder(certificate) {
            return self.elders().verify_message(message, certificate, signature, false);
        }
        self.chain.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        is_allowed(signature, self.signatures.as_ref())?;
        if elder::is_elder(certificate) {
            return self.elders().verify_message(message, certificate, signature, true);
        }
        self.chain.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        accepted(self.chain.supported_verify_schemes(), self.signatures.as_ref())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wildcard_is_one_label() {
        let rows = [
            ("a.example", "a.example", true),
            ("*.example", "a.example", true),
            ("*.example", "a.b.example", false),
            ("*.example", "example", false),
            ("*.example", ".example", false),
            ("a.example", "b.example", false),
        ];
        for (name, wanted, is) in rows {
            assert_eq!(is_name_of(name, wanted), is, "{name} {wanted}");
        }
    }
}
