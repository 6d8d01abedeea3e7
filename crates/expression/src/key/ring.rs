//! The keys that a configuration names, by the path of their file: a variable may hold such a path while requests are
//! served. Must never read a file.

use super::{KeyError, PublicKey, TokenCertificate, TokenCertificates};
use std::collections::HashMap;
use std::sync::Arc;

/// Keys by the path of their file.
type Loaded = HashMap<Box<[u8]>, Arc<PublicKey>>;

/// Public keys and certificates that were loaded.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    public: Loaded,
    certificates: Loaded,
    /// Those certificates, in DER.
    files: HashMap<Box<[u8]>, Arc<[u8]>>,
    tokens: Arc<TokenCertificates>,
}

impl PartialEq for Keys {
    /// A path alone says nothing of the key: its file may have been changed between two readings.
    fn eq(&self, other: &Self) -> bool {
        let same = |one: &Loaded, other: &Loaded| {
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
    /// The public key of that file, read by `read` unless it is there already.
    ///
    /// # Errors
    /// Why there is none.
    pub fn load(
        &mut self,
        path: &[u8],
        read: impl FnOnce() -> Result<Vec<u8>, String>,
    ) -> Result<Arc<PublicKey>, String> {
        load(&mut self.public, path, read, PublicKey::from_pem)
    }

    /// The public key of the certificate in that file.
    ///
    /// # Errors
    /// Why there is none.
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

    /// Certificates that tokens may be verified by, which change.
    pub fn tokens(&self) -> &TokenCertificates {
        &self.tokens
    }

    /// The public key of a path.
    pub fn public(&self, path: &[u8]) -> Option<&PublicKey> {
        self.public.get(path).map(|key| &**key)
    }

    /// The keys of a certificate that a converter of the configuration names.
    fn named(&self, path: &[u8]) -> Option<TokenCertificate> {
        let (key, der) = (self.certificates.get(path)?, self.files.get(path)?);
        let chain = Arc::new([der.to_vec()]);
        Some(TokenCertificate { public: Arc::clone(key), private: None, chain, file: None })
    }

    /// Allows tokens to be verified by every certificate that a converter of the configuration names.
    pub fn allow_named(&self) {
        let named = self.certificates.keys().filter(|path| !self.tokens.allows(path));
        named.for_each(|path| {
            if let Some(certificate) = self.named(path) {
                self.tokens.allow(path, certificate);
            }
        });
    }

    /// The public key of a certificate's path.
    pub fn certificate(&self, path: &[u8]) -> Option<&PublicKey> {
        self.certificates.get(path).map(|key| &**key)
    }
}

fn load(
    known: &mut Loaded,
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
