//! One certificate of a chain, with its extensions parsed (RFC 5280, section 4.2). Must never judge a chain.

use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::{ExtendedKeyUsage, GeneralName, KeyUsage, NSCertType, NameConstraints, ParsedExtension};
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::X509Version;

use super::signed_data::element;

/// The purpose for which a chain is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The certificate is a client's.
    Client,
    /// The certificate is a server's.
    Server,
}

/// OIDs of supported critical extensions, besides that of proxy certificates.
const UNDERSTOOD: [&str; 11] = [
    "2.5.29.15",
    "2.5.29.17",
    "2.5.29.19",
    "2.5.29.30",
    "2.5.29.31",
    "2.5.29.32",
    "2.5.29.33",
    "2.5.29.36",
    "2.5.29.37",
    "2.5.29.54",
    "2.16.840.1.113730.1.1",
];
/// OIDs of extensions that verification uses: one that cannot be parsed makes the certificate invalid.
const JUDGED: [&str; 9] = [
    "2.5.29.14",
    "2.5.29.15",
    "2.5.29.17",
    "2.5.29.19",
    "2.5.29.30",
    "2.5.29.31",
    "2.5.29.35",
    "2.5.29.37",
    "2.16.840.1.113730.1.1",
];
const PROXY: &str = "1.3.6.1.5.5.7.1.14";
/// OIDs of signature algorithms that are too weak for a certificate: MD2, MD4, MD5, SHA-1.
const WEAK: [&str; 8] = [
    "1.2.840.113549.1.1.2",
    "1.2.840.113549.1.1.3",
    "1.2.840.113549.1.1.4",
    "1.2.840.113549.1.1.5",
    "1.2.840.10045.4.1",
    "1.2.840.10040.4.3",
    "1.3.14.3.2.29",
    "1.3.14.3.2.3",
];
const RSA: &str = "1.2.840.113549.1.1.1";
const RSA_PSS: &str = "1.2.840.113549.1.1.10";
const EC: &str = "1.2.840.10045.2.1";
const P192: &str = "1.2.840.10045.3.1.1";
/// Minimum number of bits of an RSA key: 112 bits of security (OpenSSL's level 2).
const RSA_BITS: usize = 2048;

/// The authority key identifier (RFC 5280, section 4.2.1.1).
#[derive(Debug, Clone, Default)]
pub(super) struct Authority {
    key: Option<Vec<u8>>,
    serial: Option<Vec<u8>>,
    /// The name of the issuer's own issuer, in canonical form.
    name: Option<Vec<u8>>,
}

impl Authority {
    /// Returns the authority key identifier in an extension of a certificate or a revocation list.
    pub(super) fn of(extension: &ParsedExtension<'_>) -> Option<Self> {
        let ParsedExtension::AuthorityKeyIdentifier(named) = extension else { return None };
        let issuers = named.authority_cert_issuer.iter().flatten();
        let mut names = issuers.filter_map(|one| match one {
            GeneralName::DirectoryName(name) => canonical(name.as_raw()),
            _ => None,
        });
        let key = named.key_identifier.as_ref().map(|key| key.0.to_vec());
        Some(Self { key, serial: named.authority_cert_serial.map(<[u8]>::to_vec), name: names.next() })
    }

    /// Whether it matches the key of that certificate.
    pub(super) fn fits(&self, issuer: &Link<'_>) -> bool {
        let differs =
            |one: Option<&[u8]>, other: Option<&[u8]>| one.zip(other).is_some_and(|(one, other)| one != other);
        !differs(self.key.as_deref(), issuer.key_id)
            && !differs(self.serial.as_deref(), Some(issuer.parsed.raw_serial()))
            && !differs(self.name.as_deref(), Some(&issuer.issuer))
    }
}

