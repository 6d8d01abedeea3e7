//! TLS settings of `bind` and `server` lines and of the `global` section (configuration manual, sections 3.1, 5.1 and
//! 5.2).

use super::{AddressSpec, CertificateSource, ExtraFilesSpec, GlobalAcmeSpec};
use crate::span::{Span, Spanned};

/// Versions of TLS, and SSLv3.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum TlsVersion {
    /// `SSLv3`
    Ssl3,
    /// `TLSv1.0`
    Tls10,
    /// `TLSv1.1`
    Tls11,
    /// `TLSv1.2`
    Tls12,
    /// `TLSv1.3`
    Tls13,
}

impl TlsVersion {
    /// All versions, the oldest first.
    pub const ALL: [Self; 5] = [Self::Ssl3, Self::Tls10, Self::Tls11, Self::Tls12, Self::Tls13];

    /// Returns the name in the configuration.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ssl3 => "SSLv3",
            Self::Tls10 => "TLSv1.0",
            Self::Tls11 => "TLSv1.1",
            Self::Tls12 => "TLSv1.2",
            Self::Tls13 => "TLSv1.3",
        }
    }

    /// Returns the version of that name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }
}

/// Permitted versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TlsVersionsSpec {
    /// `ssl-min-ver`, `force-*`.
    pub min: Option<TlsVersion>,
    /// `ssl-max-ver`, `force-*`.
    pub max: Option<TlsVersion>,
    /// `no-*`, by the index of each in [`TlsVersion::ALL`].
    pub forbidden: [bool; 5],
}

/// TLS settings common to `bind` and `server` lines, and to their `global` defaults.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TlsSpec {
    pub versions: TlsVersionsSpec,
    /// `ciphers`.
    pub ciphers: Option<Spanned<String>>,
    /// `ciphersuites`.
    pub ciphersuites: Option<Spanned<String>>,
    /// `curves`, or `ecdhe`.
    pub curves: Option<Spanned<String>>,
    /// `sigalgs`.
    pub sigalgs: Option<Spanned<String>>,
    /// `client-sigalgs`.
    pub client_sigalgs: Option<Spanned<String>>,
    /// `alpn`, in file order; empty: `no-alpn`.
    pub alpn: Option<Spanned<Vec<String>>>,
    /// `ca-file`.
    pub ca_file: Option<Spanned<String>>,
    /// `crl-file`.
    pub crl_file: Option<Spanned<String>>,
    /// `tls-tickets`, `no-tls-tickets`.
    pub tickets: Option<bool>,
    /// Base directory of relative file names, with a trailing slash; `None`: the working directory at startup.
    pub folder: Option<String>,
}

/// TLS settings of a `bind` line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BindTlsSpec {
    /// `ssl`.
    pub ssl: bool,
    /// Settings common with servers.
    pub common: TlsSpec,
    /// `crt`, `default-crt` and `crt-list` in file order, which determines the first certificate.
    pub sources: Vec<(CertificateSource, Spanned<String>)>,
    /// `acme`: names of certificates to obtain, a list for each; Weir only.
    pub acme: Vec<Spanned<Vec<String>>>,
    /// `strict-sni`, `no-strict-sni`.
    pub strict_sni: Option<bool>,
    /// `verify`.
    pub verify: Option<Spanned<VerifyClients>>,
    /// `ca-verify-file`.
    pub ca_verify_file: Option<Spanned<String>>,
    /// `crt-ignore-err`: `all`, or comma-separated numbers and names.
    pub crt_ignore_err: Option<Spanned<String>>,
    /// `ca-ignore-err`.
    pub ca_ignore_err: Option<Spanned<String>>,
    /// `no-ca-names`.
    pub no_ca_names: bool,
    /// `allow-0rtt`.
    pub early_data: bool,
    /// `prefer-client-ciphers`.
    pub prefer_client_ciphers: bool,
    /// `generate-certificates`.
    pub generates: bool,
    /// `ca-sign-file`.
    pub ca_sign_file: Option<Spanned<String>>,
    /// `ca-sign-pass`.
    pub ca_sign_pass: Option<String>,
    /// `tls-ticket-keys`: the file.
    pub ticket_keys: Option<Spanned<String>>,
}

/// `verify` on `bind` lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum VerifyClients {
    /// No certificate is requested.
    #[default]
    None,
    /// A certificate is requested; if there is one, it must be valid.
    Optional,
    /// A valid certificate is required.
    Required,
}

/// TLS settings of a `server` line.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerTlsSpec {
    /// `ssl`, `no-ssl`.
    pub ssl: bool,
    /// `no-ssl` was written last.
    pub no_ssl: bool,
    /// The line's initial values contain `ssl`: it can be switched on at run time.
    pub ssl_by_default: bool,
    /// Settings common with `bind` lines.
    pub common: TlsSpec,
    /// `crt`.
    pub certificate: Option<Spanned<String>>,
    /// `verify`: whether the server's certificate is verified.
    pub verify: Option<bool>,
    /// `verifyhost`.
    pub verifyhost: Option<String>,
    /// `sni`: the expression.
    pub sni: Option<Spanned<String>>,
    /// `sni-auto`, `no-sni-auto`.
    pub sni_auto: Option<bool>,
    /// `no-ssl-reuse`.
    pub no_reuse: bool,
    /// `allow-0rtt`.
    pub early_data: bool,
    /// `check-ssl`, `no-check-ssl`.
    pub check: Option<bool>,
    /// `check-sni`.
    pub check_sni: Option<String>,
    /// `check-sni-auto`, `no-check-sni-auto`.
    pub check_sni_auto: Option<bool>,
    /// `check-alpn`.
    pub check_alpn: Option<Vec<String>>,
}

