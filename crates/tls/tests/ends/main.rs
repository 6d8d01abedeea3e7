//! Both ends of a connection, back to back: every version and cipher, pieces of all sizes, and failures.

#![allow(clippy::unwrap_used)]

mod certificates;
mod early_data;
mod pair;
mod recorded;
mod resuming;
mod sweep;
mod verification;

use std::sync::Arc;

use pair::{Authority, End, carry, name, server, server_with, shake};
use rcgen::{BasicConstraints, CertificateParams, IsCa, KeyPair};
use weir_tls::capture::List;
use weir_tls::certificate::{Certificate, Kind};
use weir_tls::limits::RecordLimits;
use weir_tls::provider::{Algorithms, Version, ciphers, ciphersuites};
use weir_tls::server::{Settings, Verify};
use weir_tls::verify::{Authorities, ClientTerms};
use weir_tls::{Client, Connection, Failure, Server, client};

fn anybody(algorithms: Algorithms) -> Client {
    Client::new(client::Settings { algorithms, resumes: true, ..client::Settings::default() }).unwrap()
}

#[test]
fn every_cipher_carries_bytes_both_ways() {
    let certificate = Authority::new().certificate(&["a.example"]);
    let of_13 = ["TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"];
    let of_12 = ["ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-ECDSA-CHACHA20-POLY1305"];
    let of_13 = of_13.map(|name| (name, Version::Tls13)).into_iter();
    for (cipher, version) in of_13.chain(of_12.map(|name| (name, Version::Tls12))) {
        let mut algorithms = Algorithms { versions: (version, version), ..Algorithms::default() };
        match version {
            Version::Tls13 => algorithms.ciphersuites = Some(ciphersuites(cipher).found),
            Version::Tls12 => algorithms.ciphers = Some(ciphers(cipher).found),
        }
        let settings = Settings { algorithms, alpn: vec![b"http/1.1".to_vec()], ..Settings::default() };
        let server = server(&[Arc::clone(&certificate)], settings, false);
        for piece in [1, 7, 100_000] {
            let (mut near, mut far) = shake(&server, &anybody(Algorithms::default()), name("a.example"), piece);
            assert_eq!((near.failure.take(), far.failure.take()), (None, None), "{cipher}");
            let info = far.connection.take_handshake_info().unwrap();
            assert_eq!(info.suite.map(weir_tls::provider::suite_name), Some(cipher));
            assert_eq!(info.server_name.as_deref(), Some(&b"a.example"[..]));
            let bytes: Vec<u8> = (0..40_000_u32).map(|at| at as u8).collect();
            near.send(&bytes);
            carry(&mut near, &mut far, 100_000);
            assert_eq!(far.receive().unwrap(), (bytes.clone(), false));
            far.send(&bytes);
            far.connection.close(&mut far.out);
            carry(&mut far, &mut near, 100_000);
            assert_eq!(near.receive().unwrap(), (bytes, true));
            assert_eq!(far.receive().unwrap(), (Vec::new(), false));
        }
    }
}

/// Independent of how the ClientHello is split into records.
#[test]
fn what_a_client_offers_is_kept_as_far_as_the_buffer_goes() {
    let certificate = Authority::new().certificate(&["a.example"]);
    let mut algorithms = Algorithms { versions: (Version::Tls12, Version::Tls12), ..Algorithms::default() };
    algorithms.ciphers = Some(ciphers("ECDHE-ECDSA-AES128-GCM-SHA256").found);
    for (capture, kept) in [(0, None), (1, Some(1)), (1000, Some(8))] {
        let server = server(&[Arc::clone(&certificate)], Settings { capture, ..Settings::default() }, false);
        for piece in [1, 100_000] {
            let (_, mut far) = shake(&server, &anybody(algorithms.clone()), name("a.example"), piece);
            let info = far.connection.take_handshake_info().unwrap();
            let hello = info.hello.as_deref();
            assert_eq!(hello.map(|hello| hello.list(List::Ciphers).len().min(8)), kept, "{capture}");
            assert_eq!(hello.map(|hello| hello.version), kept.map(|_| 0x0303));
            let ciphers = hello.map_or(&[][..], |hello| hello.list(List::Ciphers));
            assert_eq!(ciphers.chunks(2).any(|pair| pair == [0xc0, 0x2b]), capture == 1000, "{ciphers:?}");
        }
    }
}

