//! Tests of certificates from an ACME server played by a script: the requests, validation of a name over HTTP, retries,
//! and errors that end an attempt.

use std::sync::Arc;

use policy::program::Program;
use testkit::{Peer, Service, sleep};
use tls::account::AccountKey;
use tls::issue::{Key, KeyKind};

use crate::api::{SOCKET, ask, order};
use crate::world::*;

/// Address of the ACME server.
const ACME: &str = "10.0.1.9:80";
/// Path of the ordered certificate.
const NAME: &str = "/nowhere/a.example.pem";

fn worlds(more: &str) -> Worlds {
    let sections = format!(
        "listen l\n bind {WEIR}\n bind 10.0.0.1:443 ssl acme a.example\n http-request deny\n\
         acme default\n directory http://10.0.1.9/dir\n contact me@a.example\n{more}"
    );
    let global = format!(
        "{SOCKET}\nstats timeout 10m\nexpose-experimental-directives\nacme.state-dir /nowhere\nacme.scheduler off"
    );
    config(&sections).global(&global).workers(&[1, 2]).seeds(0..2).changed_by(with_key)
}

/// Sets the account's key, which is generated at the start of a process.
fn with_key(program: &mut Program) {
    let key = Key::generate(KeyKind::P256).unwrap().to_pem();
    program.acme.sections[0].key = Some(Arc::new(AccountKey::read(key.as_bytes()).unwrap()));
}

/// The scripted server, and its nonce counter; the client uses a new connection for each request.
pub struct Acme(Service, u32);

impl Acme {
    pub fn new() -> Self {
        Self(Service::at(ACME), 0)
    }

    /// Whether no request has arrived.
    pub fn is_left_alone(&mut self) {
        self.0.is_left_alone();
    }

    /// Answers the next request, whose request line has to begin with `line`. Returns the body of the request.
    pub async fn answer(&mut self, line: &str, status: &str, fields: &str, body: &str) -> Vec<u8> {
        let mut peer = self.0.accept().await;
        let head = peer.receive_head().await.unwrap();
        assert!(head.starts_with(&format!("{line} HTTP/1.1\r\n")), "{line}: {head}");
        assert_eq!(head.contains("content-type: application/jose+json"), line.starts_with("POST"), "{head}");
        self.1 += 1;
        let nonce = self.1;
        let length = body.len();
        let text =
            format!("HTTP/1.1 {status}\r\nReplay-Nonce: n-{nonce}\r\n{fields}Content-Length: {length}\r\n\r\n{body}");
        peer.send(text).await;
        let mut received = Vec::new();
        if let Some(length) = head.split("content-length: ").nth(1) {
            let length = length.split("\r\n").next().unwrap().parse().unwrap();
            received = peer.receive(length).await;
            assert!(received.starts_with(b"{\"protected\":\""));
        }
        peer.expect_end().await;
        received
    }

    /// Answers the requests before the order.
    pub async fn begin(&mut self) {
        let body = r#"{"newNonce":"http://10.0.1.9/nonce","newAccount":"http://10.0.1.9/account","newOrder":"http://10.0.1.9/order"}"#;
        self.answer("GET /dir", "200 OK", "", body).await;
        self.answer("HEAD /nonce", "200 OK", "", "").await;
        self.answer("POST /account", "201 Created", "Location: http://10.0.1.9/account/1\r\n", "{}").await;
    }

    pub async fn order(&mut self) {
        let body = r#"{"status":"pending","authorizations":["http://10.0.1.9/authz/1"],"finalize":"http://10.0.1.9/finalize"}"#;
        self.answer("POST /order", "201 Created", "Location: http://10.0.1.9/order/1\r\n", body).await;
    }

    pub async fn authorization(&mut self, status: &str, error: &str) {
        let body = format!(
            r#"{{"status":"{status}","identifier":{{"type":"dns","value":"a.example"}},"challenges":[
               {{"type":"dns-01","url":"http://10.0.1.9/dns","token":"other","status":"pending"}},
               {{"type":"http-01","url":"http://10.0.1.9/challenge","token":"tok-1","status":"{status}"{error}}}]}}"#
        );
        self.answer("POST /authz/1", "200 OK", "", &body).await;
    }
}

