//! What is around the limits of a store: its TLS, and its metrics.

use testkit::{Peer, Service};

use crate::api::{SOCKET, ask};
use crate::secure::{Secure, read_file};
use crate::world::*;

/// The address of the store.
const STORE: &str = "10.0.6.1:6379";
/// Attempts to connect that a test awaits.
const ATTEMPTS: usize = 5;

#[test]
fn a_store_is_verified_by_the_committed_file() {
    let lines = format!(
        "store fleet\n server redis1 {STORE} ssl verify required ca-file other.pem sni str(a.example)\nfrontend f\n \
         bind {WEIR}\n http-request return status 200\n"
    );
    config(&lines).global(SOCKET).workers(&[1]).seeds(0..1).run(|world| async move {
        let mut store = Service::at(STORE);
        assert!(Secure::accept(store.accept().await).await.is_err());
        let authority = String::from_utf8(read_file("ca.pem").unwrap()).unwrap();
        ask(&format!("set ssl ca-file other.pem <<\n{authority}\n")).await;
        assert_eq!(ask("commit ssl ca-file other.pem").await, "Committing other.pem.\nSuccess!\n\n");
        // An attempt may have begun before.
        for _ in 0..ATTEMPTS {
            if let Ok(mut accepted) = Secure::accept(store.accept().await).await {
                accepted.expect("*3\r\n$6\r\nSCRIPT\r\n$4\r\nLOAD\r\n").await;
                return world.forget_log();
            }
        }
        panic!("the store is not accepted");
    });
}

/// Returns the metrics with these parameters.
async fn metrics(parameters: &str) -> String {
    let mut client = Peer::connect(WEIR).await;
    client.send(format!("GET /metrics{parameters} HTTP/1.0\r\n\r\n")).await;
    let answer = String::from_utf8(client.receive_rest().await).unwrap();
    answer.split_once("\r\n\r\n").unwrap().1.to_owned()
}

#[test]
fn stores_and_limits_have_metrics() {
    let lines = format!(
        "store one\n server s {STORE}\n limit a rate 100 period 100m lost closed\n limit b rate 2 period 100m\nstore two\n \
         server s 10.0.6.2:6379\n limit a rate 1 period 1h lost open\nfrontend f\n bind {WEIR}\n \
         http-request deny if {{ hdr(x),exceeds(one/a) }} || {{ hdr(x),exceeds(one/b) }} || {{ hdr(x),exceeds(two/a) }}\n \
         http-request use-service prometheus-exporter\n"
    );
    config(&lines).workers(&[1]).seeds(0..1).run(|world| async move {
        assert!(!metrics("").await.contains("weir_"));
        for _ in 0..3 {
            let mut client = Peer::connect(WEIR).await;
            client.send("GET / HTTP/1.1\r\nHost: a\r\nX: y\r\nConnection: close\r\n\r\n").await;
            assert!(client.receive_rest().await.starts_with(b"HTTP/1.1 403 "));
        }
        let text = metrics("?scope=store").await;
        for line in [
            "# TYPE weir_store_up gauge",
            "weir_store_up{store=\"one\"} 0",
            "weir_store_up{store=\"two\"} 0",
            "# TYPE weir_store_round_trip_seconds gauge",
            "weir_store_round_trip_seconds{store=\"one\"} 0",
            "# TYPE weir_store_faults_total counter",
            "weir_store_commands_total{store=\"one\"} 0",
            "weir_store_refused_total{store=\"one\"} 0",
            "# TYPE weir_limit_exceeded_total counter",
            "weir_limit_exceeded_total{store=\"one\",limit=\"a\"} 3",
            "weir_limit_admitted_total{store=\"one\",limit=\"a\"} 0",
            "weir_limit_keys{store=\"one\",limit=\"a\"} 0",
            "weir_limit_leased{store=\"two\",limit=\"a\"} 0",
            "weir_limit_unleased_total{store=\"two\",limit=\"a\"} 0",
            "weir_limit_evicted_total{store=\"two\",limit=\"a\"} 0",
        ] {
            assert_eq!(text.lines().filter(|found| *found == line).count(), 1, "{line}: {text}");
        }
        assert_eq!(metrics("?scope=store&metrics=weir_store_up").await.lines().count(), 4);
        world.forget_log();
    });
}
