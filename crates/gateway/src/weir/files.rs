//! Names of the files in the state directory.

use std::path::Path;

/// The files of a state directory.
#[derive(Clone, Copy, Debug)]
pub struct Files<'a> {
    pub folder: &'a Path,
}

impl Files<'_> {
    /// Returns the path of a certificate.
    pub fn certificate(&self, name: &str) -> String {
        self.path("certificates", name)
    }

    /// Returns the path of a bundle of authorities.
    pub fn authorities(&self, name: &str) -> String {
        self.path("authorities", name)
    }

    fn path(&self, kind: &str, name: &str) -> String {
        self.folder.join(kind).join(format!("{name}.pem")).to_string_lossy().into_owned()
    }
}
