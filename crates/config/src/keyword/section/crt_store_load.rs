//! Options of \"load\" in a crt-store section (section 12.7.1).

use super::{SectionKeyword, not_yet};

/// Every keyword of the kind.
pub(super) const TABLE: &[SectionKeyword] = &[
    not_yet("acme", "<section>", "ACME section that renews it."),
    not_yet("alias", "<name>", "Name to refer to it by."),
    not_yet("bits", "<number>", "Size of a generated key."),
    not_yet("crt", "<file>", "The certificate."),
    not_yet("curves", "<curve>", "Curve of a generated key."),
    not_yet("domains", "<name>[,<name>...]", "Names that the certificate is for."),
    not_yet("generate-dummy", "{ on | off }", "Starts with a certificate made on the spot."),
    not_yet("ips", "<address>[,<address>...]", "Addresses that the certificate is for."),
    not_yet("issuer", "<file>", "Certificate of the issuer."),
    not_yet("jwt", "{ on | off }", "Whether tokens may be verified with it."),
    not_yet("key", "<file>", "The private key."),
    not_yet("keytype", "{ RSA | ECDSA }", "Kind of a generated key."),
    not_yet("ocsp", "<file>", "OCSP answer."),
    not_yet("ocsp-update", "{ on | off }", "Keeps the OCSP answer fresh."),
    not_yet("sctl", "<file>", "Signed certificate timestamps."),
];
