//! The keys named by a configuration, by the path of their file: a variable may contain such a path while requests are
//! served. Must never read a file.

use super::{KeyError, PublicKey, TokenCertificate, TokenCertificates};
use std::collections::HashMap;
use std::sync::Arc;

/// Keys by the path of their file.
type KeysByPath = HashMap<Box<[u8]>, Arc<PublicKey>>;

/// The loaded public keys and certificates.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    public: KeysByPath,
    certificates: KeysByPath,
    /// Those certificates, in DER.
    files: HashMap<Box<[u8]>, Arc<[u8]>>,
    tokens: Arc<TokenCertificates>,
}

impl PartialEq for Keys {
    /// Equal paths do not make keys equal: the file may have changed between two loads.
    fn eq(&self, other: &Self) -> bool {
        let same = |one: &KeysByPath, other: &KeysByPath| {
            let mut known = one.iter();
            one.len() == other.len()
                && known.all(|(path, key)| other.get(path).is_some_and(|own| Arc::ptr_eq(own, key)))
        };
        same(&self.public, &other.public)
            && same(&self.certificates, &other.certificates)
            && self.tokens.allowed() == other.tokens.allowed()
    }
}

impl Keys {
    /// Returns the public key of that file, loaded with `read` on first use.
    ///
    /// # Errors
    /// The file cannot be read, or has no valid key.
    pub fn load(
        &mut self,
        path: &[u8],
        read: impl FnOnce() -> Result<Vec<u8>, String>,
    ) -> Result<Arc<PublicKey>, String> {
        load(&mut self.public, path, read, PublicKey::from_pem)
    }

    /// Returns the public key of the certificate in that file, loaded with `read` on first use.
    ///
    /// # Errors
    /// The file cannot be read, or has no valid certificate.
    pub fn load_certificate(
        &mut self,
        path: &[u8],
        read: impl FnOnce() -> Result<Vec<u8>, String>,
    ) -> Result<Arc<PublicKey>, String> {
        let mut der = None;
        let read = || read().inspect(|file| der = PublicKey::certificate(file));
        let key = load(&mut self.certificates, path, read, PublicKey::from_certificate)?;
        if let Some(der) = der {
            self.files.insert(path.into(), der.into());
        }
        Ok(key)
    }

    /// The certificates allowed for tokens, which change at run time.
    pub fn tokens(&self) -> &TokenCertificates {
        &self.tokens
    }

    /// Returns the public key of a path.
    pub fn public(&self, path: &[u8]) -> Option<&PublicKey> {
        self.public.get(path).map(|key| &**key)
    }

    /// The keys of a certificate that a converter of the configuration names.
    fn named(&self, path: &[u8]) -> Option<TokenCertificate> {
        let (key, der) = (self.certificates.get(path)?, self.files.get(path)?);
        let chain = Arc::new([der.to_vec()]);
        Some(TokenCertificate { public: Arc::clone(key), private: None, chain, file: None })
    }

    /// Allows every certificate that a converter of the configuration names to verify tokens.
    pub fn allow_named(&self) {
        let named = self.certificates.keys().filter(|path| !self.tokens.allows(path));
        named.for_each(|path| {
            if let Some(certificate) = self.named(path) {
                self.tokens.allow(path, certificate);
            }
        });
    }

    /// Returns the public key of a certificate's path.
    pub fn certificate(&self, path: &[u8]) -> Option<&PublicKey> {
        self.certificates.get(path).map(|key| &**key)
    }
}

fn load(
    known: &mut KeysByPath,
    path: &[u8],
    read: impl FnOnce() -> Result<Vec<u8>, String>,
    parse: fn(&[u8]) -> Result<PublicKey, KeyError>,
) -> Result<Arc<PublicKey>, String> {
    if let Some(key) = known.get(path) {
        return Ok(Arc::clone(key));
    }
    let key = Arc::new(parse(&read()?).map_err(|why| why.to_string())?);
    known.insert(path.into(), Arc::clone(&key));
    Ok(key)
}
