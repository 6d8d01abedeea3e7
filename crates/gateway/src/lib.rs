//! Controller of Kubernetes' Gateway API: it watches the objects of a cluster and keeps a running Weir and the objects' conditions in
//! accord with them. Requests never pass it: Weir serves on without it.

pub mod arguments;
pub mod cluster;
pub mod desired;
pub mod snapshot;
pub mod translate;
pub mod weir;
