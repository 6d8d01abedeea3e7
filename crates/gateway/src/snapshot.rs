//! The objects of a cluster at one time: what the watches keep and the translation reads. It has no logic of either.

use std::collections::BTreeMap;
use std::sync::Arc;

pub use gateway_api::apis::experimental::gateways::Gateway;
pub use gateway_api::apis::experimental::grpcroutes::GRPCRoute;
pub use gateway_api::apis::experimental::httproutes::HTTPRoute;
pub use gateway_api::apis::experimental::tcproutes::TCPRoute;
pub use gateway_api::apis::standard::backendtlspolicies::BackendTLSPolicy;
pub use gateway_api::apis::standard::gatewayclasses::GatewayClass;
pub use gateway_api::apis::standard::listenersets::ListenerSet;
pub use gateway_api::apis::standard::referencegrants::ReferenceGrant;
pub use gateway_api::apis::standard::tlsroutes::TLSRoute;
pub use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Secret, Service};
pub use k8s_openapi::api::discovery::v1::EndpointSlice;

/// The name of an object within its kind. Kinds without namespaces have an empty one.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ObjectKey {
    pub namespace: String,
    pub name: String,
}

impl ObjectKey {
    pub fn new(namespace: impl Into<String>, name: impl Into<String>) -> Self {
        Self { namespace: namespace.into(), name: name.into() }
    }
}

impl std::fmt::Display for ObjectKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.namespace.is_empty() {
            return f.write_str(&self.name);
        }
        write!(f, "{}/{}", self.namespace, self.name)
    }
}

/// All objects of a kind. An object that has not changed keeps its address: results of its translation are then reused.
pub type Objects<K> = BTreeMap<ObjectKey, Arc<K>>;

/// All objects that the translation reads.
///
/// Types of the experimental channel are supersets of those of the standard one: objects of both channels fit them.
#[derive(Clone, Debug, Default)]
pub struct Snapshot {
    pub gateway_classes: Objects<GatewayClass>,
    pub gateways: Objects<Gateway>,
    pub listener_sets: Objects<ListenerSet>,
    pub http_routes: Objects<HTTPRoute>,
    pub grpc_routes: Objects<GRPCRoute>,
    pub tls_routes: Objects<TLSRoute>,
    pub tcp_routes: Objects<TCPRoute>,
    pub reference_grants: Objects<ReferenceGrant>,
    pub backend_tls_policies: Objects<BackendTLSPolicy>,
    pub services: Objects<Service>,
    pub endpoint_slices: Objects<EndpointSlice>,
    pub secrets: Objects<Secret>,
    pub config_maps: Objects<ConfigMap>,
    pub namespaces: Objects<Namespace>,
}
