//! Rules of HTTPRoutes: entries, backends, and the conditions of references.

use serde_json::{Value, json};

use super::world::*;
use crate::desired::{BackendKind, Filter, PathChange, Protocol};

fn world() -> World {
    let mut world = World::new();
    world.gateway("gw", json!([{"name": "http", "port": 80, "protocol": "HTTP"}]));
    world
}

fn to(name: &str) -> Value {
    json!([{"name": name, "port": 8080}])
}

#[test]
fn matches_are_entries() {
    let mut world = world();
    world.route(
        "r",
        &["example.com"],
        json!([
            {"matches": [{"path": {"type": "Exact", "value": "/one"}}, {"headers": [{"name": "Version", "value": "two"}]}], "backendRefs": to("v1")},
            {"matches": [{"method": "POST", "queryParams": [{"name": "animal", "value": "whale"}], "path": {"value": "/v2/"}}], "backendRefs": to("v2")},
            {"backendRefs": to("v3")},
        ]),
    );
    assert_eq!(
        routes(&world.translate(), "10.0.0.0:80"),
        [
            "example.com/one infra:v1:8080",
            "example.com/* infra:v3:8080",
            "example.com/*;header:version=two infra:v1:8080",
            "example.com/v2/*;method=POST;query:animal=whale infra:v2:8080",
        ]
    );
}

#[test]
fn older_routes_and_first_rules_win() {
    let mut world = world();
    for (name, time, service) in [
        ("a", "2026-01-02T00:00:00Z", "v1"),
        ("b-c", "2026-01-01T00:00:00Z", "v2"),
        ("b", "2026-01-01T00:00:00Z", "v3"),
    ] {
        let rules = json!([{"backendRefs": to(service)}, {"backendRefs": to("v2")}]);
        world.put(json!({"kind": "HTTPRoute", "metadata": {"name": name, "creationTimestamp": time}, "spec": {"parentRefs": [{"name": "gw"}], "rules": rules}}));
    }
    assert_eq!(routes(&world.translate(), "10.0.0.0:80"), ["*/* infra:v3:8080"]);
}

#[test]
fn references_are_resolved_or_say_why_not() {
    let ok = "ResolvedRefs=True/ResolvedRefs".to_owned();
    let no = |reason: &str| format!("ResolvedRefs=False/{reason}");
    for (reference, expected, answer) in [
        (json!({"name": "v1", "port": 8080}), ok.clone(), "v1-0:3000=1"),
        (json!({"name": "v1", "port": 8081}), no("BackendNotFound"), "Status(500)"),
        (json!({"name": "v1"}), no("BackendNotFound"), "Status(500)"),
        (json!({"name": "none", "port": 8080}), no("BackendNotFound"), "Status(500)"),
        (
            json!({"name": "v1", "port": 8080, "kind": "NonExistent", "group": "unknown.io"}),
            no("InvalidKind"),
            "Status(500)",
        ),
        (json!({"name": "far", "namespace": "web", "port": 8080}), no("RefNotPermitted"), "Status(500)"),
        (json!({"name": "udp", "port": 53}), no("UnsupportedProtocol"), "Status(500)"),
        (json!({"name": "external", "port": 80}), no("BackendNotFound"), "Status(500)"),
        (json!({"name": "v1", "port": 8080, "weight": 0}), ok.clone(), "Status(500)"),
        (json!({"name": "empty", "port": 8080}), ok.clone(), ""),
    ] {
        let mut world = world();
        world.service("udp", json!([{"port": 53, "protocol": "UDP"}]), 1);
        world.service("empty", json!([{"port": 8080}]), 0);
        world.put(json!({"kind": "Service", "metadata": {"name": "far", "namespace": "web"}, "spec": {"ports": [{"port": 8080}]}}));
        world.put(json!({"kind": "Service", "metadata": {"name": "external"}, "spec": {"type": "ExternalName", "externalName": "a", "ports": [{"port": 80}]}}));
        world.route("r", &[], json!([{"backendRefs": [reference.clone()]}]));
        let translation = world.translate();
        assert_eq!(route_conditions(&translation, "r"), [format!("Accepted=True/Accepted {expected}")], "{reference}");
        let name = routes(&translation, "10.0.0.0:80").remove(0).split(' ').nth(1).unwrap().to_owned();
        assert_eq!(backend(&translation, &name), answer, "{reference}");
    }
}