/// The first of the server's protocols that a client offers; if there is none in common, the handshake continues
/// without one (as in HAProxy).
#[test]
fn a_protocol_is_agreed_on_or_none() {
    let alpn = |names: &str| names.split_whitespace().map(|name| name.as_bytes().to_vec()).collect::<Vec<_>>();
    let rows = [
        ("h2 http/1.1", "http/1.1 h2", Some("h2")),
        ("h2 http/1.1", "http/1.1", Some("http/1.1")),
        ("h2 http/1.1", "http/1.0", None),
        ("h2", "http/1.1 spdy/3", None),
        ("h2", "", None),
        ("", "h2", None),
    ];
    for (own, offered, agreed) in rows {
        let settings = Settings { alpn: alpn(own), ..Settings::default() };
        let server = server(&[Authority::new().certificate(&["a.example"])], settings, false);
        let client = anybody(Algorithms::default());
        let mut near = End::new(Connection::of_client(&client, name("a.example"), Some(&alpn(offered))).unwrap());
        let mut far = End::new(Connection::of_server(Arc::clone(&server)));
        near.go_on();
        for _ in 0..4 {
            carry(&mut near, &mut far, 100_000);
            carry(&mut far, &mut near, 100_000);
        }
        assert_eq!((near.failure.take(), far.failure.take()), (None, None), "{own:?} {offered:?}");
        assert_eq!(
            far.connection.take_handshake_info().unwrap().alpn.as_deref(),
            agreed.map(str::as_bytes),
            "{own:?} {offered:?}"
        );
    }
}

#[test]
fn a_session_is_resumed() {
    let authority = Authority::new();
    for (version, has_tickets) in
        [(Version::Tls12, true), (Version::Tls13, true), (Version::Tls12, false), (Version::Tls13, false)]
    {
        let server = server_with(&[authority.certificate(&["a.example"])], Settings::default(), false, has_tickets);
        let client = anybody(Algorithms { versions: (version, version), ..Algorithms::default() });
        let mut resumed = Vec::new();
        for _ in 0..3 {
            let (mut near, mut far) = shake(&server, &client, name("a.example"), 1_000);
            carry(&mut far, &mut near, 1_000);
            assert_eq!(near.receive().unwrap(), (Vec::new(), false));
            resumed.push((
                near.connection.take_handshake_info().unwrap().resumed,
                far.connection.take_handshake_info().unwrap().resumed,
            ));
        }
        assert_eq!(resumed, [(false, false), (true, true), (true, true)], "{version:?} {has_tickets}");
    }
}

#[test]
fn servers_are_who_they_have_to_be() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    let server = server(&[authority.certificate(&["a.example", "*.b.example"])], Settings::default(), false);
    let rows = [
        (&authority, None, "a.example", true),
        (&authority, None, "q.b.example", true),
        (&authority, None, "c.example", false),
        // `verifyhost` applies to connections without SNI.
        (&authority, Some("a.example"), "c.example", false),
        (&authority, Some("c.example"), "a.example", true),
        (&authority, Some("a.example"), "127.0.0.1", true),
        (&authority, None, "127.0.0.1", true),
        (&authority, Some("c.example"), "127.0.0.1", false),
        (&stranger, None, "a.example", false),
    ];
    for (believed, host, asked, connects) in rows {
        let settings = client::Settings {
            authorities: Some(believed.authorities()),
            host: host.map(str::to_owned),
            ..client::Settings::default()
        };
        let (near, far) = shake(&server, &Client::new(settings).unwrap(), name(asked), 100_000);
        assert_eq!(near.connection.is_open(), connects, "{host:?} {asked} {:?}", near.failure);
        assert_eq!(far.connection.is_open(), connects, "{host:?} {asked}");
        if !connects {
            // It receives the reason.
            assert!(matches!(near.failure, Some(Failure::Handshake(_))), "{:?}", near.failure);
            assert!(far.failure.is_some());
        }
    }
}

