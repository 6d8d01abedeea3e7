//! Options of a line of a crt-list file (section 5.1, "crt-list").

use super::{SectionContext, SectionKeyword, supported};
use crate::document::Line;

/// Every keyword of the kind.
pub(super) const TABLE: &[SectionKeyword] = &[
    supported("allow-0rtt", "", "Accepts early data.", elsewhere),
    supported("alpn", "<protocols>", "Protocols offered by ALPN.", elsewhere),
    supported("ca-file", "<file>", "CA certificates that verify clients.", elsewhere),
    supported("ca-verify-file", "<file>", "CA certificates that verify clients and are not announced.", elsewhere),
    supported("ciphers", "<ciphers>", "Ciphers up to TLS 1.2.", elsewhere),
    supported("ciphersuites", "<ciphersuites>", "Cipher suites from TLS 1.3 on.", elsewhere),
    supported("client-sigalgs", "<algorithms>", "Signature algorithms accepted from clients' certificates.", elsewhere),
    supported("crl-file", "<file>", "Revocation list for clients' certificates.", elsewhere),
    supported("curves", "<curves>", "Key exchange groups.", elsewhere),
    supported("ecdhe", "<curve>", "Key exchange group; former keyword of curves.", elsewhere),
    supported("ktls", "{ on | off }", "Kernel TLS; Weir encrypts itself.", elsewhere),
    supported("no-alpn", "", "Offers no ALPN.", elsewhere),
    supported("no-ca-names", "", "Does not announce CA names to clients.", elsewhere),
    supported("npn", "<protocols>", "Protocols offered by NPN, the forerunner of ALPN.", elsewhere),
    supported("sigalgs", "<algorithms>", "Signature algorithms.", elsewhere),
    supported("ssl-max-ver", "<version>", "Highest TLS version.", elsewhere),
    supported("ssl-min-ver", "<version>", "Lowest TLS version.", elsewhere),
    supported("verify", "{ none | optional | required }", "Whether clients must present a certificate.", elsewhere),
];

/// [`crate::crt_list`] parses these lines, which are in files of their own.
fn elsewhere(_: &mut SectionContext<'_>, _: &Line) {}
