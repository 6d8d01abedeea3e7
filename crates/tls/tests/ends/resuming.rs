//! Which sessions go on: with the next configuration of an address, at another address, under other demands. Must never resume
//! one that a handshake under the demands of the moment would refuse.

use std::sync::Arc;

use weir_tls::certificate::Certificate;
use weir_tls::faults::Ignored;
use weir_tls::names::Row;
use weir_tls::provider::{Algorithms, Version};
use weir_tls::resumption::{Resumption, SessionStore, Tickets};
use weir_tls::server::{Entry, Settings, Verify};
use weir_tls::ticket_keys::TicketKeys;
use weir_tls::verify::{Authorities, ClientTerms};
use weir_tls::{Client, Server, client, signature};

use crate::pair::{Authority, carry, name, shake};

const VERSIONS: [Version; 2] = [Version::Tls12, Version::Tls13];

fn server(certificate: &Arc<Certificate>, verify: Verify, resumption: &Resumption) -> Arc<Server> {
    with(certificate, Settings { verify, ..Settings::default() }, resumption)
}

fn with(certificate: &Arc<Certificate>, settings: Settings, resumption: &Resumption) -> Arc<Server> {
    let row = Row { kind: certificate.kind, names: certificate.names.clone(), excluded: Vec::new(), is_default: true };
    let (certificate, settings) = (Arc::clone(certificate), Arc::new(settings));
    let entry = Entry { certificate, row, is_filtered: false, settings, line: None };
    Arc::new(Server::new(vec![entry], false, resumption.clone()).unwrap())
}

/// Sessions of a process that has just begun.
fn fresh(tickets: Tickets) -> Resumption {
    Resumption { tickets, ..Resumption::default() }
}

fn resuming(version: Version, certificate: Option<&Arc<Certificate>>) -> Client {
    let algorithms = Algorithms { versions: (version, version), ..Algorithms::default() };
    let certificate = certificate.map(Arc::clone);
    Client::new(client::Settings { algorithms, certificate, resumes: true, ..client::Settings::default() }).unwrap()
}

/// Whether a connection resumes a session; `None`: the client is refused.
fn resumed(server: &Arc<Server>, client: &Client) -> Option<bool> {
    let (mut near, mut far) = shake(server, client, name("a.example"), 100_000);
    if far.failure.is_some() || !far.connection.is_open() {
        return None;
    }
    carry(&mut far, &mut near, 100_000);
    near.receive().unwrap();
    Some(far.connection.take_handshake_info().unwrap().resumed)
}

#[test]
fn sessions_go_on_with_the_next_configuration() {
    let authority = Authority::new();
    let [first, second] = [authority.certificate(&["a.example"]), authority.certificate(&["a.example", "b.example"])];
    for (version, tickets) in VERSIONS.iter().flat_map(|version| [(*version, Tickets::Own), (*version, Tickets::None)])
    {
        let client = resuming(version, None);
        let before = server(&first, Verify::default(), &fresh(tickets.clone()));
        assert_eq!([resumed(&before, &client), resumed(&before, &client)], [Some(false), Some(true)]);
        // Another certificate of the address makes no difference, and another configuration follows that one.
        let next = server(&second, Verify::default(), &fresh(tickets.clone()));
        next.resume_for(&before);
        assert_eq!(resumed(&next, &client), Some(true), "{version:?} {tickets:?}");
        let last = server(&second, Verify::default(), &fresh(tickets.clone()));
        last.resume_for(&next);
        assert_eq!(resumed(&last, &client), Some(true), "{version:?} {tickets:?}");
        // Connections to the former one may still come, and what they begin goes on as well.
        let other = resuming(version, None);
        assert_eq!([resumed(&before, &other), resumed(&last, &other)], [Some(false), Some(true)]);
        let stranger = server(&second, Verify::default(), &fresh(tickets.clone()));
        assert_eq!(resumed(&stranger, &client), Some(false), "{version:?} {tickets:?}");
    }
}

