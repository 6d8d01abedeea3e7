//! Resolves the names of algorithms, versions and protocols, and reports unsupported ones. Must never load a file.

use super::algorithm_errors::Unfit;
use super::line::Line;
use crate::compile::Compiler;
use config::diagnostic::{Diagnostic, Form, Severity};
use config::span::{Span, Spanned};
use config::spec::{TlsSpec, TlsVersion, TlsVersionsSpec};
use tls::provider::{self, Algorithms, ParsedNames, Signatures, Version};
use tls::signature;

impl Compiler<'_> {
    pub(super) fn algorithms(&mut self, written: &TlsSpec, default: &TlsSpec, line: &Line) -> Option<Algorithms> {
        let (head, tail) = line.algorithms.clone();
        self.algorithms_of(written, default, line, |what| match what {
            Unfit::Versions => format!("{head}all SSL/TLS versions are disabled{tail}"),
            Unfit::Ciphers(text) => format!("{head}unable to set SSL cipher list to '{text}'{tail}"),
            Unfit::Suites(text) => format!("{head}unable to set TLS 1.3 cipher suites to '{text}'{tail}"),
            Unfit::Groups(text) => format!("{head}unable to set SSL curves list to '{text}'{tail}"),
            // HAProxy's messages use the same name for both lists.
            Unfit::Signatures(text) | Unfit::ClientSignatures(text) => {
                format!("{head}unable to set SSL Signature Algorithm list to '{text}'{tail}")
            }
        })
    }

    pub(super) fn algorithms_of(
        &mut self,
        written: &TlsSpec,
        default: &TlsSpec,
        line: &Line,
        sentence: impl Fn(Unfit<'_>) -> String,
    ) -> Option<Algorithms> {
        let own = written.versions != TlsVersionsSpec::default();
        let versions = if own { &written.versions } else { &default.versions };
        let form = if line.form == Form::Parsing { Form::Bare } else { line.form };
        let Some(range) = self.versions(versions, line.span) else {
            self.alert(line.span, form, sentence(Unfit::Versions));
            return None;
        };
        let ciphers = written.ciphers.as_ref().or(default.ciphers.as_ref());
        let ciphersuites = written.ciphersuites.as_ref().or(default.ciphersuites.as_ref());
        let curves = written.curves.as_ref().or(default.curves.as_ref());
        let read_ciphers = ciphers.map(|text| provider::ciphers(&text.value));
        let read_suites = ciphersuites.map(|text| provider::ciphersuites(&text.value));
        let read_groups = curves.map(|text| provider::groups(&text.value));
        let unfit = [
            ciphers.filter(|_| lacks(read_ciphers.as_ref())).map(|text| Unfit::Ciphers(&text.value)),
            ciphersuites.filter(|_| lacks(read_suites.as_ref())).map(|text| Unfit::Suites(&text.value)),
            curves.filter(|_| lacks(read_groups.as_ref())).map(|text| Unfit::Groups(&text.value)),
        ];
        if let Some(first) = unfit.into_iter().flatten().next() {
            self.alert(line.span, form, sentence(first));
            return None;
        }
        let signatures = self.signatures(written, default, line.form == Form::Placed);
        let signatures = match signatures {
            Ok(signatures) => signatures,
            Err(unfit) => {
                self.alert(line.span, form, sentence(unfit));
                return None;
            }
        };
        self.tell_missing(ciphers, read_ciphers.as_ref(), "ciphers");
        self.tell_missing(ciphersuites, read_suites.as_ref(), "cipher suites");
        self.tell_missing(curves, read_groups.as_ref(), "curves");
        Some(Algorithms {
            versions: range,
            ciphers: read_ciphers.map(|named| named.found),
            ciphersuites: read_suites.map(|named| named.found),
            groups: read_groups.map(|named| named.found),
            signatures,
        })
    }

    /// Compiles `sigalgs` and `client-sigalgs`. Without the latter the former applies to both sides, as with OpenSSL.
    fn signatures<'s>(
        &mut self,
        written: &'s TlsSpec,
        default: &'s TlsSpec,
        is_client: bool,
    ) -> Result<Signatures, Unfit<'s>> {
        let mut list = |written: Option<&'s Spanned<String>>, unfit: fn(&'s str) -> Unfit<'s>| {
            let Some(text) = written else { return Ok(None) };
            match signature::read(&text.value) {
                Ok(named) if !named.found.is_empty() => {
                    self.tell_missing(Some(text), Some(&named), "signature algorithms");
                    Ok(Some(named.found))
                }
                _ => Err(unfit(&text.value)),
            }
        };
        let of_servers = list(written.sigalgs.as_ref().or(default.sigalgs.as_ref()), Unfit::Signatures)?;
        let of_clients =
            list(written.client_sigalgs.as_ref().or(default.client_sigalgs.as_ref()), Unfit::ClientSignatures)?;
        let of_clients = of_clients.or_else(|| of_servers.clone());
        Ok(match is_client {
            true => Signatures { own: of_clients, of_peer: of_servers },
            false => Signatures { own: of_servers, of_peer: of_clients },
        })
    }

    /// Reports the unsupported names of a list that also has supported ones.
    fn tell_missing<T>(&mut self, written: Option<&Spanned<String>>, named: Option<&ParsedNames<T>>, what: &str) {
        let (Some(written), Some(named)) = (written, named) else { return };
        if named.unknown.is_empty() {
            return;
        }
        let message = format!("Weir has none of these {what}, and offers the others: {}.", named.unknown.join(", "));
        self.notice(written.span, message);
    }

    fn notice(&mut self, span: Span, message: String) {
        if !self.out.iter().any(|known| known.message == message) {
            self.out.push(Diagnostic::new(Severity::Notice, span, message));
        }
    }

    /// Returns the range of permitted versions that are supported. `None` if there is none.
    fn versions(&mut self, written: &TlsVersionsSpec, span: Span) -> Option<(Version, Version)> {
        let (min, max) = (written.min.unwrap_or(TlsVersion::Tls12), written.max.unwrap_or(TlsVersion::Tls13));
        let is_allowed = |version: TlsVersion| (min..=max).contains(&version) && !written.forbidden[version as usize];
        let old = [TlsVersion::Ssl3, TlsVersion::Tls10, TlsVersion::Tls11];
        let known = [(TlsVersion::Tls12, Version::Tls12), (TlsVersion::Tls13, Version::Tls13)];
        let mut left = known.into_iter().filter(|(version, _)| is_allowed(*version)).map(|(_, version)| version);
        let first = left.next();
        let asks_for_old: Vec<&str> =
            old.into_iter().filter(|version| is_allowed(*version)).map(TlsVersion::name).collect();
        if !asks_for_old.is_empty() {
            let names = asks_for_old.join(", ");
            self.notice(span, format!("Weir speaks TLSv1.2 and TLSv1.3: clients of {names} are refused."));
        }
        let first = first?;
        Some((first, left.next().unwrap_or(first)))
    }
}

/// Whether a list contains no supported name.
fn lacks<T>(named: Option<&ParsedNames<T>>) -> bool {
    named.is_some_and(|named| named.found.is_empty())
}
