//! TLS, as lines and the `global` section write it (configuration manual, sections 3.1, 5.1 and 5.2).

use super::{AddressSpec, CertificateSource, ExtraFilesSpec, GlobalAcmeSpec};
use crate::span::{Span, Spanned};

/// Versions of TLS and its forerunner.
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
    /// All of them, the oldest first.
    pub const ALL: [Self; 5] = [Self::Ssl3, Self::Tls10, Self::Tls11, Self::Tls12, Self::Tls13];

    /// The name that configurations have for it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ssl3 => "SSLv3",
            Self::Tls10 => "TLSv1.0",
            Self::Tls11 => "TLSv1.1",
            Self::Tls12 => "TLSv1.2",
            Self::Tls13 => "TLSv1.3",
        }
    }

    /// The version of that name.
    pub fn of(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|version| version.name() == name)
    }
}

/// Which versions a line allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TlsVersionsSpec {
    /// `ssl-min-ver`, `force-*`.
    pub min: Option<TlsVersion>,
    /// `ssl-max-ver`, `force-*`.
    pub max: Option<TlsVersion>,
    /// `no-*`, by the place of each in [`TlsVersion::ALL`].
    pub forbidden: [bool; 5],
}

/// What lines on both sides say about TLS, and the `global` section for all of them.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TlsSpec {
    /// Versions.
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
    /// `alpn`, in its order; empty: `no-alpn`.
    pub alpn: Option<Spanned<Vec<String>>>,
    /// `ca-file`.
    pub ca_file: Option<Spanned<String>>,
    /// `crl-file`.
    pub crl_file: Option<Spanned<String>>,
    /// `tls-tickets`, `no-tls-tickets`.
    pub tickets: Option<bool>,
    /// Where relative names of files start from, with a slash at its end; `None`: where the process was started.
    pub folder: Option<String>,
}

/// What a `bind` line says about TLS.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BindTlsSpec {
    /// `ssl`.
    pub ssl: bool,
    /// What servers have, too.
    pub common: TlsSpec,
    /// `crt`, `default-crt` and `crt-list` in their order, which says what the first certificate is.
    pub sources: Vec<(CertificateSource, Spanned<String>)>,
    /// `acme`: names of certificates that are obtained, a list for each; Weir's own.
    pub acme: Vec<Spanned<Vec<String>>>,
    /// `strict-sni`, `no-strict-sni`.
    pub strict_sni: Option<bool>,
    /// `verify`.
    pub verify: Option<Spanned<VerifyClients>>,
    /// `ca-verify-file`.
    pub ca_verify_file: Option<Spanned<String>>,
    /// `crt-ignore-err`: `all`, or numbers and names between commas.
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
    /// Clients are not asked for a certificate.
    #[default]
    None,
    /// They may show one, which has to be good.
    Optional,
    /// They have to.
    Required,
}

/// What a `server` line says about TLS.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServerTlsSpec {
    /// `ssl`, `no-ssl`.
    pub ssl: bool,
    /// `no-ssl` was written last.
    pub no_ssl: bool,
    /// What the line starts from says `ssl`: it can be switched on at run time.
    pub ssl_by_default: bool,
    /// What `bind` lines have, too.
    pub common: TlsSpec,
    /// `crt`.
    pub certificate: Option<Spanned<String>>,
    /// `verify`: whether the server has to be who it says it is.
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

/// What the `global` section says about TLS.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GlobalTlsSpec {
    /// `crt-base`.
    pub crt_base: Option<String>,
    /// `ca-base`.
    pub ca_base: Option<String>,
    /// `key-base`.
    pub key_base: Option<String>,
    /// `ssl-default-bind-*`, as of the last line.
    pub binds: BindTlsSpec,
    /// `ssl-default-server-*`, as of the last line.
    pub servers: TlsSpec,
    /// Both behind each line that changes one of them, in their order: what counts for a line is what stands above it.
    pub history: Vec<Spanned<TlsDefaults>>,
    /// ACME.
    pub acme: GlobalAcmeSpec,
    /// Updates of OCSP answers.
    pub ocsp: GlobalOcspSpec,
    /// `ssl-server-verify`: whether servers are not verified where their lines do not say.
    pub trusts_servers: Option<bool>,
    /// `tune.ssl.keylog`.
    pub keylog: bool,
    /// `tune.ssl.lifetime`, in seconds.
    pub lifetime: Option<u32>,
    /// `tune.ssl.cachesize`, in blocks of 200 bytes.
    pub cache_size: Option<u32>,
    /// `tune.ssl.capture-buffer-size`, in bytes; 0: nothing is kept.
    pub capture_size: u32,
    /// `issuers-chain-path`, with what `default-path` puts in front of it.
    pub issuers_chain: Option<Spanned<String>>,
    /// `ssl-load-extra-files`, `ssl-load-extra-del-ext`.
    pub extra_files: ExtraFilesSpec,
    /// `ssl-skip-self-issued-ca`.
    pub skips_self_issued: bool,
    /// `ssl-passphrase-cmd`: the program and its arguments; empty: there is none.
    pub passphrase_command: Vec<String>,
    /// `tune.ssl.ssl-ctx-cache-size`: generated certificates to remember.
    pub generated_cache: Option<u32>,
    /// `tune.ssl.keyupdate-rate-limit`, in messages a second; 0: no limit.
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

/// What `ssl-default-*` say from a line on.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TlsDefaults {
    /// For listeners.
    pub binds: BindTlsSpec,
    /// For servers.
    pub servers: TlsSpec,
}

impl GlobalTlsSpec {
    /// The line at that place changes what `ssl-default-*` say.
    pub fn remember(&mut self, line: Span) {
        let defaults = TlsDefaults { binds: self.binds.clone(), servers: self.servers.clone() };
        self.history.push(Spanned::new(defaults, line));
    }

    /// What counts for a line at that place; `None`: nothing stands above it.
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
