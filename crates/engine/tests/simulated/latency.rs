//! Tests of `show latency`: percentiles are measured from the time that this is asked for.

use testkit::Peer;

use crate::api::{self, ask};
use crate::messages::*;
use crate::world::*;

const TITLES: &str = "# pxname,svname,type,count,p50,p95,p99,\n";

async fn request() {
    let mut client = Peer::connect(WEIR).await;
    client.send(get("/")).await;
    assert!(client.receive_head().await.is_some());
}

#[test]
fn percentiles_are_measured_on_request() {
    listen("    server s1 10.0.1.1:80").global(api::SOCKET).run(|world| async move {
        serve_ok(&world.scope, S1);
        request().await;
        assert_eq!(ask("show latency").await, "Latency is not measured: 'set profiling latency on' starts it.\n\n");
        assert_eq!(ask("set profiling latency on").await, "\n");
        assert!(ask("show profiling status").await.contains("\nLatency of requests                 : on "));
        assert_eq!(ask("show latency").await, format!("{TITLES}\n"));
        for _ in 0..3 {
            request().await;
        }
        let answer = ask("show latency l").await;
        let rows: Vec<&str> = answer.strip_prefix(TITLES).expect(&answer).trim_end().lines().collect();
        let found: Vec<String> = rows.iter().map(|row| row.split(',').take(4).collect::<Vec<_>>().join(",")).collect();
        assert_eq!(found, ["l,FRONTEND,0,3", "l,s1,2,3", "l,BACKEND,1,3"], "{answer}");
        let times: Vec<f64> =
            rows[0].trim_end_matches(',').split(',').skip(4).map(|time| time.parse().unwrap()).collect();
        assert!(times.len() == 3 && times.is_sorted(), "{answer}");
        assert_eq!(ask("show latency none").await, "No such proxy.\n\n");
        assert_eq!(ask("set profiling latency often").await, "Expects either 'on' or 'off'.\n\n");
        assert_eq!(ask("set profiling latency off").await, "\n");
        assert!(ask("show latency").await.starts_with("Latency is not measured"));
    });
}
