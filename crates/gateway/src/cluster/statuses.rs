//! Writes of statuses: patches of the status subresource by the leader, only where a status differs.

use std::any::Any;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::BoxFuture;
use futures_util::{StreamExt, stream};
use kube::Client;
use kube::api::{Patch, PatchParams};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::backoff::Backoff;
use super::kinds::KindWithStatus;
use super::leader::Leadership;
use super::log::log;
use super::problems::{Problem, Problems, describe};
use crate::snapshot::{
    BackendTLSPolicy, GRPCRoute, Gateway, GatewayClass, HTTPRoute, ListenerSet, ObjectKey, Snapshot, TCPRoute, TLSRoute,
};
use crate::translate::Statuses;

/// Patches at the same time.
const CONCURRENT: usize = 8;
/// The longest time of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

type Send = Box<dyn Fn(Client) -> BoxFuture<'static, Result<(), kube::Error>> + std::marker::Send + Sync>;

/// A status to write.
pub struct Write {
    id: Id,
    /// The version of the object that the status is about: the apiserver refuses the patch if the object has changed since.
    version: String,
    /// The status, which is compared by address.
    status: Arc<dyn Any + std::marker::Send + Sync>,
    send: Send,
}

/// A kind and the name of an object.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Id {
    kind: &'static str,
    key: ObjectKey,
}

/// Returns the writes of statuses, which have to be those of the snapshot.
pub fn writes(snapshot: &Snapshot, statuses: &Statuses) -> Vec<Write> {
    let mut writes = Vec::new();
    add::<GatewayClass>(&mut writes, "GatewayClass", snapshot, statuses);
    add::<Gateway>(&mut writes, "Gateway", snapshot, statuses);
    add::<ListenerSet>(&mut writes, "ListenerSet", snapshot, statuses);
    add::<HTTPRoute>(&mut writes, "HTTPRoute", snapshot, statuses);
    add::<GRPCRoute>(&mut writes, "GRPCRoute", snapshot, statuses);
    add::<TLSRoute>(&mut writes, "TLSRoute", snapshot, statuses);
    add::<TCPRoute>(&mut writes, "TCPRoute", snapshot, statuses);
    add::<BackendTLSPolicy>(&mut writes, "BackendTLSPolicy", snapshot, statuses);
    writes
}

