//! Certificates in Secrets and authorities in ConfigMaps and Secrets.

use std::collections::BTreeMap;
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::aws_lc_rs;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use crate::snapshot::{ConfigMap, ObjectKey, Secret, Snapshot};

use super::model::ObjectRef;
use super::names;
use super::references::{Referrer, Target, is_permitted};

/// The largest object of Kubernetes is not much larger.
const LONGEST_PEM: usize = 2 << 20;

/// Why a reference to a certificate or to authorities cannot be followed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RefError {
    NotPermitted(String),
    /// Another kind of object than those that are supported.
    Kind(String),
    Missing(String),
    Malformed(String),
}

impl RefError {
    pub fn message(&self) -> &str {
        match self {
            Self::NotPermitted(message) | Self::Kind(message) | Self::Missing(message) | Self::Malformed(message) => {
                message
            }
        }
    }
}

/// Certificates that have been checked. That costs too much to do it for each snapshot.
#[derive(Clone, Debug, Default)]
pub struct Checked {
    entries: BTreeMap<ObjectKey, CheckedSecret>,
}

/// A Secret with its certificate, if that is valid.
#[derive(Clone, Debug)]
struct CheckedSecret {
    secret: Arc<Secret>,
    pem: Option<Arc<str>>,
}

impl Checked {
    /// Returns the certificate of a Secret with the chain and the private key in PEM, if they are valid and belong together.
    fn pem(&mut self, key: &ObjectKey, secret: &Arc<Secret>) -> Option<Arc<str>> {
        if let Some(known) = self.entries.get(key).filter(|known| Arc::ptr_eq(&known.secret, secret)) {
            return known.pem.clone();
        }
        let pem = pem_of(secret);
        self.entries.insert(key.clone(), CheckedSecret { secret: secret.clone(), pem: pem.clone() });
        pem
    }

    /// Forgets Secrets that are removed or changed.
    pub fn retain(&mut self, snapshot: &Snapshot) {
        self.entries
            .retain(|key, known| snapshot.secrets.get(key).is_some_and(|secret| Arc::ptr_eq(secret, &known.secret)));
    }
}

/// Returns the key and the PEM of the Secret that a reference of `from` names.
pub fn certificate(
    snapshot: &Snapshot,
    checked: &mut Checked,
    from: Referrer<'_>,
    reference: &ObjectRef,
) -> Result<Certificate, RefError> {
    let key = key_of(from.namespace, reference);
    let group = reference.group.as_deref().unwrap_or("");
    let kind = reference.kind.as_deref().unwrap_or("Secret");
    if !group.is_empty() || kind != "Secret" {
        return Err(RefError::Kind(format!("certificates are in Secrets, not in {kind} of the group \"{group}\"")));
    }
    if !is_permitted(&snapshot.reference_grants, from, Target { kind: "Secret", key: &key }) {
        return Err(RefError::NotPermitted(format!("no ReferenceGrant permits the reference to Secret {key}")));
    }
    let secret = snapshot
        .secrets
        .get(&key)
        .filter(|_| names::is_valid(&key))
        .ok_or_else(|| RefError::Missing(format!("Secret {key} does not exist")))?;
    let pem = checked.pem(&key, secret).ok_or_else(|| {
        RefError::Malformed(format!(
            "Secret {key} has no valid certificate and private key in PEM as tls.crt and tls.key"
        ))
    })?;
    Ok(Certificate { key, pem })
}

/// A certificate with its chain and private key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Certificate {
    pub key: ObjectKey,
    pub pem: Arc<str>,
}

fn key_of(namespace: &str, reference: &ObjectRef) -> ObjectKey {
    ObjectKey::new(reference.namespace.as_deref().unwrap_or(namespace), &*reference.name)
}

fn pem_of(secret: &Secret) -> Option<Arc<str>> {
    let data = secret.data.as_ref()?;
    let chain = std::str::from_utf8(&data.get("tls.crt")?.0).ok()?;
    let private = std::str::from_utf8(&data.get("tls.key")?.0).ok()?;
    // Both are written to one file, so neither may have what the other one has.
    let is_mixed = chain.contains("PRIVATE KEY") || private.contains("CERTIFICATE");
    if is_mixed || !has_block(chain, "CERTIFICATE") || !has_block(private, "PRIVATE KEY") {
        return None;
    }
    let certificates = CertificateDer::pem_slice_iter(chain.as_bytes()).collect::<Result<Vec<_>, _>>().ok()?;
    let key = PrivateKeyDer::from_pem_slice(private.as_bytes()).ok()?;
    CertifiedKey::from_der(certificates, key, &aws_lc_rs::default_provider()).ok()?;
    Some(Arc::from(format!("{}\n{}\n", chain.trim(), private.trim())))
}

/// Whether a text has certificates of authorities, all of them valid.
fn has_authorities(text: &str) -> bool {
    let mut store = RootCertStore::empty();
    has_block(text, "CERTIFICATE")
        && CertificateDer::pem_slice_iter(text.as_bytes())
            .all(|certificate| certificate.is_ok_and(|c| store.add(c).is_ok()))
}

