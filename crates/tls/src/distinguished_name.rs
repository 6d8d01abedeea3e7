//! Distinguished names as text: in one line as HAProxy prints them, by RFC 2253 (RFC 4514), and as OpenSSL prints them
//! among other output (`X509_NAME_print_ex(3)`). Must never print an attribute by another name than OpenSSL.

use base::hex::encode_upper;
use x509_parser::asn1_rs::Oid;
use x509_parser::x509::{AttributeTypeAndValue, RelativeDistinguishedName, X509Name};

use crate::chain::text;

/// OpenSSL's short names of attributes (`openssl list -objects`).
#[rustfmt::skip]
const NAMES: &[(&str, &str)] = &[
    ("0.9.2342.19200300.100.1.1", "UID"),
    ("0.9.2342.19200300.100.1.2", "textEncodedORAddress"),
    ("0.9.2342.19200300.100.1.3", "mail"),
    ("0.9.2342.19200300.100.1.4", "info"),
    ("0.9.2342.19200300.100.1.5", "favouriteDrink"),
    ("0.9.2342.19200300.100.1.6", "roomNumber"),
    ("0.9.2342.19200300.100.1.7", "photo"),
    ("0.9.2342.19200300.100.1.8", "userClass"),
    ("0.9.2342.19200300.100.1.9", "host"),
    ("0.9.2342.19200300.100.1.10", "manager"),
    ("0.9.2342.19200300.100.1.11", "documentIdentifier"),
    ("0.9.2342.19200300.100.1.12", "documentTitle"),
    ("0.9.2342.19200300.100.1.13", "documentVersion"),
    ("0.9.2342.19200300.100.1.14", "documentAuthor"),
    ("0.9.2342.19200300.100.1.15", "documentLocation"),
    ("0.9.2342.19200300.100.1.20", "homeTelephoneNumber"),
    ("0.9.2342.19200300.100.1.21", "secretary"),
    ("0.9.2342.19200300.100.1.22", "otherMailbox"),
    ("0.9.2342.19200300.100.1.23", "lastModifiedTime"),
    ("0.9.2342.19200300.100.1.24", "lastModifiedBy"),
    ("0.9.2342.19200300.100.1.25", "DC"),
    ("0.9.2342.19200300.100.1.26", "aRecord"),
    ("0.9.2342.19200300.100.1.27", "pilotAttributeType27"),
    ("0.9.2342.19200300.100.1.28", "mXRecord"),
    ("0.9.2342.19200300.100.1.29", "nSRecord"),
    ("0.9.2342.19200300.100.1.30", "sOARecord"),
    ("0.9.2342.19200300.100.1.31", "cNAMERecord"),
    ("0.9.2342.19200300.100.1.37", "associatedDomain"),
    ("0.9.2342.19200300.100.1.38", "associatedName"),
    ("0.9.2342.19200300.100.1.39", "homePostalAddress"),
    ("0.9.2342.19200300.100.1.40", "personalTitle"),
    ("0.9.2342.19200300.100.1.41", "mobileTelephoneNumber"),
    ("0.9.2342.19200300.100.1.42", "pagerTelephoneNumber"),
    ("0.9.2342.19200300.100.1.43", "friendlyCountryName"),
    ("0.9.2342.19200300.100.1.44", "uid"),
    ("0.9.2342.19200300.100.1.45", "organizationalStatus"),
    ("0.9.2342.19200300.100.1.46", "janetMailbox"),
    ("0.9.2342.19200300.100.1.47", "mailPreferenceOption"),
    ("0.9.2342.19200300.100.1.48", "buildingName"),
    ("0.9.2342.19200300.100.1.49", "dSAQuality"),
    ("0.9.2342.19200300.100.1.50", "singleLevelQuality"),
    ("0.9.2342.19200300.100.1.51", "subtreeMinimumQuality"),
    ("0.9.2342.19200300.100.1.52", "subtreeMaximumQuality"),
    ("0.9.2342.19200300.100.1.53", "personalSignature"),
    ("0.9.2342.19200300.100.1.54", "dITRedirect"),
    ("0.9.2342.19200300.100.1.55", "audio"),
    ("0.9.2342.19200300.100.1.56", "documentPublisher"),
    ("1.2.643.3.131.1.1", "INN"),
    ("1.2.643.100.1", "OGRN"),
    ("1.2.643.100.3", "SNILS"),
    ("1.2.643.100.5", "OGRNIP"),
    ("1.2.643.100.111", "subjectSignTool"),
    ("1.2.643.100.112", "issuerSignTool"),
    ("1.2.643.100.113", "classSignTool"),
    ("1.2.840.113549.1.9.1", "emailAddress"),
    ("1.2.840.113549.1.9.2", "unstructuredName"),
    ("1.2.840.113549.1.9.3", "contentType"),
    ("1.2.840.113549.1.9.4", "messageDigest"),
    ("1.2.840.113549.1.9.5", "signingTime"),
    ("1.2.840.113549.1.9.6", "countersignature"),
    ("1.2.840.113549.1.9.7", "challengePassword"),
    ("1.2.840.113549.1.9.8", "unstructuredAddress"),
    ("1.2.840.113549.1.9.9", "extendedCertificateAttributes"),
    ("1.2.840.113549.1.9.14", "extReq"),
    ("1.2.840.113549.1.9.15", "SMIME-CAPS"),
    ("1.2.840.113549.1.9.16", "SMIME"),
    ("1.2.840.113549.1.9.20", "friendlyName"),
    ("1.2.840.113549.1.9.21", "localKeyID"),
    ("1.3.6.1.4.1.311.60.2.1.1", "jurisdictionL"),
    ("1.3.6.1.4.1.311.60.2.1.2", "jurisdictionST"),
    ("1.3.6.1.4.1.311.60.2.1.3", "jurisdictionC"),
    ("1.3.6.1.5.5.7.9.1", "id-pda-dateOfBirth"),
    ("1.3.6.1.5.5.7.9.2", "id-pda-placeOfBirth"),
    ("1.3.6.1.5.5.7.9.3", "id-pda-gender"),
    ("1.3.6.1.5.5.7.9.4", "id-pda-countryOfCitizenship"),
    ("1.3.6.1.5.5.7.9.5", "id-pda-countryOfResidence"),
    ("2.5.4.3", "CN"),
    ("2.5.4.4", "SN"),
    ("2.5.4.5", "serialNumber"),
    ("2.5.4.6", "C"),
    ("2.5.4.7", "L"),
    ("2.5.4.8", "ST"),
    ("2.5.4.9", "street"),
    ("2.5.4.10", "O"),
    ("2.5.4.11", "OU"),
    ("2.5.4.12", "title"),
    ("2.5.4.13", "description"),
    ("2.5.4.14", "searchGuide"),
    ("2.5.4.15", "businessCategory"),
    ("2.5.4.16", "postalAddress"),
    ("2.5.4.17", "postalCode"),
    ("2.5.4.18", "postOfficeBox"),
    ("2.5.4.19", "physicalDeliveryOfficeName"),
    ("2.5.4.20", "telephoneNumber"),
    ("2.5.4.21", "telexNumber"),
    ("2.5.4.22", "teletexTerminalIdentifier"),
    ("2.5.4.23", "facsimileTelephoneNumber"),
    ("2.5.4.24", "x121Address"),
    ("2.5.4.25", "internationaliSDNNumber"),
    ("2.5.4.26", "registeredAddress"),
    ("2.5.4.27", "destinationIndicator"),
    ("2.5.4.28", "preferredDeliveryMethod"),
    ("2.5.4.29", "presentationAddress"),
    ("2.5.4.30", "supportedApplicationContext"),
    ("2.5.4.31", "member"),
    ("2.5.4.32", "owner"),
    ("2.5.4.33", "roleOccupant"),
    ("2.5.4.34", "seeAlso"),
    ("2.5.4.35", "userPassword"),
    ("2.5.4.36", "userCertificate"),
    ("2.5.4.37", "cACertificate"),
    ("2.5.4.38", "authorityRevocationList"),
    ("2.5.4.39", "certificateRevocationList"),
    ("2.5.4.40", "crossCertificatePair"),
    ("2.5.4.41", "name"),
    ("2.5.4.42", "GN"),
    ("2.5.4.43", "initials"),
    ("2.5.4.44", "generationQualifier"),
    ("2.5.4.45", "x500UniqueIdentifier"),
    ("2.5.4.46", "dnQualifier"),
    ("2.5.4.47", "enhancedSearchGuide"),
    ("2.5.4.48", "protocolInformation"),
    ("2.5.4.49", "distinguishedName"),
    ("2.5.4.50", "uniqueMember"),
    ("2.5.4.51", "houseIdentifier"),
    ("2.5.4.52", "supportedAlgorithms"),
    ("2.5.4.53", "deltaRevocationList"),
    ("2.5.4.54", "dmdName"),
    ("2.5.4.65", "pseudonym"),
    ("2.5.4.72", "role"),
    ("2.5.4.97", "organizationIdentifier"),
    ("2.5.4.98", "c3"),
    ("2.5.4.99", "n3"),
    ("2.5.4.100", "dnsName"),
];

