//! Certificates in Secrets and authorities in ConfigMaps and Secrets.

use std::sync::Arc;

use crate::snapshot::{ConfigMap, ObjectKey, Secret, Snapshot};

use super::model::ObjectRef;
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

/// Returns the key and the PEM of the Secret that a reference of `from` names.
pub fn certificate(snapshot: &Snapshot, from: Referrer<'_>, reference: &ObjectRef) -> Result<Certificate, RefError> {
    let key = key_of(from.namespace, reference);
    let group = reference.group.as_deref().unwrap_or("");
    let kind = reference.kind.as_deref().unwrap_or("Secret");
    if !group.is_empty() || kind != "Secret" {
        return Err(RefError::Kind(format!("certificates are in Secrets, not in {kind} of the group \"{group}\"")));
    }
    if !is_permitted(&snapshot.reference_grants, from, Target { kind: "Secret", key: &key }) {
        return Err(RefError::NotPermitted(format!("no ReferenceGrant permits the reference to Secret {key}")));
    }
    let secret = snapshot.secrets.get(&key).ok_or_else(|| RefError::Missing(format!("Secret {key} does not exist")))?;
    let pem = pem_of(secret).ok_or_else(|| {
        RefError::Malformed(format!("Secret {key} has no certificate and private key in PEM as tls.crt and tls.key"))
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
    (has_block(chain, "CERTIFICATE") && has_block(private, "PRIVATE KEY"))
        .then(|| Arc::from(format!("{}\n{}\n", chain.trim(), private.trim())))
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
    let text = text.filter(|text| has_block(text, "CERTIFICATE"));
    text.map(|text| format!("{}\n", text.trim()))
        .ok_or_else(|| RefError::Malformed(format!("{kind} {key} has no certificates in PEM as ca.crt")))
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
}
