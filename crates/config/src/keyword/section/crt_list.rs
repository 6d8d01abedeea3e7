//! Options of a line of a crt-list file (section 5.1, \"crt-list\").

use super::{SectionKeyword, not_yet};

/// Every keyword of the kind.
pub(super) const TABLE: &[SectionKeyword] = &[
    not_yet("allow-0rtt", "", "Accepts early data."),
    not_yet("alpn", "<protocols>", "Protocols offered by ALPN."),
    not_yet("ca-file", "<file>", "CA certificates that verify clients."),
    not_yet("ca-verify-file", "<file>", "CA certificates that verify clients and are not announced."),
    not_yet("ciphers", "<ciphers>", "Ciphers up to TLS 1.2."),
    not_yet("ciphersuites", "<ciphersuites>", "Cipher suites from TLS 1.3 on."),
    not_yet("client-sigalgs", "<algorithms>", "Signature algorithms accepted from clients' certificates."),
    not_yet("crl-file", "<file>", "Revocation list for clients' certificates."),
    not_yet("curves", "<curves>", "Key exchange groups."),
    not_yet("ecdhe", "<curve>", "Key exchange group, by an older keyword."),
    not_yet("ktls", "{ on | off }", "Lets the kernel encrypt."),
    not_yet("no-alpn", "", "Offers no ALPN."),
    not_yet("no-ca-names", "", "Does not announce CA names to clients."),
    not_yet("npn", "<protocols>", "Protocols offered by NPN, the forerunner of ALPN."),
    not_yet("sigalgs", "<algorithms>", "Signature algorithms."),
    not_yet("ssl-max-ver", "<version>", "Highest TLS version."),
    not_yet("ssl-min-ver", "<version>", "Lowest TLS version."),
    not_yet("verify", "{ none | optional | required }", "Whether clients need a certificate."),
];