/// Returns the short name of an attribute by its OID. `None`: OpenSSL has none.
fn short_name(number: &str) -> Option<&'static str> {
    NAMES.iter().find(|(known, _)| *known == number).map(|(_, name)| *name)
}

/// Formats an OID in dotted form. The first arc is 0, 1 or 2, and only after 2 may the second one exceed 39.
pub(crate) fn dotted(number: &Oid<'_>) -> String {
    let (mut parts, mut part) = (Vec::new(), 0_u128);
    for byte in number.as_bytes() {
        part = part.wrapping_shl(7) | u128::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            if parts.is_empty() {
                let first = (part / 40).min(2);
                parts.push(first.to_string());
                part -= first * 40;
            }
            parts.push(part.to_string());
            part = 0;
        }
    }
    parts.join(".")
}

/// Returns the short name of an attribute, otherwise its OID.
fn kind(attribute: &AttributeTypeAndValue<'_>) -> String {
    let number = dotted(attribute.attr_type());
    short_name(&number).map_or(number, str::to_owned)
}

/// Returns the value in UTF-8; unchanged if it is not a text.
fn value(attribute: &AttributeTypeAndValue<'_>) -> Vec<u8> {
    let value = attribute.attr_value();
    let tag = u8::try_from(value.header.tag().0).unwrap_or_default();
    text(tag, value.data).unwrap_or_else(|| value.data.to_vec())
}

