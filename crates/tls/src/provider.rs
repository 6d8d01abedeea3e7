//! Algorithms by OpenSSL's names, as configurations use them: cipher suites, groups, versions. Algorithms that rustls
//! deliberately lacks (TLS 1.0 and 1.1, RSA key exchange, CBC, finite-field groups) have no row here. Must never select
//! an algorithm that was not named.

use std::sync::Arc;

use rustls::crypto::aws_lc_rs::{cipher_suite, default_provider, kx_group};
use rustls::crypto::{CryptoProvider, SupportedKxGroup};
use rustls::{CipherSuite, NamedGroup, SignatureScheme, SupportedCipherSuite, SupportedProtocolVersion};

use crate::certificate::Kind;

/// A cipher suite of TLS 1.2, with the words of cipher strings that include it.
struct Row {
    name: &'static str,
    suite: SupportedCipherSuite,
    words: &'static [&'static str],
    bits: u16,
}

const COMMON: &[&str] = &["ALL", "DEFAULT", "HIGH", "ECDHE", "EECDH", "kECDHE", "kEECDH", "ECDH", "TLSv1.2"];

macro_rules! rows {
    ($($name:literal $suite:ident $bits:literal [$($word:literal)*])*) => {
        &[$(Row { name: $name, suite: cipher_suite::$suite, words: &[$($word),*], bits: $bits }),*]
    };
}

/// The suites of TLS 1.2, in the order of rustls.
const SUITES_12: &[Row] = rows![
    "ECDHE-ECDSA-AES256-GCM-SHA384" TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384 256
        ["aECDSA" "ECDSA" "AESGCM" "AES" "AES256" "FIPS" "SUITEB192" "SUITEB128"]
    "ECDHE-ECDSA-AES128-GCM-SHA256" TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 128
        ["aECDSA" "ECDSA" "AESGCM" "AES" "AES128" "FIPS" "SUITEB128" "SUITEB128ONLY"]
    "ECDHE-ECDSA-CHACHA20-POLY1305" TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256 256
        ["aECDSA" "ECDSA" "CHACHA20"]
    "ECDHE-RSA-AES256-GCM-SHA384" TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384 256
        ["aRSA" "RSA" "AESGCM" "AES" "AES256" "FIPS"]
    "ECDHE-RSA-AES128-GCM-SHA256" TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256 128
        ["aRSA" "RSA" "AESGCM" "AES" "AES128" "FIPS"]
    "ECDHE-RSA-CHACHA20-POLY1305" TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256 256
        ["aRSA" "RSA" "CHACHA20"]
];

/// The suites of TLS 1.3, in OpenSSL's order.
const SUITES_13: &[(&str, SupportedCipherSuite)] = &[
    ("TLS_AES_256_GCM_SHA384", cipher_suite::TLS13_AES_256_GCM_SHA384),
    ("TLS_CHACHA20_POLY1305_SHA256", cipher_suite::TLS13_CHACHA20_POLY1305_SHA256),
    ("TLS_AES_128_GCM_SHA256", cipher_suite::TLS13_AES_128_GCM_SHA256),
];

/// The default order of the suites of each key type: by their cost with AWS-LC. A handshake hashes as much as it signs,
/// and most processors have instructions for SHA-256 but none for SHA-384.
const BY_COST: [&str; 3] = ["AES128-GCM-SHA256", "AES256-GCM-SHA384", "CHACHA20-POLY1305"];

/// Returns a table's suites in the order of [`BY_COST`].
fn by_cost<'a>(rows: impl Iterator<Item = (&'a str, SupportedCipherSuite)>) -> Vec<SupportedCipherSuite> {
    let cost = |name: &str| {
        let name = name.replace("AES_", "AES").replace('_', "-");
        BY_COST.iter().position(|ending| name.contains(ending))
    };
    let mut sorted: Vec<_> = rows.collect();
    sorted.sort_by_key(|(name, _)| cost(name));
    sorted.into_iter().map(|(_, suite)| suite).collect()
}