/// A certificate of a chain.
#[derive(Debug, Clone)]
pub(super) struct Link<'a> {
    pub der: &'a [u8],
    pub parsed: X509Certificate<'a>,
    /// Its names in canonical form.
    pub subject: Vec<u8>,
    pub issuer: Vec<u8>,
    pub is_self_issued: bool,
    /// Its issuer is itself, and the key identifier is its own.
    pub is_self_signed: bool,
    /// An extension cannot be parsed: the certificate is invalid.
    pub is_broken: bool,
    pub has_unknown_critical: bool,
    pub is_proxy: bool,
    pub path_length: Option<u32>,
    pub usage: Option<KeyUsage>,
    /// basicConstraints: whether it is a CA.
    authority: Option<bool>,
    purposes: Option<ExtendedKeyUsage<'a>>,
    netscape: Option<NSCertType>,
    key_id: Option<&'a [u8]>,
    issuer_key: Authority,
    pub constraints: Option<NameConstraints<'a>>,
}

impl<'a> Link<'a> {
    /// Parses a certificate in DER. `None`: invalid.
    pub(super) fn read(der: &'a [u8]) -> Option<Self> {
        let (rest, parsed) = X509Certificate::from_der(der).ok()?;
        if !rest.is_empty() {
            return None;
        }
        let (subject, issuer) = (canonical(parsed.subject().as_raw())?, canonical(parsed.issuer().as_raw())?);
        let mut link = Self {
            der,
            is_self_issued: subject == issuer,
            subject,
            issuer,
            is_self_signed: false,
            is_broken: false,
            has_unknown_critical: false,
            is_proxy: false,
            path_length: None,
            usage: None,
            authority: None,
            purposes: None,
            netscape: None,
            key_id: None,
            issuer_key: Authority::default(),
            constraints: None,
            parsed,
        };
        link.read_extensions();
        link.is_self_signed = link.is_self_issued && link.issuer_key.fits(&link) && link.fits_key_of(&link);
        Some(link)
    }

    fn read_extensions(&mut self) {
        let extensions = self.parsed.extensions().to_vec();
        for (place, extension) in extensions.iter().enumerate() {
            let number = extension.oid.to_id_string();
            let is_known = UNDERSTOOD.contains(&&*number) || number == PROXY;
            self.has_unknown_critical |= extension.critical && !is_known;
            self.is_proxy |= number == PROXY;
            // At most one extension of each type (RFC 5280, section 4.2).
            self.is_broken |= extensions[..place].iter().any(|before| before.oid == extension.oid);
            match extension.parsed_extension() {
                ParsedExtension::BasicConstraints(constraints) => {
                    self.authority = Some(constraints.ca);
                    self.path_length = constraints.path_len_constraint;
                }
                ParsedExtension::KeyUsage(usage) => {
                    self.is_broken |= usage.flags == 0;
                    self.usage = Some(*usage);
                }
                ParsedExtension::ExtendedKeyUsage(purposes) => self.purposes = Some(purposes.clone()),
                ParsedExtension::NSCertType(kinds) => self.netscape = Some(*kinds),
                ParsedExtension::SubjectKeyIdentifier(key) => self.key_id = Some(key.0),
                ParsedExtension::NameConstraints(constraints) => self.constraints = Some(constraints.clone()),
                ParsedExtension::ParseError { .. } => self.is_broken |= JUDGED.contains(&&*number),
                other => {
                    if let Some(key) = Authority::of(other) {
                        self.issuer_key = key;
                    }
                }
            }
        }
    }

    /// Whether another certificate may have issued this one: by names, by the authority key identifier if present, and
    /// by the type of key.
    pub(super) fn may_be_issued_by(&self, issuer: &Link<'_>) -> bool {
        self.issuer == issuer.subject
            && !self.is_broken
            && !issuer.is_broken
            && self.issuer_key.fits(issuer)
            && self.fits_key_of(issuer)
    }

