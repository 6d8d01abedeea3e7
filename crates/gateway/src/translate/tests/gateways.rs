//! Conditions of Gateways and their listeners, to the letter.

use serde_json::{Value, json};

use super::pem::{CERTIFICATE, KEY};
use super::world::*;
use crate::snapshot::ObjectKey;

const FINE: &str =
    "Accepted=True/Accepted Programmed=True/Programmed ResolvedRefs=True/ResolvedRefs Conflicted=False/NoConflicts";

fn secret(namespace: &str, name: &str, certificate: &str) -> Value {
    json!({"kind": "Secret", "metadata": {"name": name, "namespace": namespace}, "data": {"tls.crt": encode(certificate), "tls.key": encode(KEY)}})
}

fn http(name: &str, kinds: Value) -> Value {
    json!([{"name": name, "port": 80, "protocol": "HTTP", "allowedRoutes": {"kinds": kinds}}])
}

#[test]
fn listeners_have_kinds() {
    let both = "[HTTPRoute GRPCRoute]";
    for (listeners, expected) in [
        (http("http", json!([])), format!("http 0 {both} {FINE}")),
        (http("http", json!([{"kind": "HTTPRoute"}])), format!("http 0 [HTTPRoute] {FINE}")),
        (
            http("http", json!([{"kind": "InvalidRoute"}])),
            "http 0 [] Accepted=True/Accepted Programmed=False/Invalid ResolvedRefs=False/InvalidRouteKinds Conflicted=False/NoConflicts".into(),
        ),
        (
            http("http", json!([{"kind": "InvalidRoute"}, {"kind": "HTTPRoute"}])),
            "http 0 [HTTPRoute] Accepted=True/Accepted Programmed=True/Programmed ResolvedRefs=False/InvalidRouteKinds Conflicted=False/NoConflicts".into(),
        ),
        (
            json!([{"name": "u", "port": 53, "protocol": "UDP"}]),
            "u 0 [] Accepted=False/UnsupportedProtocol Programmed=False/Invalid ResolvedRefs=True/ResolvedRefs Conflicted=False/NoConflicts".into(),
        ),
        (json!([{"name": "t", "port": 443, "protocol": "TLS", "tls": {"mode": "Passthrough"}}]), format!("t 0 [TLSRoute] {FINE}")),
        (json!([{"name": "t", "port": 9000, "protocol": "TCP"}]), format!("t 0 [TCPRoute] {FINE}")),
    ] {
        let mut world = World::new();
        world.gateway("gw", listeners.clone());
        assert_eq!(gateway_listeners(&world.translate(), "gw"), [expected], "{listeners}");
    }
}

#[test]
fn certificates_are_found_and_permitted() {
    let grant = |kind: &str, name: &str| {
        json!({"kind": "ReferenceGrant", "metadata": {"name": "g", "namespace": "web"}, "spec": {
            "from": [{"group": "gateway.networking.k8s.io", "kind": kind, "namespace": NAMESPACE}],
            "to": [{"group": "", "kind": "Secret", "name": name}]}})
    };
    let own = json!({"group": "", "kind": "Secret", "name": "own"});
    let far = json!({"group": "", "kind": "Secret", "name": "far", "namespace": "web"});
    let none = json!({});
    for (reference, extra, expected) in [
        (own.clone(), none.clone(), "ResolvedRefs=True/ResolvedRefs"),
        (json!({"name": "own", "kind": "Other"}), none.clone(), "ResolvedRefs=False/InvalidCertificateRef"),
        (json!({"name": "own", "group": "wrong.io"}), none.clone(), "ResolvedRefs=False/InvalidCertificateRef"),
        (json!({"name": "missing"}), none.clone(), "ResolvedRefs=False/InvalidCertificateRef"),
        (json!({"name": "malformed"}), none.clone(), "ResolvedRefs=False/InvalidCertificateRef"),
        (far.clone(), none, "ResolvedRefs=False/RefNotPermitted"),
        (far.clone(), grant("Gateway", "far"), "ResolvedRefs=True/ResolvedRefs"),
        (far.clone(), grant("Gateway", ""), "ResolvedRefs=True/ResolvedRefs"),
        (far.clone(), grant("Gateway", "other"), "ResolvedRefs=False/RefNotPermitted"),
        (far, grant("HTTPRoute", "far"), "ResolvedRefs=False/RefNotPermitted"),
    ] {
        let mut world = World::new();
        world.put(secret(NAMESPACE, "own", CERTIFICATE));
        world.put(secret("web", "far", CERTIFICATE));
        world.put(secret(NAMESPACE, "malformed", "Hello world\n"));
        if extra.is_object() && !extra["kind"].is_null() {
            world.put(extra.clone());
        }
        world.gateway("gw", json!([{"name": "https", "port": 443, "protocol": "HTTPS", "tls": {"certificateRefs": [reference.clone()]}}]));
        world.route("r", &[], json!([{"backendRefs": [{"name": "missing", "port": 8080}]}]));
        let translation = world.translate();
        let listener = gateway_listeners(&translation, "gw").remove(0);
        let is_fine = expected.contains("True");
        assert!(
            listener.starts_with("https 1 [HTTPRoute GRPCRoute] Accepted=True/Accepted") && listener.contains(expected),
            "{reference} {extra}: {listener}"
        );
        assert_eq!(listener.contains("Programmed=True"), is_fine, "{listener}");
        assert_eq!(translation.desired.certificates.len(), usize::from(is_fine));
        assert_eq!(translation.desired.frontends.len(), usize::from(is_fine));
        let expected = if is_fine {
            "Accepted=True/Accepted Programmed=True/Programmed"
        } else {
            "Accepted=True/Accepted Programmed=False/Invalid"
        };
        assert_eq!(gateway_conditions(&translation, "gw"), expected);
    }
}