#[test]
fn grants_permit_references() {
    let grant = |group: &str, kind: &str, from: &str, to: Value| {
        json!({"kind": "ReferenceGrant", "metadata": {"name": "g", "namespace": "web"}, "spec": {
            "from": [{"group": group, "kind": kind, "namespace": from}], "to": [to]}})
    };
    let group = "gateway.networking.k8s.io";
    let service = json!({"group": "", "kind": "Service", "name": "far"});
    for (grant, expected) in [
        (grant(group, "HTTPRoute", NAMESPACE, service.clone()), true),
        (grant(group, "HTTPRoute", NAMESPACE, json!({"group": "", "kind": "Service"})), true),
        (grant(group, "HTTPRoute", NAMESPACE, json!({"group": "", "kind": "Service", "name": "other"})), false),
        (grant(group, "HTTPRoute", NAMESPACE, json!({"group": "", "kind": "Secret", "name": "far"})), false),
        (grant(group, "HTTPRoute", NAMESPACE, json!({"group": "wrong.io", "kind": "Service", "name": "far"})), false),
        (grant(group, "HTTPRoute", "other", service.clone()), false),
        (grant(group, "Gateway", NAMESPACE, service.clone()), false),
        (grant("wrong.io", "HTTPRoute", NAMESPACE, service), false),
    ] {
        let mut world = world();
        world.put(json!({"kind": "Service", "metadata": {"name": "far", "namespace": "web"}, "spec": {"ports": [{"port": 8080}]}}));
        world.route("r", &[], json!([{"backendRefs": [{"name": "far", "namespace": "web", "port": 8080}]}]));
        world.translate();
        world.put(grant.clone());
        let found = route_conditions(&world.translate(), "r").remove(0);
        assert_eq!(found.contains("ResolvedRefs=True/ResolvedRefs"), expected, "{grant}");
        assert_eq!(found.contains("ResolvedRefs=False/RefNotPermitted"), !expected, "{grant}");
    }
}

#[test]
fn shares_of_missing_backends_are_answered() {
    let mut world = world();
    world.route("r", &[], json!([{"backendRefs": [{"name": "v1", "port": 8080, "weight": 3}, {"name": "none", "port": 8080}, {"name": "v2", "port": 8080, "weight": 0}]}]));
    let translation = world.translate();
    let backend = &translation.desired.backends["infra:r:h0.0"];
    assert_eq!(backend.filters, [Filter::Answer { status: 500, numerator: 1, denominator: 4 }]);
    assert_eq!(backend.servers.keys().collect::<Vec<_>>(), ["v1-0:3000"]);
}

#[test]
fn protocols_come_from_services() {
    for (port, expected) in [
        (json!({"port": 8080}), Protocol::Http1),
        (json!({"port": 8080, "appProtocol": "kubernetes.io/h2c"}), Protocol::Http2),
        (json!({"port": 8080, "appProtocol": "kubernetes.io/ws"}), Protocol::WebSocket),
        (json!({"port": 8080, "appProtocol": "http"}), Protocol::Http1),
    ] {
        let mut world = world();
        world.service("v1", json!([port]), 1);
        world.route("r", &[], json!([{"backendRefs": to("v1")}]));
        assert_eq!(world.translate().desired.backends["infra:v1:8080"].protocol, expected, "{port}");
    }
}