/// The groups, with all their names.
const GROUPS: &[(&[&str], &dyn SupportedKxGroup)] = &[
    (&["X25519MLKEM768"], kx_group::X25519MLKEM768),
    (&["X25519", "x25519"], kx_group::X25519),
    (&["P-256", "prime256v1", "secp256r1"], kx_group::SECP256R1),
    (&["P-384", "secp384r1"], kx_group::SECP384R1),
    (&["SecP256r1MLKEM768"], kx_group::SECP256R1MLKEM768),
];

/// Returns OpenSSL's name of a suite.
pub fn suite_name(suite: CipherSuite) -> &'static str {
    let of_12 = SUITES_12.iter().map(|row| (row.name, row.suite));
    let mut all = of_12.chain(SUITES_13.iter().copied());
    all.find(|(_, known)| known.suite() == suite).map_or("", |(name, _)| name)
}

/// Returns the key size of a suite in bits.
pub fn suite_bits(suite: CipherSuite) -> u16 {
    match SUITES_12.iter().find(|row| row.suite.suite() == suite) {
        Some(row) => row.bits,
        None if suite == CipherSuite::TLS13_AES_128_GCM_SHA256 => 128,
        None => 256,
    }
}

/// Returns OpenSSL's name of a group.
pub fn group_name(group: NamedGroup) -> &'static str {
    GROUPS.iter().find(|(_, known)| known.name() == group).map_or("", |(names, _)| match names {
        ["P-256", ..] => "prime256v1",
        ["P-384", ..] => "secp384r1",
        names => names[0],
    })
}

/// The result of parsing a list of names: the known algorithms, and the unknown names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParsedNames<T> {
    /// In the order of the list.
    pub found: Vec<T>,
    /// Names that are unknown or not supported.
    pub unknown: Vec<String>,
}

impl<T> Default for ParsedNames<T> {
    fn default() -> Self {
        Self { found: Vec::new(), unknown: Vec::new() }
    }
}

/// Parses a cipher string (OpenSSL's ciphers(1)): names and classes of the suites of TLS 1.2, with `!`, `-`, `+` and
/// `@STRENGTH`.
pub fn ciphers(text: &str) -> ParsedNames<CipherSuite> {
    let mut named = ParsedNames::default();
    let mut killed: Vec<CipherSuite> = Vec::new();
    for element in text.split([':', ',', ' ']).filter(|element| !element.is_empty()) {
        if element == "@STRENGTH" {
            named.found.sort_by_key(|suite| std::cmp::Reverse(suite_bits(*suite)));
            continue;
        }
        if element.starts_with('@') {
            continue;
        }
        let (sign, class) = match element.as_bytes()[0] {
            sign @ (b'!' | b'-' | b'+') => (Some(sign), &element[1..]),
            _ => (None, element),
        };
        let matching: Vec<CipherSuite> =
            SUITES_12.iter().filter(|row| belongs(row, class)).map(|row| row.suite.suite()).collect();
        match sign {
            None => {
                if matching.is_empty() {
                    named.unknown.push(element.to_owned());
                }
                for suite in matching {
                    if !named.found.contains(&suite) && !killed.contains(&suite) {
                        named.found.push(suite);
                    }
                }
            }
            Some(b'+') => {
                let (moved, kept) = named.found.iter().partition(|suite| matching.contains(suite));
                let moved: Vec<CipherSuite> = moved;
                named.found = kept;
                named.found.extend(moved);
            }
            Some(sign) => {
                named.found.retain(|suite| !matching.contains(suite));
                if sign == b'!' {
                    killed.extend(matching);
                }
            }
        }
    }
    named
}

/// Whether a suite is in the classes of all parts separated by `+`.
fn belongs(row: &Row, class: &str) -> bool {
    let is = |word: &str| row.name == word || row.words.contains(&word) || COMMON.contains(&word);
    !class.is_empty() && class.split('+').all(is)
}

/// Parses a list of the suites of TLS 1.3.
pub fn ciphersuites(text: &str) -> ParsedNames<CipherSuite> {
    names(text, |name| SUITES_13.iter().find(|(known, _)| *known == name).map(|(_, suite)| suite.suite()))
}

