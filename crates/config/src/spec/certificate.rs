//! Certificates as `crt-store` sections, crt-list lines and `ssl-f-use` define them (configuration manual, sections 12.7 and
//! 12.7.1). Must never hold the content of a file.

use crate::document::Word;
use crate::span::{Span, Spanned};

/// A `crt-store` section.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CrtStoreSpec {
    pub span: Span,
    /// Empty for a section without a name.
    pub name: String,
    /// `load` lines of the section.
    pub loads: Vec<LoadSpec>,
}

/// The files of a certificate and its options (section 12.7.1).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LoadSpec {
    pub span: Span,
    /// `crt`.
    pub crt: Option<Spanned<String>>,
    /// `key`.
    pub key: Option<Spanned<String>>,
    /// `ocsp`.
    pub ocsp: Option<Spanned<String>>,
    /// `issuer`.
    pub issuer: Option<Spanned<String>>,
    /// `sctl`.
    pub sctl: Option<Spanned<String>>,
    /// `alias`.
    pub alias: Option<Spanned<String>>,
    /// `ocsp-update`.
    pub ocsp_update: Option<bool>,
    /// `jwt`.
    pub jwt: Option<bool>,
    /// `acme`: the section.
    pub acme: Option<Spanned<String>>,
    /// `domains`, in file order.
    pub domains: Vec<String>,
    /// `ips`, in file order.
    pub ips: Vec<String>,
    /// `generate-dummy`.
    pub generate_dummy: Option<bool>,
    /// `keytype`.
    pub keytype: Option<Spanned<String>>,
    /// `bits` of a generated key.
    pub bits: Option<Spanned<u32>>,
    /// `curves` of a generated key.
    pub curves: Option<Spanned<String>>,
    /// `crt-base` of the section at this line.
    pub crt_base: Option<String>,
    /// `key-base` of the section at this line.
    pub key_base: Option<String>,
    /// Base directory of relative file names; `None`: the working directory at startup.
    pub folder: Option<String>,
}

impl LoadSpec {
    /// Whether anything is defined besides the certificate's file.
    pub fn has_options(&self) -> bool {
        let words = [&self.key, &self.ocsp, &self.issuer, &self.sctl, &self.acme, &self.keytype, &self.curves];
        let switches = [self.ocsp_update, self.jwt, self.generate_dummy];
        words.into_iter().any(Option::is_some)
            || switches.into_iter().any(|switch| switch.is_some())
            || self.bits.is_some()
            || !self.domains.is_empty()
            || !self.ips.is_empty()
    }
}

/// A line `ssl-f-use` of a frontend: its words are parsed again for each `bind` line, starting from that line's
/// options.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UsedCertificateSpec {
    pub span: Span,
    /// The words after the keyword.
    pub words: Vec<Word>,
    /// Base directory of relative file names; `None`: the working directory at startup.
    pub folder: Option<String>,
}

/// Option of a `bind` line that names certificates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateSource {
    /// `crt`.
    Certificate,
    /// `default-crt`.
    Default,
    /// `crt-list`.
    List,
}

/// Additional files that are searched beside a certificate (`ssl-load-extra-files`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtraFilesSpec {
    /// `.rsa` and `.ecdsa`, if the file itself does not exist.
    pub bundle: bool,
    /// `.sctl`
    pub sctl: bool,
    /// `.ocsp`
    pub ocsp: bool,
    /// `.issuer`
    pub issuer: bool,
    /// `.key`
    pub key: bool,
    /// The extension of the certificate's file is removed first (`ssl-load-extra-del-ext`).
    pub replaces_extension: bool,
}

impl ExtraFilesSpec {
    /// `ssl-load-extra-files none`.
    pub const NONE: Self =
        Self { bundle: false, sctl: false, ocsp: false, issuer: false, key: false, replaces_extension: false };
}

impl Default for ExtraFilesSpec {
    /// `ssl-load-extra-files all`.
    fn default() -> Self {
        Self { bundle: true, sctl: true, ocsp: true, issuer: true, key: true, replaces_extension: false }
    }
}
