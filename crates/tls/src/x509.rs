//! Fields of certificates (RFC 5280), in the formats of configurations and logs. Must never judge one.

use base::hex::encode_upper;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use wire::date::Date;
use x509_parser::certificate::X509Certificate;

use aws_lc_rs::digest::{SHA1_FOR_LEGACY_USE_ONLY, digest};
use rustls::pki_types::CertificateDer;
use x509_parser::asn1_rs::Any;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::X509Name;

use crate::distinguished_name::{self, dotted, one_line};

/// A field of a certificate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// The subject's name.
    Subject,
    /// The issuer's name.
    Issuer,
    /// notBefore: `YYMMDDhhmmss[Z]`.
    NotBefore,
    /// notAfter, likewise.
    NotAfter,
    /// The serial number, in bytes.
    Serial,
    /// The key algorithm, by OpenSSL's short name.
    KeyAlgorithm,
    /// The signature algorithm.
    SignatureAlgorithm,
}

/// Returns a field of a certificate in DER. `None`: it cannot be parsed.
pub fn part(der: &[u8], part: Part) -> Option<Vec<u8>> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(match part {
        Part::Subject => one_line(certificate.subject()),
        Part::Issuer => one_line(certificate.issuer()),
        Part::NotBefore => short_moment(certificate.validity().not_before.timestamp())?,
        Part::NotAfter => short_moment(certificate.validity().not_after.timestamp())?,
        Part::Serial => serial(certificate.raw_serial()),
        Part::KeyAlgorithm => algorithm(&certificate.public_key().algorithm.algorithm.to_id_string()),
        Part::SignatureAlgorithm => algorithm(&certificate.signature_algorithm.algorithm.to_id_string()),
    })
}

/// Returns the version of a certificate: 1 to 3.
pub fn version(der: &[u8]) -> Option<u32> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    Some(certificate.version().0 + 1)
}

/// Returns the values of one attribute type in a name, in order: `CN`, `ou` or a dotted OID.
pub fn entries(der: &[u8], of: Part, kind: &str) -> Option<Vec<Vec<u8>>> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let name = if of == Part::Issuer { certificate.issuer() } else { certificate.subject() };
    Some(distinguished_name::entries(name, kind))
}

/// Whether a certificate is valid for an address, by its subjectAltName (RFC 5280, section 4.2.1.6).
pub fn is_address_of(der: &[u8], address: IpAddr) -> bool {
    let Ok((_, certificate)) = X509Certificate::from_der(der) else { return false };
    let Ok(Some(names)) = certificate.subject_alternative_name() else { return false };
    names.value.general_names.iter().any(|name| match (name, address) {
        (GeneralName::IPAddress(bytes), IpAddr::V4(ip)) => *bytes == ip.octets(),
        (GeneralName::IPAddress(bytes), IpAddr::V6(ip)) => *bytes == ip.octets(),
        _ => false,
    })
}

/// Returns the type and size of a certificate's key: `RSA2048`, `EC256`. `None`: another type.
pub fn key_kind(der: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    match certificate.public_key().parsed().ok()? {
        PublicKey::RSA(key) => Some(format!("RSA{}", key.key_size())),
        // P-521 coordinates are padded to whole bytes.
        PublicKey::EC(point) => Some(format!("EC{}", point.key_size().min(521))),
        _ => None,
    }
}

/// The printed fields of a certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Details {
    /// The serial number in hexadecimal.
    pub serial: String,
    /// notBefore, in OpenSSL's date format.
    pub not_before: String,
    /// notAfter, likewise.
    pub not_after: String,
    /// The subjectAltName.
    pub alternative_names: Option<String>,
    /// The key algorithm and size.
    pub algorithm: String,
    /// The subject's name.
    pub subject: String,
    /// The issuer's name.
    pub issuer: String,
}

/// Returns the SHA-1 fingerprint of a certificate, in hexadecimal.
pub fn fingerprint(der: &[u8]) -> String {
    let digest = digest(&SHA1_FOR_LEGACY_USE_ONLY, der);
    base::hex::encode_upper(digest.as_ref())
}

/// The validity period of a certificate, in seconds since the epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    /// The first valid second.
    pub not_before: i64,
    /// The last valid second.
    pub not_after: i64,
}

/// Returns the validity period of a certificate. `None`: it cannot be parsed.
pub fn validity(der: &[u8]) -> Option<Validity> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let validity = certificate.validity();
    Some(Validity { not_before: validity.not_before.timestamp(), not_after: validity.not_after.timestamp() })
}