#[test]
fn filters_are_the_backends() {
    let header = |name: &str, value: &str| json!({"name": name, "value": value});
    let mut world = world();
    world.route(
        "r",
        &[],
        json!([{
            "matches": [{"path": {"value": "/a"}}, {"path": {"value": "/b"}}],
            "filters": [
                {"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [header("X-A", "%[b] \"c\"")], "add": [header("X-B", "1")], "remove": ["X-C"]}},
                {"type": "ResponseHeaderModifier", "responseHeaderModifier": {"remove": ["X-D"]}},
                {"type": "URLRewrite", "urlRewrite": {"hostname": "one.example.org", "path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/c"}}},
                {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "v2", "port": 8080}, "percent": 20}},
                {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "v3", "port": 8080}, "fraction": {"numerator": 1, "denominator": 3}}},
                {"type": "RequestMirror", "requestMirror": {"backendRef": {"name": "none", "port": 8080}}},
            ],
            "backendRefs": to("v1"),
        }]),
    );
    let translation = world.translate();
    assert_eq!(routes(&translation, "10.0.0.0:80"), ["*/a/* infra:r:h0.0", "*/b/* infra:r:h0.1"]);
    let text = |t: &str| t.to_owned();
    assert_eq!(
        translation.desired.backends["infra:r:h0.1"].filters,
        [
            Filter::SetRequestHeader { name: text("X-A"), value: text("%[b] \"c\"") },
            Filter::AddRequestHeader { name: text("X-B"), value: text("1") },
            Filter::RemoveRequestHeader { name: text("X-C") },
            Filter::RemoveResponseHeader { name: text("X-D") },
            Filter::SetHost { value: text("one.example.org") },
            Filter::SetPath(PathChange::Prefix { matched: text("/b"), replacement: text("/c") }),
            Filter::Mirror { backend: text("infra:v2:8080"), numerator: 20, denominator: 100 },
            Filter::Mirror { backend: text("infra:v3:8080"), numerator: 1, denominator: 3 },
        ]
    );
    assert_eq!(backend(&translation, "infra:v3:8080"), "v3-0:3000=1");
    assert_eq!(route_conditions(&translation, "r"), ["Accepted=True/Accepted ResolvedRefs=False/BackendNotFound"]);
}

