//! The selection of certificates and signatures: OCSP responses, lists of signature algorithms, cipher suites,
//! generated certificates, limits of records and of key updates.

use std::sync::{Arc, Mutex};

use rcgen::{CertificateParams, KeyPair, PKCS_RSA_SHA256};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, ClientConnection, DigitallySignedStruct, Error, SignatureScheme};
use weir_tls::certificate::Certificate;
use weir_tls::limits::RecordLimits;
use weir_tls::ocsp::{Answer, CertId, Status};
use weir_tls::provider::{Algorithms, Signatures, Version, ciphers};
use weir_tls::server::Settings;
use weir_tls::{Client, Connection, client};

use crate::pair::{Authority, End, carry, name, server, shake};

/// Accepts every certificate, and records what was presented.
#[derive(Debug)]
struct Witness {
    schemes: Vec<SignatureScheme>,
    seen: Mutex<(Vec<u8>, Option<SignatureScheme>)>,
}

impl ServerCertVerifier for Witness {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        ocsp: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.seen.lock().unwrap().0 = ocsp.to_vec();
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.seen.lock().unwrap().1 = Some(signed.scheme);
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        self.verify_tls12_signature(message, certificate, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.schemes.clone()
    }
}

/// Returns the OCSP response and the signature for a rustls client that accepts these algorithms.
fn shown(server: &Arc<weir_tls::Server>, schemes: Vec<SignatureScheme>) -> (Vec<u8>, Option<SignatureScheme>) {
    let witness = Arc::new(Witness { schemes, seen: Mutex::default() });
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .dangerous()
        .with_custom_certificate_verifier(Arc::<Witness>::clone(&witness))
        .with_no_client_auth();
    let mut near = ClientConnection::new(Arc::new(config), name("a.example")).unwrap();
    let mut far = End::new(Connection::of_server(Arc::clone(server)));
    for _ in 0..4 {
        let mut bytes = Vec::new();
        near.write_tls(&mut bytes).unwrap();
        far.input.compact();
        assert!(far.input.push(&bytes));
        far.go_on();
        let mut answer = &*std::mem::take(&mut far.out);
        while !answer.is_empty() {
            near.read_tls(&mut answer).unwrap();
            if near.process_new_packets().is_err() {
                break;
            }
        }
    }
    witness.seen.lock().unwrap().clone()
}

fn all_schemes() -> Vec<SignatureScheme> {
    vec![
        SignatureScheme::ECDSA_NISTP256_SHA256,
        SignatureScheme::RSA_PSS_SHA256,
        SignatureScheme::RSA_PSS_SHA512,
        SignatureScheme::RSA_PKCS1_SHA256,
    ]
}

#[test]
fn answers_are_stapled_as_long_as_they_hold() {
    let certificate = Authority::new().certificate(&["a.example"]);
    let id = CertId { issuer_name: [0; 20], issuer_key: [0; 20], serial: [1].into() };
    let answer = |next_update| Answer {
        der: b"answer".to_vec(),
        id: id.clone(),
        status: Status::Good,
        this_update: 0,
        next_update,
    };
    let server = server(&[Arc::clone(&certificate)], Settings::default(), false);
    assert_eq!(shown(&server, all_schemes()).0, b"");
    certificate.staple(Some(Arc::new(answer(i64::MAX))));
    assert_eq!(shown(&server, all_schemes()).0, b"answer");
    certificate.staple(Some(Arc::new(answer(1))));
    assert_eq!(shown(&server, all_schemes()).0, b"", "its time has passed");
    certificate.staple(None);
    assert_eq!(shown(&server, all_schemes()).0, b"");
}

fn rsa(names: &[&str]) -> Arc<Certificate> {
    let key = KeyPair::from_pem_and_sign_algo(include_str!("../keys/rsa.pem"), &PKCS_RSA_SHA256).unwrap();
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let text = CertificateParams::new(names).unwrap().self_signed(&key).unwrap().pem() + &key.serialize_pem();
    Arc::new(Certificate::read("rsa.pem", text.as_bytes(), None).unwrap())
}

fn signing(own: &[SignatureScheme]) -> Settings {
    let signatures = Signatures { own: Some(own.to_vec()), of_peer: None };
    Settings { algorithms: Algorithms { signatures, ..Algorithms::default() }, ..Settings::default() }
}

#[test]
fn a_listener_signs_as_its_list_says() {
    let both = [Authority::new().certificate(&["a.example"]), rsa(&["a.example"])];
    let rows = [
        (vec![SignatureScheme::RSA_PSS_SHA256], Some(SignatureScheme::RSA_PSS_SHA256)),
        (vec![SignatureScheme::RSA_PSS_SHA512, SignatureScheme::RSA_PSS_SHA256], Some(SignatureScheme::RSA_PSS_SHA512)),
        (vec![SignatureScheme::ECDSA_NISTP256_SHA256], Some(SignatureScheme::ECDSA_NISTP256_SHA256)),
        (vec![SignatureScheme::ED25519], None),
    ];
    for (own, expected) in rows {
        let server = server(&both, signing(&own), false);
        assert_eq!(shown(&server, all_schemes()).1, expected, "{own:?}");
    }
}