/// Whether the issuer of a certificate equals its subject.
pub fn is_self_issued(der: &[u8]) -> bool {
    X509Certificate::from_der(der).is_ok_and(|(_, one)| one.subject().as_raw() == one.issuer().as_raw())
}

/// Returns the printed fields of a certificate. `None`: it cannot be parsed.
pub fn details(der: &[u8]) -> Option<Details> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let algorithm = match key_kind(der) {
        Some(kind) => kind,
        None => String::from_utf8(part(der, Part::KeyAlgorithm)?).ok()?,
    };
    Some(Details {
        serial: encode_upper(&serial(certificate.raw_serial())),
        not_before: long_moment(certificate.validity().not_before.timestamp()),
        not_after: long_moment(certificate.validity().not_after.timestamp()),
        alternative_names: alternative_names(der),
        algorithm,
        subject: name(certificate.subject()),
        issuer: name(certificate.issuer()),
    })
}

/// Returns the validity period of a certificate, in seconds since the epoch. `None`: it cannot be parsed.
pub fn valid_between(der: &[u8]) -> Option<(i64, i64)> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let validity = certificate.validity();
    Some((validity.not_before.timestamp(), validity.not_after.timestamp()))
}

/// Returns the OIDs of a certificate's policies (RFC 5280, section 4.2.1.4). `None`: it has none.
pub fn policies(der: &[u8]) -> Option<Vec<String>> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let found = certificate.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::CertificatePolicies(policies) => Some(policies),
        _ => None,
    })?;
    Some(found.iter().map(|policy| dotted(&policy.policy_id)).collect())
}

/// Returns the subjectAltName of a certificate, in OpenSSL's format. `None`: it has none.
pub fn alternative_names(der: &[u8]) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let names = certificate.subject_alternative_name().ok()??;
    let names = names.value.general_names.iter().map(|one| match one {
        GeneralName::DNSName(host) => format!("DNS:{host}"),
        GeneralName::RFC822Name(mail) => format!("email:{mail}"),
        GeneralName::URI(uri) => format!("URI:{uri}"),
        GeneralName::IPAddress(bytes) => format!("IP Address:{}", address(bytes)),
        GeneralName::DirectoryName(of) => format!("DirName:{}", distinguished_name::spaced(of)),
        GeneralName::RegisteredID(number) => format!("Registered ID:{}", dotted(number)),
        GeneralName::X400Address(_) => "X400Name:<unsupported>".to_owned(),
        GeneralName::EDIPartyName(_) => "EdiPartyName:<unsupported>".to_owned(),
        GeneralName::OtherName(kind, value) => other_name(&kind.to_id_string(), value),
        GeneralName::Invalid(..) => "othername:<unsupported>".to_owned(),
    });
    Some(names.collect::<Vec<_>>().join(", "))
}

/// Formats an otherName, of the types that OpenSSL knows.
fn other_name(kind: &str, value: &[u8]) -> String {
    let kind = match kind {
        "1.3.6.1.4.1.311.20.2.3" => "UPN",
        "1.3.6.1.5.5.7.8.9" => "SmtpUTF8Mailbox",
        "1.3.6.1.5.5.7.8.5" => "XmppAddr",
        "1.3.6.1.5.5.7.8.7" => "SRVName",
        "1.3.6.1.5.5.7.8.8" => "NAIRealm",
        _ => return "othername:<unsupported>".to_owned(),
    };
    // The value has an explicit tag.
    let value = Any::from_der(value).ok().and_then(|(_, outer)| Any::from_der(outer.data).ok());
    match value {
        Some((_, inner)) => format!("othername:{kind}:{}", String::from_utf8_lossy(inner.data)),
        None => "othername:<unsupported>".to_owned(),
    }
}

/// Formats an address in OpenSSL's format for certificates.
fn address(bytes: &[u8]) -> String {
    if let Ok(v4) = <[u8; 4]>::try_from(bytes) {
        return Ipv4Addr::from(v4).to_string();
    }
    match <[u8; 16]>::try_from(bytes) {
        Ok(v6) => Ipv6Addr::from(v6).segments().map(|part| format!("{part:X}")).join(":"),
        Err(_) => "<invalid>".to_owned(),
    }
}