#[test]
fn redirections_are_answers() {
    for (redirect, expected) in [
        (json!({}), "None None None None 302"),
        (json!({"hostname": "Example.org", "statusCode": 301}), "None Some(\"example.org\") None None 301"),
        (json!({"scheme": "https"}), "Some(\"https\") None Some(443) None 302"),
        (json!({"scheme": "http", "port": 8080, "statusCode": 307}), "Some(\"http\") None Some(8080) None 307"),
        (json!({"port": 8083}), "None None Some(8083) None 302"),
        (
            json!({"path": {"type": "ReplaceFullPath", "replaceFullPath": "/x"}}),
            "None None None Some(Full(\"/x\")) 302",
        ),
        (
            json!({"path": {"type": "ReplacePrefixMatch", "replacePrefixMatch": "/x"}}),
            "None None None Some(Prefix { matched: \"/a\", replacement: \"/x\" }) 302",
        ),
    ] {
        let mut world = world();
        world.route("r", &[], json!([{"matches": [{"path": {"value": "/a"}}], "filters": [{"type": "RequestRedirect", "requestRedirect": redirect}]}]));
        match &world.translate().desired.backends["infra:r:h0.0"].kind {
            BackendKind::Redirect(r) => {
                assert_eq!(format!("{:?} {:?} {:?} {:?} {}", r.scheme, r.host, r.port, r.path, r.status), expected)
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn unsupported_rules_are_named() {
    let bad =
        |filter: Value| json!({"filters": [filter], "matches": [{"path": {"value": "/bad"}}], "backendRefs": to("v1")});
    let extension = json!({"type": "ExtensionRef", "extensionRef": {"group": "a", "kind": "b", "name": "c"}});
    let redirect = json!({"type": "RequestRedirect", "requestRedirect": {}});
    let header = |name: &str, value: &str| json!({"type": "RequestHeaderModifier", "requestHeaderModifier": {"set": [{"name": name, "value": value}]}});
    for (filter, reason) in [
        (extension, "UnsupportedValue"),
        (header("a b", "c"), "UnsupportedValue"),
        (header("a", "b\r\nc: d"), "UnsupportedValue"),
        (header(&"a".repeat(100_000), "b"), "UnsupportedValue"),
    ] {
        let mut world = world();
        world.route("r", &[], json!([bad(filter.clone())]));
        assert_eq!(
            route_conditions(&world.translate(), "r"),
            [format!("Accepted=False/{reason} ResolvedRefs=True/ResolvedRefs")]
        );
        world.route("r", &[], json!([bad(filter), {"backendRefs": to("v1")}]));
        let translation = world.translate();
        let expected = format!("Accepted=True/Accepted ResolvedRefs=True/ResolvedRefs PartiallyInvalid=True/{reason}");
        assert_eq!(route_conditions(&translation, "r"), [expected]);
        assert_eq!(routes(&translation, "10.0.0.0:80"), ["*/* infra:v1:8080", "*/bad/* infra:r:h0.0"]);
        assert_eq!(backend(&translation, "infra:r:h0.0"), "Status(500)");
    }
    let mut world = world();
    let rewrite = json!({"type": "URLRewrite", "urlRewrite": {"hostname": "a.com"}});
    world.route("r", &[], json!([{"filters": [redirect, rewrite]}]));
    assert_eq!(
        route_conditions(&world.translate(), "r"),
        ["Accepted=False/IncompatibleFilters ResolvedRefs=True/ResolvedRefs"]
    );
}

/// Listeners, hosts and matches multiply.
#[test]
fn entries_are_limited() {
    let mut world = World::new();
    let listeners: Vec<_> =
        (0..64).map(|n| json!({"name": format!("l{n}"), "port": 80 + n, "protocol": "HTTP"})).collect();
    world.gateway("gw", json!(listeners));
    let hosts: Vec<String> = (0..16).map(|n| format!("h{n}.com")).collect();
    let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
    for (matches, expected) in [(10, "Accepted=True/Accepted"), (64, "Accepted=False/UnsupportedValue")] {
        let list: Vec<_> = (0..matches).map(|n| json!({"path": {"value": format!("/{n}")}})).collect();
        world.route("r", &hosts, json!([{"matches": list, "backendRefs": to("v1")}]));
        let translation = world.translate();
        assert_eq!(route_conditions(&translation, "r"), [format!("{expected} ResolvedRefs=True/ResolvedRefs")]);
        let is_served = expected.contains("True");
        assert_eq!(routes(&translation, "10.0.0.0:80").len(), if is_served { matches * 16 } else { 0 });
        assert_eq!(translation.desired.backends.contains_key("infra:v1:8080"), is_served);
    }
}

#[test]
fn options_are_the_backends() {
    let mut world = world();
    world.route(
        "r",
        &[],
        json!([{"timeouts": {"request": "500ms", "backendRequest": "0s"}, "retry": {"attempts": 3, "codes": [500, 503]},
            "sessionPersistence": {"sessionName": "s", "absoluteTimeout": "1h", "cookieConfig": {"lifetimeType": "Permanent"}}, "backendRefs": to("v1")}]),
    );
    let translation = world.translate();
    let found = &translation.desired.backends["infra:r:h0.0"];
    assert_eq!((found.timeouts.request, found.timeouts.backend_request), (Some(500), None));
    assert_eq!(found.retries.as_ref().map(|r| (r.attempts, r.statuses.clone())), Some((3, vec![500, 503])));
    assert_eq!(found.cookie.as_ref().map(|c| (c.name.clone(), c.lifetime)), Some(("s".to_owned(), Some(3600))));
    assert_eq!(backend(&translation, "infra:r:h0.0"), "v1-0:3000=1");
}
