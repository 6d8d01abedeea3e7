//! Certificates as `crt-store` sections, crt-list lines and `ssl-f-use` define them (configuration manual, sections 12.7 and
//! 12.7.1). Must never hold the content of a file.

use crate::document::Word;
use crate::span::{Span, Spanned};

/// A `crt-store` section.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct CrtStoreSpec {
    /// Its line.
    pub span: Span,
    /// Its name; empty for a section without one.
    pub name: String,
    /// Its `load` lines.
    pub loads: Vec<LoadSpec>,
}

/// The files of a certificate and what is to be done with it (section 12.7.1).
#[derive(Debug, Clone, PartialEq, Default)]
pub struct LoadSpec {
    /// Its line.
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
    /// `domains`, in their order.
    pub domains: Vec<String>,
    /// `ips`, in their order.
    pub ips: Vec<String>,
    /// `generate-dummy`.
    pub generate_dummy: Option<bool>,
    /// `keytype`.
    pub keytype: Option<Spanned<String>>,
    /// `bits` of a generated key.
    pub bits: Option<Spanned<u32>>,
    /// `curves` of a generated key.
    pub curves: Option<Spanned<String>>,
    /// `crt-base` of the section, as of the line.
    pub crt_base: Option<String>,
    /// `key-base` of the section, as of the line.
    pub key_base: Option<String>,
    /// Where relative names of files start from; `None`: where the process was started.
    pub folder: Option<String>,
}

impl LoadSpec {
    /// Whether anything is defined beside the certificate's file.
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

/// A line `ssl-f-use` of a frontend: words are read again for each of its `bind` lines, whose options they start from.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct UsedCertificateSpec {
    /// Its line.
    pub span: Span,
    /// The words behind the keyword.
    pub words: Vec<Word>,
    /// Where relative names of files start from; `None`: where the process was started.
    pub folder: Option<String>,
}

/// Where a `bind` line takes certificates from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CertificateSource {
    /// `crt`.
    Certificate,
    /// `default-crt`.
    Default,
    /// `crt-list`.
    List,
}

/// Which files are looked for beside a certificate (`ssl-load-extra-files`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExtraFilesSpec {
    /// `.rsa` and `.ecdsa`, where the file itself does not exist.
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
