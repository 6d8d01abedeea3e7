//! Settings and samples of TLS where there is no TLS. Must never report what also works without it.

use super::contradictions::tests_of;
use crate::finding::Findings;
use crate::model::{Model, Proxy, Statement, Term, Test};
use crate::rule::Rule;
use config::document::Line;
use config::span::Span;
use config::spec::{BindSpec, BindTlsSpec, CertificateSource, VerifyClients};

/// The rules of this family.
pub(super) const TABLE: &[Rule] = &[
    Rule {
        name: "tls-setting-without-ssl",
        doc: "a 'bind' or 'server' line has settings of TLS and no 'ssl': its connections are not encrypted",
        check: setting_without_ssl,
    },
    Rule {
        name: "trust-without-verify",
        doc: "a line names trusted certificates and verifies none: any certificate, or none, is accepted",
        check: trust_without_verify,
    },
    Rule {
        name: "tls-sample-without-tls",
        doc: "a condition requires a property of the client's TLS connection, and no address has 'ssl'",
        check: sample_without_tls,
    },
    Rule {
        name: "hello-sample-with-tls",
        doc: "a condition looks for a TLS handshake in data that was decrypted",
        check: hello_with_tls,
    },
    Rule {
        name: "client-certificate-not-requested",
        doc: "a sample of the client's certificate, and no address requests one ('verify optional' or 'required')",
        check: not_requested,
    },
];

/// Words of `bind` and `server` lines that only TLS uses.
const SETTINGS: [&str; 21] = [
    "alpn",
    "ca-file",
    "ca-verify-file",
    "ciphers",
    "ciphersuites",
    "client-sigalgs",
    "crl-file",
    "crt",
    "crt-list",
    "default-crt",
    "curves",
    "ecdhe",
    "npn",
    "sigalgs",
    "sni",
    "ssl-max-ver",
    "ssl-min-ver",
    "strict-sni",
    "tls-ticket-keys",
    "verify",
    "verifyhost",
];

/// Returns the first of some words on a line, after its address.
fn word<'l>(line: &'l Line, from: usize, names: &[&str]) -> Option<(&'l str, Span)> {
    let found = line.words.iter().skip(from).find(|word| names.contains(&word.text.as_str()))?;
    Some((found.text.as_str(), found.span))
}

/// Returns the own line at a place.
fn line_at<'a>(proxy: &Proxy<'a>, span: Span) -> Option<&'a Line> {
    proxy.lines.iter().find(|line| (line.file, line.number) == (span.file, span.line))
}

/// Returns the `bind` lines of a proxy, each once.
fn binds<'m, 'a>(proxy: &'m Proxy<'a>) -> impl Iterator<Item = (&'a BindSpec, &'a BindTlsSpec, &'a Line)> + 'm {
    let mut last = None;
    proxy.spec.binds.iter().filter_map(move |bind| {
        let is_new = last.replace(bind.span) != Some(bind.span);
        let line = line_at(proxy, bind.span).filter(|_| is_new)?;
        Some((bind, bind.tls.as_deref()?, line))
    })
}

fn setting_without_ssl(model: &Model<'_>, findings: &mut Findings) {
    for proxy in &model.proxies {
        for (_, _, line) in binds(proxy).filter(|(_, tls, _)| !tls.ssl) {
            if let Some((name, span)) = word(line, 2, &SETTINGS) {
                findings.add(span, format!("'{name}' has no effect without 'ssl': clients are not asked for TLS"));
            }
        }
        let mut last = None;
        for server in &proxy.spec.servers {
            let Some(tls) = server.tls.as_deref() else { continue };
            let is_new = last.replace(server.span) != Some(server.span);
            let Some(line) = line_at(proxy, server.span).filter(|_| is_new) else { continue };
            let is_chosen = line.words.iter().any(|word| word.text == "no-ssl");
            if tls.ssl || tls.check == Some(true) || tls.ssl_by_default || is_chosen {
                continue;
            }
            if let Some((name, span)) = word(line, 3, &SETTINGS) {
                let message = format!(
                    "'{name}' has no effect without 'ssl': connections to server '{}' are not encrypted",
                    server.name.value
                );
                findings.add(span, message);
            }
        }
    }
}

fn trust_without_verify(model: &Model<'_>, findings: &mut Findings) {
    let has_default = model.spec.global.tls.binds.verify.is_some();
    for proxy in &model.proxies {
        for (bind, tls, line) in binds(proxy).filter(|(_, tls, _)| tls.ssl) {
            if requests(bind) || has_default || has_list(tls) {
                continue;
            }
            if let Some((name, span)) = word(line, 2, &["ca-file", "crl-file"]) {
                let message = format!(
                    "'{name}' has no effect without 'verify required' or 'verify optional': no client is asked for a certificate"
                );
                findings.add(span, message);
            }
        }
        for server in &proxy.spec.servers {
            let accepts_any = server.tls.as_deref().is_some_and(|tls| tls.ssl && tls.verify == Some(false));
            let Some(line) = line_at(proxy, server.span).filter(|_| accepts_any) else { continue };
            if let Some((name, span)) = word(line, 3, &["ca-file", "crl-file", "verifyhost"]) {
                let message = format!(
                    "'{name}' has no effect with 'verify none': any certificate of server '{}' is accepted",
                    server.name.value
                );
                findings.add(span, message);
            }
        }
    }
}

/// Whether an address asks clients for a certificate.
fn requests(bind: &BindSpec) -> bool {
    let verify = bind.tls.as_ref().and_then(|tls| tls.verify.as_ref());
    verify.is_some_and(|verify| verify.value != VerifyClients::None)
}

/// Whether lines of a list may have settings of their own.
fn has_list(tls: &BindTlsSpec) -> bool {
    tls.sources.iter().any(|(source, _)| matches!(source, CertificateSource::List))
}

/// Returns the addresses at which streams of a proxy begin; empty if some are unknown.
fn entrances<'a>(model: &Model<'a>, proxy: &Proxy<'a>) -> Vec<&'a BindSpec> {
    let own = model.proxies.get(proxy.index).filter(|proxy| proxy.has_clients());
    let mut all: Vec<&Proxy<'a>> = model.frontends_of(proxy).chain(own).collect();
    all.sort_by_key(|one| one.index);
    all.dedup_by_key(|one| one.index);
    all.iter().flat_map(|one| &one.spec.binds).collect()
}

/// Calls `take` with each term that a condition requires, and the fetch of all of its tests.
fn each_required(proxy: &Proxy<'_>, mut take: impl FnMut(&Statement<'_>, &Term, &[Test])) {
    for statement in proxy.statements.iter().filter(|statement| !statement.line.inherited) {
        let Some(condition) = statement.condition.as_ref().filter(|condition| !condition.unless) else { continue };
        for term in condition.terms().filter(|term| !term.negated) {
            let tests = tests_of(proxy, statement, term);
            take(statement, term, &tests);
        }
    }
}

