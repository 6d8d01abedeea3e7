//! Options of "load" in a crt-store section (section 12.7.1).

use super::{SectionContext, SectionKeyword, supported};
use crate::document::Line;

/// Every keyword of the kind.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported("acme", "<section>", "ACME section that renews the certificate.", elsewhere),
    supported("alias", "<name>", "Name to refer to the certificate by.", elsewhere),
    supported("bits", "<number>", "Size of a generated key.", elsewhere),
    supported("crt", "<file>", "The certificate.", elsewhere),
    supported("curves", "<curve>", "Curve of a generated key.", elsewhere),
    supported("domains", "<name>[,<name>...]", "Names that the certificate is for.", elsewhere),
    supported(
        "generate-dummy",
        "{ on | off }",
        "Generates a self-signed certificate if the file is missing.",
        elsewhere,
    ),
    supported("ips", "<address>[,<address>...]", "Addresses that the certificate is for.", elsewhere),
    supported("issuer", "<file>", "Certificate of the issuer.", elsewhere),
    supported("jwt", "{ on | off }", "Whether JWTs may be verified with the certificate.", elsewhere),
    supported("key", "<file>", "The private key.", elsewhere),
    supported("keytype", "{ RSA | ECDSA }", "Type of a generated key.", elsewhere),
    supported("ocsp", "<file>", "File with the OCSP response.", elsewhere),
    supported("ocsp-update", "{ on | off }", "Updates the OCSP response automatically.", elsewhere),
    supported("sctl", "<file>", "Signed certificate timestamps, which are validated and not sent.", elsewhere),
];

/// [`crate::keyword::load_options`] parses them.
fn elsewhere(_: &mut SectionContext<'_>, _: &Line) {}
