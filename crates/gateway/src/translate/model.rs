//! The parts that the kinds of routes and of listeners share, as types of their own. The generated types repeat them for each kind: an
//! object is read through its JSON form once, when it has changed.

use std::collections::BTreeMap;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The group of Gateway API's kinds.
pub const GROUP: &str = "gateway.networking.k8s.io";

/// Reads a part of an object as another type of the same form. A field of another form is left at its default value.
pub fn read<T: DeserializeOwned + Default>(value: &impl Serialize) -> T {
    serde_json::to_value(value).and_then(serde_json::from_value).unwrap_or_default()
}

/// The specification of a route of any kind.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RouteSpec {
    pub hostnames: Vec<String>,
    pub parent_refs: Vec<ParentRef>,
    pub rules: Vec<Rule>,
}

/// A reference to the parent of a route. It is repeated in the route's status as it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ParentRef {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub section_name: Option<String>,
}

/// A rule of a route of any kind.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Rule {
    pub backend_refs: Vec<BackendRef>,
    pub filters: Vec<RouteFilter>,
    pub matches: Vec<Match>,
    pub timeouts: RuleTimeouts,
    pub retry: Option<Retry>,
    pub session_persistence: Option<SessionPersistence>,
}

/// A reference to a backend, with its share of the requests.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct BackendRef {
    pub filters: Vec<RouteFilter>,
    pub group: Option<String>,
    pub kind: Option<String>,
    pub name: String,
    pub namespace: Option<String>,
    pub port: Option<i32>,
    pub weight: Option<i32>,
}

/// A filter; the field that its type names is set.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RouteFilter {
    pub r#type: String,
    pub request_header_modifier: Option<HeaderModifier>,
    pub response_header_modifier: Option<HeaderModifier>,
    pub request_mirror: Option<Mirror>,
    pub request_redirect: Option<RequestRedirect>,
    pub url_rewrite: Option<Rewrite>,
    pub cors: Option<CorsFilter>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct HeaderModifier {
    pub add: Vec<NameValue>,
    pub remove: Vec<String>,
    pub set: Vec<NameValue>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct NameValue {
    pub r#type: Option<String>,
    pub name: String,
    pub value: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Mirror {
    pub backend_ref: BackendRef,
    pub fraction: Option<Fraction>,
    pub percent: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Fraction {
    pub numerator: i32,
    pub denominator: Option<i32>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RequestRedirect {
    pub hostname: Option<String>,
    pub path: Option<PathModifier>,
    pub port: Option<i32>,
    pub scheme: Option<String>,
    pub status_code: Option<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct PathModifier {
    pub r#type: String,
    pub replace_full_path: Option<String>,
    pub replace_prefix_match: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Rewrite {
    pub hostname: Option<String>,
    pub path: Option<PathModifier>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CorsFilter {
    pub allow_credentials: Option<bool>,
    pub allow_headers: Vec<String>,
    pub allow_methods: Vec<String>,
    pub allow_origins: Vec<String>,
    pub expose_headers: Vec<String>,
    pub max_age: Option<i32>,
}

/// Conditions on a request, all of which have to hold.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Match {
    pub path: Option<PathCondition>,
    pub method: Option<MethodCondition>,
    pub headers: Vec<NameValue>,
    pub query_params: Vec<NameValue>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct PathCondition {
    pub r#type: Option<String>,
    pub value: Option<String>,
}

/// A method of HTTP, or of gRPC.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum MethodCondition {
    Http(String),
    Grpc(GrpcMethod),
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct GrpcMethod {
    pub r#type: Option<String>,
    pub service: Option<String>,
    pub method: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RuleTimeouts {
    pub request: Option<String>,
    pub backend_request: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Retry {
    pub attempts: Option<i64>,
    pub codes: Vec<i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct SessionPersistence {
    pub session_name: Option<String>,
    pub r#type: Option<String>,
    pub absolute_timeout: Option<String>,
    pub cookie_config: Option<CookieConfig>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct CookieConfig {
    pub lifetime_type: Option<String>,
}

/// A listener of a Gateway or of a ListenerSet.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ListenerSpec {
    pub name: String,
    pub hostname: Option<String>,
    pub port: i32,
    pub protocol: String,
    pub allowed_routes: AllowedRoutes,
    pub tls: Option<ListenerTls>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct AllowedRoutes {
    pub kinds: Vec<RouteKind>,
    pub namespaces: AllowedNamespaces,
}

/// A kind of routes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteKind {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    pub kind: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct AllowedNamespaces {
    /// `Same` without one.
    pub from: Option<String>,
    pub selector: Option<Selector>,
}

/// A selector of labels: all its requirements have to hold.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Selector {
    pub match_labels: BTreeMap<String, String>,
    pub match_expressions: Vec<Requirement>,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Requirement {
    pub key: String,
    pub operator: String,
    pub values: Vec<String>,
}

impl Selector {
    pub fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|r| r.matches(labels))
    }
}

impl Requirement {
    fn matches(&self, labels: &BTreeMap<String, String>) -> bool {
        let label = labels.get(&self.key);
        match self.operator.as_str() {
            "In" => label.is_some_and(|value| self.values.contains(value)),
            "NotIn" => label.is_none_or(|value| !self.values.contains(value)),
            "Exists" => label.is_some(),
            "DoesNotExist" => label.is_none(),
            _ => false,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ListenerTls {
    pub certificate_refs: Vec<ObjectRef>,
    /// `Terminate` without one.
    pub mode: Option<String>,
}

/// A reference to an object; the group, kind and namespace have defaults that depend on the field.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct ObjectRef {
    pub group: Option<String>,
    pub kind: Option<String>,
    pub name: String,
    pub namespace: Option<String>,
}

/// The status of a route of any kind.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct RouteStatus {
    pub parents: Vec<ParentStatus>,
}

/// The conditions of a route for one of its parents.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ParentStatus {
    pub conditions: Vec<Condition>,
    pub controller_name: String,
    pub parent_ref: ParentRef,
}

/// The status of a listener of a Gateway or of a ListenerSet.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct ListenerStatus {
    pub attached_routes: i32,
    pub conditions: Vec<Condition>,
    pub name: String,
    pub supported_kinds: Vec<RouteKind>,
}