/// The answer of the HTTP frontend to a validation request.
pub async fn looked_for(path: &str) -> String {
    let mut peer = Peer::connect(WEIR).await;
    peer.send(format!("GET {path} HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n")).await;
    String::from_utf8(peer.receive_rest().await).unwrap()
}

async fn state() -> String {
    let told = ask("acme status").await;
    let line = told.lines().nth(1).unwrap();
    line.split('\t').take(3).collect::<Vec<_>>().join(" ")
}

#[test]
fn a_name_is_proved_over_http_before_any_rule_and_a_refusal_ends_the_attempt() {
    worlds("").run(|world| async move {
        assert_eq!(state().await, format!("{NAME} default Stopped"));
        assert!(looked_for("/.well-known/acme-challenge/tok-1").await.starts_with("HTTP/1.1 403 "));
        assert_eq!(ask("acme renew nope").await, "Can't find the certificate 'nope'.\n\n");
        let mut acme = Acme::new();
        order(&format!("acme renew {NAME}")).await;
        acme.begin().await;
        assert_eq!(state().await, format!("{NAME} default Running"));
        let told = "Task already exists for '/nowhere/a.example.pem' certificate.\nCan't start the ACME client.\n\n";
        assert_eq!(ask(&format!("acme renew {NAME}")).await, told);
        acme.order().await;
        acme.authorization("pending", "").await;
        acme.answer("POST /challenge", "200 OK", "", "{}").await;
        let answer = looked_for("/.well-known/acme-challenge/tok-1").await;
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(head.starts_with("HTTP/1.1 200 OK\r\n") && head.contains("content-type: text/plain"), "{head}");
        let (token, thumbprint) = body.split_once('.').unwrap();
        assert_eq!((token, thumbprint.len()), ("tok-1", 43));
        for other in ["/.well-known/acme-challenge/tok-2", "/.well-known/acme-challenge/", "/tok-1"] {
            assert!(looked_for(other).await.starts_with("HTTP/1.1 403 "), "{other}");
        }
        acme.authorization("pending", "").await;
        let error = r#","error":{"type":"urn:ietf:params:acme:error:unauthorized","detail":"seen nothing"}"#;
        acme.authorization("invalid", error).await;
        sleep(100).await;
        assert_eq!(state().await, format!("{NAME} default Stopped"));
        // The challenge is no longer answered.
        assert!(looked_for("/.well-known/acme-challenge/tok-1").await.starts_with("HTTP/1.1 403 "));
        let log = world.take_log().await.join("\n");
        let text = format!(
            "acme: {NAME}: challenge error: \"seen nothing\" (urn:ietf:params:acme:error:unauthorized) (HTTP status code \
             200) Aborting."
        );
        assert!(log.contains(&format!("acme: {NAME}: Starting update of the certificate.")), "{log}");
        assert!(log.contains(&text), "{log}");
    });
}

#[test]
fn what_fails_for_now_is_repeated_and_what_is_refused_is_not() {
    worlds("").run(|world| async move {
        order(&format!("acme renew {NAME}")).await;
        let mut acme = Acme::new();
        acme.answer("GET /dir", "503 Busy", "", "").await;
        acme.begin().await;
        let stale = r#"{"type":"urn:ietf:params:acme:error:badNonce","detail":"old"}"#;
        acme.answer("POST /order", "400 Bad Request", "", stale).await;
        acme.answer("POST /order", "429 Slow", "Retry-After: 7\r\n", "{}").await;
        let refusal = r#"{"type":"urn:ietf:params:acme:error:rejectedIdentifier","detail":"no"}"#;
        acme.answer("POST /order", "400 Bad Request", "", refusal).await;
        sleep(100).await;
        let log = world.take_log().await.join("\n");
        for text in [
            "invalid HTTP status code 503 when getting directory URL (no problem document), retrying in 3s (1/5 retries)...",
            "invalid HTTP status code 429 when requesting an order (no problem document), retrying in 7s (1/5 retries)...",
            "invalid HTTP status code 400 when requesting an order (\"no\" \
             (urn:ietf:params:acme:error:rejectedIdentifier)) Aborting.",
        ] {
            assert!(log.contains(text), "{text}\n{log}");
        }
    });
}