/// How long sessions are good, and whether there are tickets, is the new configuration's.
#[test]
fn sessions_end_where_their_lifetime_or_form_changes() {
    let certificate = Authority::new().certificate(&["a.example"]);
    let keys = || Arc::new(TicketKeys::new("keys", (1..4).map(|number| Some(vec![number; 48]))).unwrap());
    let rows = [
        (fresh(Tickets::Own), Resumption { lifetime: 200, ..fresh(Tickets::Own) }, false),
        (fresh(Tickets::None), Resumption { lifetime: 200, ..fresh(Tickets::None) }, false),
        (fresh(Tickets::None), Resumption { store: Arc::new(SessionStore::new(5)), ..fresh(Tickets::None) }, false),
        (fresh(Tickets::Own), fresh(Tickets::None), false),
        (fresh(Tickets::Own), fresh(Tickets::Keys(keys())), false),
        (fresh(Tickets::Keys(keys())), fresh(Tickets::Own), false),
        (fresh(Tickets::Keys(keys())), fresh(Tickets::Keys(keys())), true),
    ];
    for (place, (before, next, goes_on)) in rows.into_iter().enumerate() {
        for version in VERSIONS {
            let client = resuming(version, None);
            let before = server(&certificate, Verify::default(), &before);
            assert_eq!(resumed(&before, &client), Some(false));
            let next = server(&certificate, Verify::default(), &next);
            next.resume_for(&before);
            assert_eq!(resumed(&next, &client), Some(goes_on), "{place} {version:?}");
        }
    }
}

/// What a handshake would check of the client is checked: a session that began under other demands is not resumed, neither in the
/// next configuration nor at another address of the process.
#[test]
fn sessions_skip_no_check_that_is_demanded_now() {
    let (authority, other) = (Authority::new(), Authority::new());
    let own = authority.certificate(&["a.example"]);
    let known = authority.certificate(&["client"]);
    let terms = || ClientTerms { authorities: authority.authorities(), ..ClientTerms::default() };
    let required = || ClientTerms { is_required: true, ..terms() };
    let both = Authorities {
        roots: [&authority, &other].map(|one| one.authorities().roots.clone()).concat(),
        ..Authorities::default()
    };
    let ignoring = |list: &str| Ignored::parse(list).unwrap();
    let changes: Vec<(ClientTerms, ClientTerms)> = vec![
        (terms(), required()),
        (required(), terms()),
        (required(), ClientTerms { authorities: other.authorities(), ..required() }),
        (ClientTerms { authorities: Arc::new(both), ..required() }, required()),
        (ClientTerms { silent: Some(other.authorities()), ..required() }, required()),
        (ClientTerms { ignored: ignoring("10"), ..required() }, required()),
        (ClientTerms { ignored_behind: ignoring("10"), ..required() }, required()),
        (ClientTerms { ignored: ignoring("10"), ..required() }, ClientTerms { ignored: ignoring("12"), ..required() }),
    ];
    for (version, tickets) in VERSIONS.iter().flat_map(|version| [(*version, Tickets::Own), (*version, Tickets::None)])
    {
        for (place, (former, next)) in changes.iter().enumerate() {
            let resumption = fresh(tickets.clone());
            let before = server(&own, Verify::Asked(former.clone()), &resumption);
            let after = server(&own, Verify::Asked(next.clone()), &fresh(tickets.clone()));
            after.resume_for(&before);
            let beside = server(&own, Verify::Asked(next.clone()), &resumption);
            for asked in [&after, &beside] {
                let client = resuming(version, Some(&known));
                assert_eq!(
                    [resumed(&before, &client), resumed(&before, &client)],
                    [Some(false), Some(true)],
                    "{place}"
                );
                assert_ne!(resumed(asked, &client), Some(true), "{version:?} {tickets:?} {place}");
            }
            // The same demands, in the next configuration.
            let same = server(&own, Verify::Asked(former.clone()), &fresh(tickets.clone()));
            same.resume_for(&before);
            let client = resuming(version, Some(&known));
            assert_eq!([resumed(&before, &client), resumed(&same, &client)], [Some(false), Some(true)], "{place}");
        }
        // Without a certificate a client that has been asked for one gets no further where it is required.
        let resumption = fresh(tickets.clone());
        let asked = server(&own, Verify::Asked(terms()), &resumption);
        let nobody = resuming(version, None);
        assert_eq!([resumed(&asked, &nobody), resumed(&asked, &nobody)], [Some(false), Some(true)]);
        let beside = server(&own, Verify::Asked(required()), &resumption);
        beside.resume_for(&asked);
        assert_eq!(resumed(&beside, &nobody), None, "{version:?} {tickets:?}");
    }
}

