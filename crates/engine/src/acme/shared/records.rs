//! Names and values of what nodes share in a store: the account key, certificates, proofs, leases. Everything secret is encrypted.
//! Must never send a command.

use policy::program::{AcmeCertificate, AcmeSection};
use tls::account::sha256;

/// Key of the account's private key.
pub(super) const ACCOUNT: &str = "acme:account";
/// Key of the number of changes of certificates and proofs.
pub(super) const CHANGES: &str = "acme:changes";
/// Key of the nodes: when each has looked.
pub(super) const NODES: &str = "acme:nodes";
/// Key of the changes that each node has seen.
pub(super) const SEEN: &str = "acme:seen";
/// Key of the proofs, by name.
pub(super) const PROOFS: &str = "acme:proofs";
/// Key of the certificates' versions, by identifier.
pub(super) const VERSIONS: &str = "acme:versions";

/// Keys of one certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CertificateKeys {
    /// The identifier: nodes with the same section and names have the same, whatever their files are called.
    pub id: String,
    pub certificate: String,
    pub lease: String,
    pub pause: String,
    pub failures: String,
    /// Pause of the ACME server, for all certificates.
    pub server_pause: String,
}

impl CertificateKeys {
    pub(super) fn new(own: &AcmeCertificate, section: &AcmeSection) -> Self {
        let mut text =
            format!("{}\n{:?}\n{}\n", section.directory, section.key_kind, section.profile.as_deref().unwrap_or(""));
        let mut names: Vec<String> = own.domains.iter().map(ToString::to_string).collect();
        names.extend(own.ips.iter().map(ToString::to_string));
        let first = names.first().cloned().unwrap_or_default();
        names.sort();
        text += &names.join("\n");
        let id = format!("{first}:{}", digest(&text));
        let server = digest(&section.directory);
        Self {
            certificate: format!("acme:certificate:{id}"),
            lease: format!("acme:lease:{id}"),
            pause: format!("acme:pause:{id}"),
            failures: format!("acme:failures:{id}"),
            server_pause: format!("acme:server-pause:{server}"),
            id,
        }
    }
}

/// Returns the first 16 digits of a digest.
fn digest(text: &str) -> String {
    base::hex::encode_lower(&sha256(text.as_bytes())[..8])
}