/// Returns the bundle of authorities that a reference of `from` names: `ca.crt` of a ConfigMap or a Secret.
pub fn authorities(snapshot: &Snapshot, from: Referrer<'_>, reference: &ObjectRef) -> Result<String, RefError> {
    let key = key_of(from.namespace, reference);
    let group = reference.group.as_deref().unwrap_or("");
    let kind = reference.kind.as_deref().unwrap_or("ConfigMap");
    if !group.is_empty() || (kind != "ConfigMap" && kind != "Secret") {
        return Err(RefError::Kind(format!(
            "authorities are in ConfigMaps and Secrets, not in {kind} of the group \"{group}\""
        )));
    }
    if !is_permitted(&snapshot.reference_grants, from, Target { kind, key: &key }) {
        return Err(RefError::NotPermitted(format!("no ReferenceGrant permits the reference to {kind} {key}")));
    }
    let missing = || RefError::Missing(format!("{kind} {key} does not exist"));
    let text = match kind {
        "Secret" => secret_text(snapshot.secrets.get(&key).ok_or_else(missing)?),
        _ => map_text(snapshot.config_maps.get(&key).ok_or_else(missing)?),
    };
    let text = text.filter(|text| has_authorities(text));
    text.map(|text| format!("{}\n", text.trim()))
        .ok_or_else(|| RefError::Malformed(format!("{kind} {key} has no valid certificates in PEM as ca.crt")))
}

fn secret_text(secret: &Secret) -> Option<&str> {
    std::str::from_utf8(&secret.data.as_ref()?.get("ca.crt")?.0).ok()
}

fn map_text(map: &ConfigMap) -> Option<&str> {
    map.data.as_ref()?.get("ca.crt").map(String::as_str)
}

/// Whether a text in PEM has a block whose label ends with the words, and only whole blocks of base64.
fn has_block(text: &str, words: &str) -> bool {
    if text.len() > LONGEST_PEM {
        return false;
    }
    let mut open: Option<&str> = None;
    let mut content = 0;
    let mut found = false;
    for line in text.lines().map(str::trim) {
        if let Some(label) = line.strip_prefix("-----BEGIN ").and_then(|rest| rest.strip_suffix("-----")) {
            if open.replace(label).is_some() {
                return false;
            }
            content = 0;
        } else if let Some(label) = line.strip_prefix("-----END ").and_then(|rest| rest.strip_suffix("-----")) {
            if open.take() != Some(label) || content == 0 {
                return false;
            }
            found |= label.ends_with(words);
        } else if open.is_some() && !line.contains(':') {
            if !line.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/' | b'=' | b',' | b'-')) {
                return false;
            }
            content += line.len();
        }
    }
    found && open.is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_whole() {
        let block = "-----BEGIN CERTIFICATE-----\nTUlJ\n-----END CERTIFICATE-----\n";
        for (text, words, expected) in [
            (block.to_owned(), "CERTIFICATE", true),
            (format!("# comment\n{block}{block}"), "CERTIFICATE", true),
            (block.to_owned(), "PRIVATE KEY", false),
            ("-----BEGIN EC PRIVATE KEY-----\nTUlJ\n-----END EC PRIVATE KEY-----".to_owned(), "PRIVATE KEY", true),
            ("Hello world\n".to_owned(), "CERTIFICATE", false),
            ("-----BEGIN CERTIFICATE-----\nTUlJ\n".to_owned(), "CERTIFICATE", false),
            ("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n".to_owned(), "CERTIFICATE", false),
            ("-----BEGIN CERTIFICATE-----\n\u{0}\n-----END CERTIFICATE-----\n".to_owned(), "CERTIFICATE", false),
            (format!("{block}{block}-----END CERTIFICATE-----\n"), "CERTIFICATE", false),
        ] {
            assert_eq!(has_block(&text, words), expected, "{text:?}");
        }
    }

    #[test]
    fn certificates_and_keys_belong_together() {
        use super::super::tests::pem::{CERTIFICATE, KEY, OTHER_KEY};
        let fake = |label: &str| format!("-----BEGIN {label}-----\nTUlJ\n-----END {label}-----\n");
        for (chain, private, expected) in [
            (CERTIFICATE.to_owned(), KEY.to_owned(), true),
            (format!("{CERTIFICATE}{CERTIFICATE}"), KEY.to_owned(), true),
            (CERTIFICATE.to_owned(), OTHER_KEY.to_owned(), false),
            (format!("{CERTIFICATE}{OTHER_KEY}"), KEY.to_owned(), false),
            (CERTIFICATE.to_owned(), fake("PRIVATE KEY"), false),
            (fake("CERTIFICATE"), KEY.to_owned(), false),
            (KEY.to_owned(), CERTIFICATE.to_owned(), false),
            (String::new(), String::new(), false),
        ] {
            let secret: Arc<Secret> = Arc::new(Secret {
                data: Some(
                    [("tls.crt", &chain), ("tls.key", &private)]
                        .map(|(k, v)| (k.to_owned(), k8s_openapi::ByteString(v.clone().into())))
                        .into(),
                ),
                ..Secret::default()
            });
            assert_eq!(
                Checked::default().pem(&ObjectKey::new("a", "b"), &secret).is_some(),
                expected,
                "{chain}{private}"
            );
        }
        for (text, expected) in [
            (CERTIFICATE.to_owned(), true),
            (fake("CERTIFICATE"), false),
            (format!("{CERTIFICATE}{}", fake("CERTIFICATE")), false),
        ] {
            assert_eq!(has_authorities(&text), expected, "{text}");
        }
    }
}
