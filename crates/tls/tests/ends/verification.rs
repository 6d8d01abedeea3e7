//! Errors of client certificates, which of them are ignored, and those that cannot be ignored by accident.

use std::sync::Arc;

use rcgen::{
    CertificateParams, CertificateRevocationListParams, KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber,
    SigningKey, date_time_ymd,
};
use rustls::pki_types::CertificateRevocationListDer;
use weir_tls::certificate::Certificate;
use weir_tls::faults::{Fault, Ignored};
use weir_tls::server::{Settings, Verify};
use weir_tls::verify::{Authorities, ClientTerms};
use weir_tls::{Client, client};

use crate::pair::{Authority, name, server, shake};

/// A certificate to issue, of any version.
#[derive(Clone, Copy)]
struct CertificateOptions {
    elder: bool,
    until: i32,
    serial: u8,
}

const GOOD: CertificateOptions = CertificateOptions { elder: false, until: 2100, serial: 7 };

fn certificate(authority: &Authority, wanted: CertificateOptions) -> Arc<Certificate> {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["client".to_owned()]).unwrap();
    params.serial_number = Some(SerialNumber::from(vec![wanted.serial]));
    (params.not_before, params.not_after) = (date_time_ymd(2000, 1, 1), date_time_ymd(wanted.until, 1, 1));
    let signed = params.signed_by(&key, &authority.0).unwrap();
    let der = if wanted.elder { without_extensions(signed.der(), authority) } else { signed.der().to_vec() };
    let body = data_encoding::BASE64.encode(&der);
    let text = format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n") + &key.serialize_pem();
    Arc::new(Certificate::read("client.pem", text.as_bytes(), None).unwrap())
}

/// Encodes a DER element.
fn element(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap().to_be_bytes();
    [&[tag, 0x82], &length[..], content].concat()
}

/// Splits a sequence into its elements, each with its tag and length.
fn elements(der: &[u8]) -> Vec<Vec<u8>> {
    let header = |der: &[u8]| match der[1] {
        length @ 0..=0x7f => (2, usize::from(length)),
        0x81 => (3, usize::from(der[2])),
        _ => (4, usize::from(u16::from_be_bytes([der[2], der[3]]))),
    };
    let (begin, length) = header(der);
    let (mut rest, mut found) = (&der[begin..begin + length], Vec::new());
    while !rest.is_empty() {
        let (begin, length) = header(rest);
        let (one, behind) = rest.split_at(begin + length);
        found.push(one.to_vec());
        rest = behind;
    }
    found
}

/// Converts a certificate to version 1.
fn without_extensions(der: &[u8], authority: &Authority) -> Vec<u8> {
    let outer = elements(der);
    let inner = elements(&outer[0]);
    // Without the version at the front and the extensions at the end.
    let signed = element(0x30, &inner[1..inner.len() - 1].concat());
    let signature = authority.0.key().sign(&signed).unwrap();
    element(0x30, &[signed, outer[1].clone(), element(3, &[&[0], &signature[..]].concat())].concat())
}

fn list(authority: &Authority, revoked: &[u8], until: i32) -> CertificateRevocationListDer<'static> {
    let revoked = revoked.iter().map(|serial| RevokedCertParams {
        serial_number: SerialNumber::from(vec![*serial]),
        revocation_time: date_time_ymd(2001, 1, 1),
        reason_code: None,
        invalidity_date: None,
    });
    let params = CertificateRevocationListParams {
        this_update: date_time_ymd(2000, 1, 1),
        next_update: date_time_ymd(until, 1, 1),
        crl_number: SerialNumber::from(vec![1]),
        issuing_distribution_point: None,
        revoked_certs: revoked.collect(),
        key_identifier_method: KeyIdMethod::Sha256,
    };
    params.signed_by(&authority.0).unwrap().der().clone()
}

/// Returns the errors of a client whose certificate the server accepts; `None`: it rejects it.
fn judged(
    certificate: &Arc<Certificate>,
    authorities: Authorities,
    (own, behind): (&str, &str),
) -> Option<Vec<(u8, u8)>> {
    let terms = ClientTerms {
        is_required: true,
        authorities: Arc::new(authorities),
        ignored: Ignored::parse(own).unwrap(),
        ignored_behind: Ignored::parse(behind).unwrap(),
        ..ClientTerms::default()
    };
    let settings = Settings { verify: Verify::Asked(terms), ..Settings::default() };
    let server = server(&[Authority::new().certificate(&["a.example"])], settings, false);
    let certificate = Some(Arc::clone(certificate));
    let settings = client::Settings { certificate, ..client::Settings::default() };
    let (_, mut far) = shake(&server, &Client::new(settings).unwrap(), name("a.example"), 100_000);
    let info = far.connection.is_open().then(|| far.connection.take_handshake_info())??;
    Some(info.faults.iter().map(|Fault { code, depth }| (*code, *depth)).collect())
}

