//! A cluster of a test: objects in JSON, and what their translation looks like as text.

use std::sync::Arc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::super::{Addresses, Network, Settings, Translation, Translator};
use crate::desired::{BackendKind, FrontendKind, PathMatch, Pattern, Route};
use crate::snapshot::{ObjectKey, Objects, Snapshot};

/// The namespace of objects without one.
pub const NAMESPACE: &str = "infra";

/// A cluster.
pub struct World {
    pub snapshot: Snapshot,
    pub translator: Translator,
}

/// Returns a text as the data of a Secret.
pub fn encode(text: &str) -> Value {
    serde_json::to_value(k8s_openapi::ByteString(text.into())).unwrap()
}

pub fn time(text: &str) -> Time {
    serde_json::from_value(json!(text)).unwrap()
}

pub fn settings() -> Settings {
    let network = Network { address: "10.0.0.0".parse().unwrap(), prefix: 28 };
    Settings { addresses: Addresses::Pool(vec![network]), ..Settings::default() }
}

fn put<K: DeserializeOwned>(objects: &mut Objects<K>, object: Value) {
    let metadata = &object["metadata"];
    let key = ObjectKey::new(metadata["namespace"].as_str().unwrap_or(""), metadata["name"].as_str().unwrap());
    objects.insert(key, Arc::new(serde_json::from_value(object).unwrap()));
}

impl World {
    /// A cluster with the class `weir`, the namespaces `infra` and `web`, and the Services `v1` to `v3` with an endpoint each.
    pub fn new() -> Self {
        let mut world = Self { snapshot: Snapshot::default(), translator: Translator::new(settings()) };
        world.put(json!({"kind": "GatewayClass", "metadata": {"name": "weir", "generation": 1}, "spec": {"controllerName": "weir.dev/gateway"}}));
        for (name, label) in [(NAMESPACE, "infra"), ("web", "backend")] {
            world.put(json!({"kind": "Namespace", "metadata": {"name": name, "labels": {"kind": label}}}));
        }
        for name in ["v1", "v2", "v3"] {
            world.service(name, json!([{"port": 8080}]), 1);
        }
        world
    }

    /// Adds or replaces an object. Without a namespace it is in `infra`.
    pub fn put(&mut self, mut object: Value) {
        let kind = object["kind"].as_str().unwrap().to_owned();
        if !matches!(&*kind, "GatewayClass" | "Namespace") && object["metadata"]["namespace"].is_null() {
            object["metadata"]["namespace"] = json!(NAMESPACE);
        }
        object["apiVersion"] = json!(match &*kind {
            "Namespace" | "Service" | "Secret" | "ConfigMap" => "v1",
            "EndpointSlice" => "discovery.k8s.io/v1",
            "TCPRoute" => "gateway.networking.k8s.io/v1alpha2",
            _ => "gateway.networking.k8s.io/v1",
        });
        let all = &mut self.snapshot;
        match &*kind {
            "GatewayClass" => put(&mut all.gateway_classes, object),
            "Gateway" => put(&mut all.gateways, object),
            "ListenerSet" => put(&mut all.listener_sets, object),
            "HTTPRoute" => put(&mut all.http_routes, object),
            "GRPCRoute" => put(&mut all.grpc_routes, object),
            "TLSRoute" => put(&mut all.tls_routes, object),
            "TCPRoute" => put(&mut all.tcp_routes, object),
            "ReferenceGrant" => put(&mut all.reference_grants, object),
            "BackendTLSPolicy" => put(&mut all.backend_tls_policies, object),
            "Service" => put(&mut all.services, object),
            "EndpointSlice" => put(&mut all.endpoint_slices, object),
            "Secret" => put(&mut all.secrets, object),
            "ConfigMap" => put(&mut all.config_maps, object),
            "Namespace" => put(&mut all.namespaces, object),
            other => panic!("{other}"),
        }
    }

    /// Adds a Service with these ports and a number of endpoints.
    pub fn service(&mut self, name: &str, ports: Value, endpoints: usize) {
        self.put(json!({"kind": "Service", "metadata": {"name": name}, "spec": {"ports": ports}}));
        let list: Vec<_> = (0..endpoints)
            .map(|n| json!({"addresses": [format!("10.1.0.{n}")], "targetRef": {"name": format!("{name}-{n}")}}))
            .collect();
        let ports: Vec<_> = ports
            .as_array()
            .unwrap()
            .iter()
            .map(|p| json!({"name": p["name"].as_str().unwrap_or(""), "port": 3000}))
            .collect();
        self.put(json!({
            "kind": "EndpointSlice", "metadata": {"name": format!("{name}-a"), "labels": {"kubernetes.io/service-name": name}},
            "addressType": "IPv4", "ports": ports, "endpoints": list,
        }));
    }

