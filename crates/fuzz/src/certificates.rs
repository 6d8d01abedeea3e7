//! Certificate files: PEM texts, encrypted keys, OCSP responses, lists of timestamps, and the lines of crt-lists.

use config::span::Span;
use config::spec::BindTlsSpec;
use tls::certificate::{Certificate, Key};
use tls::ocsp::Answer;
use tls::passphrase::EncryptedKey;
use tls::{pem, timestamps, x509};

/// Parses any bytes as each of them.
pub fn run(bytes: &[u8]) {
    let _ = Key::find(bytes);
    let _ = EncryptedKey::find(bytes).map(|key| key.map(|key| format!("{key:?}")));
    let _ = pem::revocation_lists(bytes);
    if let Ok(all) = pem::certificates(bytes) {
        for one in &all {
            let _ = (x509::details(one), x509::is_issuer(one, one), tls::ocsp::responder(one));
        }
        let _ = Certificate::read("a.pem", bytes, None);
    }
    if let Ok(answer) = Answer::parse(bytes) {
        // The certificate ID is re-encoded to equivalent bytes.
        assert_eq!(answer.der, bytes);
        assert!(answer.id.to_der().len() < 128);
    }
    let is_list = timestamps::is_list(bytes);
    assert!(!is_list || bytes.len() > 4);
    let text = String::from_utf8_lossy(bytes);
    if let Ok(lines) = config::crt_list::read(&text, "list", &BindTlsSpec::default(), Span::default()) {
        assert!(lines.len() <= text.lines().count());
        assert!(lines.iter().all(|line| !line.file.is_empty() && line.names.iter().all(|name| !name.starts_with('!'))));
    }
}