#[test]
fn faults_are_ignored_where_every_one_of_them_is() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let roots = authority.authorities().roots.clone();
    for elder in [false, true] {
        let good = certificate(&authority, CertificateOptions { elder, ..GOOD });
        let expired = certificate(&authority, CertificateOptions { elder, until: 2001, ..GOOD });
        let strange = certificate(&stranger, CertificateOptions { elder, ..GOOD });
        let strange_expired = certificate(&stranger, CertificateOptions { elder, until: 2001, ..GOOD });
        let both = "X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY,X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE";
        type Row<'a> = (&'a Arc<Certificate>, &'a str, &'a str, Option<&'a [(u8, u8)]>);
        let rows: &[Row<'_>] = &[
            (&good, "", "", Some(&[])),
            (&good, "all", "all", Some(&[])),
            (&expired, "", "all", None),
            (&expired, "9", "", None),
            (&expired, "X509_V_ERR_CERT_HAS_EXPIRED", "", Some(&[(10, 0)])),
            (&strange, "", "all", None),
            (&strange, "20", "all", None),
            (&strange, both, "", Some(&[(20, 0), (21, 0)])),
            // It has expired, and its issuer is unknown.
            (&strange_expired, "10", "all", None),
            (&strange_expired, both, "all", None),
        ];
        for (certificate, own, behind, expected) in rows {
            let authorities = Authorities { roots: roots.clone(), ..Authorities::default() };
            let found = judged(certificate, authorities, (own, behind));
            assert_eq!(found.as_deref(), *expected, "{elder} {own} {behind}");
        }
        let authorities = Authorities { roots: roots.clone(), ..Authorities::default() };
        assert!(judged(&strange_expired, authorities, ("all", "all")).is_some());
    }
}

#[test]
fn lists_revoke_certificates_of_both_versions() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let roots = authority.authorities().roots.clone();
    for elder in [false, true] {
        let certificate = certificate(&authority, CertificateOptions { elder, ..GOOD });
        let rows = [
            (vec![list(&authority, &[6, 8], 2100)], "", Some(vec![])),
            (vec![list(&authority, &[6, 7], 2100)], "", None),
            (vec![list(&authority, &[6, 7], 2100)], "X509_V_ERR_CERT_REVOKED", Some(vec![(23, 0)])),
            (vec![list(&authority, &[6], 2001)], "", None),
            (vec![list(&authority, &[6], 2001)], "12", Some(vec![(12, 0), (12, 1)])),
            (vec![list(&authority, &[6], 2001), list(&authority, &[6], 2100)], "", Some(vec![])),
            // A list of another issuer does not count, and then the status is unknown.
            (vec![list(&stranger, &[7], 2100)], "", None),
            (vec![list(&stranger, &[7], 2100)], "3", Some(vec![(3, 0), (3, 1)])),
        ];
        for (place, (revoked, own, expected)) in rows.into_iter().enumerate() {
            let found = judged(
                &certificate,
                Authorities { roots: roots.clone(), revoked, ..Authorities::default() },
                // The root needs a list too.
                (own, if own == "X509_V_ERR_CERT_REVOKED" { "" } else { own }),
            );
            assert_eq!(found, expected, "{elder} {place}");
        }
    }
}

/// A certificate modified after it was signed is rejected.
#[test]
fn an_elder_certificate_needs_its_signature() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["client".to_owned()]).unwrap();
    let der = without_extensions(params.signed_by(&key, &authority.0).unwrap().der(), &stranger);
    let body = data_encoding::BASE64.encode(&der);
    let text = format!("-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n") + &key.serialize_pem();
    let forged = Arc::new(Certificate::read("client.pem", text.as_bytes(), None).unwrap());
    let roots = authority.authorities().roots.clone();
    assert_eq!(judged(&forged, Authorities { roots, ..Authorities::default() }, ("10", "all")), None);
}
