//! Results of unchanged objects are kept, and a snapshot means the same whatever preceded it.

use std::sync::Arc;

use serde_json::json;

use super::super::{Addresses, Settings, Translator};
use super::world::*;
use crate::snapshot::ObjectKey;

fn world(routes: usize) -> World {
    let mut world = World::new();
    world.gateway("gw", json!([{"name": "http", "port": 80, "protocol": "HTTP"}]));
    for n in 0..routes {
        let name = format!("s{n}");
        world.service(&name, json!([{"port": 8080}]), 1);
        world.route(
            &format!("r{n}"),
            &[&format!("h{n}.example.com")],
            json!([{"backendRefs": [{"name": name, "port": 8080}]}]),
        );
    }
    world
}

#[test]
fn an_endpoint_changes_one_backend() {
    let mut world = world(20);
    let before = world.translate();
    world.service("s3", json!([{"port": 8080}]), 2);
    let after = world.translate();
    assert_eq!(backend(&after, "infra:s3:8080"), "s3-0:3000=1 s3-1:3000=1");
    for (name, old) in &before.desired.backends {
        assert_eq!(Arc::ptr_eq(old, &after.desired.backends[name]), name != "infra:s3:8080", "{name}");
    }
    let (old, new) = (&before.desired.frontends, &after.desired.frontends);
    assert!(old.values().zip(new.values()).all(|(a, b)| Arc::ptr_eq(a, b)));
}

#[test]
fn draining_endpoints_stay() {
    let mut world = world(1);
    let endpoint = |n: usize, conditions: serde_json::Value| json!({"addresses": [format!("10.1.0.{n}")], "targetRef": {"name": format!("p{n}")}, "conditions": conditions});
    world.put(json!({"kind": "EndpointSlice", "metadata": {"name": "s0-a", "labels": {"kubernetes.io/service-name": "s0"}}, "addressType": "IPv4",
        "ports": [{"name": "", "port": 3000}], "endpoints": [
            endpoint(0, json!({"ready": true})), endpoint(1, json!({"ready": false, "serving": true, "terminating": true})),
            endpoint(2, json!({"ready": false, "serving": false, "terminating": true})), endpoint(3, json!({"ready": false})), endpoint(4, json!({}))]}));
    let translation = world.translate();
    let servers = &translation.desired.backends["infra:s0:8080"].servers;
    let found: Vec<_> = servers.iter().map(|(name, s)| format!("{name} {}", s.is_draining)).collect();
    assert_eq!(found, ["p0:3000 false", "p1:3000 true", "p4:3000 false"]);
}

#[test]
fn statuses_are_written_once() {
    let mut world = world(2);
    world.put(json!({"kind": "HTTPRoute", "metadata": {"name": "r0", "generation": 2}, "spec": {"parentRefs": [{"name": "gw"}], "rules": []},
        "status": {"parents": [
            {"controllerName": "other.io/c", "parentRef": {"name": "x"}, "conditions": []},
            {"controllerName": "weir.dev/gateway", "parentRef": {"name": "gone"}, "conditions": []},
            {"controllerName": "weir.dev/gateway", "parentRef": {"name": "gw"}, "conditions": [
                {"type": "Accepted", "status": "True", "reason": "Accepted", "message": "", "observedGeneration": 1, "lastTransitionTime": "2025-01-01T00:00:00Z"},
                {"type": "ResolvedRefs", "status": "False", "reason": "InvalidKind", "message": "", "observedGeneration": 1, "lastTransitionTime": "2025-01-01T00:00:00Z"}]}]}}));
    let first = world.translate();
    let key = ObjectKey::new(NAMESPACE, "r0");
    let parents = &first.statuses.http_routes[&key].parents;
    let names: Vec<_> = parents.iter().map(|p| format!("{} {}", p.controller_name, p.parent_ref.name)).collect();
    assert_eq!(names, ["other.io/c x", "weir.dev/gateway gw"]);
    let times: Vec<_> =
        parents[1].conditions.iter().map(|c| (c.last_transition_time.clone(), c.observed_generation)).collect();
    assert_eq!(times, [(time("2025-01-01T00:00:00Z"), Some(2)), (time("2026-02-01T00:00:00Z"), Some(2))]);
    // A status that is not written yet stays at its address.
    assert!(Arc::ptr_eq(&first.statuses.http_routes[&key], &world.translate().statuses.http_routes[&key]));
    for (key, status) in &first.statuses.http_routes {
        Arc::make_mut(world.snapshot.http_routes.get_mut(key).unwrap()).status = Some((**status).clone());
    }
    for (key, status) in &first.statuses.gateways {
        Arc::make_mut(world.snapshot.gateways.get_mut(key).unwrap()).status = Some((**status).clone());
    }
    for (key, status) in &first.statuses.gateway_classes {
        Arc::make_mut(world.snapshot.gateway_classes.get_mut(key).unwrap()).status = Some((**status).clone());
    }
    let second = world.translate();
    assert!(
        second.statuses.http_routes.is_empty()
            && second.statuses.gateways.is_empty()
            && second.statuses.gateway_classes.is_empty()
    );
    assert_eq!(second.desired, first.desired);
    let (old, new) = (&first.desired.frontends, &second.desired.frontends);
    assert!(old.values().zip(new.values()).all(|(a, b)| Arc::ptr_eq(a, b)));
}