#[test]
fn listeners_that_are_not_distinct_conflict() {
    let of = |listeners: &[(&str, i32, &str, &str)]| {
        let list = listeners.iter().map(
            |(name, port, protocol, host)| json!({"name": name, "port": port, "protocol": protocol, "hostname": host}),
        );
        Value::from_iter(list)
    };
    for (listeners, expected) in [
        (of(&[("a", 80, "HTTP", "a.com"), ("b", 80, "HTTP", "b.com")]), ["", ""]),
        (of(&[("a", 80, "HTTP", "a.com"), ("b", 80, "HTTP", "A.com")]), ["HostnameConflict", "HostnameConflict"]),
        (of(&[("a", 80, "HTTP", ""), ("b", 80, "TCP", "")]), ["ProtocolConflict", "ProtocolConflict"]),
        (of(&[("a", 90, "TCP", ""), ("b", 90, "TCP", "")]), ["HostnameConflict", "HostnameConflict"]),
        (of(&[("a", 80, "HTTP", ""), ("b", 81, "HTTP", "")]), ["", ""]),
    ] {
        let mut world = World::new();
        world.gateway("gw", listeners.clone());
        let translation = world.translate();
        for (listener, reason) in gateway_listeners(&translation, "gw").iter().zip(expected) {
            if reason.is_empty() {
                assert!(listener.ends_with(FINE), "{listener}");
            } else {
                let text = format!(
                    "Accepted=False/{reason} Programmed=False/{reason} ResolvedRefs=True/ResolvedRefs Conflicted=True/{reason}"
                );
                assert!(listener.ends_with(&text), "{listener}");
            }
        }
        let accepted =
            if expected[0].is_empty() { "Accepted=True/Accepted" } else { "Accepted=False/ListenersNotValid" };
        assert!(gateway_conditions(&translation, "gw").starts_with(accepted), "{listeners}");
    }
}

#[test]
fn classes_are_accepted() {
    let mut world = World::new();
    world.put(json!({"kind": "GatewayClass", "metadata": {"name": "other"}, "spec": {"controllerName": "other.io/c"}}));
    world.put(json!({"kind": "GatewayClass", "metadata": {"name": "parameters"}, "spec": {"controllerName": "weir.dev/gateway",
        "parametersRef": {"group": "", "kind": "ConfigMap", "name": "p"}}}));
    let classes = world.translate().statuses.gateway_classes;
    let text: Vec<_> =
        classes.iter().map(|(key, s)| format!("{key} {}", show(s.conditions.as_deref().unwrap()))).collect();
    assert_eq!(text, ["parameters Accepted=False/InvalidParameters", "weir Accepted=True/Accepted"]);
    let weir = &classes[&ObjectKey::new("", "weir")];
    assert_eq!(weir.conditions.as_ref().unwrap()[0].observed_generation, Some(1));
    assert!(weir.supported_features.as_ref().unwrap().iter().any(|f| f.name == "HTTPRoute"));
}

