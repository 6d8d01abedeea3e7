//! The controller against a recorded apiserver. All waits are for requests of the controller or for its applications.

mod apiserver;
mod controller;

use std::time::Duration;

use serde_json::json;

use apiserver::{Answer, Apiserver, Seen};
use controller::Controller;

const ROUTES: &str = "/apis/gateway.networking.k8s.io/v1/httproutes";
const ONE: &str = "/namespaces/shop/httproutes/one/status";
const EVENTS: &str = include_str!("../recorded/httproutes.watch");

/// Runs a test on an event loop of its own, for at most a minute.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("runtime");
    let local = tokio::task::LocalSet::new();
    runtime.block_on(local.run_until(async {
        tokio::time::timeout(Duration::from_secs(60), test)
            .await
            .expect("the test waits for something that does not happen");
    }));
}

fn event(kind: &str) -> &'static str {
    EVENTS.lines().find(|line| line.contains(&format!("\"type\":\"{kind}\""))).expect("event")
}

fn version(patch: &Seen) -> String {
    patch.body["metadata"]["resourceVersion"].as_str().expect("a patch without a version").to_owned()
}

#[test]
fn objects_are_applied_and_get_statuses_with_the_version_that_was_read() {
    run(async {
        let mut server = Apiserver::start().await;
        let mut controller = Controller::start(server.address);
        assert_eq!(controller.applied().await.into_iter().collect::<Vec<_>>(), ["one.example.com", "two.example.com"]);
        let patch = server.request("PATCH", ONE).await;
        let list = server.list(ROUTES);
        assert_eq!(version(&patch), list["items"][0]["metadata"]["resourceVersion"]);
        assert_eq!(patch.body["status"]["parents"][0]["controllerName"], "weir.dev/gateway");
        controller.stop().await;
    });
}

#[test]
fn nothing_is_applied_before_all_lists_are_complete() {
    run(async {
        let mut server = Apiserver::start().await;
        server.set_list("/api/v1/secrets", Answer::new(403, include_str!("../recorded/forbidden.json")));
        let mut controller = Controller::start(server.address);
        for _ in 0..3 {
            server.request("GET", "/api/v1/secrets").await;
        }
        assert!(!controller.has_applied());
        server.set_list("/api/v1/secrets", Answer::new(200, include_str!("../recorded/secrets.json")));
        controller.applies(&["one.example.com", "two.example.com"]).await;
        controller.stop().await;
    });
}

#[test]
fn an_optional_kind_may_be_missing_and_is_looked_for_again() {
    run(async {
        let mut server = Apiserver::start().await;
        let path = "/apis/gateway.networking.k8s.io/v1alpha2/tcproutes";
        server.set_list(path, Answer::new(404, include_str!("../recorded/missing.txt")));
        let mut controller = Controller::start(server.address);
        controller.applies(&["one.example.com", "two.example.com"]).await;
        server.set_list(path, Answer::new(200, include_str!("../recorded/tcproutes.json")));
        server.request("WATCH", path).await;
        controller.stop().await;
    });
}

#[test]
fn events_during_an_application_are_applied_together() {
    run(async {
        let mut server = Apiserver::start().await;
        let mut controller = Controller::start_gated(server.address, "a");
        controller.applies(&["one.example.com", "two.example.com"]).await;
        server.request("WATCH", ROUTES).await;
        for kind in ["ADDED", "MODIFIED", "DELETED"] {
            server.send(ROUTES, event(kind));
        }
        // The next watch begins after the last event, so all of them are received.
        server.end_watch(ROUTES);
        server.request("WATCH", ROUTES).await;
        assert!(!controller.has_applied());
        controller.gate.add_permits(1000);
        assert_eq!(
            controller.applied().await.into_iter().collect::<Vec<_>>(),
            ["three.example.com", "uno.example.com"]
        );
        controller.stop().await;
    });
}

