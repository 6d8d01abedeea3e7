//! The content of revocation lists (RFC 5280, section 5), in the form that the runtime API prints. Must never judge a
//! certificate.

use base::hex::encode_upper;
use x509_parser::prelude::FromDer;
use x509_parser::revocation_list::CertificateRevocationList;

use crate::x509::{long_moment, name, serial};

/// The printed fields of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Details {
    /// Its version: 1 or 2 (RFC 5280, section 5.1.2.1).
    pub version: u32,
    /// The signature algorithm.
    pub algorithm: String,
    /// The issuer's name.
    pub issuer: String,
    /// lastUpdate, in OpenSSL's date format.
    pub last_update: String,
    /// nextUpdate; `None`: absent.
    pub next_update: Option<String>,
    /// Serial numbers in hexadecimal, and their revocation dates.
    pub revoked: Vec<(String, String)>,
}

/// Returns OpenSSL's long name of a signature algorithm.
fn signature_algorithm(number: String) -> String {
    const NAMES: &[(&str, &str)] = &[
        ("1.2.840.113549.1.1.4", "md5WithRSAEncryption"),
        ("1.2.840.113549.1.1.5", "sha1WithRSAEncryption"),
        ("1.2.840.113549.1.1.10", "rsassaPss"),
        ("1.2.840.113549.1.1.11", "sha256WithRSAEncryption"),
        ("1.2.840.113549.1.1.12", "sha384WithRSAEncryption"),
        ("1.2.840.113549.1.1.13", "sha512WithRSAEncryption"),
        ("1.2.840.10045.4.3.2", "ecdsa-with-SHA256"),
        ("1.2.840.10045.4.3.3", "ecdsa-with-SHA384"),
        ("1.2.840.10045.4.3.4", "ecdsa-with-SHA512"),
        ("1.3.101.112", "ED25519"),
    ];
    NAMES.iter().find(|(known, _)| *known == number).map_or(number, |(_, name)| (*name).to_owned())
}

/// Returns the fields of a list in DER. `None`: it cannot be parsed.
pub fn details(der: &[u8]) -> Option<Details> {
    let (_, list) = CertificateRevocationList::from_der(der).ok()?;
    Some(Details {
        version: list.version().map_or(1, |version| version.0 + 1),
        algorithm: signature_algorithm(list.signature_algorithm.algorithm.to_id_string()),
        issuer: name(list.issuer()),
        last_update: long_moment(list.last_update().timestamp()),
        next_update: list.next_update().map(|time| long_moment(time.timestamp())),
        revoked: list
            .iter_revoked_certificates()
            .map(|one| (encode_upper(&serial(one.raw_serial())), long_moment(one.revocation_date.timestamp())))
            .collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_told_as_openssl_does() {
        let mut params = rcgen::CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        params.distinguished_name = rcgen::DistinguishedName::new();
        params.distinguished_name.push(rcgen::DnType::CommonName, "CA");
        let issuer = rcgen::Issuer::new(params, rcgen::KeyPair::generate().unwrap());
        let day = |day| rcgen::date_time_ymd(2030, 1, day);
        let revoked = rcgen::RevokedCertParams {
            serial_number: rcgen::SerialNumber::from(vec![0x10, 8]),
            revocation_time: day(1),
            reason_code: None,
            invalidity_date: None,
        };
        let list = rcgen::CertificateRevocationListParams {
            this_update: day(2),
            next_update: day(3),
            crl_number: rcgen::SerialNumber::from(1_u64),
            issuing_distribution_point: None,
            revoked_certs: vec![revoked],
            key_identifier_method: rcgen::KeyIdMethod::Sha256,
        };
        let list = list.signed_by(&issuer).unwrap();
        let told = details(list.der()).unwrap();
        assert_eq!(told.revoked, [("1008".to_owned(), "Jan  1 00:00:00 2030 GMT".to_owned())]);
        assert_eq!((told.version, told.issuer.as_str(), told.algorithm.as_str()), (2, "/CN=CA", "ecdsa-with-SHA256"));
        assert_eq!(told.last_update, "Jan  2 00:00:00 2030 GMT");
        assert_eq!(told.next_update.as_deref(), Some("Jan  3 00:00:00 2030 GMT"));
        assert_eq!(details(b"x"), None);
    }
}
