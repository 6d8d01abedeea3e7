//! The watched kinds: which of their fields the translation reads, and where the snapshot keeps them.

use std::fmt::Debug;

use k8s_openapi::NamespaceResourceScope;
use kube::Resource;
use kube::api::ObjectMeta;
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::snapshot::{
    BackendTLSPolicy, ConfigMap, EndpointSlice, GRPCRoute, Gateway, GatewayClass, HTTPRoute, ListenerSet, Namespace,
    Objects, ReferenceGrant, Secret, Service, Snapshot, TCPRoute, TLSRoute,
};
use crate::translate::{Statuses, StatusesOf};

/// A watched kind.
pub trait Kind:
    Resource<DynamicType = ()> + Clone + Debug + PartialEq + DeserializeOwned + Send + Sync + 'static
{
    /// Whether the controller serves the other kinds if the cluster does not have this one.
    const IS_OPTIONAL: bool = false;
    /// The objects that are watched, as a selector of fields.
    const SELECTOR: Option<&'static str> = None;

    fn objects(snapshot: &Snapshot) -> &Objects<Self>;
    fn objects_mut(snapshot: &mut Snapshot) -> &mut Objects<Self>;

    /// Removes what the translation does not read.
    fn reduce(&mut self) {
        self.meta_mut().managed_fields = None;
        self.meta_mut().annotations = None;
    }
}

/// A kind whose status the controller writes.
pub trait KindWithStatus: Kind {
    type Status: Serialize + Send + Sync;

    fn status(&self) -> Option<&Self::Status>;
    fn statuses(statuses: &Statuses) -> &StatusesOf<Self::Status>;
}

/// A kind with namespaces.
pub trait Namespaced: Kind + Resource<Scope = NamespaceResourceScope> {}

macro_rules! kind {
    ($kind:ident, $field:ident $(, $constant:ident = $value:expr)* $(; $reduce:expr)?) => {
        impl Kind for $kind {
            $(const $constant: kind!(@type $constant) = $value;)*

            fn objects(snapshot: &Snapshot) -> &Objects<Self> {
                &snapshot.$field
            }

            fn objects_mut(snapshot: &mut Snapshot) -> &mut Objects<Self> {
                &mut snapshot.$field
            }

            $(fn reduce(&mut self) {
                let reduce: fn(&mut $kind) = $reduce;
                reduce(self);
            })?
        }
    };
    (@type IS_OPTIONAL) => { bool };
    (@type SELECTOR) => { Option<&'static str> };
}

macro_rules! status {
    ($kind:ident, $field:ident, $status:ty) => {
        impl KindWithStatus for $kind {
            type Status = $status;

            fn status(&self) -> Option<&Self::Status> {
                self.status.as_ref()
            }

            fn statuses(statuses: &Statuses) -> &StatusesOf<Self::Status> {
                &statuses.$field
            }
        }
    };
}

kind!(GatewayClass, gateway_classes);
kind!(Gateway, gateways);
kind!(ListenerSet, listener_sets, IS_OPTIONAL = true);
kind!(HTTPRoute, http_routes);
kind!(GRPCRoute, grpc_routes, IS_OPTIONAL = true);
kind!(TLSRoute, tls_routes, IS_OPTIONAL = true);
kind!(TCPRoute, tcp_routes, IS_OPTIONAL = true);
kind!(ReferenceGrant, reference_grants);
kind!(BackendTLSPolicy, backend_tls_policies, IS_OPTIONAL = true);
kind!(Service, services; reduce_service);
kind!(EndpointSlice, endpoint_slices; reduce_endpoint_slice);
kind!(Secret, secrets, SELECTOR = Some("type=kubernetes.io/tls"); reduce_secret);
kind!(ConfigMap, config_maps; reduce_config_map);
kind!(Namespace, namespaces; reduce_namespace);

status!(GatewayClass, gateway_classes, gateway_api::apis::standard::gatewayclasses::GatewayClassStatus);
status!(Gateway, gateways, gateway_api::apis::experimental::gateways::GatewayStatus);
status!(ListenerSet, listener_sets, gateway_api::apis::standard::listenersets::ListenerSetStatus);
status!(HTTPRoute, http_routes, gateway_api::apis::experimental::httproutes::HttpRouteStatus);
status!(GRPCRoute, grpc_routes, gateway_api::apis::experimental::grpcroutes::GrpcRouteStatus);
status!(TLSRoute, tls_routes, gateway_api::apis::standard::tlsroutes::TlsRouteStatus);
status!(TCPRoute, tcp_routes, gateway_api::apis::experimental::tcproutes::TcpRouteStatus);
status!(
    BackendTLSPolicy,
    backend_tls_policies,
    gateway_api::apis::standard::backendtlspolicies::BackendTlsPolicyStatus
);

impl<K: Kind + Resource<Scope = NamespaceResourceScope>> Namespaced for K {}

/// Keeps the name, the labels and the time of creation. Without the resource version, a change of other fields leaves an equal object,
/// which is then no change.
fn bare(metadata: &ObjectMeta) -> ObjectMeta {
    ObjectMeta {
        name: metadata.name.clone(),
        namespace: metadata.namespace.clone(),
        labels: metadata.labels.clone(),
        creation_timestamp: metadata.creation_timestamp.clone(),
        ..ObjectMeta::default()
    }
}

fn reduce_service(service: &mut Service) {
    service.metadata = bare(&service.metadata);
    service.metadata.labels = None;
    service.status = None;
    if let Some(spec) = &mut service.spec {
        *spec = k8s_openapi::api::core::v1::ServiceSpec {
            ports: spec.ports.take(),
            type_: spec.type_.take(),
            cluster_ip: spec.cluster_ip.take(),
            external_name: spec.external_name.take(),
            ..Default::default()
        };
    }
}

/// The label of a slice that names its Service.
const SERVICE_NAME: &str = "kubernetes.io/service-name";

fn reduce_endpoint_slice(slice: &mut EndpointSlice) {
    slice.metadata = bare(&slice.metadata);
    if let Some(labels) = &mut slice.metadata.labels {
        labels.retain(|name, _| name == SERVICE_NAME);
    }
    for endpoint in &mut slice.endpoints {
        endpoint.deprecated_topology = None;
        endpoint.hints = None;
        endpoint.hostname = None;
        endpoint.node_name = None;
        endpoint.zone = None;
        if let Some(target) = &mut endpoint.target_ref {
            *target = k8s_openapi::api::core::v1::ObjectReference {
                kind: target.kind.take(),
                name: target.name.take(),
                ..Default::default()
            };
        }
    }
}

fn reduce_secret(secret: &mut Secret) {
    secret.metadata = bare(&secret.metadata);
    secret.metadata.labels = None;
    secret.string_data = None;
    if let Some(data) = &mut secret.data {
        data.retain(|name, _| matches!(name.as_str(), "tls.crt" | "tls.key" | "ca.crt"));
    }
}

fn reduce_config_map(config_map: &mut ConfigMap) {
    config_map.metadata = bare(&config_map.metadata);
    config_map.metadata.labels = None;
    if let Some(data) = &mut config_map.data {
        data.retain(|name, _| name == "ca.crt");
    }
    config_map.binary_data = None;
}

fn reduce_namespace(namespace: &mut Namespace) {
    namespace.metadata = bare(&namespace.metadata);
    namespace.spec = None;
    namespace.status = None;
}
