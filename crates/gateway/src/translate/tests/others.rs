//! GRPCRoutes, TLSRoutes, TCPRoutes, ListenerSets and BackendTLSPolicies.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::pem::{CERTIFICATE, KEY};
use super::world::*;
use crate::desired::{Filter, FrontendKind, Protocol, TlsTarget};
use crate::snapshot::ObjectKey;

fn route(kind: &str, name: &str, parent: Value, hostnames: &[&str], rules: Value) -> Value {
    json!({"kind": kind, "metadata": {"name": name}, "spec": {"parentRefs": [parent], "hostnames": hostnames, "rules": rules}})
}

fn to(name: &str) -> Value {
    json!([{"name": name, "port": 8080}])
}

#[test]
fn methods_of_grpc_are_paths() {
    let mut world = World::new();
    world.gateway("gw", json!([{"name": "http", "port": 80, "protocol": "HTTP"}]));
    let rules = json!([
        {"matches": [{"method": {"service": "echo.Echo", "method": "Ping"}}], "backendRefs": to("v1")},
        {"matches": [{"method": {"service": "echo.Echo"}, "headers": [{"name": "Version", "value": "2"}]}], "backendRefs": to("v2")},
        {"backendRefs": [{"name": "v1", "port": 8080, "weight": 7}, {"name": "v3", "port": 8080, "weight": 3}]},
    ]);
    world.put(route("GRPCRoute", "r", json!({"name": "gw"}), &["a.com"], rules));
    let translation = world.translate();
    assert_eq!(
        routes(&translation, "10.0.0.0:80"),
        [
            "a.com/echo.Echo/Ping infra:v1:8080:grpc",
            "a.com/* infra:r:g2.0",
            "a.com/echo.Echo/*;header:version=2 infra:v2:8080:grpc"
        ]
    );
    assert_eq!(backend(&translation, "infra:r:g2.0"), "0:v1-0:3000=256 1:v3-0:3000=110");
    assert!(
        translation
            .desired
            .backends
            .iter()
            .filter(|(name, _)| name.starts_with("infra"))
            .all(|(_, b)| b.protocol == Protocol::Http2)
    );
    let status = &translation.statuses.grpc_routes[&ObjectKey::new(NAMESPACE, "r")];
    assert_eq!(show(&status.parents[0].conditions), "Accepted=True/Accepted ResolvedRefs=True/ResolvedRefs");
}

#[test]
fn connections_with_tls_have_names() {
    let mut world = World::new();
    world.put(json!({"kind": "Secret", "metadata": {"name": "own"}, "data": {
        "tls.crt": encode(CERTIFICATE),
        "tls.key": encode(KEY)}}));
    world.gateway(
        "gw",
        json!([
            {"name": "through", "port": 443, "protocol": "TLS", "hostname": "*.through.com", "tls": {"mode": "Passthrough"}},
            {"name": "end", "port": 443, "protocol": "TLS", "hostname": "end.com", "tls": {"mode": "Terminate", "certificateRefs": [{"name": "own"}]}},
        ]),
    );
    world.put(route(
        "TLSRoute",
        "a",
        json!({"name": "gw"}),
        &["a.through.com", "end.com"],
        json!([{"backendRefs": to("v1")}]),
    ));
    world.put(route("TLSRoute", "b", json!({"name": "gw"}), &["b.com"], json!([{"backendRefs": to("none")}])));
    let translation = world.translate();
    let FrontendKind::Tls { names } = &translation.desired.frontends[&"10.0.0.0:443".parse().unwrap()].kind else {
        panic!()
    };
    let backend_name = || "infra:v1:8080:tcp".to_owned();
    assert_eq!(names["a.through.com"], TlsTarget::Passthrough { backend: backend_name() });
    assert_eq!(
        names["end.com"],
        TlsTarget::Terminate { backend: backend_name(), certificates: vec!["crt:infra:own".into()] }
    );
    assert_eq!(names.len(), 2);
    assert_eq!(backend(&translation, "infra:v1:8080:tcp"), "v1-0:3000=1");
    let conditions =
        |name: &str| show(&translation.statuses.tls_routes[&ObjectKey::new(NAMESPACE, name)].parents[0].conditions);
    assert_eq!(conditions("a"), "Accepted=True/Accepted ResolvedRefs=True/ResolvedRefs");
    assert_eq!(conditions("b"), "Accepted=False/NoMatchingListenerHostname ResolvedRefs=False/BackendNotFound");
    let attached: Vec<_> =
        gateway_listeners(&translation, "gw").iter().map(|l| l.split(" Acc").next().unwrap().to_owned()).collect();
    assert_eq!(attached, ["through 1 [TLSRoute]", "end 1 [TLSRoute]"]);
}

