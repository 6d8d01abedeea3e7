//! Watches: from the lists and events of the apiserver to the snapshot.

use std::pin::pin;
use std::sync::Arc;

use futures_util::StreamExt;
use kube::runtime::watcher::{self, Event};
use kube::{Api, Client, Resource};
use tokio::task::JoinSet;

use super::backoff::Backoff;
use super::kinds::{Kind, Namespaced};
use super::problems::{Problem, Problems, describe};
use super::store::Store;
use crate::snapshot::{
    BackendTLSPolicy, ConfigMap, EndpointSlice, GRPCRoute, Gateway, GatewayClass, HTTPRoute, ListenerSet, Namespace,
    ObjectKey, Objects, ReferenceGrant, Secret, Service, TCPRoute, TLSRoute,
};

/// Objects of a page of a list: it bounds the memory of a list.
const PAGE: u32 = 250;

/// The watched objects and the times between attempts.
#[derive(Clone, Debug)]
pub struct Scope {
    pub namespaces: Vec<String>,
    pub classes: Vec<String>,
    pub backoff: Backoff,
}

/// Spawns the watches of all kinds.
pub fn spawn_all(
    tasks: &mut JoinSet<()>,
    client: &Client,
    scope: &Scope,
    store: &Arc<Store>,
    problems: &Arc<Problems>,
) {
    let mut spawner = Spawner { tasks, client, scope, store, problems };
    spawner.spawn::<GatewayClass>(Api::all(client.clone()), None);
    spawner.spawn::<Namespace>(Api::all(client.clone()), None);
    spawner.spawn_namespaced::<Gateway>();
    spawner.spawn_namespaced::<ListenerSet>();
    spawner.spawn_namespaced::<HTTPRoute>();
    spawner.spawn_namespaced::<GRPCRoute>();
    spawner.spawn_namespaced::<TLSRoute>();
    spawner.spawn_namespaced::<TCPRoute>();
    spawner.spawn_namespaced::<ReferenceGrant>();
    spawner.spawn_namespaced::<BackendTLSPolicy>();
    spawner.spawn_namespaced::<Service>();
    spawner.spawn_namespaced::<EndpointSlice>();
    spawner.spawn_namespaced::<Secret>();
    spawner.spawn_namespaced::<ConfigMap>();
}

struct Spawner<'a> {
    tasks: &'a mut JoinSet<()>,
    client: &'a Client,
    scope: &'a Scope,
    store: &'a Arc<Store>,
    problems: &'a Arc<Problems>,
}

impl Spawner<'_> {
    fn spawn_namespaced<K: Namespaced>(&mut self) {
        if self.scope.namespaces.is_empty() {
            self.spawn::<K>(Api::all(self.client.clone()), None);
        }
        for namespace in &self.scope.namespaces {
            self.spawn::<K>(Api::namespaced(self.client.clone(), namespace), Some(namespace.clone()));
        }
    }

    fn spawn<K: Kind>(&mut self, api: Api<K>, namespace: Option<String>) {
        let kind = K::kind(&());
        let subject = match &namespace {
            Some(namespace) => format!("{kind} in namespace {namespace}"),
            None => kind.into_owned(),
        };
        self.store.expect(&subject);
        let watch = Watch::<K> {
            store: self.store.clone(),
            problems: self.problems.clone(),
            subject,
            namespace,
            classes: if K::kind(&()) == "GatewayClass" { self.scope.classes.clone() } else { Vec::new() },
            list: Objects::new(),
        };
        self.tasks.spawn(watch.run(api, self.scope.backoff));
    }
}

/// The watch of a kind, of all namespaces or one.
struct Watch<K: Kind> {
    store: Arc<Store>,
    problems: Arc<Problems>,
    subject: String,
    namespace: Option<String>,
    /// The names of objects that are kept; all if it is empty.
    classes: Vec<String>,
    /// Objects of a list that is not complete: the snapshot keeps the former ones until it is.
    list: Objects<K>,
}