#[test]
fn a_client_accepts_what_its_list_says() {
    let certificate = rsa(&["a.example"]);
    let server = server(&[certificate], Settings::default(), false);
    for (scheme, connects) in [(SignatureScheme::RSA_PSS_SHA384, true), (SignatureScheme::ED25519, false)] {
        let signatures = Signatures { own: None, of_peer: Some(vec![scheme]) };
        let algorithms = Algorithms { signatures, ..Algorithms::default() };
        let settings = client::Settings { algorithms, ..client::Settings::default() };
        let (near, _) = shake(&server, &Client::new(settings).unwrap(), name("a.example"), 100_000);
        assert_eq!(near.connection.is_open(), connects, "{scheme:?}");
    }
}

#[test]
fn suites_of_tls_1_2_choose_a_certificate() {
    let server =
        server(&[Authority::new().certificate(&["a.example"]), rsa(&["a.example"])], Settings::default(), false);
    for (list, expected) in [("aECDSA", "test.pem"), ("aRSA", "rsa.pem"), ("ALL", "test.pem")] {
        let algorithms = Algorithms {
            versions: (Version::Tls12, Version::Tls12),
            ciphers: Some(ciphers(list).found),
            ..Algorithms::default()
        };
        let settings = client::Settings { algorithms, ..client::Settings::default() };
        let (_, mut far) = shake(&server, &Client::new(settings).unwrap(), name("a.example"), 100_000);
        assert!(far.connection.is_open(), "{list}");
        assert_eq!(&*far.connection.take_handshake_info().unwrap().own.unwrap().name, expected, "{list}");
    }
}

#[test]
fn certificates_are_made_for_unknown_names() {
    let authority = Authority::new();
    let signer = {
        let text = authority.0.pem() + &authority.0.key().serialize_pem();
        Arc::new(Certificate::read("ca.pem", text.as_bytes(), None).unwrap())
    };
    let like = authority.certificate(&["a.example"]);
    let settings = Arc::new(Settings::default());
    let entries = |is_default| {
        let row = weir_tls::names::Row { kind: like.kind, names: like.names.clone(), excluded: Vec::new(), is_default };
        vec![weir_tls::server::Entry {
            certificate: Arc::clone(&like),
            row,
            is_filtered: false,
            settings: Arc::clone(&settings),
            line: None,
        }]
    };
    let verifying = client::Settings { authorities: Some(authority.authorities()), ..client::Settings::default() };
    for strict in [false, true] {
        let server = weir_tls::Server::new(entries(true), strict, Default::default()).unwrap();
        let server = Arc::new(server.generating(Arc::clone(&signer), 2));
        let own = |asked: &str| {
            let (near, mut far) = shake(&server, &Client::new(verifying.clone()).unwrap(), name(asked), 100_000);
            assert!(near.connection.is_open(), "{asked} {:?}", near.failure);
            far.connection.take_handshake_info().unwrap().own.unwrap()
        };
        assert_eq!(&*own("a.example").name, "test.pem");
        let first = own("b.example");
        assert_eq!((&*first.name, &first.names[0]), ("b.example", &"b.example".into()));
        let (_, parsed) = x509_parser::parse_x509_certificate(first.der()).unwrap();
        let usage = parsed.key_usage().unwrap().unwrap().value.to_string();
        assert_eq!(usage, "Digital Signature, Non Repudiation, Key Encipherment");
        let kinds = parsed.extensions().iter().map(|one| one.oid.to_id_string());
        assert!(kinds.clone().any(|kind| kind == "2.5.29.14"), "a key identifier: {:?}", kinds.collect::<Vec<_>>());
        assert!(Arc::ptr_eq(&first, &own("B.example")), "it is remembered");
        // A name too long for a common name is only in the subjectAltName.
        let long = format!("{}.{}.example", "b".repeat(60), "c".repeat(60));
        assert!(own(&long).names.contains(&long.into()));
        own("c.example");
        assert!(!Arc::ptr_eq(&first, &own("b.example")), "two are remembered");
    }
}

/// Connects two ends with TLS 1.3, the far one with these limits.
fn open(limits: RecordLimits) -> (End, End) {
    let settings = Settings { limits, ..Settings::default() };
    let server = server(&[Authority::new().certificate(&["a.example"])], settings, false);
    let (near, far) = shake(&server, &Client::new(client::Settings::default()).unwrap(), name("a.example"), 100_000);
    assert!(near.connection.is_open() && far.connection.is_open());
    (near, far)
}

#[test]
fn records_are_no_larger_than_allowed() {
    for (record, expected) in [(0, 16_384), (1_000, 1_000), (1, 64), (u16::MAX, 16_384)] {
        let (_, mut far) = open(RecordLimits { record, ..RecordLimits::default() });
        let sent = far.connection.send([&[7; 20_000], &[]], usize::MAX, &mut far.out).unwrap();
        assert_eq!(sent, expected, "{record}");
    }
}

#[test]
fn what_is_sent_in_small_records_arrives() {
    let (mut near, mut far) = open(RecordLimits { record: 100, ..RecordLimits::default() });
    far.send(&[7; 5_000]);
    carry(&mut far, &mut near, 1_000);
    assert_eq!(near.receive().map(|(bytes, _)| bytes.len()), Ok(5_000));
}
