//! How certificates are obtained from an ACME server (section 12.8).

use super::{SectionKeyword, not_yet};

/// Every keyword of the section.
pub(super) const TABLE: &[SectionKeyword] = &[
    not_yet("account-key", "<file>", "Key of the account."),
    not_yet("acme-vars", "<text>", "Variables handed to challenge programs."),
    not_yet("bits", "<number>", "Size of RSA keys."),
    not_yet("challenge", "{ http-01 | dns-01 | dns-persist-01 | tls-alpn-01 }", "Kind of proof."),
    not_yet("challenge-ready", "<condition>[,<condition>...]", "When a challenge may be checked."),
    not_yet("contact", "<mail>", "Address of the account."),
    not_yet("curves", "<curve>", "Curve of elliptic keys."),
    not_yet("directory", "<url>", "The server's directory."),
    not_yet("dns-delay", "<time>", "Pause between two looks at a DNS record."),
    not_yet("dns-timeout", "<time>", "Longest wait for a DNS record."),
    not_yet("eab-key-id", "<text>", "Key id of external account binding."),
    not_yet("eab-mac-alg", "<algorithm>", "Algorithm of external account binding."),
    not_yet("eab-mac-key", "<file>", "Key of external account binding."),
    not_yet("keytype", "{ RSA | ECDSA }", "Kind of keys."),
    not_yet("map", "<map>", "Map that answers challenges."),
    not_yet("profile", "<name>", "Profile asked for."),
    not_yet("provider-name", "<text>", "DNS provider told to challenge programs."),
    not_yet("reuse-key", "{ on | off }", "Keep the key when a certificate is renewed."),
];