#[test]
fn slices_move_and_end() {
    let mut world = world(2);
    world.translate();
    let slice = ObjectKey::new(NAMESPACE, "s0-a");
    let labels = &mut Arc::make_mut(world.snapshot.endpoint_slices.get_mut(&slice).unwrap()).metadata.labels;
    labels.as_mut().unwrap().insert("kubernetes.io/service-name".into(), "s1".into());
    let translation = world.translate();
    assert_eq!(backend(&translation, "infra:s0:8080"), "");
    assert_eq!(backend(&translation, "infra:s1:8080"), "s0-0:3000=1 s1-0:3000=1");
    world.snapshot.endpoint_slices.remove(&slice);
    assert_eq!(backend(&world.translate(), "infra:s1:8080"), "s1-0:3000=1");
}

#[test]
fn routes_share_a_changed_service() {
    let mut world = world(2);
    world.route("r1", &["h1.example.com"], json!([{"backendRefs": [{"name": "s0", "port": 8080}]}]));
    world.translate();
    world.service("s0", json!([{"port": 8080, "appProtocol": "kubernetes.io/h2c"}]), 1);
    assert_eq!(world.translate().desired.backends["infra:s0:8080"].protocol, crate::desired::Protocol::Http2);
}

#[test]
fn numbers_of_routes_follow() {
    let mut world = world(1);
    for (name, expected) in [("r1", "http 2"), ("r2", "http 3")] {
        world.translate();
        world.route(name, &[], json!([]));
        assert!(gateway_listeners(&world.translate(), "gw")[0].starts_with(expected));
    }
    world.snapshot.http_routes.clear();
    assert!(gateway_listeners(&world.translate(), "gw")[0].starts_with("http 0"));
}

#[test]
fn labels_of_namespaces_matter_at_once() {
    let mut world = world(1);
    let selected = json!({"from": "Selector", "selector": {"matchExpressions": [{"key": "kind", "operator": "In", "values": ["infra"]}]}});
    world.gateway(
        "gw",
        json!([{"name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": selected}}]),
    );
    assert_eq!(routes(&world.translate(), "10.0.0.0:80").len(), 1);
    for (label, expected) in [("other", 0), ("infra", 1)] {
        world.put(json!({"kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": {"kind": label}}}));
        assert_eq!(routes(&world.translate(), "10.0.0.0:80").len(), expected, "{label}");
    }
}

#[test]
fn routes_follow_listener_sets() {
    let mut world = world(0);
    world.put(json!({"kind": "Gateway", "metadata": {"name": "gw"}, "spec": {"gatewayClassName": "weir",
        "allowedListeners": {"namespaces": {"from": "Same"}}, "listeners": [{"name": "http", "port": 81, "protocol": "HTTP"}]}}));
    let spec = json!({"parentRefs": [{"name": "s", "kind": "ListenerSet"}], "rules": [{"backendRefs": [{"name": "v1", "port": 8080}]}]});
    world.put(json!({"kind": "HTTPRoute", "metadata": {"name": "r"}, "spec": spec}));
    world.translate();
    for host in ["a.com", "b.com"] {
        let listeners = json!([{"name": "a", "port": 80, "protocol": "HTTP", "hostname": host}]);
        world.put(json!({"kind": "ListenerSet", "metadata": {"name": "s"}, "spec": {"parentRef": {"name": "gw"}, "listeners": listeners}}));
        assert_eq!(routes(&world.translate(), "10.0.0.0:80"), [format!("{host}/* infra:v1:8080")]);
    }
    world.snapshot.listener_sets.clear();
    assert_eq!(world.translate().desired.frontends.len(), 1);
}

