//! The keys that a configuration names, by the path of their file: a variable may hold such a path while requests are
//! served. Must never read a file.

use super::{KeyError, PublicKey};
use std::collections::HashMap;
use std::sync::Arc;

/// Public keys and certificates that were loaded.
#[derive(Debug, Clone, Default)]
pub struct Keys {
    public: HashMap<Box<[u8]>, Arc<PublicKey>>,
    certificates: HashMap<Box<[u8]>, Arc<PublicKey>>,
}

impl PartialEq for Keys {
    fn eq(&self, other: &Self) -> bool {
        let same = |one: &HashMap<Box<[u8]>, Arc<PublicKey>>, other: &HashMap<_, _>| {
            one.len() == other.len() && one.keys().all(|path| other.contains_key(path))
        };
        same(&self.public, &other.public) && same(&self.certificates, &other.certificates)
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
        load(&mut self.certificates, path, read, PublicKey::from_certificate)
    }

    /// The public key of a path.
    pub fn public(&self, path: &[u8]) -> Option<&PublicKey> {
        self.public.get(path).map(|key| &**key)
    }

    /// The public key of a certificate's path.
    pub fn certificate(&self, path: &[u8]) -> Option<&PublicKey> {
        self.certificates.get(path).map(|key| &**key)
    }
}

fn load(
    known: &mut HashMap<Box<[u8]>, Arc<PublicKey>>,
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
