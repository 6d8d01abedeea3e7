//! Whether a peer's certificate is believed: its chain by rustls and webpki, its names here. Must never believe one because
//! a check could not be made.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, ServerName, UnixTime};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::{CertificateError, DigitallySignedStruct, DistinguishedName, Error, RootCertStore, SignatureScheme};
use x509_parser::prelude::{FromDer, X509Certificate};

use crate::certificate::names;

/// Certificates and lists that chains are judged by.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Authorities {
    /// Those that are believed (`ca-file`).
    pub roots: Vec<CertificateDer<'static>>,
    /// What they have revoked (`crl-file`).
    pub revoked: Vec<CertificateRevocationListDer<'static>>,
}

impl Authorities {
    fn store(&self) -> Arc<RootCertStore> {
        let mut store = RootCertStore::empty();
        // One that cannot be a root is left out, as OpenSSL does where it never meets it.
        store.add_parsable_certificates(self.roots.iter().cloned());
        Arc::new(store)
    }

    /// Whether a certificate is itself among those that are believed, and its time has come and not passed.
    fn has(&self, certificate: &CertificateDer<'_>, now: UnixTime) -> bool {
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        self.roots.iter().any(|root| root == certificate)
            && X509Certificate::from_der(certificate).is_ok_and(|(_, parsed)| {
                let validity = parsed.validity();
                (validity.not_before.timestamp()..=validity.not_after.timestamp()).contains(&now)
            })
    }
}

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
}

impl OfServers {
    /// # Errors
    /// The lists of revoked certificates cannot be used, or there is no root.
    pub(crate) fn new(
        authorities: Option<&Authorities>,
        host: Option<&str>,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let chain = authorities.map(|authorities| {
            WebPkiServerVerifier::builder_with_provider(authorities.store(), Arc::clone(provider))
                .with_crls(authorities.revoked.iter().cloned())
                .allow_unknown_revocation_status()
                .build()
                .map(|verifier| (verifier, authorities.clone()))
                .map_err(|error| error.to_string())
        });
        let host = host.map(str::to_ascii_lowercase);
        Ok(Self { chain: chain.transpose()?, host, provider: Arc::clone(provider) })
    }
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
        match verifier.verify_server_cert(end_entity, intermediates, server_name, ocsp, now) {
            Ok(_) => {}
            // The chain was judged before the name.
            Err(Error::InvalidCertificate(
                CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. },
            )) => {}
            Err(error) if concerns_use_alone(&error) && authorities.has(end_entity, now) => {}
            Err(error) => return Err(error),
        }
        let wanted = match (&self.host, server_name) {
            (Some(host), _) => Some(host.clone()),
            (None, ServerName::DnsName(name)) => Some(name.as_ref().to_ascii_lowercase()),
            (None, _) => None,
        };
        let is_named =
            |wanted: &str| names(end_entity).is_ok_and(|names| names.iter().any(|name| is_name_of(name, wanted)));
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
        if self.chain.is_none() {
            // A key that nobody knows proves nothing.
            return Ok(HandshakeSignatureValid::assertion());
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
        if self.chain.is_none() {
            return Ok(HandshakeSignatureValid::assertion());
        }
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// Whether a name of a certificate, which may begin with a wildcard for one label, is `wanted`; both in lower case.
fn is_name_of(name: &str, wanted: &str) -> bool {
    match name.strip_prefix("*.") {
        None => name == wanted,
        Some(rest) => wanted.split_once('.').is_some_and(|(label, behind)| !label.is_empty() && behind == rest),
    }
}

/// What verifies clients.
#[derive(Debug)]
pub(crate) struct OfClients {
    chain: Arc<dyn ClientCertVerifier>,
    authorities: Authorities,
}

impl OfClients {
    /// # Errors
    /// As for [`OfServers::new`].
    pub(crate) fn new(
        authorities: &Authorities,
        is_required: bool,
        announces: bool,
        provider: &Arc<CryptoProvider>,
    ) -> Result<Self, String> {
        let mut builder = WebPkiClientVerifier::builder_with_provider(authorities.store(), Arc::clone(provider))
            .with_crls(authorities.revoked.iter().cloned())
            .allow_unknown_revocation_status();
        if !is_required {
            builder = builder.allow_unauthenticated();
        }
        if !announces {
            builder = builder.clear_root_hint_subjects();
        }
        let chain = builder.build().map_err(|error| error.to_string())?;
        Ok(Self { chain, authorities: authorities.clone() })
    }
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
        match self.chain.verify_client_cert(end_entity, intermediates, now) {
            Err(error) if concerns_use_alone(&error) && self.authorities.has(end_entity, now) => {
                Ok(ClientCertVerified::assertion())
            }
            verdict => verdict,
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.chain.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.chain.supported_verify_schemes()
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