/// On one address a Gateway's listener takes the requests for its hostname from another Gateway's.
#[test]
fn gateways_of_one_address_are_isolated() {
    let mut world = world(1);
    world.translator =
        Translator::new(Settings { addresses: Addresses::Shared("10.9.9.9".parse().unwrap()), ..settings() });
    assert_eq!(routes(&world.translate(), "10.9.9.9:80"), ["h0.example.com/* infra:s0:8080"]);
    world.gateway("late", json!([{"name": "http", "port": 80, "protocol": "HTTP", "hostname": "*.example.com"}]));
    assert_eq!(routes(&world.translate(), "10.9.9.9:80"), ["*.example.com/* weir:not-found"]);
    world.gateway("same", json!([{"name": "http", "port": 80, "protocol": "HTTP"}]));
    assert!(gateway_listeners(&world.translate(), "same")[0].contains("Conflicted=True/HostnameConflict"));
}

/// Steps in an order that depends on the seed: after each one the translator's result is that of a new translator.
#[test]
fn snapshots_mean_the_same_whatever_preceded_them() {
    check_steps(settings(), 7);
    check_steps(Settings { addresses: Addresses::Shared("10.9.9.9".parse().unwrap()), ..settings() }, 8);
}

fn check_steps(settings: Settings, mut seed: u64) {
    let mut draw = move |limit: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % limit
    };
    let mut world = world(6);
    world.translator = Translator::new(settings.clone());
    for step in 0..500 {
        change_object(&mut world, &mut draw);
        let kept = world.translate();
        // Addresses of Gateways depend on what preceded: a new translator learns them from the statuses.
        for (key, status) in &kept.statuses.gateways {
            Arc::make_mut(world.snapshot.gateways.get_mut(key).unwrap()).status = Some((**status).clone());
        }
        let new = Translator::new(settings.clone()).translate(&world.snapshot, &time("2026-02-01T00:00:00Z"));
        assert_eq!(kept.desired, new.desired, "step {step}");
        assert_eq!(kept.statuses.http_routes, new.statuses.http_routes, "step {step}");
        assert_eq!(kept.statuses.backend_tls_policies, new.statuses.backend_tls_policies, "step {step}");
        assert_eq!(kept.statuses.listener_sets, new.statuses.listener_sets, "step {step}");
    }
}

fn change_object(world: &mut World, draw: &mut impl FnMut(u64) -> u64) {
    let n = draw(6);
    let service = format!("s{n}");
    let refs = |name: &str| json!([{"name": name, "port": 8080}]);
    let key = |name: String| ObjectKey::new(NAMESPACE, name);
    match draw(11) {
        0 => world.service(&service, json!([{"port": 8080}]), draw(3) as usize),
        1 => drop(world.snapshot.services.remove(&key(service))),
        2 => drop(world.snapshot.http_routes.remove(&key(format!("r{n}")))),
        3 => {
            let refs = json!([{"name": service, "port": 8080, "weight": draw(3)}, {"name": format!("s{}", draw(6)), "port": 8080}]);
            world.route(
                &format!("r{n}"),
                &[],
                json!([{"matches": [{"path": {"value": format!("/{}", draw(2))}}], "backendRefs": refs}]),
            );
        }
        4 => world.route(
            &format!("r{n}"),
            &[&format!("h{}.example.com", draw(3))],
            json!([{"backendRefs": refs(&service)}]),
        ),
        5 => world.gateway("gw", json!([{"name": "http", "port": 80 + draw(2), "protocol": "HTTP"}])),
        6 => {
            let spec =
                json!({"parentRefs": [{"name": "gw"}, {"name": "g0"}], "rules": [{"backendRefs": refs(&service)}]});
            world.put(json!({"kind": "GRPCRoute", "metadata": {"name": format!("r{n}")}, "spec": spec}));
        }
        7 => drop(world.snapshot.gateways.remove(&key(format!("g{}", draw(2))))),
        8 => change_stream(world, draw),
        _ => change_environment(world, draw),
    }
}