#[test]
fn answers_that_are_none_end_the_attempt() {
    worlds("").run(|world| async move {
        let mut acme = Acme::new();
        for body in ["{}", "[", "not JSON"] {
            order(&format!("acme renew {NAME}")).await;
            acme.answer("GET /dir", "200 OK", "", body).await;
            sleep(100).await;
            assert!(world.take_log().await.join("\n").contains("invalid directory Aborting."), "{body}");
        }
        order(&format!("acme renew {NAME}")).await;
        acme.begin().await;
        acme.order().await;
        // An identifier that was not ordered.
        let body = r#"{"status":"pending","identifier":{"type":"dns","value":"b.example"},"challenges":[
            {"type":"http-01","url":"http://10.0.1.9/c","token":"t","status":"pending"}]}"#;
        acme.answer("POST /authz/1", "200 OK", "", body).await;
        sleep(100).await;
        let log = world.take_log().await.join("\n");
        assert!(log.contains("the server offers no http-01 for 'b.example' Aborting."), "{log}");
    });
}

/// Names of a section are validated by DNS records that an operator sets, and a program that sets them gets their
/// contents.
#[test]
fn a_section_waits_for_its_records() {
    let sections = format!(
        "crt-store\n load crt own.pem acme OWN domains a.example\n load crt nameless.pem acme OWN\n\
         listen l\n bind {WEIR}\n bind 10.0.0.1:443 ssl crt own.pem\n http-request deny\n\
         acme OWN\n directory http://10.0.1.9/dir\n challenge dns-01\n provider-name p\n"
    );
    let global = format!("{SOCKET}\nstats timeout 10m\nexpose-experimental-directives\nacme.scheduler off");
    config(&sections).global(&global).workers(&[1, 2]).seeds(0..2).changed_by(with_key).run(|world| async move {
        let none = "No 'domains' or 'ips' were configured for certificate. Can't start the ACME client.\n\n";
        assert_eq!(ask("acme renew nameless.pem").await, none);
        let ready = async |domain: &str| ask(&format!("acme challenge_ready own.pem domain {domain}")).await;
        let unknown = "Couldn't find an ACME task using crt \"own.pem\" and dns \"a.example\" to set as ready!\n\n";
        assert_eq!(ready("a.example").await, unknown);
        let usage = "Not enough parameters: \"acme challenge_ready <certfile> domain <domain>\"\n\n";
        assert_eq!(ready("").await, usage);
        order("acme renew own.pem").await;
        let mut acme = Acme::new();
        acme.begin().await;
        acme.order().await;
        acme.authorization("pending", "").await;
        sleep(60_000).await;
        let told = ask("show events dpapi").await;
        let (head, body) = told.split_once("dns-01-record \"").unwrap();
        assert!(head.contains(" acme deploy own.pem thumbprint "), "{told}");
        assert!(head.ends_with("\nprovider-name \"p\"\n") && body.contains("\"value\":\"a.example\""), "{told}");
        let record = body.split('"').next().unwrap();
        let text = format!(
            "acme: own.pem: dns-01 requires to set the \"_acme-challenge.a.example\" TXT record to \"{record}\" and use the \
             \"acme challenge_ready own.pem domain a.example\" command over the CLI"
        );
        let log = world.take_log().await.join("\n");
        assert!(log.contains(&text), "{log}");
        let done = "'own.pem' challenges ready! All challenges ready, starting challenges validation!\n\n";
        assert_eq!(ready("a.example").await, done);
        acme.answer("POST /dns", "200 OK", "", "{}").await;
        acme.authorization("invalid", "").await;
        sleep(100).await;
        assert_eq!(ready("a.example").await, unknown);
        world.forget_log();
    });
}
