//! Options of "load" in a crt-store section (section 12.7.1).

use super::{SectionContext, SectionKeyword, supported};
use crate::document::Line;

/// Every keyword of the kind.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported("acme", "<section>", "ACME section that renews it.", elsewhere),
    supported("alias", "<name>", "Name to refer to it by.", elsewhere),
    supported("bits", "<number>", "Size of a generated key.", elsewhere),
    supported("crt", "<file>", "The certificate.", elsewhere),
    supported("curves", "<curve>", "Curve of a generated key.", elsewhere),
    supported("domains", "<name>[,<name>...]", "Names that the certificate is for.", elsewhere),
    supported("generate-dummy", "{ on | off }", "Starts with a certificate made on the spot.", elsewhere),
    supported("ips", "<address>[,<address>...]", "Addresses that the certificate is for.", elsewhere),
    supported("issuer", "<file>", "Certificate of the issuer.", elsewhere),
    supported("jwt", "{ on | off }", "Whether tokens may be verified with it.", elsewhere),
    supported("key", "<file>", "The private key.", elsewhere),
    supported("keytype", "{ RSA | ECDSA }", "Kind of a generated key.", elsewhere),
    supported("ocsp", "<file>", "OCSP answer.", elsewhere),
    supported("ocsp-update", "{ on | off }", "Keeps the OCSP answer fresh.", elsewhere),
    supported("sctl", "<file>", "Signed certificate timestamps, which are checked and not sent.", elsewhere),
];

/// [`crate::keyword::load_options`] parses them.
fn elsewhere(_: &mut SectionContext<'_>, _: &Line) {}