impl<K: Kind> Watch<K> {
    async fn run(mut self, api: Api<K>, mut backoff: Backoff) {
        let mut config = watcher::Config::default().page_size(PAGE);
        if let Some(selector) = K::SELECTOR {
            config = config.fields(selector);
        }
        let mut events = pin!(watcher::watcher(api, config));
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    // The start of a list is an event before any answer.
                    if !matches!(event, Event::Init) {
                        backoff.reset();
                        self.problems.end(&self.subject);
                    }
                    self.receive(event);
                }
                Err(error) => {
                    self.fail(&error);
                    tokio::time::sleep(backoff.next_delay()).await;
                }
            }
        }
    }

    fn receive(&mut self, event: Event<K>) {
        match event {
            Event::Init => self.list = Objects::new(),
            Event::InitApply(object) => {
                if let Some(entry) = self.reduced(object) {
                    let object = self.former(&entry.key, &entry.object).unwrap_or_else(|| compact(&entry.object));
                    self.list.insert(entry.key, object);
                }
            }
            Event::InitDone => self.replace(),
            Event::Apply(object) => {
                let Some(entry) = self.reduced(object) else { return };
                if self.former(&entry.key, &entry.object).is_none() {
                    K::objects_mut(&mut self.store.lock().snapshot).insert(entry.key, compact(&entry.object));
                    self.store.announce();
                }
            }
            Event::Delete(object) => {
                if K::objects_mut(&mut self.store.lock().snapshot).remove(&key(&object)).is_some() {
                    self.store.announce();
                }
            }
        }
    }

    /// Returns the object without fields that are not read, or nothing if it is not watched.
    fn reduced(&self, mut object: K) -> Option<Entry<K>> {
        let key = key(&object);
        if !self.classes.is_empty() && !self.classes.contains(&key.name) {
            return None;
        }
        object.reduce();
        Some(Entry { key, object })
    }

    /// Returns the object of the snapshot if it is the same.
    fn former(&self, key: &ObjectKey, object: &K) -> Option<Arc<K>> {
        K::objects(&self.store.lock().snapshot).get(key).filter(|former| ***former == *object).cloned()
    }

    /// Replaces the objects of the snapshot by those of a complete list.
    fn replace(&mut self) {
        let list = std::mem::take(&mut self.list);
        {
            let mut contents = self.store.lock();
            let objects = K::objects_mut(&mut contents.snapshot);
            match &self.namespace {
                None => *objects = list,
                Some(namespace) => {
                    objects.retain(|key, _| key.namespace != *namespace);
                    objects.extend(list);
                }
            }
        }
        self.store.listed(&self.subject);
    }

    fn fail(&self, error: &watcher::Error) {
        let (problem, detail) = match error {
            watcher::Error::InitialListFailed(error)
            | watcher::Error::WatchStartFailed(error)
            | watcher::Error::WatchFailed(error) => (Problem::of(error), describe(error)),
            watcher::Error::WatchError(status) => (Problem::of_code(status.code), status.message.clone()),
            watcher::Error::NoResourceVersion => (Problem::Refused, error.to_string()),
        };
        self.problems.begin(&self.subject, problem, &detail);
        if K::IS_OPTIONAL && matches!(problem, Problem::Missing | Problem::Forbidden) {
            self.store.listed(&self.subject);
        }
    }
}

/// Returns a copy without the spare capacity that the decoder has left: it is half of a route.
fn compact<K: Clone>(object: &K) -> Arc<K> {
    Arc::new(object.clone())
}

/// An object and its name.
struct Entry<K> {
    key: ObjectKey,
    object: K,
}

fn key<K: Resource>(object: &K) -> ObjectKey {
    let metadata = object.meta();
    ObjectKey::new(metadata.namespace.clone().unwrap_or_default(), metadata.name.clone().unwrap_or_default())
}