/// Formats a name in one line: `/C=FR/O=Example/CN=a.example`.
pub(crate) fn one_line(name: &X509Name<'_>) -> Vec<u8> {
    let mut line = Vec::new();
    for attribute in name.iter_attributes() {
        line.push(b'/');
        line.extend_from_slice(kind(attribute).as_bytes());
        line.push(b'=');
        line.extend(value(attribute));
    }
    line
}

/// Returns the values of the attributes with a short name, case-insensitively, or with an OID.
pub(crate) fn entries(name: &X509Name<'_>, wanted: &str) -> Vec<Vec<u8>> {
    let is_wanted = |attribute: &&AttributeTypeAndValue<'_>| {
        kind(attribute).eq_ignore_ascii_case(wanted) || dotted(attribute.attr_type()) == wanted
    };
    name.iter_attributes().filter(is_wanted).map(value).collect()
}

/// How special characters are escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Escape {
    /// A backslash before each.
    Backslash,
    /// Quotation marks around the value.
    Quotes,
}

/// Formats a name by RFC 2253, the last part first: `CN=a.example,O=Example,C=FR`.
pub(crate) fn rfc2253(name: &X509Name<'_>) -> String {
    let parts: Vec<_> = name.iter_rdn().map(|part| part_of(part, Escape::Backslash)).collect();
    parts.into_iter().rev().collect::<Vec<_>>().join(",")
}

/// Formats a name as OpenSSL does in extensions and OCSP responses: `C = FR, O = Example`.
pub(crate) fn spaced(name: &X509Name<'_>) -> String {
    name.iter_rdn().map(|part| part_of(part, Escape::Quotes)).collect::<Vec<_>>().join(", ")
}

fn part_of(part: &RelativeDistinguishedName<'_>, escape: Escape) -> String {
    let (equals, plus) = match escape {
        Escape::Backslash => ("=", "+"),
        Escape::Quotes => (" = ", " + "),
    };
    let attributes: Vec<_> = part.iter().collect();
    let print = |attribute: &&AttributeTypeAndValue<'_>| {
        let value = attribute.attr_value();
        let number = dotted(attribute.attr_type());
        let tag = u8::try_from(value.header.tag().0).unwrap_or_default();
        // RFC 2253, section 2.4: values of attributes without a name are in hexadecimal.
        let is_nameless = escape == Escape::Backslash && short_name(&number).is_none();
        let text = match text(tag, value.data).filter(|_| !is_nameless) {
            Some(text) => escaped(&text, escape),
            None => format!("#{}", encode_upper(&der(tag, value.data))),
        };
        format!("{}{equals}{text}", kind(attribute))
    };
    match escape {
        // The attributes of a part are reversed like the parts.
        Escape::Backslash => attributes.iter().rev().map(print).collect::<Vec<_>>().join(plus),
        Escape::Quotes => attributes.iter().map(print).collect::<Vec<_>>().join(plus),
    }
}

fn escaped(text: &[u8], escape: Escape) -> String {
    let mut out = String::new();
    let mut needs_quotes = false;
    for (place, byte) in text.iter().enumerate() {
        let is_end = place == 0 || place + 1 == text.len();
        let is_special = b",+<>;".contains(byte) || (is_end && *byte == b' ') || (place == 0 && *byte == b'#');
        match byte {
            0..0x20 | 0x7f.. => out.push_str(&format!("\\{byte:02X}")),
            b'"' | b'\\' => out.extend(['\\', char::from(*byte)]),
            _ => {
                if is_special && escape == Escape::Backslash {
                    out.push('\\');
                }
                needs_quotes |= is_special && escape == Escape::Quotes;
                out.push(char::from(*byte));
            }
        }
    }
    if needs_quotes { format!("\"{out}\"") } else { out }
}

