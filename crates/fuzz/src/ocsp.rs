//! Any bytes as an OCSP answer: no panic, what is read is about one certificate, and nobody has signed it.

use tls::ocsp::{Answer, CertId, describe, is_signed_by_issuer};

/// Runs on one input; panics where a promise is broken.
pub fn run(input: &[u8]) {
    let _ = describe(input);
    // Neither an issuer that is none, nor the answer as its own.
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
