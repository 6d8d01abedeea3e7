//! Updates of OCSP answers: how many are under way at a time, and that a responder which does not answer delays no other one.

use testkit::{Peer, Service, sleep};

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
            // Two of the four certificates whose responder is silent, and six of the others.
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
            // A minute is all that one gets; then come the two that have waited.
            sleep(60_000).await;
            drop(held);
            let _held = [asked(&mut silent).await, asked(&mut silent).await];
            silent.is_left_alone();
            world.forget_log();
        });
}