/// Returns the root of a chain: the last certificate found by following issuers, among those that the peer has sent and
/// the trusted ones.
pub fn root<'a>(chain: &'a [Box<[u8]>], roots: &'a [CertificateDer<'static>]) -> Option<&'a [u8]> {
    let names = |der: &[u8]| {
        let (_, certificate) = X509Certificate::from_der(der).ok()?;
        Some((certificate.subject().as_raw().to_vec(), certificate.issuer().as_raw().to_vec()))
    };
    let mut last: &[u8] = chain.first()?;
    // Bounded by the number of certificates: two may name each other.
    for _ in 0..chain.len() + roots.len() {
        let (subject, issuer) = names(last)?;
        let mut all = roots.iter().map(|root| &**root).chain(chain.iter().map(|one| &**one));
        match all.find(|one| names(one).is_some_and(|(subject, _)| subject == issuer)) {
            Some(next) if subject != issuer => last = next,
            _ => break,
        }
    }
    Some(last)
}

/// Whether a certificate may have been issued by another one, both in DER: by their names, and by the key identifiers
/// if both are present (RFC 5280, section 4.2.1.1).
pub fn is_issuer(issuer: &[u8], of: &[u8]) -> bool {
    let (Ok((_, issuer)), Ok((_, own))) = (X509Certificate::from_der(issuer), X509Certificate::from_der(of)) else {
        return false;
    };
    let key = issuer.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::SubjectKeyIdentifier(key) => Some(key.0),
        _ => None,
    });
    let wanted = own.extensions().iter().find_map(|extension| match extension.parsed_extension() {
        ParsedExtension::AuthorityKeyIdentifier(named) => named.key_identifier.as_ref().map(|key| key.0),
        _ => None,
    });
    own.issuer().as_raw() == issuer.subject().as_raw() && (key.is_none() || wanted.is_none() || key == wanted)
}

/// Returns the name in RFC 2253 form, the last part first, as in LDAP.
pub fn rfc2253(der: &[u8], of: Part) -> Option<Vec<u8>> {
    let (_, certificate) = X509Certificate::from_der(der).ok()?;
    let name = if of == Part::Issuer { certificate.issuer() } else { certificate.subject() };
    Some(distinguished_name::rfc2253(name).into_bytes())
}

/// Returns a serial number in OpenSSL's form: its magnitude, without leading zeros.
pub(crate) fn serial(raw: &[u8]) -> Vec<u8> {
    let is_negative = raw.first().is_some_and(|first| *first >= 0x80);
    let mut bytes = raw.to_vec();
    if is_negative {
        let mut carry = true;
        for byte in bytes.iter_mut().rev() {
            (*byte, carry) = (!*byte).overflowing_add(u8::from(carry));
        }
    }
    let zeros = bytes.iter().take_while(|byte| **byte == 0).count().min(bytes.len().saturating_sub(1));
    bytes.split_off(zeros)
}

/// Returns OpenSSL's name of an algorithm; its OID if it has none.
fn algorithm(number: &str) -> Vec<u8> {
    const NAMES: &[(&str, &str)] = &[
        ("1.2.840.113549.1.1.1", "rsaEncryption"),
        ("1.2.840.10045.2.1", "id-ecPublicKey"),
        ("1.3.101.112", "ED25519"),
        ("1.3.101.113", "ED448"),
        ("1.2.840.113549.1.1.4", "RSA-MD5"),
        ("1.2.840.113549.1.1.5", "RSA-SHA1"),
        ("1.2.840.113549.1.1.14", "RSA-SHA224"),
        ("1.2.840.10045.4.1", "ecdsa-with-SHA1"),
        ("1.2.840.10045.4.3.1", "ecdsa-with-SHA224"),
        ("1.2.840.10040.4.1", "DSA"),
        ("1.2.840.10040.4.3", "DSA-SHA1"),
        ("2.16.840.1.101.3.4.3.2", "dsa_with_SHA256"),
        ("1.2.840.113549.1.1.11", "RSA-SHA256"),
        ("1.2.840.113549.1.1.12", "RSA-SHA384"),
        ("1.2.840.113549.1.1.13", "RSA-SHA512"),
        ("1.2.840.113549.1.1.10", "RSASSA-PSS"),
        ("1.2.840.10045.4.3.2", "ecdsa-with-SHA256"),
        ("1.2.840.10045.4.3.3", "ecdsa-with-SHA384"),
        ("1.2.840.10045.4.3.4", "ecdsa-with-SHA512"),
    ];
    NAMES.iter().find(|(known, _)| *known == number).map_or(number, |(_, name)| name).as_bytes().to_vec()
}