#[test]
fn listeners_with_tls_are_isolated() {
    let mut world = World::new();
    let listener = |name: &str, host: &str| json!({"name": name, "port": 443, "protocol": "TLS", "hostname": host, "tls": {"mode": "Passthrough"}});
    world.gateway("gw", json!([listener("all", ""), listener("one", "*.a.com")]));
    let parent = json!({"name": "gw", "sectionName": "all"});
    world.put(route("TLSRoute", "r", parent, &["*.com", "b.a.com"], json!([{"backendRefs": to("v1")}])));
    let translation = world.translate();
    let FrontendKind::Tls { names } = &translation.desired.frontends[&"10.0.0.0:443".parse().unwrap()].kind else {
        panic!()
    };
    let backend = |name: &str| TlsTarget::Passthrough { backend: name.to_owned() };
    let expected =
        [("*.a.com".to_owned(), backend("weir:refused")), ("*.com".to_owned(), backend("infra:v1:8080:tcp"))];
    assert_eq!(*names, expected.into());
    assert!(translation.desired.backends["weir:refused"].servers.is_empty());
}

#[test]
fn connections_reach_the_oldest_route() {
    let mut world = World::new();
    world.gateway("gw", json!([{"name": "tcp", "port": 9000, "protocol": "TCP"}]));
    world.put(route("TCPRoute", "b", json!({"name": "gw"}), &[], json!([{"backendRefs": to("v1")}])));
    world.put(route(
        "TCPRoute",
        "a",
        json!({"name": "gw"}),
        &[],
        json!([{"backendRefs": [{"name": "v1", "port": 8080}, {"name": "v2", "port": 8080}]}]),
    ));
    let translation = world.translate();
    assert_eq!(
        translation.desired.frontends[&"10.0.0.0:9000".parse().unwrap()].kind,
        FrontendKind::Tcp { backend: "infra:a:t0.0".into() }
    );
    assert_eq!(backend(&translation, "infra:a:t0.0"), "0:v1-0:3000=256 1:v2-0:3000=256");
}

fn set(name: &str, listeners: Value) -> Value {
    json!({"kind": "ListenerSet", "metadata": {"name": name, "creationTimestamp": format!("2026-01-01T00:00:0{}Z", name.len())},
        "spec": {"parentRef": {"name": "gw"}, "listeners": listeners}})
}