#[test]
fn clients_show_who_they_are() {
    let (authority, stranger) = (Authority::new(), Authority::new());
    for is_required in [true, false] {
        let terms = ClientTerms {
            is_required,
            authorities: authority.authorities(),
            announces: true,
            ..ClientTerms::default()
        };
        let verify = Verify::Asked(terms);
        let settings = Settings { verify, ..Settings::default() };
        let server = server(&[authority.certificate(&["a.example"])], settings, false);
        let rows = [(None, !is_required), (Some(&authority), true), (Some(&stranger), false)];
        for (signed_by, connects) in rows {
            let certificate = signed_by.map(|authority| authority.certificate(&["client"]));
            let settings = client::Settings { certificate, ..client::Settings::default() };
            let (_, mut far) = shake(&server, &Client::new(settings).unwrap(), name("a.example"), 100_000);
            assert_eq!(far.connection.is_open(), connects, "{is_required} {:?}", far.failure);
            if connects {
                assert_eq!(far.connection.take_handshake_info().unwrap().peer.len(), usize::from(signed_by.is_some()));
            }
        }
    }
}

#[test]
fn a_certificate_that_signs_others_is_believed_where_it_is_named() {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["a.example".to_owned()]).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let own = params.self_signed(&key).unwrap();
    let text = own.pem() + &key.serialize_pem();
    let certificate = Arc::new(Certificate::read("own.pem", text.as_bytes(), None).unwrap());
    let server = server(&[certificate], Settings::default(), false);
    let authorities = Arc::new(Authorities { roots: vec![own.der().clone()], ..Authorities::default() });
    for (asked, connects) in [("a.example", true), ("b.example", false)] {
        let settings = client::Settings { authorities: Some(Arc::clone(&authorities)), ..client::Settings::default() };
        let (near, _) = shake(&server, &Client::new(settings).unwrap(), name(asked), 100_000);
        assert_eq!(near.connection.is_open(), connects, "{asked} {:?}", near.failure);
    }
}

#[test]
fn names_choose_certificates() {
    let authority = Authority::new();
    let certificates = [authority.certificate(&["a.example"]), authority.certificate(&["b.example"])];
    for (asked, strict, expected) in [
        ("a.example", false, Some("a.example")),
        ("b.example", true, Some("b.example")),
        ("c.example", false, Some("a.example")),
        ("c.example", true, None),
    ] {
        let server = server(&certificates, Settings::default(), strict);
        let (near, mut far) = shake(&server, &anybody(Algorithms::default()), name(asked), 100_000);
        let shown = far.connection.take_handshake_info().and_then(|info| Some(info.own?.names[0].clone()));
        assert_eq!(shown.as_deref(), expected, "{asked} {strict}");
        if expected.is_none() {
            assert_eq!(far.failure, Some(Failure::UnknownName));
            assert!(matches!(near.failure, Some(Failure::Handshake(rustls::Error::AlertReceived(_)))));
        }
    }
}

#[test]
fn what_is_no_handshake_is_refused() {
    let server = server(&[Authority::new().certificate(&["a"])], Settings::default(), false);
    for text in [&b"GET / HTTP/1.1\r\n"[..], b"\x80\x2e\x01\x00\x02", &[0x16, 3, 1, 0, 5, 2, 0, 0, 1, 3]] {
        let mut far = End::new(Connection::of_server(Arc::clone(&server)));
        assert!(far.input.push(text));
        far.go_on();
        let expected = if text.starts_with(b"GET ") { Failure::Http } else { Failure::NotTls };
        assert_eq!(far.failure, Some(expected), "{text:?}");
        assert_eq!(far.connection.receive(&mut far.input, &mut far.out), Err(Failure::Message));
    }
}

#[test]
fn a_record_that_was_changed_ends_the_connection() {
    let server = server(&[Authority::new().certificate(&["a"])], Settings::default(), false);
    let (mut near, mut far) = shake(&server, &anybody(Algorithms::default()), name("a"), 100_000);
    near.send(b"hello");
    *near.out.last_mut().unwrap() ^= 1;
    carry(&mut near, &mut far, 100_000);
    assert!(matches!(far.receive(), Err(Failure::Record(_))));
    // The peer receives an alert, and nothing is accepted after that.
    carry(&mut far, &mut near, 100_000);
    assert_eq!(near.receive(), Err(Failure::Alert(20)));
    assert!(far.connection.send([&b"x"[..], &[]], 1, &mut Vec::new()).is_err());
}

