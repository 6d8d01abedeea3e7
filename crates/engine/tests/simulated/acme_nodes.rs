//! Tests of certificates that several nodes share over a store: Weir is one node; the test is the ACME server and the other nodes.

use std::rc::Rc;

use base::base64;
use testkit::{Scope, sleep};
use tls::sealed::SealingKey;

use crate::acme::{Acme, looked_for};
use crate::api::{SOCKET, ask, order};
use crate::redis::{Answer, Redis};
use crate::world::*;

const REDIS: &str = "10.0.1.10:6379";
/// The certificate.
const NAME: &str = "/nowhere/a.example.pem";
/// A token of 128 bits.
const TOKEN: &str = "LoqXcYV8q5ONbJQxbmR7SC";
const REFUSAL: &str = r#"{"type":"urn:ietf:params:acme:error:rejectedIdentifier","detail":"no"}"#;

fn worlds(global: &str) -> Worlds {
    worlds_with(global, "a.example")
}

/// Worlds with certificates as `acme` of a `bind` line names them.
fn worlds_with(global: &str, names: &str) -> Worlds {
    let sections = format!(
        "store fleet\n server redis1 {REDIS}\nlisten l\n bind {WEIR}\n bind 10.0.0.1:443 ssl acme {names}\n \
         http-request deny\nacme default\n directory http://10.0.1.9/dir\n curves P-256\n shared-store fleet\n"
    );
    let global = format!(
        "{SOCKET}\nstats timeout 10m\nexpose-experimental-directives\nacme.state-dir /nowhere\ncluster-secret s\n{global}"
    );
    // A certificate that is installed is in the program, which worlds share.
    config(&sections).global(&global).workers(&[2]).seeds(0..1)
}

/// What the other nodes do.
struct Others {
    redis: Redis,
    _scope: Rc<Scope>,
}

impl Others {
    fn new() -> Self {
        let (redis, scope) = (Redis::default(), Rc::new(Scope::new()));
        redis.serve(&scope, REDIS);
        Self { redis, _scope: scope }
    }

    fn seal(name: &str, text: &str) -> Vec<u8> {
        SealingKey::derived(b"s").unwrap().seal(name, text.as_bytes()).unwrap()
    }

    /// Returns the full name of a key of the certificate.
    fn key(&self, kind: &str) -> String {
        self.key_of(kind, "a.example")
    }

    /// The same for the certificate of a name.
    fn key_of(&self, kind: &str, name: &str) -> String {
        let start = format!("weir:acme:lease:{name}").into_bytes();
        let is_lease = |argument: &Vec<u8>| argument.starts_with(&start);
        let commands = self.redis.commands();
        let lease = commands.iter().flatten().find(|argument| is_lease(argument)).expect("a lease was asked for");
        String::from_utf8(lease.clone()).unwrap().replace(":lease:", &format!(":{kind}:"))
    }

    fn left(&self, kind: &str) -> i64 {
        match self.redis.command(&["PTTL", &self.key(kind)]) {
            Answer::Integer(left) => left,
            other => panic!("{other:?}"),
        }
    }

    fn version(&self, id: &str) -> u64 {
        match self.redis.command(&["HGET", "weir:acme:versions", id]) {
            Answer::Text(version) => String::from_utf8(version).unwrap().parse().unwrap(),
            other => panic!("{other:?}"),
        }
    }

    /// Another node takes the lease.
    fn take_lease(&self) {
        self.redis.command(&["SET", &self.key("lease"), "other", "PX", "30000"]);
    }

    /// Another node publishes a certificate, and gives the lease back.
    fn publish(&self, text: &str) {
        self.publish_for("a.example", text);
    }

    fn publish_for(&self, name: &str, text: &str) {
        let key = self.key_of("certificate", name);
        let sealed = Self::seal(key.strip_prefix("weir:").unwrap(), text);
        self.redis.set(&key, &sealed);
        let id = key.strip_prefix("weir:acme:certificate:").unwrap();
        let Answer::Integer(change) = self.redis.command(&["INCR", "weir:acme:changes"]) else { panic!() };
        self.redis.command(&["HSET", "weir:acme:versions", id, &change.to_string()]);
        self.redis.command(&["DEL", &self.key_of("lease", name)]);
    }
}