/// Formats a name in one line.
pub(crate) fn name(name: &X509Name<'_>) -> String {
    String::from_utf8_lossy(&one_line(name)).into_owned()
}

/// Formats a time with a two-digit year. `None`: it is in another century.
fn short_moment(seconds: i64) -> Option<Vec<u8>> {
    (1950..2100).contains(&Date::since_epoch(seconds).year).then(|| moment(seconds).into_bytes())
}

/// Formats a time in UTC: `YYMMDDhhmmssZ`, as in certificates.
fn moment(seconds: i64) -> String {
    let Date { year, month, day, hour, minute, second } = Date::since_epoch(seconds);
    format!("{:02}{month:02}{day:02}{hour:02}{minute:02}{second:02}Z", year.rem_euclid(100))
}

/// Encodes a time for a certificate (RFC 5280, section 4.1.2.5), in DER.
pub(crate) fn time(seconds: i64) -> Vec<u8> {
    let year = Date::since_epoch(seconds).year;
    let text = moment(seconds);
    let (tag, century) =
        if (1950..2050).contains(&year) { (0x17, String::new()) } else { (0x18, format!("{:02}", year / 100)) };
    let text = century + &text;
    [&[tag, text.len() as u8], text.as_bytes()].concat()
}

/// Formats a time as OpenSSL does: `Nov  3 23:52:04 2026 GMT`.
pub fn long_moment(seconds: i64) -> String {
    let date @ Date { year, day, hour, minute, second, .. } = Date::since_epoch(seconds);
    let month = String::from_utf8_lossy(date.month_name());
    format!("{month} {day:2} {hour:02}:{minute:02}:{second:02} {year} GMT")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_are_in_utc() {
        assert_eq!(moment(0), "700101000000Z");
        assert_eq!(moment(1_600_000_000), "200913122640Z");
        assert_eq!(moment(951_827_696), "000229123456Z");
        assert_eq!(long_moment(951_827_696), "Feb 29 12:34:56 2000 GMT");
        assert_eq!(long_moment(0), "Jan  1 00:00:00 1970 GMT");
    }

    #[test]
    fn serial_numbers_are_magnitudes() {
        let rows: &[(&[u8], &[u8])] = &[
            (&[0, 0x8f, 0], &[0x8f, 0]),
            (&[0x7f], &[0x7f]),
            (&[0], &[0]),
            (&[0xff], &[1]),
            (&[0x80, 0], &[0x80, 0]),
            (&[0xff, 0], &[1, 0]),
            (&[], &[]),
        ];
        for (raw, expected) in rows {
            assert_eq!(serial(raw), *expected, "{raw:?}");
        }
    }

    #[test]
    fn years_of_two_digits_are_of_one_century() {
        assert_eq!(short_moment(4_102_444_799).as_deref(), Some(&b"991231235959Z"[..]));
        assert_eq!(short_moment(4_102_444_800), None);
    }

    #[test]
    fn parts_are_as_openssl_prints_them() {
        let mut params = rcgen::CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CountryName, "FR");
        params.distinguished_name.push(rcgen::DnType::OrganizationName, "Example");
        params.distinguished_name.push(rcgen::DnType::CommonName, "a.example");
        params.serial_number = Some(rcgen::SerialNumber::from(vec![1, 2, 3]));
        let key = rcgen::KeyPair::generate().unwrap();
        let der = params.self_signed(&key).unwrap().der().to_vec();
        let text = |of| String::from_utf8(part(&der, of).unwrap()).unwrap();
        assert_eq!(text(Part::Subject), "/C=FR/O=Example/CN=a.example");
        assert_eq!(text(Part::Issuer), text(Part::Subject));
        assert_eq!(text(Part::KeyAlgorithm), "id-ecPublicKey");
        assert_eq!(text(Part::SignatureAlgorithm), "ecdsa-with-SHA256");
        assert_eq!(part(&der, Part::Serial).unwrap(), [1, 2, 3]);
        assert_eq!(entries(&der, Part::Subject, "o").unwrap(), [b"Example"]);
        assert_eq!(entries(&der, Part::Subject, "2.5.4.3").unwrap(), [b"a.example"]);
        assert_eq!(rfc2253(&der, Part::Subject).unwrap(), b"CN=a.example,O=Example,C=FR");
        assert_eq!(version(&der), Some(3));
        assert_eq!(part(b"x", Part::Subject), None);
    }
}
