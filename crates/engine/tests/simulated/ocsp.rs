//! Tests of updates of OCSP responses: the number of concurrent ones, a responder that does not answer and delays no
//! other one, and certificates added at run time, whose updates begin at once.

use std::time::Duration;

use testkit::{Peer, Service, sleep};

use crate::api::{SOCKET, ask};
use crate::secure::read_file;
use crate::world::*;

const FAILS: &str = "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n";

async fn asked(service: &mut Service) -> Peer {
    let mut peer = service.accept().await;
    let head = peer.receive_head().await.unwrap();
    assert!(head.starts_with("GET /ME"), "{head}");
    peer
}

#[test]
fn a_responder_that_does_not_answer_delays_no_other_one() {
    let certificates: String = (0..14).map(|number| format!(" crt o{number}.pem")).collect();
    config(&format!("listen l\n bind 10.0.0.1:443 ssl{certificates}\n http-request deny\n"))
        .global("ocsp-update.mode on\nhttpclient.retries 0")
        .run(|world| async move {
            let mut silent = Service::at("10.0.1.7:8000");
            let mut others: Vec<_> =
                (1..=10).map(|number| Service::at(&format!("10.0.1.7:{}", 8000 + number))).collect();
            sleep(1_000).await;
            // Two of the four certificates with the silent responder, and six of the others.
            let held = [asked(&mut silent).await, asked(&mut silent).await];
            silent.is_left_alone();
            others[6..].iter_mut().for_each(|other| other.is_left_alone());
            for other in &mut others {
                let mut peer = asked(other).await;
                peer.send(FAILS).await;
                peer.close();
            }
            sleep(1_000).await;
            silent.is_left_alone();
            // Each gets at most a minute; then the two that have waited follow.
            sleep(60_000).await;
            drop(held);
            let _held = [asked(&mut silent).await, asked(&mut silent).await];
            silent.is_left_alone();
            world.forget_log();
        });
}

/// The responder of the certificate with that number.
fn responder(number: u16) -> Service {
    Service::at(&format!("10.0.1.7:{}", 8000 + number - 3))
}

fn of(responders: &mut [Service], number: u16) -> &mut Service {
    &mut responders[usize::from(number) - 4]
}

/// Expects an update within a second.
async fn is_asked_soon(responder: &mut Service) {
    let begun = rt::now();
    let mut peer = asked(responder).await;
    let waited = rt::now().saturating_since(begun);
    assert!(waited < Duration::from_secs(1), "{waited:?}");
    peer.send(FAILS).await;
    peer.close();
}

/// Replaces a certificate by `o<number>.pem`.
async fn put(name: &str, number: u16) {
    let text = String::from_utf8(read_file(&format!("o{number}.pem")).unwrap()).unwrap();
    ask(&format!("set ssl cert {name} <<EOF\n{text}EOF\n")).await;
    let answer = ask(&format!("commit ssl cert {name}")).await;
    assert!(answer.ends_with("Success!\n\n"), "{answer}");
}

/// Certificates added by a crt-list line, replaced ones, and those of a reload in place.
#[test]
fn certificates_that_come_are_asked_for_at_once() {
    let stored = |number: u16| {
        let lines = format!("bind 10.0.0.1:443 ssl crt a.pem crt o8.pem crt o{number}.pem crt-list certs.list");
        let stored = [8, number].map(|number| format!(" load crt o{number}.pem ocsp-update on\n")).concat();
        config(&format!("crt-store\n{stored}listen l\n {lines}\n http-request deny\n"))
            .global(&format!("{SOCKET}\nhttpclient.retries 0"))
    };
    for workers in [1, 2] {
        stored(9).workers(&[workers]).seeds(0..1).run(move |world| async move {
            let mut responders: Vec<_> = (4..=10).map(responder).collect();
            // The first attempt comes before there are responders.
            for number in [8, 9] {
                asked(of(&mut responders, number)).await.send(FAILS).await;
            }
            for (name, number) in [("b.pem", 4), ("c.pem", 5)] {
                // Each at another time between two periodic checks.
                sleep(7_000 * u64::from(number)).await;
                ask(&format!("new ssl cert {name}")).await;
                put(name, number).await;
                of(&mut responders, number).is_left_alone();
                let line = format!("{name} [ocsp-update on] {number}.example");
                let added = ask(&format!("add ssl crt-list certs.list <<\n{line}\n")).await;
                assert!(added.ends_with("Success!\n\n"), "{added}");
                is_asked_soon(of(&mut responders, number)).await;
            }
            sleep(13_000).await;
            put("b.pem", 6).await;
            is_asked_soon(of(&mut responders, 6)).await;
            sleep(17_000).await;
            world.adopt(&stored(10)).unwrap();
            is_asked_soon(of(&mut responders, 10)).await;
            of(&mut responders, 7).is_left_alone();
            world.forget_log();
        });
    }
}