/// Encodes a value with its tag and its length.
fn der(tag: u8, value: &[u8]) -> Vec<u8> {
    let bytes = value.len().to_be_bytes();
    let used = bytes.iter().position(|byte| *byte != 0).map_or(&bytes[..0], |first| &bytes[first..]);
    let length = if value.len() < 128 { vec![value.len() as u8] } else { [&[0x80 | used.len() as u8], used].concat() };
    [&[tag], &length[..], value].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use x509_parser::prelude::FromDer;

    /// An element of a name.
    fn element(tag: u8, content: &[u8]) -> Vec<u8> {
        der(tag, content)
    }

    fn attribute(kind: &[u8], tag: u8, value: &[u8]) -> Vec<u8> {
        element(0x30, &[element(6, kind), element(tag, value)].concat())
    }

    const COMMON_NAME: &[u8] = &[0x55, 4, 3];
    const ORGANIZATION: &[u8] = &[0x55, 4, 10];
    const SERIAL_NUMBER: &[u8] = &[0x55, 4, 5];
    /// 1.2.3.4.5
    const NAMELESS: &[u8] = &[0x2a, 3, 4, 5];

    /// Printed as in OpenSSL 3.0 and HAProxy 3.5.
    #[test]
    fn names_are_printed_as_openssl_does() {
        let one = |parts: &[&[Vec<u8>]]| {
            let sets = parts.iter().map(|part| element(0x31, &part.concat())).collect::<Vec<_>>();
            element(0x30, &sets.concat())
        };
        let rows = [
            (
                one(&[
                    &[attribute(COMMON_NAME, 12, b"cn"), attribute(SERIAL_NUMBER, 19, b"123")],
                    &[attribute(ORGANIZATION, 12, b"O")],
                ]),
                ["/CN=cn/serialNumber=123/O=O", "O=O,serialNumber=123+CN=cn", "CN = cn + serialNumber = 123, O = O"],
            ),
            (
                one(&[
                    &[attribute(COMMON_NAME, 12, "M\u{fc}ller \u{20ac} /x=y+z;<>#\\ ".as_bytes())],
                    &[attribute(ORGANIZATION, 12, b" lead")],
                ]),
                [
                    "/CN=M\u{fc}ller \u{20ac} /x=y+z;<>#\\ /O= lead",
                    "O=\\ lead,CN=M\\C3\\BCller \\E2\\82\\AC /x=y\\+z\\;\\<\\>#\\\\\\ ",
                    "CN = \"M\\C3\\BCller \\E2\\82\\AC /x=y+z;<>#\\\\ \", O = \" lead\"",
                ],
            ),
            (
                one(&[&[attribute(COMMON_NAME, 30, b"\0M\0\xfc\x20\xac")]]),
                ["/CN=M\u{fc}\u{20ac}", "CN=M\\C3\\BC\\E2\\82\\AC", "CN = M\\C3\\BC\\E2\\82\\AC"],
            ),
            (one(&[&[attribute(NAMELESS, 12, b"x")]]), ["/1.2.3.4.5=x", "1.2.3.4.5=#0C0178", "1.2.3.4.5 = x"]),
            (
                one(&[&[attribute(COMMON_NAME, 12, b"a\x01b\x7fc\n")]]),
                ["/CN=a\x01b\x7fc\n", "CN=a\\01b\\7Fc\\0A", "CN = a\\01b\\7Fc\\0A"],
            ),
        ];
        for (name, [line, backwards, with_blanks]) in rows {
            let (_, name) = X509Name::from_der(&name).unwrap();
            assert_eq!(String::from_utf8(one_line(&name)).unwrap(), line);
            assert_eq!(rfc2253(&name), backwards);
            assert_eq!(spaced(&name), with_blanks);
        }
    }

    #[test]
    fn numbers_are_dotted() {
        let rows: &[(&[u8], &str)] = &[
            (&[0x55, 4, 3], "2.5.4.3"),
            (&[0x2a, 3], "1.2.3"),
            (&[0x88, 0x37, 1], "2.999.1"),
            (&[0x27, 0x81, 0], "0.39.128"),
            (&[0x4f], "1.39"),
            (&[0x78], "2.40"),
            (&[], ""),
        ];
        for (bytes, expected) in rows {
            assert_eq!(dotted(&Oid::new((*bytes).into())), *expected);
        }
    }

    #[test]
    fn entries_are_found_in_whichever_case() {
        let name = element(0x30, &element(0x31, &attribute(COMMON_NAME, 12, b"a")));
        let (_, name) = X509Name::from_der(&name).unwrap();
        for (wanted, found) in [("CN", 1), ("cn", 1), ("2.5.4.3", 1), ("O", 0), ("commonName", 0)] {
            assert_eq!(entries(&name, wanted).len(), found, "{wanted}");
        }
    }
}