/// Parses a list of groups. The prefix `?` marks an optional name, and `*` one whose key share is sent first; both are
/// ignored.
pub fn groups(text: &str) -> ParsedNames<NamedGroup> {
    names(text, |name| {
        let name = name.trim_start_matches(['?', '*']);
        let known = GROUPS.iter().find(|(names, _)| names.iter().any(|known| known.eq_ignore_ascii_case(name)));
        known.map(|(_, group)| group.name())
    })
}

fn names<T: PartialEq>(text: &str, find: impl Fn(&str) -> Option<T>) -> ParsedNames<T> {
    let mut named = ParsedNames::default();
    for name in text.split([':', ',', '/']).filter(|name| !name.is_empty()) {
        match find(name) {
            Some(found) if !named.found.contains(&found) => named.found.push(found),
            Some(_) => {}
            None => named.unknown.push(name.to_owned()),
        }
    }
    named
}

/// The supported versions of TLS.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// 1.2
    Tls12,
    /// 1.3
    Tls13,
}

/// The permitted signature algorithms; `None`: rustls's default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Signatures {
    /// Those of this side, in order of preference.
    pub own: Option<Vec<SignatureScheme>>,
    /// Those of the peer.
    pub of_peer: Option<Vec<SignatureScheme>>,
}

/// The algorithms of a side of a connection; `None`: Weir's default.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Algorithms {
    /// The lowest and the highest version.
    pub versions: (Version, Version),
    /// Suites of TLS 1.2.
    pub ciphers: Option<Vec<CipherSuite>>,
    /// Suites of TLS 1.3.
    pub ciphersuites: Option<Vec<CipherSuite>>,
    /// Groups, in order of preference.
    pub groups: Option<Vec<NamedGroup>>,
    /// Signature algorithms.
    pub signatures: Signatures,
}

impl Default for Algorithms {
    fn default() -> Self {
        Self {
            versions: (Version::Tls12, Version::Tls13),
            ciphers: None,
            ciphersuites: None,
            groups: None,
            signatures: Signatures::default(),
        }
    }
}

impl Algorithms {
    /// Returns the suites of TLS 1.2 for a key type, by number.
    pub(crate) fn suites_of(&self, kind: Kind) -> impl Iterator<Item = u16> {
        let word = if kind == Kind::Rsa { "aRSA" } else { "aECDSA" };
        let rows = SUITES_12.iter().filter(move |row| row.words.contains(&word)).map(|row| row.suite.suite());
        rows.filter(|suite| self.ciphers.as_ref().is_none_or(|chosen| chosen.contains(suite))).map(u16::from)
    }

