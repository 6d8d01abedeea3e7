//! TLS settings, as text.

use super::field;
use std::fmt::Write as _;
use weir_config::spec::{
    BindTlsSpec, CertificateSource, CrtStoreSpec, GlobalTlsSpec, LoadSpec, ServerTlsSpec, TlsSpec, UsedCertificateSpec,
};

fn values(tls: &BindTlsSpec, source: CertificateSource) -> Vec<&str> {
    tls.sources.iter().filter(|(own, _)| *own == source).map(|(_, one)| one.value.as_str()).collect()
}

/// A `bind` line.
pub fn bind(tls: &BindTlsSpec, out: &mut String) {
    let default = BindTlsSpec::default();
    changed!(out, tls, default, BindTlsSpec {
        ssl, strict_sni, no_ca_names, early_data, prefer_client_ciphers, generates, ca_sign_pass,
    } but { common, acme, sources, verify, ca_verify_file, crt_ignore_err, ca_ignore_err, ca_sign_file, ticket_keys });
    field(out, "crt", &values(tls, CertificateSource::Certificate), &Vec::new());
    field(out, "crt_list", &values(tls, CertificateSource::List), &Vec::new());
    field(out, "default_crt", &values(tls, CertificateSource::Default), &Vec::new());
    field(out, "acme", &tls.acme.iter().map(|names| &names.value).collect(), &Vec::new());
    for (name, text) in [
        ("ca_verify_file", &tls.ca_verify_file),
        ("crt_ignore_err", &tls.crt_ignore_err),
        ("ca_ignore_err", &tls.ca_ignore_err),
        ("ca_sign_file", &tls.ca_sign_file),
        ("ticket_keys", &tls.ticket_keys),
    ] {
        field(out, name, &text.as_ref().map(|text| text.value.as_str()), &None);
    }
    field(out, "verify", &tls.verify.as_ref().map(|verify| verify.value), &None);
    common(&tls.common, out);
}

/// Settings common to both sides.
pub fn common(tls: &TlsSpec, out: &mut String) {
    let default = TlsSpec::default();
    changed!(out, tls, default, TlsSpec {
        versions, tickets, folder,
    } but { ciphers, ciphersuites, curves, sigalgs, client_sigalgs, alpn, ca_file, crl_file });
    let texts = [
        ("ciphers", &tls.ciphers),
        ("ciphersuites", &tls.ciphersuites),
        ("curves", &tls.curves),
        ("sigalgs", &tls.sigalgs),
        ("client_sigalgs", &tls.client_sigalgs),
        ("ca_file", &tls.ca_file),
        ("crl_file", &tls.crl_file),
    ];
    for (name, text) in texts {
        field(out, name, &text.as_ref().map(|text| text.value.as_str()), &None);
    }
    field(out, "alpn", &tls.alpn.as_ref().map(|list| &list.value), &None);
}

/// A `server` line.
pub fn server(tls: &ServerTlsSpec, out: &mut String) {
    changed!(out, tls, ServerTlsSpec::default(), ServerTlsSpec {
        ssl, no_ssl, ssl_by_default, verify, verifyhost, sni_auto, no_reuse, early_data, check, check_sni, check_sni_auto, check_alpn,
    } but { common, certificate, sni });
    field(out, "crt", &tls.certificate.as_ref().map(|one| one.value.as_str()), &None);
    field(out, "sni", &tls.sni.as_ref().map(|one| one.value.as_str()), &None);
    common(&tls.common, out);
}

/// A `crt-store` section.
pub fn store(store: &CrtStoreSpec, out: &mut String) {
    let CrtStoreSpec { span, name, loads } = store;
    let _ = writeln!(out, "crt-store {name} @{}", span.line);
    for load in loads {
        let _ = write!(out, "  load@{}", load.span.line);
        changed!(out, load, LoadSpec::default(), LoadSpec {
            ocsp_update, jwt, domains, ips, generate_dummy, crt_base, key_base, folder,
        } but { span, crt, key, ocsp, issuer, sctl, alias, acme, keytype, bits, curves });
        let texts = [
            ("crt", &load.crt),
            ("key", &load.key),
            ("ocsp", &load.ocsp),
            ("issuer", &load.issuer),
            ("sctl", &load.sctl),
            ("alias", &load.alias),
            ("acme", &load.acme),
            ("keytype", &load.keytype),
            ("curves", &load.curves),
        ];
        for (name, text) in texts {
            field(out, name, &text.as_ref().map(|text| text.value.as_str()), &None);
        }
        field(out, "bits", &load.bits.as_ref().map(|bits| bits.value), &None);
        out.push('\n');
    }
}

/// Lines of `ssl-f-use`.
pub fn used(lines: &[UsedCertificateSpec], out: &mut String) {
    for UsedCertificateSpec { span, words, folder } in lines {
        let words: Vec<_> = words.iter().map(|word| word.text.as_str()).collect();
        let _ = write!(out, "  ssl-f-use@{} {}", span.line, words.join(" "));
        field(out, "folder", folder, &None);
        out.push('\n');
    }
}

/// Defaults of the `global` section.
pub fn global(tls: &GlobalTlsSpec, out: &mut String) {
    changed!(out, tls, GlobalTlsSpec::default(), GlobalTlsSpec {
        crt_base, ca_base, key_base, acme, ocsp, trusts_servers, keylog, lifetime, cache_size, capture_size, extra_files, skips_self_issued,
        passphrase_command, generated_cache, key_updates, record_limit, without_compression, max_connections,
    } but { binds, servers, history, issuers_chain });
    field(out, "issuers_chain", &tls.issuers_chain.as_ref().map(|path| path.value.as_str()), &None);
}