proptest::proptest! {
    /// For all sizes of records and of pieces, bytes arrive as they were sent, and no buffer is kept in between.
    #[test]
    fn pieces_do_not_matter(writes in proptest::collection::vec((1_usize..20_000, 1_usize..17_000), 1..6), piece in 1_usize..9_000) {
        let server = SERVER.get_or_init(|| server(&[Authority::new().certificate(&["a"])], Settings::default(), false));
        let (mut near, mut far) = shake(server, &anybody(Algorithms::default()), name("a"), 100_000);
        let (mut sent, mut came) = (Vec::new(), Vec::new());
        for (length, most) in writes {
            let bytes: Vec<u8> = (0..length).map(|at| (at * 7 + most) as u8).collect();
            let mut at = 0;
            while at < length {
                let half = at + (length - at) / 2;
                at += near.connection.send([&bytes[at..half], &bytes[half..]], most, &mut near.out).unwrap();
            }
            sent.extend(bytes);
            for part in std::mem::take(&mut near.out).chunks(piece) {
                far.input.compact();
                assert!(far.input.push(part));
                came.extend(far.receive().unwrap().0);
            }
        }
        proptest::prop_assert_eq!(sent, came);
        proptest::prop_assert!(far.input.is_empty());
    }
}

static SERVER: std::sync::OnceLock<Arc<Server>> = std::sync::OnceLock::new();

/// A client of TLS 1.2 gets a certificate of the key type of its suites, regardless of its signature schemes.
#[test]
fn suites_choose_the_kind_of_certificate() {
    let certificate = |algorithm| {
        let key = KeyPair::generate_for(algorithm).unwrap();
        let signed = CertificateParams::new(vec!["a.example".to_owned()]).unwrap().self_signed(&key).unwrap();
        Arc::new(Certificate::read("test.pem", (signed.pem() + &key.serialize_pem()).as_bytes(), None).unwrap())
    };
    let both = [certificate(&rcgen::PKCS_ECDSA_P256_SHA256), certificate(&rcgen::PKCS_RSA_SHA256)];
    let server = server(&both, Settings::default(), false);
    for (suite, kind) in [("ECDHE-RSA-AES128-GCM-SHA256", Kind::Rsa), ("ECDHE-ECDSA-AES256-GCM-SHA384", Kind::Ecdsa)] {
        let mut algorithms = Algorithms { versions: (Version::Tls12, Version::Tls12), ..Algorithms::default() };
        algorithms.ciphers = Some(ciphers(suite).found);
        let (near, mut far) = shake(&server, &anybody(algorithms), name("a.example"), 100_000);
        assert_eq!((near.failure, far.failure.take()), (None, None), "{suite}");
        assert_eq!(far.connection.take_handshake_info().unwrap().own.unwrap().kind, kind);
    }
    let (_, mut far) = shake(&server, &anybody(Algorithms::default()), name("a.example"), 100_000);
    assert_eq!(far.connection.take_handshake_info().unwrap().own.unwrap().kind, Kind::Ecdsa);
}

/// RFC 8879: the certificate is compressed if both sides support it.
#[test]
fn certificates_are_compressed_where_both_sides_take_that() {
    let names: Vec<String> = (0..300).map(|number| format!("name-{number}.example.com")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let certificate = Authority::new().certificate(&names);
    let length = certificate.der().len();
    let limits = |compresses| RecordLimits { compresses, ..RecordLimits::default() };
    for (near, far) in [(true, true), (true, false), (false, true), (false, false)] {
        let server =
            server(&[Arc::clone(&certificate)], Settings { limits: limits(far), ..Settings::default() }, false);
        let client = Client::new(client::Settings { limits: limits(near), ..client::Settings::default() }).unwrap();
        let mut near_end = End::new(Connection::of_client(&client, name("name-1.example.com"), None).unwrap());
        let mut far_end = End::new(Connection::of_server(server));
        near_end.go_on();
        carry(&mut near_end, &mut far_end, 100_000);
        assert_eq!(far_end.out.len() < length, near && far, "{near} {far}");
        carry(&mut far_end, &mut near_end, 100_000);
        carry(&mut near_end, &mut far_end, 100_000);
        assert!(near_end.connection.is_open() && far_end.connection.is_open(), "{near} {far}");
        assert_eq!(*near_end.connection.take_handshake_info().unwrap().peer[0], *certificate.der());
    }
}