fn is_of_tls(name: &str) -> bool {
    ["ssl_fc", "ssl_c_", "ssl_f_"].iter().any(|start| name.starts_with(start))
}

fn is_of_hello(name: &str) -> bool {
    name.starts_with("req.ssl_") || name.starts_with("req_ssl_")
}

fn sample_without_tls(model: &Model<'_>, findings: &mut Findings) {
    for proxy in &model.proxies {
        let entrances = entrances(model, proxy);
        if entrances.is_empty() || entrances.iter().any(|bind| bind.tls.as_ref().is_some_and(|tls| tls.ssl)) {
            continue;
        }
        each_required(proxy, |_, term, tests| {
            let Some(test) = tests.first().filter(|_| tests.iter().all(|test| is_of_tls(&test.fetch))) else { return };
            let message = format!("'{}' never matches: no address of these clients has 'ssl'", test.fetch);
            let hint = "in TCP mode, the name that a client sends in its handshake is 'req.ssl_sni'";
            match test.fetch.as_str() {
                "ssl_fc_sni" => findings.add_with_hint(term.span, message, hint),
                _ => findings.add(term.span, message),
            }
        });
    }
}

fn hello_with_tls(model: &Model<'_>, findings: &mut Findings) {
    for proxy in &model.proxies {
        let entrances = entrances(model, proxy);
        let is_decrypted = |bind: &&BindSpec| bind.tls.as_ref().is_some_and(|tls| tls.ssl);
        if entrances.is_empty() || !entrances.iter().all(is_decrypted) {
            continue;
        }
        each_required(proxy, |_, term, tests| {
            let Some(test) = tests.first().filter(|_| tests.iter().all(|test| is_of_hello(&test.fetch))) else {
                return;
            };
            let message =
                format!("'{}' never matches: the data was decrypted, since every address has 'ssl'", test.fetch);
            findings.add_with_hint(term.span, message, "use 'ssl_fc_sni' and other samples of the connection");
        });
    }
}

/// Samples of the client's certificate that are absent without one.
fn is_of_certificate(name: &str) -> bool {
    name.starts_with("ssl_c_")
        && !matches!(name, "ssl_c_used" | "ssl_c_verify" | "ssl_c_err" | "ssl_c_ca_err" | "ssl_c_ca_err_depth")
}

fn not_requested(model: &Model<'_>, findings: &mut Findings) {
    for proxy in &model.proxies {
        let entrances = entrances(model, proxy);
        let secure: Vec<_> =
            entrances.iter().filter_map(|bind| Some((bind, bind.tls.as_deref().filter(|tls| tls.ssl)?))).collect();
        if secure.is_empty() || secure.iter().any(|(bind, tls)| requests(bind) || has_list(tls)) {
            continue;
        }
        if model.spec.global.tls.binds.verify.is_some() {
            continue;
        }
        // One finding for a section: such samples come in groups.
        let sample =
            proxy.samples.iter().find(|sample| sample.fetch().is_some_and(|call| is_of_certificate(&call.name)));
        let Some((sample, call)) = sample.and_then(|sample| Some((sample, sample.fetch()?))) else { continue };
        let message = format!("'{}' is always empty: no address requests a certificate of the client", call.name);
        findings.add_with_hint(sample.span, message, "add 'verify optional' or 'verify required' to 'bind'");
    }
}