    pub fn gateway(&mut self, name: &str, listeners: Value) {
        self.put(json!({"kind": "Gateway", "metadata": {"name": name, "generation": 3}, "spec": {"gatewayClassName": "weir", "listeners": listeners}}));
    }

    /// Adds an HTTPRoute of the Gateway `gw`.
    pub fn route(&mut self, name: &str, hostnames: &[&str], rules: Value) {
        let spec = json!({"parentRefs": [{"name": "gw"}], "hostnames": hostnames, "rules": rules});
        self.put(json!({"kind": "HTTPRoute", "metadata": {"name": name, "generation": 7, "creationTimestamp": "2026-01-01T00:00:00Z"}, "spec": spec}));
    }

    pub fn translate(&mut self) -> Translation {
        self.translator.translate(&self.snapshot, &time("2026-02-01T00:00:00Z"))
    }
}

/// Returns conditions as `Type=Status/Reason`.
pub fn show(conditions: &[Condition]) -> String {
    let texts: Vec<_> = conditions.iter().map(|c| format!("{}={}/{}", c.type_, c.status, c.reason)).collect();
    texts.join(" ")
}

/// Returns the conditions of an HTTPRoute for each parent.
pub fn route_conditions(translation: &Translation, name: &str) -> Vec<String> {
    let status = translation.statuses.http_routes.get(&ObjectKey::new(NAMESPACE, name));
    status.into_iter().flat_map(|s| &s.parents).map(|p| show(&p.conditions)).collect()
}

/// Returns the conditions of a Gateway.
pub fn gateway_conditions(translation: &Translation, name: &str) -> String {
    show(translation.statuses.gateways[&ObjectKey::new(NAMESPACE, name)].conditions.as_deref().unwrap())
}

/// Returns the listeners of a Gateway: the name, the number of routes, the kinds, the conditions.
pub fn gateway_listeners(translation: &Translation, name: &str) -> Vec<String> {
    let listeners = translation.statuses.gateways[&ObjectKey::new(NAMESPACE, name)].listeners.as_deref().unwrap();
    let text = |l: &gateway_api::apis::experimental::gateways::GatewayStatusListeners| {
        let kinds: Vec<_> = l.supported_kinds.iter().flatten().map(|k| k.kind.as_str()).collect();
        format!("{} {} [{}] {}", l.name, l.attached_routes, kinds.join(" "), show(&l.conditions))
    };
    listeners.iter().map(text).collect()
}

fn condition(name: &str, value: &Pattern) -> String {
    match value {
        Pattern::Exact(text) => format!("{name}={text}"),
        Pattern::Regex(text) => format!("{name}~{text}"),
    }
}

/// Returns an entry as a table of routes has it, without the encoding and the order.
pub fn show_route(route: &Route) -> String {
    let path = match &route.path {
        PathMatch::Exact(path) => path.clone(),
        PathMatch::Prefix(path) => format!("{path}/*"),
        PathMatch::Regex(path) => format!("~{path}"),
    };
    let method = route.method.iter().map(|m| format!(";method={m}"));
    let headers = route.headers.iter().map(|h| format!(";header:{}", condition(&h.name, &h.value)));
    let query = route.query.iter().map(|q| format!(";query:{}", condition(&q.name, &q.value)));
    let conditions: String = method.chain(headers).chain(query).collect();
    format!("{}{path}{conditions} {}", route.host, route.backend)
}

/// Returns the entries of an HTTP frontend.
pub fn routes(translation: &Translation, socket: &str) -> Vec<String> {
    match &translation.desired.frontends[&socket.parse().unwrap()].kind {
        FrontendKind::Http { routes, .. } => routes.iter().map(show_route).collect(),
        other => panic!("{other:?}"),
    }
}

/// Returns the servers of a backend as `name=weight`, or its own answer.
pub fn backend(translation: &Translation, name: &str) -> String {
    let backend =
        translation.desired.backends.get(name).unwrap_or_else(|| panic!("{:?}", translation.desired.backends.keys()));
    match &backend.kind {
        BackendKind::Http | BackendKind::Tcp => {
            let servers: Vec<_> = backend.servers.iter().map(|(name, s)| format!("{name}={}", s.weight)).collect();
            servers.join(" ")
        }
        other => format!("{other:?}"),
    }
}
