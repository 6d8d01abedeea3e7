//! Options of \"load\" in a crt-store section (section 12.7.1).

use super::{SectionContext, SectionKeyword, not_yet, supported};
use crate::document::Line;

/// Every keyword of the kind.
pub(super) const TABLE: &[SectionKeyword] = &[
    not_yet("acme", "<section>", "ACME section that renews it."),
    supported("alias", "<name>", "Name to refer to it by.", elsewhere),
    not_yet("bits", "<number>", "Size of a generated key."),
    supported("crt", "<file>", "The certificate.", elsewhere),
    not_yet("curves", "<curve>", "Curve of a generated key."),
    not_yet("domains", "<name>[,<name>...]", "Names that the certificate is for."),
    not_yet("generate-dummy", "{ on | off }", "Starts with a certificate made on the spot."),
    not_yet("ips", "<address>[,<address>...]", "Addresses that the certificate is for."),
    supported("issuer", "<file>", "Certificate of the issuer.", elsewhere),
    not_yet("jwt", "{ on | off }", "Whether tokens may be verified with it."),
    supported("key", "<file>", "The private key.", elsewhere),
    not_yet("keytype", "{ RSA | ECDSA }", "Kind of a generated key."),
    supported("ocsp", "<file>", "OCSP answer.", elsewhere),
    not_yet("ocsp-update", "{ on | off }", "Keeps the OCSP answer fresh."),
    supported("sctl", "<file>", "Signed certificate timestamps, which are checked and not sent.", elsewhere),
];

/// [`crate::keyword::load_options`] reads them.
fn elsewhere(_: &mut SectionContext<'_>, _: &Line) {}
