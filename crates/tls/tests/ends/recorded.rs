//! Chains and names of servers, verified as in HAProxy 3.5: both tables were recorded with `bench/certificates.py`.

use std::sync::Arc;

use data_encoding::BASE64;
use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::pki_types::{CertificateDer, CertificateRevocationListDer, PrivateKeyDer, ServerName};
use weir_tls::certificate::Certificate;
use weir_tls::faults::{Fault, Ignored};
use weir_tls::pem;
use weir_tls::server::{Settings, Verify};
use weir_tls::verify::{Authorities, ClientTerms};
use weir_tls::{Client, Connection, Failure, ServerIdentity, asked_name, client};

use crate::pair::{Authority, End, carry, name, server, shake};

const CHAINS: &str = include_str!("../table/chains.txt");
const HOSTS: &str = include_str!("../table/hosts.txt");

/// A case of the table.
struct Case {
    name: &'static str,
    /// The lines `strict:`, `ignored:` and `server:`.
    results: [&'static str; 3],
    authorities: Arc<Authorities>,
    silent: Option<Arc<Authorities>>,
    /// `None`: its key is one that this side cannot use.
    shown: Option<Arc<Certificate>>,
}

fn cases() -> Vec<Case> {
    let begin = CHAINS.find("== ").unwrap();
    let parts: Vec<&str> = CHAINS[..begin].lines().collect();
    CHAINS[begin..].split("== ").skip(1).map(|text| case(text, &parts)).collect()
}

fn case(text: &'static str, parts: &[&str]) -> Case {
    let mut lines = text.lines();
    let name = lines.next().unwrap();
    let mut line = |key: &str| lines.next().and_then(|line| line.strip_prefix(key)).map(str::trim_start).unwrap();
    let results = [line("strict:"), line("ignored:"), line("server:")];
    let read = |numbers: &str| {
        let bodies = numbers.split_whitespace().map(|number| parts[number.parse::<usize>().unwrap()]);
        bodies.map(|body| BASE64.decode(body.as_bytes()).unwrap()).collect::<Vec<_>>()
    };
    let certificates = |numbers: &str| read(numbers).into_iter().map(CertificateDer::from).collect::<Vec<_>>();
    let (roots, silent) = (certificates(line("ca:")), certificates(line("verify:")));
    let revoked: Vec<_> = read(line("crl:")).into_iter().map(CertificateRevocationListDer::from).collect();
    let crl_file = (!revoked.is_empty()).then(|| "crl".into());
    let authorities = Authorities { roots, revoked, crl_file, ..Authorities::default() };
    let silent = (!silent.is_empty()).then(|| Arc::new(Authorities { roots: silent, ..Authorities::default() }));
    let chain: String = certificates(line("chain:")).iter().map(|der| pem::encode_certificate(der)).collect();
    let key = read(line("key:")).pop().unwrap();
    let text = chain + &pem::encode_key(&PrivateKeyDer::Pkcs8(key.into()));
    let shown = Certificate::read("case.pem", text.as_bytes(), None).ok().map(Arc::new);
    Case { name, results, authorities: Arc::new(authorities), silent, shown }
}

/// Returns the received alert, by OpenSSL's name.
fn alert(end: &mut End) -> Option<&'static str> {
    let failure = match &end.failure {
        Some(failure) => failure.clone(),
        None => end.receive().err()?,
    };
    let number = match failure {
        Failure::Alert(number) => number,
        Failure::Handshake(rustls::Error::AlertReceived(alert)) => u8::from(alert),
        other => panic!("{other:?}"),
    };
    Some(match number {
        42 => "sslv3_alert_bad_certificate",
        43 => "sslv3_alert_unsupported_certificate",
        44 => "sslv3_alert_certificate_revoked",
        45 => "sslv3_alert_certificate_expired",
        46 => "sslv3_alert_certificate_unknown",
        48 => "tlsv1_alert_unknown_ca",
        51 => "tlsv1_alert_decrypt_error",
        _ => "another alert",
    })
}

/// Returns the result of a client's chain: the alert, or the samples of its errors.
fn as_client(case: &Case, shown: &Arc<Certificate>, ignored: &str) -> String {
    let ignored = Ignored::parse(ignored).unwrap();
    let terms = ClientTerms {
        is_required: true,
        authorities: Arc::clone(&case.authorities),
        silent: case.silent.clone(),
        ignored,
        ignored_behind: ignored,
        ..ClientTerms::default()
    };
    let settings = Settings { verify: Verify::Asked(terms), ..Settings::default() };
    let server = server(&[Authority::new().certificate(&["a.example"])], settings, false);
    let settings = client::Settings { certificate: Some(Arc::clone(shown)), ..client::Settings::default() };
    let (mut near, mut far) = shake(&server, &Client::new(settings).unwrap(), name("a.example"), 100_000);
    if let Some(alert) = alert(&mut near) {
        return alert.to_owned();
    }
    let faults = far.connection.take_handshake_info().unwrap().faults;
    let first = |wanted: fn(&Fault) -> bool| faults.iter().find(|fault| wanted(fault));
    let code = |fault: Option<&Fault>| fault.map_or(0, |fault| fault.code);
    let (own, above) = (first(|fault| fault.depth == 0), first(|fault| fault.depth > 0));
    let depth = above.map_or(0, |fault| fault.depth.min(15));
    format!("{} {} {} {depth}", code(faults.last()), code(own), code(above))
}