/// An authority that signs certificates.
struct Authority(rcgen::Issuer<'static, rcgen::KeyPair>);

impl Authority {
    fn new() -> Self {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new(Vec::new()).unwrap();
        parameters.distinguished_name.push(rcgen::DnType::CommonName, "authority");
        Self(rcgen::Issuer::new(parameters, key))
    }

    /// Returns a certificate with its key.
    fn certificate(&self) -> String {
        self.certificate_of("a.example")
    }

    fn certificate_of(&self, name: &str) -> String {
        self.certificate_from(name, 1975)
    }

    /// The same with the year from which it is valid.
    fn certificate_from(&self, name: &str, year: i32) -> String {
        let key = rcgen::KeyPair::generate().unwrap();
        let mut parameters = rcgen::CertificateParams::new([name.to_owned()]).unwrap();
        parameters.distinguished_name.push(rcgen::DnType::CommonName, name);
        parameters.not_before = rcgen::date_time_ymd(year, 1, 1);
        parameters.not_after = rcgen::date_time_ymd(4000, 1, 1);
        let certificate = parameters.signed_by(&key, &self.0).unwrap();
        key.serialize_pem() + &certificate.pem()
    }

    /// Returns the certificate for the request of `finalize`.
    fn sign(&self, body: &[u8]) -> String {
        let member = |text: &str, name: &str| {
            text.split_once(&format!("\"{name}\":\"")).unwrap().1.split_once('"').unwrap().0.to_owned()
        };
        let payload = member(std::str::from_utf8(body).unwrap(), "payload");
        let payload = base64::decoded_url_strictly(payload.as_bytes()).unwrap();
        let request = member(std::str::from_utf8(&payload).unwrap(), "csr");
        let request = base64::decoded_url_strictly(request.as_bytes()).unwrap();
        let mut request = rcgen::CertificateSigningRequestParams::from_der(&request.into()).unwrap();
        request.params.not_after = rcgen::date_time_ymd(4000, 1, 1);
        request.signed_by(&self.0).unwrap().pem()
    }
}

/// The issuer of the certificate in use.
async fn issuer() -> String {
    let shown = ask(&format!("show ssl cert {NAME}")).await;
    shown.lines().find_map(|line| line.strip_prefix("Issuer: ")).unwrap().to_owned()
}

/// Lets a first attempt fail, after which the keys of the certificate are known.
async fn failed_attempt() -> Acme {
    sleep(1_000).await;
    order(&format!("acme renew {NAME}")).await;
    let mut acme = Acme::new();
    acme.answer("GET /dir", "400 Bad Request", "", "{}").await;
    sleep(1_000).await;
    acme
}

/// Plays the ACME server from the begin of an order until its end.
async fn complete(acme: &mut Acme, authority: &Authority, before_end: impl FnOnce()) {
    acme.begin().await;
    acme.order().await;
    acme.authorization("valid", "").await;
    let state = |status: &str, more: &str| {
        format!(r#"{{"status":"{status}","authorizations":[],"finalize":"http://10.0.1.9/finalize"{more}}}"#)
    };
    acme.answer("POST /order/1", "200 OK", "", &state("ready", "")).await;
    let valid = state("valid", r#","certificate":"http://10.0.1.9/certificate""#);
    let request = acme.answer("POST /finalize", "200 OK", "", &valid).await;
    before_end();
    acme.answer("POST /certificate", "200 OK", "", &authority.sign(&request)).await;
}

#[test]
fn a_certificate_is_ordered_under_a_lease_and_published() {
    worlds("").run(|world| async move {
        let others = Others::new();
        let begin = rt::now();
        complete(&mut Acme::new(), &Authority::new(), || assert!(others.left("lease") > 20_000)).await;
        let elapsed = rt::now().saturating_since(begin);
        assert!(elapsed.as_secs() < 5, "nothing has failed before the account was known: {elapsed:?}");
        sleep(1_000).await;
        assert_eq!(issuer().await, "/CN=authority");
        let key = others.key("certificate");
        let Answer::Text(sealed) = others.redis.command(&["GET", &key]) else { panic!() };
        let opened = SealingKey::derived(b"s").unwrap().open(key.strip_prefix("weir:").unwrap(), &sealed).unwrap();
        let opened = String::from_utf8(opened).unwrap();
        assert!(opened.contains("PRIVATE KEY-----") && opened.contains("BEGIN CERTIFICATE"), "{opened}");
        let id = key.strip_prefix("weir:acme:certificate:").unwrap();
        assert!(others.version(id) > 1_000_000, "the time of the store");
        assert_eq!(others.left("lease"), -2);
        world.forget_log();
    });
}

#[test]
fn a_node_that_dies_is_replaced_when_its_lease_has_ended() {
    worlds("acme.scheduler off").run(|world| async move {
        let others = Others::new();
        let mut acme = failed_attempt().await;
        others.take_lease();
        order(&format!("acme renew {NAME}")).await;
        sleep(29_500).await;
        acme.is_left_alone();
        sleep(2_600).await;
        acme.answer("GET /dir", "400 Bad Request", "", "{}").await;
        world.forget_log();
    });
}

#[test]
fn a_certificate_of_another_node_is_installed() {
    worlds("acme.scheduler off").run(|world| async move {
        let others = Others::new();
        let mut acme = failed_attempt().await;
        // While this node waits for the lease.
        others.take_lease();
        order(&format!("acme renew {NAME}")).await;
        sleep(1_000).await;
        others.publish(&Authority::new().certificate());
        sleep(2_000).await;
        assert_eq!(issuer().await, "/CN=authority");
        // While it does nothing.
        sleep(5_000).await;
        let former = ask(&format!("show ssl cert {NAME}")).await;
        others.publish(&Authority::new().certificate());
        sleep(2_000).await;
        assert_ne!(ask(&format!("show ssl cert {NAME}")).await, former);
        // What is no certificate is not used.
        let former = ask(&format!("show ssl cert {NAME}")).await;
        others.publish("no certificate");
        sleep(2_000).await;
        assert_eq!(ask(&format!("show ssl cert {NAME}")).await, former);
        acme.is_left_alone();
        let log = world.take_log().await.join("\n");
        assert!(log.contains(&format!("acme: {NAME}: The certificate was received from the store.")), "{log}");
        assert!(log.contains("acme: store: "), "{log}");
        world.forget_log();
    });
}

/// A store that was restored, or another node whose operator has installed one.
#[test]
fn a_certificate_that_is_older_than_the_one_in_use_is_not_installed() {
    worlds("acme.scheduler off").run(|world| async move {
        let others = Others::new();
        let mut acme = failed_attempt().await;
        let (authority, shown) = (Authority::new(), async || ask(&format!("show ssl cert {NAME}")).await);
        others.publish(&authority.certificate_from("a.example", 1980));
        sleep(2_000).await;
        let former = shown().await;
        assert_eq!(issuer().await, "/CN=authority");
        others.publish(&authority.certificate_from("a.example", 1979));
        sleep(2_000).await;
        assert_eq!(shown().await, former);
        // It is reported once.
        sleep(5_000).await;
        let log = world.take_log().await.join("\n");
        assert_eq!(log.matches("The certificate in the store is older than the one in use.").count(), 1, "{log}");
        others.publish(&authority.certificate_from("a.example", 1980));
        sleep(2_000).await;
        assert_ne!(shown().await, former);
        acme.is_left_alone();
        world.forget_log();
    });
}

/// They have one certificate in the store, and each its own file.
#[test]
fn two_certificates_of_the_same_names_are_both_delivered() {
    let sections = format!(
        "store fleet\n server redis1 {REDIS}\nacme A\n directory http://10.0.1.9/dir\n keytype ECDSA\n curves P-256\n \
         shared-store fleet\ncrt-store\n load crt one.pem acme A domains a.example\n \
         load crt two.pem acme A domains a.example\nlisten l\n bind {WEIR}\n bind 10.0.0.1:443 ssl crt one.pem\n \
         bind 10.0.0.1:444 ssl crt two.pem\n http-request deny\n"
    );
    let global =
        format!("{SOCKET}\nstats timeout 10m\nexpose-experimental-directives\ncluster-secret s\nacme.scheduler off");
    config(&sections).global(&global).workers(&[2]).seeds(0..1).run(|world| async move {
        let others = Others::new();
        sleep(1_000).await;
        let mut acme = Acme::new();
        order("acme renew one.pem").await;
        acme.answer("GET /dir", "400 Bad Request", "", "{}").await;
        sleep(1_000).await;
        others.publish(&Authority::new().certificate());
        sleep(2_000).await;
        for name in ["one.pem", "two.pem"] {
            let shown = ask(&format!("show ssl cert {name}")).await;
            assert!(shown.contains("Issuer: /CN=authority"), "{name}: {shown}");
        }
        world.forget_log();
    });
}

#[test]
fn a_faulty_certificate_does_not_delay_others() {
    worlds_with("acme.scheduler off", "a.example acme b.example").run(|world| async move {
        let others = Others::new();
        sleep(1_000).await;
        let mut acme = Acme::new();
        for name in ["a", "b"] {
            order(&format!("acme renew /nowhere/{name}.example.pem")).await;
            acme.answer("GET /dir", "400 Bad Request", "", "{}").await;
        }
        sleep(1_000).await;
        others.publish("no certificate");
        others.publish_for("b.example", &Authority::new().certificate_of("b.example"));
        sleep(2_000).await;
        assert_eq!(issuer().await, "/CN=a.example");
        let shown = ask("show ssl cert /nowhere/b.example.pem").await;
        assert!(shown.contains("Issuer: /CN=authority"), "{shown}");
        world.forget_log();
    });
}

#[test]
fn failures_delay_the_next_attempt_of_all_nodes() {
    worlds("").run(|world| async move {
        let others = Others::new();
        let mut acme = Acme::new();
        for (pause, rest) in [(300_000, 299_000), (600_000, 599_000)] {
            acme.begin().await;
            acme.answer("POST /order", "400 Bad Request", "", REFUSAL).await;
            sleep(500).await;
            assert!((pause - 1_000..=pause).contains(&others.left("pause")), "{}", others.left("pause"));
            assert_eq!((others.left("lease"), others.left("server-pause")), (-2, -2));
            sleep(rest - 500).await;
            acme.is_left_alone();
        }
        // Another node has failed in the meantime.
        others.redis.command(&["SET", &others.key("pause"), "3", "PX", "100000"]);
        sleep(90_000).await;
        acme.is_left_alone();
        acme.begin().await;
        acme.answer("POST /order", "400 Bad Request", "", REFUSAL).await;
        let log = world.take_log().await.join("\n");
        assert!(log.contains(&format!("acme: {NAME}: Another node has failed, next attempt in ")), "{log}");
        world.forget_log();
    });
}

/// The store has a certificate for which this node has not been notified of a change.
#[test]
fn a_certificate_in_the_store_is_not_ordered_again() {
    worlds("acme.scheduler off").run(|world| async move {
        let others = Others::new();
        let mut acme = failed_attempt().await;
        others.publish(&Authority::new().certificate());
        others.redis.command(&["DEL", "weir:acme:changes"]);
        order(&format!("acme renew {NAME}")).await;
        sleep(5_000).await;
        acme.is_left_alone();
        assert_eq!((issuer().await.as_str(), others.left("lease")), ("/CN=authority", -2));
        world.forget_log();
    });
}

#[test]
fn a_rate_limit_of_the_server_holds_for_all_nodes() {
    worlds("").run(|world| async move {
        let others = Others::new();
        let mut acme = Acme::new();
        acme.begin().await;
        acme.answer("POST /order", "429 Slow", "Retry-After: 7200\r\n", "{}").await;
        sleep(500).await;
        let server_pause = others.redis.keys("weir:acme:server-pause:");
        let Answer::Integer(left) = others.redis.command(&["PTTL", &server_pause[0]]) else { panic!() };
        assert!((7_199_000..=7_200_000).contains(&left), "{left}");
        sleep(7_190_000).await;
        acme.is_left_alone();
        sleep(15_000).await;
        acme.begin().await;
        acme.answer("POST /order", "400 Bad Request", "", REFUSAL).await;
        world.forget_log();
    });
}

#[test]
fn a_node_that_has_lost_its_lease_ends_the_order() {
    worlds("acme.scheduler off").run(|world| async move {
        let others = Others::new();
        sleep(1_000).await;
        order(&format!("acme renew {NAME}")).await;
        let mut acme = Acme::new();
        acme.begin().await;
        acme.order().await;
        others.redis.command(&["SET", &others.key("lease"), "other"]);
        sleep(9_000).await;
        let log = world.take_log().await.join("\n");
        assert!(log.contains(&format!("acme: {NAME}: another node has taken the lease Aborting.")), "{log}");
        assert_eq!(others.redis.command(&["GET", &others.key("lease")]), Answer::Text(b"other".into()));
        world.forget_log();
    });
}

/// The certificate that was ordered is published although the lease has been lost, unless another node has published one.
#[test]
fn a_certificate_is_published_once() {
    for is_published in [false, true] {
        worlds("acme.scheduler off").run(move |world| async move {
            let others = Others::new();
            sleep(1_000).await;
            order(&format!("acme renew {NAME}")).await;
            let authority = Authority::new();
            let other = Authority::new().certificate();
            complete(&mut Acme::new(), &authority, || match is_published {
                true => others.publish(&other),
                false => drop(others.redis.command(&["DEL", &others.key("lease")])),
            })
            .await;
            sleep(2_000).await;
            let id = others.key("certificate").strip_prefix("weir:acme:certificate:").unwrap().to_owned();
            assert_eq!(others.version(&id) == 1, is_published);
            assert_eq!(issuer().await, "/CN=authority");
            let log = world.take_log().await.join("\n");
            let text = format!("acme: {NAME}: another node has ordered the certificate as well Aborting.");
            assert_eq!(log.contains(&text), is_published, "{log}");
            world.forget_log();
        });
    }
}

#[test]
fn each_token_is_answered_once_the_account_is_known() {
    worlds("acme.scheduler off").run(|world| async move {
        let path = |token: &str| format!("/.well-known/acme-challenge/{token}");
        sleep(1_000).await;
        assert!(looked_for(&path(TOKEN)).await.starts_with("HTTP/1.1 403 "));
        let others = Others::new();
        let key = tls::issue::Key::generate(tls::issue::KeyKind::P384).unwrap().to_pem();
        others.redis.set("weir:acme:account", &Others::seal("acme:account", &key));
        sleep(6_000).await;
        let answer = looked_for(&path(TOKEN)).await;
        let thumbprint = tls::account::AccountKey::read(key.as_bytes()).unwrap().thumbprint();
        assert!(answer.ends_with(&format!("\r\n\r\n{TOKEN}.{thumbprint}")), "{answer}");
        for other in ["", "short", "LoqXcYV8q5ONbJQxbmR7S%"] {
            assert!(looked_for(&path(other)).await.starts_with("HTTP/1.1 403 "), "{other}");
        }
        world.forget_log();
    });
}

/// A store that has lost its data gets the account of the nodes back.
#[test]
fn the_account_is_stored_again() {
    worlds("acme.scheduler off").run(|world| async move {
        let others = Others::new();
        sleep(2_000).await;
        let Answer::Text(sealed) = others.redis.command(&["GET", "weir:acme:account"]) else { panic!() };
        let open = |sealed: &[u8]| SealingKey::derived(b"s").unwrap().open("acme:account", sealed).unwrap();
        others.redis.command(&["DEL", "weir:acme:account"]);
        sleep(61_000).await;
        let Answer::Text(again) = others.redis.command(&["GET", "weir:acme:account"]) else { panic!() };
        assert_eq!(open(&again), open(&sealed));
        // Another node was the first to store one: all use it.
        let key = tls::issue::Key::generate(tls::issue::KeyKind::P256).unwrap().to_pem();
        others.redis.set("weir:acme:account", &Others::seal("acme:account", &key));
        sleep(61_000).await;
        let thumbprint = tls::account::AccountKey::read(key.as_bytes()).unwrap().thumbprint();
        let answer = looked_for(&format!("/.well-known/acme-challenge/{TOKEN}")).await;
        assert!(answer.ends_with(&thumbprint), "{answer}");
        world.forget_log();
    });
}

#[test]
fn an_account_that_was_encrypted_with_another_secret_is_not_replaced() {
    worlds("").run(|world| async move {
        let others = Others::new();
        let sealed = SealingKey::derived(b"other").unwrap().seal("acme:account", b"x").unwrap();
        others.redis.set("weir:acme:account", &sealed);
        sleep(10_000).await;
        Acme::new().is_left_alone();
        assert_eq!(others.redis.command(&["GET", "weir:acme:account"]), Answer::Text(sealed));
        let log = world.take_log().await.join("\n");
        let text = "acme: store: 'acme:account' in the store was encrypted with another 'cluster-secret'.";
        assert_eq!(log.matches(text).count(), 1, "{log}");
        world.forget_log();
    });
}
