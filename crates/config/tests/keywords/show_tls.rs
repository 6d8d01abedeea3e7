//! What lines say about TLS, as text.

use super::field;
use weir_config::span::Spanned;
use weir_config::spec::{BindTlsSpec, ServerTlsSpec, TlsSpec};

fn values(list: &[Spanned<String>]) -> Vec<&str> {
    list.iter().map(|one| one.value.as_str()).collect()
}

/// What a `bind` line says.
pub fn bind(tls: &BindTlsSpec, out: &mut String) {
    let default = BindTlsSpec::default();
    changed!(out, tls, default, BindTlsSpec {
        ssl, strict_sni, no_ca_names, prefer_client_ciphers,
    } but { common, certificates, lists, defaults, verify, ca_verify_file, crt_ignore_err, ca_ignore_err });
    field(out, "crt", &values(&tls.certificates), &Vec::new());
    field(out, "crt_list", &values(&tls.lists), &Vec::new());
    field(out, "default_crt", &values(&tls.defaults), &Vec::new());
    for (name, text) in [
        ("ca_verify_file", &tls.ca_verify_file),
        ("crt_ignore_err", &tls.crt_ignore_err),
        ("ca_ignore_err", &tls.ca_ignore_err),
    ] {
        field(out, name, &text.as_ref().map(|text| text.value.as_str()), &None);
    }
    field(out, "verify", &tls.verify.as_ref().map(|verify| verify.value), &None);
    common(&tls.common, out);
}

/// What lines on both sides say about TLS.
pub fn common(tls: &TlsSpec, out: &mut String) {
    let default = TlsSpec::default();
    changed!(out, tls, default, TlsSpec {
        versions, tickets, folder,
    } but { ciphers, ciphersuites, curves, alpn, ca_file, crl_file });
    let texts = [
        ("ciphers", &tls.ciphers),
        ("ciphersuites", &tls.ciphersuites),
        ("curves", &tls.curves),
        ("ca_file", &tls.ca_file),
        ("crl_file", &tls.crl_file),
    ];
    for (name, text) in texts {
        field(out, name, &text.as_ref().map(|text| text.value.as_str()), &None);
    }
    field(out, "alpn", &tls.alpn.as_ref().map(|list| &list.value), &None);
}

/// What a `server` line says.
pub fn server(tls: &ServerTlsSpec, out: &mut String) {
    changed!(out, tls, ServerTlsSpec::default(), ServerTlsSpec {
        ssl, verify, verifyhost, sni_auto, no_reuse, check, check_sni, check_sni_auto, check_alpn,
    } but { common, certificate, sni });
    field(out, "crt", &tls.certificate.as_ref().map(|one| one.value.as_str()), &None);
    field(out, "sni", &tls.sni.as_ref().map(|one| one.value.as_str()), &None);
    common(&tls.common, out);
}