#[test]
fn listener_sets_add_listeners() {
    for (from, accepted, attached) in [
        ("Same", "Accepted=True/Accepted Programmed=True/Programmed", 2),
        ("None", "Accepted=False/NotAllowed Programmed=False/NotAllowed", 0),
    ] {
        let mut world = World::new();
        let listener = |name: &str, protocol: &str, host: &str| json!({"name": name, "port": 80, "protocol": protocol, "hostname": host});
        world.put(json!({"kind": "Gateway", "metadata": {"name": "gw"}, "spec": {"gatewayClassName": "weir",
            "allowedListeners": {"namespaces": {"from": from}}, "listeners": [listener("own", "HTTP", "own.com")]}}));
        world.put(set(
            "s",
            json!([listener("a", "HTTP", "a.com"), listener("b", "TCP", ""), listener("c", "HTTP", "own.com")]),
        ));
        world.put(set("ss", json!([listener("a", "HTTP", "a.com"), listener("d", "HTTP", "d.com")])));
        world.put(set("sss", json!([listener("a", "HTTP", "d.com")])));
        let parent = json!({"name": "s", "kind": "ListenerSet", "group": "gateway.networking.k8s.io"});
        world.put(route("HTTPRoute", "r", parent, &[], json!([{"backendRefs": to("v1")}])));
        let translation = world.translate();
        let sets = &translation.statuses.listener_sets;
        assert_eq!(show(sets[&ObjectKey::new(NAMESPACE, "s")].conditions.as_deref().unwrap()), accepted);
        assert_eq!(
            translation.statuses.gateways[&ObjectKey::new(NAMESPACE, "gw")].attached_listener_sets.unwrap_or(0),
            attached
        );
        if from == "None" {
            continue;
        }
        let of = |name: &str| -> Vec<String> {
            let listeners = sets[&ObjectKey::new(NAMESPACE, name)].listeners.as_deref().unwrap();
            listeners.iter().map(|l| format!("{} {} {}", l.name, l.attached_routes, l.conditions[0].reason)).collect()
        };
        assert_eq!(of("s"), ["a 1 Accepted", "b 0 ProtocolConflict", "c 0 HostnameConflict"]);
        assert_eq!(of("ss"), ["a 0 HostnameConflict", "d 0 Accepted"]);
        let last = show(sets[&ObjectKey::new(NAMESPACE, "sss")].conditions.as_deref().unwrap());
        assert_eq!(last, "Accepted=False/ListenersNotValid Programmed=False/ListenersNotValid");
        assert_eq!(routes(&translation, "10.0.0.0:80"), ["a.com/* infra:v1:8080"]);
    }
}

fn policy(name: &str, section: Value, reference: Value) -> Value {
    let mut target = json!({"group": "", "kind": "Service", "name": "v1"});
    if !section.is_null() {
        target["sectionName"] = section;
    }
    json!({"kind": "BackendTLSPolicy", "metadata": {"name": name}, "spec": {"targetRefs": [target],
        "validation": {"hostname": "abc.example.com", "caCertificateRefs": [reference]}}})
}

#[test]
fn policies_encrypt_connections() {
    let map = |name: &str| json!({"group": "", "kind": "ConfigMap", "name": name});
    for (reference, expected, is_encrypted) in [
        (map("ca"), "Accepted=True/Accepted ResolvedRefs=True/ResolvedRefs", true),
        (map("none"), "Accepted=False/NoValidCACertificate ResolvedRefs=False/InvalidCACertificateRef", false),
        (map("bad"), "Accepted=False/NoValidCACertificate ResolvedRefs=False/InvalidCACertificateRef", false),
        (
            json!({"group": "invalid.io", "kind": "X", "name": "ca"}),
            "Accepted=False/NoValidCACertificate ResolvedRefs=False/InvalidKind",
            false,
        ),
    ] {
        let mut world = World::new();
        world.put(json!({"kind": "ConfigMap", "metadata": {"name": "ca"}, "data": {"ca.crt": CERTIFICATE}}));
        world.put(json!({"kind": "ConfigMap", "metadata": {"name": "bad"}, "data": {}}));
        world.gateway("gw", json!([{"name": "http", "port": 80, "protocol": "HTTP"}]));
        world.put(route("HTTPRoute", "r", json!({"name": "gw"}), &[], json!([{"backendRefs": to("v1")}])));
        assert!(world.translate().desired.backends["infra:v1:8080"].tls.is_none());
        world.put(policy("p", Value::Null, reference.clone()));
        world.put(policy("q", Value::Null, map("ca")));
        let translation = world.translate();
        let conditions = |name: &str| {
            let ancestors = &translation.statuses.backend_tls_policies[&ObjectKey::new(NAMESPACE, name)].ancestors;
            ancestors
                .iter()
                .map(|a| format!("{} {}", a.ancestor_ref.name, show(&a.conditions)))
                .collect::<Vec<_>>()
                .join(";")
        };
        assert_eq!(conditions("p"), format!("gw {expected}"), "{reference}");
        assert_eq!(conditions("q"), "gw Accepted=False/Conflicted ResolvedRefs=True/ResolvedRefs");
        let condition = route_conditions(&translation, "r").remove(0);
        assert_eq!(condition, "Accepted=True/Accepted ResolvedRefs=True/ResolvedRefs", "{reference}");
        if is_encrypted {
            let tls = translation.desired.backends["infra:v1:8080"].tls.clone().unwrap();
            assert_eq!((&*tls.server_name, tls.authorities.as_deref()), ("abc.example.com", Some("ca:infra:p:policy")));
            assert!(translation.desired.authorities.contains_key("ca:infra:p:policy"));
        } else {
            assert_eq!(backend(&translation, "infra:r:h0.0"), "Status(500)", "{reference}");
        }
    }
}

