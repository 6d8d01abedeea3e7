//! Routes at listeners: the conditions of both, to the letter.

use serde_json::json;

use super::world::*;

const ACCEPTED: &str = "Accepted=True/Accepted ResolvedRefs=True/ResolvedRefs";

#[test]
fn parents_accept_routes_or_say_why_not() {
    let http = json!([{"name": "http", "port": 80, "protocol": "HTTP"}]);
    let all =
        json!([{"name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": "All"}}}]);
    let selected = |label: &str| {
        json!([{"name": "http", "port": 80, "protocol": "HTTP",
            "allowedRoutes": {"namespaces": {"from": "Selector", "selector": {"matchLabels": {"kind": label}}}}}])
    };
    let hosts = |host: &str| json!([{"name": "http", "port": 80, "protocol": "HTTP", "hostname": host}]);
    let tls = json!([{"name": "tls", "port": 443, "protocol": "TLS", "tls": {"mode": "Passthrough"}, "allowedRoutes": {"kinds": [{"kind": "TLSRoute"}]}}]);
    let no = |reason: &str| format!("Accepted=False/{reason} ResolvedRefs=True/ResolvedRefs");
    let yes = ACCEPTED.to_owned();
    let cases = [
        (&http, json!({"name": "gw"}), json!([]), yes.clone()),
        (&http, json!({"name": "gw", "sectionName": "http", "port": 80}), json!([]), yes.clone()),
        (&http, json!({"name": "gw", "port": 81}), json!([]), no("NoMatchingParent")),
        (&http, json!({"name": "gw", "sectionName": "http1"}), json!([]), no("NoMatchingParent")),
        (&http, json!({"name": "gw", "sectionName": "http", "port": 81}), json!([]), no("NoMatchingParent")),
        (&tls, json!({"name": "gw"}), json!([]), no("NotAllowedByListeners")),
        (&all, json!({"name": "gw"}), json!(["a.com"]), yes.clone()),
        (&selected("infra"), json!({"name": "gw"}), json!([]), yes.clone()),
        (&selected("backend"), json!({"name": "gw"}), json!([]), no("NotAllowedByListeners")),
        (&hosts("a.example.com"), json!({"name": "gw"}), json!(["*.example.com"]), yes.clone()),
        (&hosts("*.example.com"), json!({"name": "gw"}), json!(["b.org", "A.Example.com"]), yes.clone()),
        (&hosts("*.example.com"), json!({"name": "gw"}), json!(["example.com"]), no("NoMatchingListenerHostname")),
        (
            &hosts("*.example.com"),
            json!({"name": "gw"}),
            json!(["bad\nhost.example.com"]),
            no("NoMatchingListenerHostname"),
        ),
    ];
    for (listeners, parent, hostnames, expected) in cases {
        let mut world = World::new();
        world.gateway("gw", listeners.clone());
        let spec = json!({"parentRefs": [parent], "hostnames": hostnames, "rules": [{"backendRefs": [{"name": "v1", "port": 8080}]}]});
        world.put(json!({"kind": "HTTPRoute", "metadata": {"name": "r", "generation": 7}, "spec": spec}));
        let translation = world.translate();
        assert_eq!(route_conditions(&translation, "r").join(";"), expected, "{listeners} {parent} {hostnames}");
        let attached = gateway_listeners(&translation, "gw").iter().filter(|l| l.contains(" 1 ")).count();
        assert_eq!(attached, usize::from(expected == ACCEPTED), "{listeners} {parent} {hostnames}");
    }
}

#[test]
fn routes_of_other_namespaces_need_permission() {
    for (from, expected) in [("Same", "Accepted=False/NotAllowedByListeners"), ("All", "Accepted=True/Accepted")] {
        let mut world = World::new();
        world.gateway(
            "gw",
            json!([{"name": "http", "port": 80, "protocol": "HTTP", "allowedRoutes": {"namespaces": {"from": from}}}]),
        );
        let spec = json!({"parentRefs": [{"name": "gw", "namespace": NAMESPACE}], "rules": []});
        world.put(json!({"kind": "HTTPRoute", "metadata": {"name": "r", "namespace": "web"}, "spec": spec}));
        let translation = world.translate();
        let status = &translation.statuses.http_routes[&crate::snapshot::ObjectKey::new("web", "r")];
        assert!(show(&status.parents[0].conditions).starts_with(expected), "{from}");
    }
}