    /// Returns the versions in rustls's form.
    pub(crate) fn protocol_versions(&self) -> Vec<&'static SupportedProtocolVersion> {
        let all = [(Version::Tls13, &rustls::version::TLS13), (Version::Tls12, &rustls::version::TLS12)];
        let (from, to) = self.versions;
        all.into_iter().filter(|(version, _)| (from..=to).contains(version)).map(|(_, version)| version).collect()
    }

    /// Returns the other algorithms in rustls's form.
    pub(crate) fn provider(&self) -> Arc<CryptoProvider> {
        let defaults = default_provider();
        let of_12: Vec<SupportedCipherSuite> = match &self.ciphers {
            Some(chosen) => {
                let find = |suite: &CipherSuite| SUITES_12.iter().find(|row| row.suite.suite() == *suite);
                chosen.iter().filter_map(find).map(|row| row.suite).collect()
            }
            None => by_cost(SUITES_12.iter().map(|row| (row.name, row.suite))),
        };
        let of_13: Vec<SupportedCipherSuite> = match &self.ciphersuites {
            Some(chosen) => {
                let find = |suite: &CipherSuite| SUITES_13.iter().find(|(_, known)| known.suite() == *suite);
                chosen.iter().filter_map(find).map(|(_, suite)| *suite).collect()
            }
            None => by_cost(SUITES_13.iter().copied()),
        };
        let kx_groups = match &self.groups {
            Some(chosen) => {
                let find = |group: &NamedGroup| GROUPS.iter().find(|(_, known)| known.name() == *group);
                chosen.iter().filter_map(find).map(|(_, group)| *group).collect()
            }
            None => vec![kx_group::X25519MLKEM768, kx_group::X25519, kx_group::SECP256R1, kx_group::SECP384R1],
        };
        Arc::new(CryptoProvider { cipher_suites: of_13.into_iter().chain(of_12).collect(), kx_groups, ..defaults })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_has_chosen_begins_with_the_cheapest() {
        let offered = Algorithms::default().provider();
        let names: Vec<_> = offered.cipher_suites.iter().map(|suite| suite_name(suite.suite())).collect();
        let of_13 = ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"];
        let of_12 = [
            "ECDHE-ECDSA-AES128-GCM-SHA256",
            "ECDHE-RSA-AES128-GCM-SHA256",
            "ECDHE-ECDSA-AES256-GCM-SHA384",
            "ECDHE-RSA-AES256-GCM-SHA384",
            "ECDHE-ECDSA-CHACHA20-POLY1305",
            "ECDHE-RSA-CHACHA20-POLY1305",
        ];
        assert_eq!(names, [&of_13[..], &of_12].concat());
    }

    fn read(text: &str) -> (Vec<&'static str>, Vec<String>) {
        let named = ciphers(text);
        (named.found.iter().map(|suite| suite_name(*suite)).collect(), named.unknown)
    }

    #[test]
    fn cipher_strings_are_read_as_openssl_does() {
        const RSA: [&str; 3] =
            ["ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-AES128-GCM-SHA256", "ECDHE-RSA-CHACHA20-POLY1305"];
        let rows: &[(&str, &[&str], &[&str])] = &[
            ("ECDHE-RSA-AES128-GCM-SHA256", &["ECDHE-RSA-AES128-GCM-SHA256"], &[]),
            ("ECDHE+aRSA", &RSA, &[]),
            ("HIGH:!aECDSA", &RSA, &[]),
            ("!aECDSA:HIGH", &RSA, &[]),
            ("aRSA:+AES256", &[RSA[1], RSA[2], RSA[0]], &[]),
            ("aRSA:-CHACHA20:!aNULL:@SECLEVEL=2", &RSA[..2], &[]),
            ("ECDHE-RSA-CHACHA20-POLY1305:aRSA:@STRENGTH", &[RSA[2], RSA[0], RSA[1]], &[]),
            ("AES128-SHA,ECDHE-RSA-AES128-GCM-SHA256", &RSA[1..2], &["AES128-SHA"]),
            ("DHE-RSA-AES256-SHA:FOO", &[], &["DHE-RSA-AES256-SHA", "FOO"]),
            ("EECDH+CHACHA20+aRSA", &RSA[2..], &[]),
        ];
        for (text, found, unknown) in rows {
            assert_eq!(read(text), (found.to_vec(), unknown.iter().map(|name| (*name).to_owned()).collect()), "{text}");
        }
    }

    #[test]
    fn groups_have_several_names() {
        let named = groups("X25519MLKEM768:?x25519:secp256r1:P-256:P-521");
        assert_eq!(named.found, [NamedGroup::X25519MLKEM768, NamedGroup::X25519, NamedGroup::secp256r1]);
        assert_eq!(named.unknown, ["P-521"]);
        assert_eq!(group_name(NamedGroup::secp256r1), "prime256v1");
    }

    #[test]
    fn suites_of_tls_1_3_keep_their_order() {
        let named = ciphersuites("TLS_AES_128_GCM_SHA256:TLS_AES_128_CCM_SHA256:TLS_AES_256_GCM_SHA384");
        let found: Vec<_> = named.found.iter().map(|suite| suite_name(*suite)).collect();
        assert_eq!(found, ["TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384"]);
        assert_eq!(named.unknown, ["TLS_AES_128_CCM_SHA256"]);
        assert_eq!(named.found.iter().map(|suite| suite_bits(*suite)).collect::<Vec<_>>(), [128, 256]);
    }
}