#[test]
fn policies_of_ports_precede() {
    let mut world = World::new();
    world.service("v1", json!([{"name": "one", "port": 8080}, {"name": "two", "port": 8081}]), 1);
    world.put(json!({"kind": "ConfigMap", "metadata": {"name": "ca"}, "data": {"ca.crt": CERTIFICATE}}));
    let map = json!({"group": "", "kind": "ConfigMap", "name": "ca"});
    world.put(policy("a", Value::Null, map.clone()));
    world.put(policy("b", json!("one"), map));
    world.gateway("gw", json!([{"name": "http", "port": 80, "protocol": "HTTP"}]));
    let refs = |port: i32| json!([{"name": "v1", "port": port}]);
    world.put(route(
        "HTTPRoute",
        "r",
        json!({"name": "gw"}),
        &[],
        json!([{"backendRefs": refs(8080)}, {"matches": [{"path": {"value": "/2"}}], "backendRefs": refs(8081)}]),
    ));
    let backends = world.translate().desired.backends;
    let bundles =
        ["infra:v1:8080", "infra:v1:8081"].map(|name| backends[name].tls.clone().unwrap().authorities.unwrap());
    assert_eq!(bundles, ["ca:infra:b:policy", "ca:infra:a:policy"]);
}

#[test]
fn gateways_send_their_certificates() {
    let mut world = World::new();
    world.put(json!({"kind": "ConfigMap", "metadata": {"name": "ca"}, "data": {"ca.crt": CERTIFICATE}}));
    world.put(policy("p", Value::Null, json!({"group": "", "kind": "ConfigMap", "name": "ca"})));
    world.put(json!({"kind": "Secret", "metadata": {"name": "own"}, "data": {
        "tls.crt": encode(CERTIFICATE),
        "tls.key": encode(KEY)}}));
    let listeners = json!([{"name": "http", "port": 80, "protocol": "HTTP"}]);
    world.gateway("plain", listeners.clone());
    let tls = json!({"backend": {"clientCertificateRef": {"name": "own"}}});
    world.put(json!({"kind": "Gateway", "metadata": {"name": "own"}, "spec": {"gatewayClassName": "weir", "tls": tls, "listeners": listeners}}));
    let mirror = json!([{"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "v1", "port": 8080}}}]);
    let rules = json!([{"backendRefs": to("v1")}, {"matches": [{"path": {"value": "/2"}}], "backendRefs": to("v2")},
        {"matches": [{"path": {"value": "/3"}}], "filters": mirror, "backendRefs": to("v2")}]);
    let spec = json!({"parentRefs": [{"name": "plain"}, {"name": "own"}], "rules": rules});
    world.put(json!({"kind": "HTTPRoute", "metadata": {"name": "r"}, "spec": spec}));
    let translation = world.translate();
    assert_eq!(routes(&translation, "10.0.0.1:80"), ["*/* infra:v1:8080", "*/2/* infra:v2:8080", "*/3/* infra:r:h2.0"]);
    let own = ["*/* infra:v1:8080:crt:infra:own", "*/2/* infra:v2:8080", "*/3/* infra:r:h2.0:crt:infra:own"];
    assert_eq!(routes(&translation, "10.0.0.0:80"), own);
    let backends = &translation.desired.backends;
    let certificate = |name: &str| backends[name].tls.as_ref().unwrap().certificate.as_deref();
    assert_eq!(certificate("infra:v1:8080"), None);
    assert_eq!(certificate("infra:v1:8080:crt:infra:own"), Some("crt:infra:own"));
    let mirrored = |name: &str| match &backends[name].filters[..] {
        [Filter::Mirror { backend, .. }] => backend.clone(),
        other => panic!("{other:?}"),
    };
    assert_eq!(mirrored("infra:r:h2.0"), "infra:v1:8080");
    assert_eq!(mirrored("infra:r:h2.0:crt:infra:own"), "infra:v1:8080:crt:infra:own");
    assert!(translation.desired.certificates.contains_key("crt:infra:own"));
    world.snapshot.gateways.remove(&ObjectKey::new(NAMESPACE, "plain"));
    assert!(!world.translate().desired.backends.contains_key("infra:v1:8080"));
}

/// Names of which Weir's would be cut are not served: two of them might become one.
#[test]
fn names_are_not_cut() {
    let mut world = World::new();
    world.gateway("gw", json!([{"name": "http", "port": 80, "protocol": "HTTP"}]));
    let long = "x".repeat(254);
    world.service(&long, json!([{"port": 8080}]), 1);
    world.put(route("HTTPRoute", "r", json!({"name": "gw"}), &[], json!([{"backendRefs": to(&long)}])));
    let translation = world.translate();
    assert_eq!(route_conditions(&translation, "r"), ["Accepted=True/Accepted ResolvedRefs=False/BackendNotFound"]);
    assert_eq!(backend(&translation, "infra:r:h0.0"), "Status(500)");
    world.put(route("HTTPRoute", &long, json!({"name": "gw"}), &[], json!([{"backendRefs": to("v1")}])));
    let status = &world.translate().statuses.http_routes[&ObjectKey::new(NAMESPACE, &*long)];
    assert!(show(&status.parents[0].conditions).starts_with("Accepted=False/UnsupportedValue"));
}

/// Names that an apiserver does not admit: nothing of them gets into a name of Weir.
#[test]
fn hostile_names_are_harmless() {
    let long = "x".repeat(100_000);
    for name in ["a\nserver evil 1.2.3.4:80", "a\" '%[env(PATH)] #", "é/../:;=~*", &long] {
        let mut world = World::new();
        world.gateway("gw", json!([{"name": name, "port": 80, "protocol": "HTTP"}]));
        world.gateway(name, json!([{"name": "http", "port": 80, "protocol": "HTTP", "hostname": name}]));
        world.service(name, json!([{"name": name, "port": 8080}]), 1);
        let filters =
            json!([{"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": "a", "value": "b"}]}}]);
        world.route(name, &[name], json!([{"backendRefs": to(name)}, {"filters": filters, "backendRefs": to(name)}]));
        world.route(
            "fine",
            &[],
            json!([{"backendRefs": to(name)}, {"matches": [{"path": {"value": "/x"}}], "backendRefs": to("v1")}]),
        );
        let translation = world.translate();
        let desired = &translation.desired;
        let names: BTreeSet<&String> =
            desired.backends.keys().chain(desired.backends.values().flat_map(|b| b.servers.keys())).collect();
        for found in names {
            assert!(
                found.len() < 2000 && found.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_.:".contains(&b)),
                "{found:.80}"
            );
        }
        let sockets = desired.frontends.keys().map(ToString::to_string);
        let entries: Vec<String> = sockets.flat_map(|socket| routes(&translation, &socket)).collect();
        assert!(entries.contains(&"*/x/* infra:v1:8080".to_owned()), "{entries:.300?}");
        assert!(translation.warnings.iter().all(|w| w.len() < 5000 && !w.contains(char::is_control)));
        let messages =
            translation.statuses.gateways.values().flat_map(|s| s.conditions.iter().flatten()).map(|c| &c.message);
        assert!(messages.clone().all(|m| m.len() < 5000 && !m.contains(char::is_control)));
    }
}
