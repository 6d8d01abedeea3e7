//! Results of routes of one kind, kept from one snapshot to the next.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway_api::apis::experimental::grpcroutes::GrpcRouteStatus;
use gateway_api::apis::experimental::httproutes::HttpRouteStatus;
use gateway_api::apis::experimental::tcproutes::TcpRouteStatus;
use gateway_api::apis::standard::tlsroutes::TlsRouteStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::snapshot::{GRPCRoute, HTTPRoute, ObjectKey, Objects, TCPRoute, TLSRoute};

use super::changes;
use super::conditions::{Moment, conditions};
use super::model::{self, ParentStatus, RouteSpec, RouteStatus};
use super::routes::{self, Environment, Kind, RouteResult, Source};
use super::staleness::{Dependent, Staleness};
use super::statuses::StatusesOf;

/// An object of a kind of routes.
pub trait RouteObject {
    const KIND: Kind;
    type Status: Serialize + DeserializeOwned + std::fmt::Debug;
    fn metadata(&self) -> &ObjectMeta;
    fn read_spec(&self) -> RouteSpec;
    fn read_status(&self) -> RouteStatus;
}

macro_rules! route_object {
    ($object:ty, $kind:expr, $status:ty) => {
        impl RouteObject for $object {
            const KIND: Kind = $kind;
            type Status = $status;
            fn metadata(&self) -> &ObjectMeta {
                &self.metadata
            }
            fn read_spec(&self) -> RouteSpec {
                model::read(&self.spec)
            }
            fn read_status(&self) -> RouteStatus {
                self.status.as_ref().map(|status| model::read(status)).unwrap_or_default()
            }
        }
    };
}

route_object!(HTTPRoute, Kind::Http, HttpRouteStatus);
route_object!(GRPCRoute, Kind::Grpc, GrpcRouteStatus);
route_object!(TLSRoute, Kind::Tls, TlsRouteStatus);
route_object!(TCPRoute, Kind::Tcp, TcpRouteStatus);

/// A route as it was translated last.
#[derive(Debug)]
struct Memo {
    spec: RouteSpec,
    result: Arc<RouteResult>,
}

impl Memo {
    fn dependent<'a>(&'a self, key: &'a ObjectKey) -> Dependent<'a> {
        Dependent { namespace: &key.namespace, parents: &self.spec.parent_refs, services: &self.result.services }
    }
}

/// A result that another one replaces.
#[derive(Debug)]
pub struct Replacement {
    pub old: Option<Arc<RouteResult>>,
    pub new: Option<Arc<RouteResult>>,
}

/// The changes since the snapshot before, apart from those of routes, and what statuses need.
#[derive(Clone, Copy, Debug)]
pub struct Change<'a> {
    pub staleness: &'a Staleness,
    pub now: &'a Time,
    pub controller: &'a str,
}

/// Routes of a kind.
#[derive(Debug)]
pub struct RouteCache<K: RouteObject> {
    objects: Objects<K>,
    memos: BTreeMap<ObjectKey, Memo>,
    pending: StatusesOf<K::Status>,
}

impl<K: RouteObject> Default for RouteCache<K> {
    fn default() -> Self {
        Self { objects: Objects::new(), memos: BTreeMap::new(), pending: StatusesOf::new() }
    }
}

impl<K: RouteObject> RouteCache<K> {
    /// Translates the routes that have changed, or that depend on what has changed. Returns the results that differ.
    pub fn update(&mut self, now: &Objects<K>, environment: Environment<'_>, change: Change<'_>) -> Vec<Replacement> {
        let mut replacements = Vec::new();
        let mut stale: BTreeSet<ObjectKey> = BTreeSet::new();
        for key in changes::between(&self.objects, now) {
            if let Some(object) = now.get(&key) {
                self.objects.insert(key.clone(), object.clone());
                let result = self.memos.remove(&key).map_or_else(Arc::default, |memo| memo.result);
                self.memos.insert(key.clone(), Memo { spec: object.read_spec(), result });
                stale.insert(key);
            } else {
                self.objects.remove(&key);
                self.pending.remove(&key);
                replacements
                    .extend(self.memos.remove(&key).map(|memo| Replacement { old: Some(memo.result), new: None }));
            }
        }
        if !change.staleness.is_empty() {
            stale.extend(
                self.memos
                    .iter()
                    .filter(|(key, memo)| change.staleness.affects(memo.dependent(key)))
                    .map(|(key, _)| key.clone()),
            );
        }
        for key in stale {
            replacements.extend(self.translate(&key, environment, change));
        }
        replacements
    }

    fn translate(&mut self, key: &ObjectKey, environment: Environment<'_>, change: Change<'_>) -> Option<Replacement> {
        let object = self.objects.get(key)?;
        let memo = self.memos.get_mut(key)?;
        let source = Source { kind: K::KIND, key, metadata: object.metadata(), spec: &memo.spec };
        let result = routes::translate(environment, source);
        match status(object.as_ref(), &result, change) {
            None => drop(self.pending.remove(key)),
            Some(status) => {
                let status = model_to_typed::<K::Status>(&status)?;
                self.pending.insert(key.clone(), Arc::new(status));
            }
        }
        if *memo.result == result {
            return None;
        }
        let new = Arc::new(result);
        let old = std::mem::replace(&mut memo.result, new.clone());
        Some(Replacement { old: Some(old), new: Some(new) })
    }

    /// The statuses that the objects do not have yet.
    pub fn pending(&self) -> &StatusesOf<K::Status> {
        &self.pending
    }

    /// The results of all routes.
    pub fn results(&self) -> impl Iterator<Item = &RouteResult> {
        self.memos.values().map(|memo| &*memo.result)
    }
}

fn model_to_typed<T: DeserializeOwned>(status: &RouteStatus) -> Option<T> {
    serde_json::to_value(status).and_then(serde_json::from_value).ok()
}

/// Returns the status that an object has to get, if it does not have it.
fn status<K: RouteObject>(object: &K, result: &RouteResult, change: Change<'_>) -> Option<RouteStatus> {
    let current = object.read_status();
    let is_own = |p: &ParentStatus| p.controller_name == change.controller;
    let moment = Moment { generation: object.metadata().generation, now: change.now };
    let mut parents: Vec<ParentStatus> = current.parents.iter().filter(|p| !is_own(p)).cloned().collect();
    for verdict in &result.parents {
        let known = current.parents.iter().find(|p| is_own(p) && p.parent_ref == verdict.parent);
        let known = known.map(|p| p.conditions.as_slice()).unwrap_or_default();
        parents.push(ParentStatus {
            conditions: conditions(&verdict.verdicts, known, moment),
            controller_name: change.controller.to_owned(),
            parent_ref: verdict.parent.clone(),
        });
    }
    let is_same = parents.len() == current.parents.len() && parents.iter().all(|p| current.parents.contains(p));
    (!is_same).then_some(RouteStatus { parents })
}