#[test]
fn routes_of_other_controllers_have_no_status() {
    let mut world = World::new();
    world.put(
        json!({"kind": "Gateway", "metadata": {"name": "gw"}, "spec": {"gatewayClassName": "other", "listeners": [
        {"name": "http", "port": 80, "protocol": "HTTP"}]}}),
    );
    world.route("r", &[], json!([{"backendRefs": [{"name": "v1", "port": 8080}]}]));
    let translation = world.translate();
    assert!(translation.statuses.http_routes.is_empty() && translation.statuses.gateways.is_empty());
    assert!(translation.desired.frontends.is_empty());
}

#[test]
fn hosts_are_intersections_with_listeners() {
    let mut world = World::new();
    let listener = |name: &str, host: &str| json!({"name": name, "port": 80, "protocol": "HTTP", "hostname": host});
    world.gateway(
        "gw",
        json!([
            listener("1", "very.specific.com"),
            listener("2", "*.wildcard.io"),
            listener("3", "*.anotherwildcard.io")
        ]),
    );
    let rules =
        |path: &str| json!([{"matches": [{"path": {"value": path}}], "backendRefs": [{"name": "v1", "port": 8080}]}]);
    world.route("s1", &["non.matching.com", "*.nonmatchingwildcard.io", "very.specific.com"], rules("/s1"));
    world.route("s2", &["non.matching.com", "wildcard.io", "foo.wildcard.io", "foo.bar.wildcard.io"], rules("/s2"));
    world.route("s3", &["non.matching.com", "*.specific.com"], rules("/s3"));
    world.route("s4", &["*.anotherwildcard.io"], rules("/s4"));
    world.route("s5", &["specific.but.wrong.com", "wildcard.io"], rules("/s5"));
    let translation = world.translate();
    assert_eq!(
        routes(&translation, "10.0.0.0:80"),
        [
            "*.anotherwildcard.io/s4/* infra:v1:8080",
            "foo.bar.wildcard.io/s2/* infra:v1:8080",
            "foo.wildcard.io/s2/* infra:v1:8080",
            "very.specific.com/s1/* infra:v1:8080",
            "very.specific.com/s3/* infra:v1:8080",
        ]
    );
    let attached: Vec<_> = gateway_listeners(&translation, "gw").iter().map(|l| l[..3].to_owned()).collect();
    assert_eq!(attached, ["1 2", "2 1", "3 1"]);
}

#[test]
fn listeners_are_isolated() {
    let mut world = World::new();
    let names =
        [("empty", ""), ("one", "*.example.com"), ("two", "*.foo.example.com"), ("three", "abc.foo.example.com")];
    let listeners: Vec<_> = names
        .iter()
        .map(|(name, host)| json!({"name": name, "port": 80, "protocol": "HTTP", "hostname": host}))
        .collect();
    world.gateway("gw", json!(listeners));
    for hostnames in [&[][..], &["bar.com", "*.example.com", "*.foo.example.com", "abc.foo.example.com"][..]] {
        for (name, _) in names {
            let spec = json!({"parentRefs": [{"name": "gw", "sectionName": name}], "hostnames": hostnames,
                "rules": [{"matches": [{"path": {"value": format!("/{name}")}}], "backendRefs": [{"name": "v1", "port": 8080}]}]});
            world.put(json!({"kind": "HTTPRoute", "metadata": {"name": name}, "spec": spec}));
        }
        let other = if hostnames.is_empty() { "*/empty/* infra:v1:8080" } else { "bar.com/empty/* infra:v1:8080" };
        let mut expected = vec![
            "*.example.com/* weir:not-found",
            "*.example.com/one/* infra:v1:8080",
            "*.foo.example.com/* weir:not-found",
            "*.foo.example.com/two/* infra:v1:8080",
            "abc.foo.example.com/* weir:not-found",
            "abc.foo.example.com/three/* infra:v1:8080",
        ];
        expected.push(other);
        let mut found = routes(&world.translate(), "10.0.0.0:80");
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }
}