#[test]
fn an_expired_version_lists_all_objects_again() {
    run(async {
        let mut server = Apiserver::start().await;
        let mut controller = Controller::start(server.address);
        controller.applies(&["one.example.com", "two.example.com"]).await;
        server.request("WATCH", ROUTES).await;
        let mut list = server.list(ROUTES);
        list["items"].as_array_mut().expect("items").remove(0);
        server.set_list(ROUTES, Answer::new(200, list.to_string()));
        server.send(ROUTES, include_str!("../recorded/expired.watch").trim_end());
        controller.applies(&["two.example.com"]).await;
        controller.stop().await;
    });
}

#[test]
fn a_conflict_is_repeated_with_the_newest_object() {
    run(async {
        let mut server = Apiserver::start().await;
        let path = format!("/apis/gateway.networking.k8s.io/v1{ONE}");
        server.answer_next("PATCH", &path, Answer::new(409, include_str!("../recorded/conflict.json")));
        let controller = Controller::start(server.address);
        let first = server.request("PATCH", ONE).await;
        server.send(ROUTES, event("MODIFIED"));
        let second = server.request("PATCH", ONE).await;
        let newest: serde_json::Value = serde_json::from_str(event("MODIFIED")).expect("event");
        assert_ne!(version(&first), version(&second));
        assert_eq!(version(&second), newest["object"]["metadata"]["resourceVersion"]);
        assert_eq!(second.body["status"]["parents"][0]["conditions"][0]["observedGeneration"], json!(2));
        controller.stop().await;
    });
}

#[test]
fn a_status_that_the_apiserver_fails_to_write_is_sent_again_and_others_are_not() {
    run(async {
        let mut server = Apiserver::start().await;
        let path = format!("/apis/gateway.networking.k8s.io/v1{ONE}");
        server.answer_next("PATCH", &path, Answer::new(500, "{}"));
        let controller = Controller::start(server.address);
        let mut others = 0;
        let mut attempts = 0;
        while attempts < 2 {
            let patch = server.request("PATCH", "/status").await;
            if patch.path.ends_with(ONE) { attempts += 1 } else { others += 1 }
        }
        // A GatewayClass, a Gateway, and the other route.
        assert_eq!(others, 3);
        controller.stop().await;
    });
}

#[test]
fn watches_continue_after_the_apiserver_was_away() {
    run(async {
        let mut server = Apiserver::start().await;
        let mut controller = Controller::start(server.address);
        controller.applies(&["one.example.com", "two.example.com"]).await;
        server.request("WATCH", ROUTES).await;
        server.send(ROUTES, event("ADDED"));
        controller.applies(&["one.example.com", "three.example.com", "two.example.com"]).await;
        server.go_down();
        for _ in 0..20 {
            server.request("REFUSED", "").await;
        }
        // Nothing was taken away.
        assert!(!controller.has_applied());
        server.come_up();
        let watch = server.request("WATCH", ROUTES).await;
        let last: serde_json::Value = serde_json::from_str(event("ADDED")).expect("event");
        let last = last["object"]["metadata"]["resourceVersion"].as_str().expect("version").to_owned();
        assert!(watch.query.contains(&format!("resourceVersion={last}")), "{}", watch.query);
        server.send(ROUTES, event("DELETED"));
        controller.applies(&["one.example.com", "three.example.com"]).await;
        controller.stop().await;
    });
}

#[test]
fn one_replica_writes_statuses_and_the_next_one_after_its_end() {
    run(async {
        let mut server = Apiserver::start().await;
        let first = Controller::start(server.address);
        server.request("PATCH", ONE).await;
        let mut second = Controller::start_gated(server.address, "b");
        second.gate.add_permits(1000);
        // It drives its own Weir all the same.
        second.applies(&["one.example.com", "two.example.com"]).await;
        for _ in 0..5 {
            let seen = server.request("GET", "/leases/weir-gateway").await;
            assert_eq!(seen.query, "");
        }
        first.stop().await;
        let taken = loop {
            let put = server.request("PUT", "/leases/weir-gateway").await;
            if put.body["spec"]["holderIdentity"] == "b" {
                break put;
            }
        };
        assert_eq!(taken.body["spec"]["leaseTransitions"], json!(1));
        server.request("PATCH", ONE).await;
        second.stop().await;
    });
}