#[test]
fn gateways_have_addresses() {
    let mut world = World::new();
    world.gateway("a", http("http", json!([])));
    world.gateway("b", http("http", json!([])));
    let translation = world.translate();
    let sockets: Vec<_> = translation.desired.frontends.keys().map(ToString::to_string).collect();
    assert_eq!(sockets, ["10.0.0.0:80", "10.0.0.1:80"]);
    let address = &translation.statuses.gateways[&ObjectKey::new(NAMESPACE, "b")].addresses.as_ref().unwrap()[0];
    assert_eq!((address.r#type.as_deref(), &*address.value), (Some("IPAddress"), "10.0.0.1"));
    for (addresses, expected) in [
        (
            json!([{"type": "test/fake", "value": "x"}, {"value": "192.0.2.1"}]),
            "Accepted=False/UnsupportedAddress Programmed=False/Invalid",
        ),
        (
            json!([{"value": "192.0.2.1"}, {"value": "10.0.0.9"}]),
            "Accepted=True/Accepted Programmed=False/AddressNotUsable",
        ),
        (json!([{"value": "10.0.0.9"}]), "Accepted=True/Accepted Programmed=True/Programmed"),
    ] {
        world.put(json!({"kind": "Gateway", "metadata": {"name": "c"}, "spec": {
            "gatewayClassName": "weir", "addresses": addresses, "listeners": http("http", json!([]))}}));
        assert_eq!(gateway_conditions(&world.translate(), "c"), expected, "{addresses}");
    }
}

#[test]
fn parameters_are_not_supported() {
    let mut world = World::new();
    let parameters = json!({"parametersRef": {"group": "", "kind": "ConfigMap", "name": "p"}});
    world.put(json!({"kind": "Gateway", "metadata": {"name": "gw"}, "spec": {"gatewayClassName": "weir", "infrastructure": parameters,
        "allowedListeners": {"namespaces": {"from": "All"}}, "listeners": http("http", json!([]))}}));
    world.put(
        json!({"kind": "ListenerSet", "metadata": {"name": "s"}, "spec": {"parentRef": {"name": "gw"}, "listeners": [
        {"name": "a", "port": 81, "protocol": "HTTP"}]}}),
    );
    let translation = world.translate();
    assert_eq!(gateway_conditions(&translation, "gw"), "Accepted=False/InvalidParameters Programmed=False/Invalid");
    let set = &translation.statuses.listener_sets[&ObjectKey::new(NAMESPACE, "s")];
    assert_eq!(
        show(set.conditions.as_deref().unwrap()),
        "Accepted=False/ParentNotAccepted Programmed=False/ParentNotAccepted"
    );
    assert!(translation.desired.frontends.is_empty());
}

#[test]
fn clients_are_verified_by_port() {
    let mut world = World::new();
    world.put(secret(NAMESPACE, "own", CERTIFICATE));
    world.put(json!({"kind": "ConfigMap", "metadata": {"name": "ca"}, "data": {"ca.crt": CERTIFICATE}}));
    let validation = |kind: &str, name: &str| json!({"validation": {"caCertificateRefs": [{"group": "", "kind": kind, "name": name}]}});
    let per_port = |port: i32, kind: &str, name: &str| json!({"port": port, "tls": validation(kind, name)});
    let listener = |name: &str, port: i32| json!({"name": name, "port": port, "protocol": "HTTPS", "tls": {"certificateRefs": [{"name": "own"}]}});
    let tls = json!({"frontend": {"default": validation("ConfigMap", "ca"), "perPort": [
        per_port(7443, "ConfigMap", "missing"), per_port(8443, "Service", "v1"),
        {"port": 6443, "tls": {"validation": {"caCertificateRefs": [{"group": "", "kind": "ConfigMap", "name": "ca", "namespace": "web"}]}}}]}});
    world.put(json!({"kind": "Gateway", "metadata": {"name": "gw"}, "spec": {"gatewayClassName": "weir", "tls": tls, "listeners": [
        listener("https", 443), listener("missing", 7443), listener("kind", 8443), listener("grant", 6443),
        {"name": "http", "port": 80, "protocol": "HTTP"}]}}));
    let translation = world.translate();
    let expected = [
        ("https", "Accepted=True/Accepted Programmed=True/Programmed ResolvedRefs=True/ResolvedRefs"),
        (
            "missing",
            "Accepted=False/NoValidCACertificate Programmed=False/Invalid ResolvedRefs=False/InvalidCACertificateRef",
        ),
        (
            "kind",
            "Accepted=False/NoValidCACertificate Programmed=False/Invalid ResolvedRefs=False/InvalidCACertificateKind",
        ),
        ("grant", "Accepted=False/NoValidCACertificate Programmed=False/Invalid ResolvedRefs=False/RefNotPermitted"),
        ("http", "Accepted=True/Accepted Programmed=True/Programmed ResolvedRefs=True/ResolvedRefs"),
    ];
    for (listener, (name, conditions)) in gateway_listeners(&translation, "gw").iter().zip(expected) {
        assert!(listener.starts_with(name) && listener.contains(conditions), "{listener}");
    }
    assert_eq!(translation.desired.authorities.keys().collect::<Vec<_>>(), ["ca:infra:gw"]);
}