/// TLS settings of the `global` section.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GlobalTlsSpec {
    /// `crt-base`.
    pub crt_base: Option<String>,
    /// `ca-base`.
    pub ca_base: Option<String>,
    /// `key-base`.
    pub key_base: Option<String>,
    /// `ssl-default-bind-*`, after the last line.
    pub binds: BindTlsSpec,
    /// `ssl-default-server-*`, after the last line.
    pub servers: TlsSpec,
    /// Both after each line that changes one of them, in file order: a line uses the values defined above it.
    pub history: Vec<Spanned<TlsDefaults>>,
    pub acme: GlobalAcmeSpec,
    /// Updates of OCSP responses.
    pub ocsp: GlobalOcspSpec,
    /// `ssl-server-verify`: servers are not verified unless their lines configure it.
    pub trusts_servers: Option<bool>,
    /// `tune.ssl.keylog`.
    pub keylog: bool,
    /// `tune.ssl.lifetime`, in seconds.
    pub lifetime: Option<u32>,
    /// `tune.ssl.cachesize`, in blocks of 200 bytes.
    pub cache_size: Option<u32>,
    /// `tune.ssl.capture-buffer-size`, in bytes; 0: no capture.
    pub capture_size: u32,
    /// `issuers-chain-path`, with `default-path` applied.
    pub issuers_chain: Option<Spanned<String>>,
    /// `ssl-load-extra-files`, `ssl-load-extra-del-ext`.
    pub extra_files: ExtraFilesSpec,
    /// `ssl-skip-self-issued-ca`.
    pub skips_self_issued: bool,
    /// `ssl-passphrase-cmd`: the program and its arguments; empty: none.
    pub passphrase_command: Vec<String>,
    /// `tune.ssl.ssl-ctx-cache-size`: number of cached generated certificates.
    pub generated_cache: Option<u32>,
    /// `tune.ssl.keyupdate-rate-limit`, in messages per second; 0: no limit.
    pub key_updates: Option<u32>,
    /// `tune.ssl.hard-maxrecord`, in bytes; 0: no limit.
    pub record_limit: u32,
    /// `tune.ssl.certificate-compression off`.
    pub without_compression: bool,
    /// `maxsslconn`; 0: no limit.
    pub max_connections: u32,
}

/// `ocsp-update.*`.
#[derive(Debug, Clone, PartialEq)]
pub struct GlobalOcspSpec {
    /// `ocsp-update.mode on`.
    pub is_usual: bool,
    /// `ocsp-update.disable on`.
    pub is_disabled: bool,
    /// `ocsp-update.mindelay`, in seconds.
    pub least: u32,
    /// `ocsp-update.maxdelay`, in seconds.
    pub most: u32,
    /// `ocsp-update.httpproxy`.
    pub proxy: Option<Spanned<AddressSpec>>,
}

impl Default for GlobalOcspSpec {
    fn default() -> Self {
        Self { is_usual: false, is_disabled: false, least: 300, most: 3_600, proxy: None }
    }
}

/// Values of `ssl-default-*` from a line on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TlsDefaults {
    pub binds: BindTlsSpec,
    pub servers: TlsSpec,
}

impl GlobalTlsSpec {
    /// Records the values of `ssl-default-*` after the line at that place.
    pub fn remember(&mut self, line: Span) {
        let defaults = TlsDefaults { binds: self.binds.clone(), servers: self.servers.clone() };
        self.history.push(Spanned::new(defaults, line));
    }

    /// Returns the defaults of a line at that place; `None` if none are defined above it.
    pub fn defaults_at(&self, line: Span) -> Option<&TlsDefaults> {
        let above = self.history.iter().rev().find(|defaults| defaults.span < line);
        above.map(|defaults| &defaults.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_above_a_line_counts_for_it() {
        let at = |file, line| Span { file, line, start: 0, end: 1 };
        let mut tls = GlobalTlsSpec::default();
        for (suites, place) in [("A", at(0, 2)), ("B", at(0, 9)), ("C", at(1, 1))] {
            tls.servers.ciphersuites = Some(Spanned::new(suites.to_owned(), place));
            tls.remember(place);
        }
        let rows = [
            (at(0, 1), None),
            (at(0, 3), Some("A")),
            (at(0, 8), Some("A")),
            (at(0, 12), Some("B")),
            (at(2, 1), Some("C")),
        ];
        for (line, expected) in rows {
            let found = tls.defaults_at(line).and_then(|defaults| defaults.servers.ciphersuites.as_ref());
            assert_eq!(found.map(|suites| suites.value.as_str()), expected, "{line:?}");
        }
    }
}