fn change_stream(world: &mut World, draw: &mut impl FnMut(u64) -> u64) {
    let name = format!("r{}", draw(2));
    let rules = json!([{"backendRefs": [{"name": format!("s{}", draw(6)), "port": 8080}]}]);
    match draw(5) {
        0 => {
            let host = format!("*.h{}.com", draw(2));
            let tls = json!({"name": "tls", "port": 443, "protocol": "TLS", "hostname": host, "tls": {"mode": "Passthrough"}});
            world.gateway("gt", json!([{"name": "tcp", "port": 9000 + draw(2), "protocol": "TCP"}, tls]));
        }
        1 => world.put(json!({"kind": "TCPRoute", "metadata": {"name": name}, "spec": {"parentRefs": [{"name": "gt"}], "rules": rules}})),
        2 => {
            let hostnames = [format!("a.h{}.com", draw(3))];
            let spec = json!({"parentRefs": [{"name": "gt"}], "hostnames": hostnames, "rules": rules});
            world.put(json!({"kind": "TLSRoute", "metadata": {"name": name}, "spec": spec}));
        }
        3 => drop(world.snapshot.tcp_routes.remove(&ObjectKey::new(NAMESPACE, name))),
        _ => drop(world.snapshot.tls_routes.remove(&ObjectKey::new(NAMESPACE, name))),
    }
}

fn change_environment(world: &mut World, draw: &mut impl FnMut(u64) -> u64) {
    let policy = format!("p{}", draw(2));
    let set = format!("l{}", draw(2));
    match draw(8) {
        0 => {
            let host = format!("h{}.example.com", draw(2));
            let listeners = json!([{"name": "http", "port": 80, "protocol": "HTTP", "hostname": host}]);
            world.gateway(&format!("g{}", draw(2)), listeners);
        }
        1 => {
            let target = json!({"group": "", "kind": "Service", "name": format!("s{}", draw(6))});
            let validation =
                json!({"hostname": "a.com", "caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": "ca"}]});
            let spec = json!({"targetRefs": [target], "validation": validation});
            world.put(json!({"kind": "BackendTLSPolicy", "metadata": {"name": policy}, "spec": spec}));
        }
        2 => drop(world.snapshot.backend_tls_policies.remove(&ObjectKey::new(NAMESPACE, policy))),
        3 => world
            .put(json!({"kind": "ConfigMap", "metadata": {"name": "ca"}, "data": {"ca.crt": super::pem::CERTIFICATE}})),
        4 => world.put(json!({"kind": "ConfigMap", "metadata": {"name": "ca"}, "data": {}})),
        5 => {
            let label = ["infra", "other"][draw(2) as usize];
            world.put(json!({"kind": "Namespace", "metadata": {"name": NAMESPACE, "labels": {"kind": label}}}));
        }
        6 => {
            let selected = json!({"from": "Selector", "selector": {"matchLabels": {"kind": "infra"}}});
            let listeners =
                json!([{"name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": selected}}]);
            world.put(json!({"kind": "Gateway", "metadata": {"name": "gw"}, "spec": {"gatewayClassName": "weir",
                "allowedListeners": {"namespaces": selected}, "listeners": listeners}}));
        }
        _ => {
            let listeners =
                json!([{"name": "a", "port": 80, "protocol": "HTTP", "hostname": format!("h{}.example.com", draw(3))}]);
            world.put(json!({"kind": "ListenerSet", "metadata": {"name": set}, "spec": {"parentRef": {"name": "gw"}, "listeners": listeners}}));
            let parents = json!([{"name": set, "kind": "ListenerSet"}, {"name": "gw"}]);
            let spec = json!({"parentRefs": parents, "rules": [{"backendRefs": [{"name": "s0", "port": 8080}]}]});
            world.put(json!({"kind": "HTTPRoute", "metadata": {"name": "rs"}, "spec": spec}));
        }
    }
}