/// Returns the result of a server's chain.
fn as_server(case: &Case, shown: &Arc<Certificate>) -> &'static str {
    let server = server(std::slice::from_ref(shown), Settings::default(), false);
    let settings = client::Settings { authorities: Some(Arc::clone(&case.authorities)), ..client::Settings::default() };
    let client = Client::new(settings).unwrap();
    let (_, mut far) = shake_for(&server, &client, asked_name(None, None));
    alert(&mut far).unwrap_or("open")
}

fn shake_for(server: &Arc<weir_tls::Server>, client: &Client, asked: ServerIdentity) -> (End, End) {
    let mut near = End::new(Connection::of_client(client, asked, None).unwrap());
    let mut far = End::new(Connection::of_server(Arc::clone(server)));
    near.go_on();
    for _ in 0..8 {
        carry(&mut near, &mut far, 100_000);
        carry(&mut far, &mut near, 100_000);
    }
    (near, far)
}

#[test]
fn chains_are_judged_as_recorded() {
    let (mut wrong, mut unshown) = (Vec::new(), Vec::new());
    let mut count = 0;
    for case in cases() {
        let Some(shown) = &case.shown else {
            unshown.push(case.name);
            continue;
        };
        count += 1;
        let [strict, ignored, server] = case.results;
        let strict = if strict == "open" { "0 0 0 0" } else { strict };
        let mut expect = |kind: &str, found: &str, expected: &str| {
            if found != expected {
                wrong.push(format!("{} ({kind}): {found}, recorded: {expected}", case.name));
            }
        };
        expect("strict", &as_client(&case, shown, ""), strict);
        // This side verifies no signature with an RSA key that short.
        let ignored = if case.name == "short key of an issuer" { "7 7 67 1" } else { ignored };
        expect("ignored", &as_client(&case, shown, "all"), ignored);
        // An OpenSSL server does not present such a certificate.
        if !matches!(server, "-" | "no_shared_cipher") {
            expect("server", as_server(&case, shown), server);
        }
    }
    assert!(wrong.is_empty(), "{} of {count}:\n{}", wrong.len(), wrong.join("\n"));
    assert_eq!(unshown, ["short key"]);
    assert!(count > 100, "{count}");
}

#[test]
fn names_of_servers_are_compared_as_recorded() {
    let authority = Authority::new();
    let mut wrong = Vec::new();
    let (mut last, mut shown) = ("", None);
    for row in HOSTS.lines() {
        let words: Vec<&str> = row.split('\t').collect();
        let [common, others, sni, host, expected] = words[..] else { panic!("{row}") };
        let certificate = &row[..common.len() + 1 + others.len()];
        if certificate != last || shown.is_none() {
            last = certificate;
            shown = Some(server(&[for_names(&authority, common, others)], Settings::default(), false));
        }
        // The final dot of an absolute name is not part of it (RFC 6066, section 3), as in curl.
        if sni.ends_with('.') {
            continue;
        }
        let sni = match sni {
            "-" => None,
            "''" => Some(""),
            name => Some(name),
        };
        let host = (host != "-").then(|| host.to_owned());
        let wanted = sni.filter(|sni| !sni.is_empty()).or(host.as_deref()).unwrap_or_default();
        // An address matches if the certificate contains it as one (RFC 9525); HAProxy only compares host names.
        let is_address = others == wanted && wanted.parse::<std::net::IpAddr>().is_ok();
        let authorities = Some(authority.authorities());
        let settings = client::Settings { authorities, host: host.clone(), ..client::Settings::default() };
        let (near, far) = shake_for(shown.as_ref().unwrap(), &Client::new(settings).unwrap(), asked_name(sni, None));
        let found = if near.connection.is_open() && far.failure.is_none() { "believed" } else { "refused" };
        if found != if is_address { "believed" } else { expected } {
            wrong.push(format!("{row}: {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

fn for_names(authority: &Authority, common: &str, others: &str) -> Arc<Certificate> {
    let others = others.split(',').filter(|name| *name != "-").map(str::to_owned).collect::<Vec<_>>();
    let mut params = CertificateParams::new(others).unwrap();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, common);
    let key = KeyPair::generate().unwrap();
    let signed = params.signed_by(&key, &authority.0).unwrap();
    let text = signed.pem() + &key.serialize_pem();
    Arc::new(Certificate::read("test.pem", text.as_bytes(), None).unwrap())
}

/// SNI takes precedence over `verifyhost`, in resumed sessions as well.
#[test]
fn resumed_sessions_are_for_the_name_that_was_asked_for() {
    let authority = Authority::new();
    let server = server(&[authority.certificate(&["a.example"])], Settings::default(), false);
    let (authorities, host) = (Some(authority.authorities()), Some("b.example".to_owned()));
    let settings = client::Settings { authorities, host, resumes: true, ..client::Settings::default() };
    let client = Client::new(settings).unwrap();
    let open = |asked: ServerIdentity| shake_for(&server, &client, asked).0.connection.is_open();
    for _ in 0..2 {
        assert!(open(ServerName::try_from("a.example").unwrap().into()));
        assert!(!open(asked_name(None, None)), "verifyhost counts where no name is asked for");
        assert!(!open(asked_name(Some("127.0.0.1"), None)), "an address is a name, although it is not sent");
    }
}