    /// Whether the signature algorithm is one for the type of key of that certificate.
    fn fits_key_of(&self, issuer: &Link<'_>) -> bool {
        let signature = self.parsed.signature_algorithm.algorithm.to_id_string();
        let key = issuer.key_algorithm();
        match key.as_str() {
            RSA => signature.starts_with("1.2.840.113549.1.1.") || signature.starts_with("1.3.14.3.2."),
            RSA_PSS => signature == RSA_PSS,
            EC => signature.starts_with("1.2.840.10045.4."),
            // Ed25519 and Ed448 have the same OIDs for keys and signatures.
            "1.3.101.112" | "1.3.101.113" => signature == key,
            _ => false,
        }
    }

    fn key_algorithm(&self) -> String {
        self.parsed.public_key().algorithm.algorithm.to_id_string()
    }

    /// Whether the curve's parameters are explicit, instead of a named curve as required by RFC 5480.
    pub(super) fn has_explicit_curve(&self) -> bool {
        let parameters = self.parsed.public_key().algorithm.parameters.as_ref();
        self.key_algorithm() == EC && parameters.is_none_or(|curve| curve.header.tag().0 != 6)
    }

    /// Whether its key is long enough.
    pub(super) fn has_strong_key(&self) -> bool {
        match self.parsed.public_key().parsed() {
            Ok(PublicKey::RSA(key)) => {
                let zeros = key.modulus.iter().take_while(|byte| **byte == 0).count();
                let first = key.modulus.get(zeros).map_or(8, |byte| byte.leading_zeros() as usize);
                (key.modulus.len() - zeros) * 8 - first.min((key.modulus.len() - zeros) * 8) >= RSA_BITS
            }
            Ok(PublicKey::EC(_)) => {
                let curve = self.parsed.public_key().algorithm.parameters.as_ref();
                curve.and_then(|curve| curve.as_oid().ok()).is_none_or(|curve| curve.to_id_string() != P192)
            }
            Ok(_) => true,
            Err(_) => false,
        }
    }

    /// Whether its signature uses a sufficiently strong digest.
    pub(super) fn has_strong_signature(&self) -> bool {
        !WEAK.contains(&&*self.parsed.signature_algorithm.algorithm.to_id_string())
    }

    /// Whether both signature algorithm fields agree (RFC 5280, section 4.1.1.2).
    pub(super) fn is_consistent(&self) -> bool {
        self.parsed.signature_algorithm == self.parsed.tbs_certificate.signature
    }

    /// Whether its key usage permits signing certificates.
    pub(super) fn may_sign(&self) -> bool {
        self.usage.is_none_or(|usage| usage.key_cert_sign())
    }

    pub(super) fn is_marked_authority(&self) -> bool {
        self.authority == Some(true)
    }

    /// Returns the reason why it counts as a CA.
    pub(super) fn authority(&self) -> AuthorityKind {
        let is_first_version = self.parsed.version() == X509Version::V1;
        match (self.may_sign(), self.authority, self.usage, &self.netscape) {
            (false, ..) | (true, Some(false), ..) => AuthorityKind::None,
            (true, Some(true), ..) => AuthorityKind::Marked,
            (true, None, ..) if is_first_version && self.is_self_signed => AuthorityKind::Implied,
            (true, None, Some(_), _) => AuthorityKind::Implied,
            (true, None, None, Some(kinds)) if kinds.ssl_ca() || kinds.smime_ca() || kinds.object_signing_ca() => {
                AuthorityKind::Netscape { of_tls: kinds.ssl_ca() }
            }
            (true, None, None, _) => AuthorityKind::None,
        }
    }