fn add<K: KindWithStatus>(writes: &mut Vec<Write>, kind: &'static str, snapshot: &Snapshot, statuses: &Statuses)
where
    K::Status: 'static,
{
    for (key, status) in K::statuses(statuses) {
        // An object that was deleted needs no status.
        let Some(object) = K::objects(snapshot).get(key).cloned() else { continue };
        let version = object.meta().resource_version.clone().unwrap_or_default();
        let id = Id { kind, key: key.clone() };
        let new = status.clone();
        let name = key.clone();
        let send: Send = Box::new(move |client| {
            let request = patch::<K>(&name, &object, &new);
            Box::pin(async move {
                client.request::<serde::de::IgnoredAny>(request?).await?;
                Ok(())
            })
        });
        writes.push(Write { id, version, status: status.clone(), send });
    }
}

/// Builds the request of a patch. Fields of the former status that the new one does not have are set to null.
fn patch<K: KindWithStatus>(
    key: &ObjectKey,
    object: &K,
    status: &K::Status,
) -> Result<http::Request<Vec<u8>>, kube::Error> {
    let mut fields = Map::new();
    if let Some(Value::Object(former)) =
        object.status().map(serde_json::to_value).transpose().map_err(kube::Error::SerdeError)?
    {
        fields.extend(former.into_iter().map(|(name, _)| (name, Value::Null)));
    }
    if let Value::Object(new) = serde_json::to_value(status).map_err(kube::Error::SerdeError)? {
        fields.extend(new);
    }
    let body = json!({
        "metadata": { "resourceVersion": object.meta().resource_version },
        "status": fields,
    });
    let namespace = (!key.namespace.is_empty()).then_some(key.namespace.as_str());
    let mut request = kube::core::Request::new(K::url_path(&(), namespace))
        .patch_subresource("status", &key.name, &PatchParams::default(), &Patch::Merge(body))
        .map_err(kube::Error::BuildRequest)?;
    request.extensions_mut().insert("patch_status");
    Ok(request)
}

/// Writes the newest statuses that it was offered.
pub struct Writer {
    client: Client,
    backoff: Backoff,
    newest: Mutex<Arc<Vec<Write>>>,
    offered: Notify,
}

/// A status that was sent for an object: it is not sent again until the object or its status changes.
struct Sent {
    version: String,
    status: Arc<dyn Any + std::marker::Send + Sync>,
}

impl Sent {
    fn is_of(&self, write: &Write) -> bool {
        self.version == write.version && std::ptr::addr_eq(Arc::as_ptr(&self.status), Arc::as_ptr(&write.status))
    }
}

impl Writer {
    pub fn new(client: Client, backoff: Backoff) -> Self {
        Self { client, backoff, newest: Mutex::default(), offered: Notify::new() }
    }

    /// Replaces the statuses to write.
    pub fn offer(&self, writes: Vec<Write>) {
        *self.newest.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(writes);
        self.offered.notify_one();
    }

    /// Writes statuses while this replica is the leader, until the future is dropped.
    pub async fn run(&self, leadership: &Leadership, problems: &Problems) {
        let mut sent = BTreeMap::new();
        let mut backoff = self.backoff;
        loop {
            tokio::select! {
                () = self.offered.notified() => {}
                () = leadership.gained() => {}
            }
            while leadership.is_leader() && !self.pass(&mut sent, problems).await {
                sleep(backoff.next_delay()).await;
            }
            backoff.reset();
        }
    }

    /// Sends what was not sent yet, and returns whether nothing has to be repeated.
    async fn pass(&self, sent: &mut BTreeMap<Id, Sent>, problems: &Problems) -> bool {
        let writes = self.newest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let due: Vec<&Write> =
            writes.iter().filter(|write| !sent.get(&write.id).is_some_and(|sent| sent.is_of(write))).collect();
        let mut results = stream::iter(due)
            .map(|write| async move { (write, timeout(TIMEOUT, (write.send)(self.client.clone())).await) })
            .buffer_unordered(CONCURRENT);
        let mut is_complete = true;
        let mut now_sent = BTreeMap::new();
        while let Some((write, result)) = results.next().await {
            let is_settled = match result {
                Ok(Ok(())) => {
                    problems.end(write.id.kind);
                    true
                }
                Ok(Err(error)) => is_settled(write, &error, problems),
                Err(_) => {
                    problems.begin(write.id.kind, Problem::Unreachable, "a request has taken too long");
                    false
                }
            };
            if is_settled {
                now_sent
                    .insert(write.id.clone(), Sent { version: write.version.clone(), status: write.status.clone() });
            }
            is_complete &= is_settled;
        }
        // Objects whose status does not differ any longer are forgotten.
        for write in writes.iter() {
            if let (Some(former), false) = (sent.remove(&write.id), now_sent.contains_key(&write.id)) {
                now_sent.insert(write.id.clone(), former);
            }
        }
        *sent = now_sent;
        is_complete
    }
}

/// Returns whether a write that failed is not repeated: the object is deleted, a newer one is about to arrive by the watch, or it is
/// refused for a reason that stays.
fn is_settled(write: &Write, error: &kube::Error, problems: &Problems) -> bool {
    let problem = Problem::of(error);
    match (problem, error) {
        (Problem::Missing | Problem::Conflict, _) => true,
        (Problem::Refused, kube::Error::Api(status)) if (400..500).contains(&status.code) => {
            log(&format!("{} {}: the apiserver refuses the status: {}", write.id.kind, write.id.key, status.message));
            true
        }
        _ => {
            problems.begin(write.id.kind, problem, &describe(error));
            false
        }
    }
}
