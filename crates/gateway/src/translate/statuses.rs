//! The statuses that objects have to get.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_api::apis::experimental::gateways::GatewayStatus;
use gateway_api::apis::experimental::grpcroutes::GrpcRouteStatus;
use gateway_api::apis::experimental::httproutes::HttpRouteStatus;
use gateway_api::apis::experimental::tcproutes::TcpRouteStatus;
use gateway_api::apis::standard::backendtlspolicies::BackendTlsPolicyStatus;
use gateway_api::apis::standard::gatewayclasses::GatewayClassStatus;
use gateway_api::apis::standard::listenersets::ListenerSetStatus;
use gateway_api::apis::standard::tlsroutes::TlsRouteStatus;

use crate::snapshot::ObjectKey;

/// Statuses by object, of one kind.
pub type StatusesOf<S> = BTreeMap<ObjectKey, Arc<S>>;

/// The statuses that differ from those of the snapshot's objects, and only those. Each one is whole: it replaces the object's
/// `status`, and keeps the entries of other controllers. A status that is not written yet is returned again, at the same address
/// as long as the object and what it refers to stay as they are.
#[derive(Clone, Debug, Default)]
pub struct Statuses {
    pub gateway_classes: StatusesOf<GatewayClassStatus>,
    pub gateways: StatusesOf<GatewayStatus>,
    pub listener_sets: StatusesOf<ListenerSetStatus>,
    pub http_routes: StatusesOf<HttpRouteStatus>,
    pub grpc_routes: StatusesOf<GrpcRouteStatus>,
    pub tls_routes: StatusesOf<TlsRouteStatus>,
    pub tcp_routes: StatusesOf<TcpRouteStatus>,
    pub backend_tls_policies: StatusesOf<BackendTlsPolicyStatus>,
}