/// `client-sigalgs`: a certificate whose key signed by an algorithm that is not taken now has to sign again.
#[test]
fn sessions_depend_on_the_signatures_that_clients_may_make() {
    let authority = Authority::new();
    let (own, known) = (authority.certificate(&["a.example"]), authority.certificate(&["client"]));
    let settings = |list: &str| {
        let mut algorithms = Algorithms::default();
        algorithms.signatures.of_peer = Some(signature::read(list).unwrap().found);
        let terms = ClientTerms { is_required: true, authorities: authority.authorities(), ..ClientTerms::default() };
        Settings { algorithms, verify: Verify::Asked(terms), ..Settings::default() }
    };
    for version in VERSIONS {
        let client = resuming(version, Some(&known));
        let before = with(&own, settings("ecdsa_secp256r1_sha256"), &fresh(Tickets::Own));
        assert_eq!(resumed(&before, &client), Some(false));
        let same = with(&own, settings("ecdsa_secp256r1_sha256"), &fresh(Tickets::Own));
        same.resume_for(&before);
        assert_eq!(resumed(&same, &client), Some(true), "{version:?}");
        let other = with(&own, settings("rsa_pss_rsae_sha256"), &fresh(Tickets::Own));
        other.resume_for(&before);
        assert_eq!(resumed(&other, &client), None, "{version:?}");
    }
}

/// A session of a version or a suite that is not spoken now is not resumed.
#[test]
fn sessions_are_of_a_version_and_a_suite() {
    let certificate = Authority::new().certificate(&["a.example"]);
    let settings = |versions, suites: &str| {
        let ciphersuites = Some(weir_tls::provider::ciphersuites(suites).found);
        Settings { algorithms: Algorithms { versions, ciphersuites, ..Algorithms::default() }, ..Settings::default() }
    };
    let all = (Version::Tls12, Version::Tls13);
    let (one, two) = ("TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384");
    let rows = [
        ((Version::Tls12, Version::Tls12), (all, one), ((Version::Tls13, Version::Tls13), one)),
        (all, (all, one), (all, two)),
    ];
    for (place, (spoken, before, next)) in rows.into_iter().enumerate() {
        let algorithms = Algorithms { versions: (spoken.0, Version::Tls13), ..Algorithms::default() };
        let first = Algorithms { versions: spoken, ..algorithms.clone() };
        let client =
            |algorithms| Client::new(client::Settings { algorithms, resumes: true, ..client::Settings::default() });
        let client = client(first).unwrap();
        let before = with(&certificate, settings(before.0, before.1), &fresh(Tickets::Own));
        assert_eq!([resumed(&before, &client), resumed(&before, &client)], [Some(false), Some(true)]);
        let next = with(&certificate, settings(next.0, next.1), &fresh(Tickets::Own));
        next.resume_for(&before);
        assert_ne!(resumed(&next, &client), Some(true), "{place}");
    }
}

/// Towards servers: sessions are resumed while nothing differs that a server is asked.
#[test]
fn sessions_with_servers_go_on() {
    let authority = Authority::new();
    let far = server(&authority.certificate(&["a.example"]), Verify::default(), &fresh(Tickets::Own));
    let settings = || client::Settings {
        authorities: Some(authority.authorities()),
        resumes: true,
        ..client::Settings::default()
    };
    let before = Client::new(settings()).unwrap();
    assert_eq!(resumed(&far, &before), Some(false));
    let next = Client::new(settings()).unwrap();
    next.resume_for(&before);
    assert_eq!(resumed(&far, &next), Some(true));
    let both = [&authority, &Authority::new()].map(|one| one.authorities().roots.clone()).concat();
    let authorities = Some(Arc::new(Authorities { roots: both, ..Authorities::default() }));
    let other = Client::new(client::Settings { authorities, ..settings() }).unwrap();
    other.resume_for(&next);
    assert_eq!(resumed(&far, &other), Some(false));
}
