//! Any bytes as an OCSP response: no panic, a parsed response is for one certificate, and no invalid issuer has signed
//! it.

use tls::ocsp::{Answer, CertId, describe, is_signed_by_issuer};

/// Runs on one input; panics if a property is violated.
pub fn run(input: &[u8]) {
    let _ = describe(input);
    // With an invalid issuer, and with the response as its own issuer.
    assert!(!is_signed_by_issuer(input, b"", 0));
    let _ = is_signed_by_issuer(input, input, 0);
    let Ok(answer) = Answer::parse(input) else { return };
    assert_eq!(answer.der, input);
    let other = CertId { serial: [&*answer.id.serial, &[1]].concat().into(), ..answer.id.clone() };
    assert!(Answer::read(input, &other, answer.this_update).is_err());
    if answer.this_update <= answer.next_update {
        assert!(Answer::read(input, &answer.id, answer.this_update).is_ok());
    }
}