    /// Whether it may be used for a purpose, as the first certificate of its chain or as a CA in it.
    pub(super) fn is_for(&self, purpose: Purpose, as_authority: bool) -> bool {
        let is_purpose = self.purposes.as_ref().is_none_or(|purposes| match purpose {
            Purpose::Client => purposes.client_auth,
            Purpose::Server => purposes.server_auth || purposes.other.iter().any(is_server_gated),
        });
        if !is_purpose {
            return false;
        }
        if as_authority {
            return match self.authority() {
                AuthorityKind::None => false,
                AuthorityKind::Marked | AuthorityKind::Implied => true,
                AuthorityKind::Netscape { of_tls } => of_tls,
            };
        }
        let fits = |usage: KeyUsage| {
            let is_shared = usage.digital_signature() || usage.key_agreement();
            is_shared || (purpose == Purpose::Server && usage.key_encipherment())
        };
        let is_kind = |kinds: &NSCertType| match purpose {
            Purpose::Client => kinds.ssl_client(),
            Purpose::Server => kinds.ssl_server(),
        };
        self.usage.is_none_or(fits) && self.netscape.as_ref().is_none_or(is_kind)
    }
}

/// Whether a purpose is Server Gated Cryptography, of Microsoft or of Netscape.
fn is_server_gated(purpose: &x509_parser::asn1_rs::Oid<'_>) -> bool {
    matches!(purpose.to_id_string().as_str(), "1.3.6.1.4.1.311.10.3.3" | "2.16.840.1.113730.4.1")
}

/// The reason why a certificate counts as a CA.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AuthorityKind {
    None,
    /// By basicConstraints.
    Marked,
    /// A self-signed version 1 certificate, or one that may sign certificates and lacks basicConstraints.
    Implied,
    /// By Netscape's certificate type extension.
    Netscape {
        of_tls: bool,
    },
}

/// Returns a name in the canonical form for comparisons (RFC 5280, section 7.1; RFC 4518 for ASCII): texts in UTF-8 and
/// lower case, trimmed, with single blanks. `None`: it is not a name.
pub(super) fn canonical(name: &[u8]) -> Option<Vec<u8>> {
    let (0x30, mut sets, []) = element(name)? else { return None };
    let mut out = Vec::with_capacity(name.len());
    while !sets.is_empty() {
        let (0x31, mut pairs, rest) = element(sets)? else { return None };
        sets = rest;
        let mut entries = Vec::new();
        while !pairs.is_empty() {
            let (0x30, pair, rest) = element(pairs)? else { return None };
            pairs = rest;
            let (6, kind, value) = element(pair)? else { return None };
            let (tag, value, _) = element(value)?;
            let (tag, value) = match text(tag, value) {
                Some(text) => (12, fold(&text)),
                None => (tag, value.to_vec()),
            };
            entries.push(part(0x30, &[part(6, kind), part(tag, &value)].concat()));
        }
        entries.sort();
        out.extend(part(0x31, &entries.concat()));
    }
    Some(out)
}

/// Encodes a value with its tag and a length of fixed size.
fn part(tag: u8, value: &[u8]) -> Vec<u8> {
    [&[tag], &(value.len() as u64).to_be_bytes()[..], value].concat()
}

/// Converts a text of any ASN.1 string type to UTF-8. `None`: it is not a text.
pub(crate) fn text(tag: u8, value: &[u8]) -> Option<Vec<u8>> {
    let of = |letters: &mut dyn Iterator<Item = u32>| {
        letters.map(|letter| char::from_u32(letter).unwrap_or(char::REPLACEMENT_CHARACTER)).collect::<String>()
    };
    match tag {
        12 | 18 | 19 | 22 | 26 => Some(value.to_vec()),
        20 => Some(of(&mut value.iter().map(|byte| u32::from(*byte))).into_bytes()),
        30 => {
            let mut pairs = value.chunks_exact(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]])));
            Some(of(&mut pairs).into_bytes())
        }
        28 => {
            let mut fours = value.chunks_exact(4).map(|four| u32::from_be_bytes([four[0], four[1], four[2], four[3]]));
            Some(of(&mut fours).into_bytes())
        }
        _ => None,
    }
}

fn fold(text: &[u8]) -> Vec<u8> {
    let words = text.split(|byte| byte.is_ascii_whitespace() || *byte == 0x0b).filter(|word| !word.is_empty());
    words.map(<[u8]>::to_ascii_lowercase).collect::<Vec<_>>().join(&b' ')
}
