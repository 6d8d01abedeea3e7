//! The side of Kubernetes: watches that fill the snapshot, the loop that applies what it means, and the statuses of objects. It
//! decides nothing about the meaning of an object, and Weir serves on if the apiserver is unreachable.

mod backoff;
mod kinds;
mod leader;
mod log;
mod problems;
mod reconcile;
mod statuses;
mod store;
mod watch;

use std::sync::Arc;

use kube::Client;
use tokio::task::JoinSet;

pub use backoff::Backoff;
pub use leader::{Election, LeaseName};
pub use log::{log, printable};
pub use reconcile::Target;

use crate::translate::Settings;
use leader::Leadership;
use problems::Problems;
use statuses::Writer;
use store::Store;
use watch::Scope;

/// Options of the command line about the side of Kubernetes.
#[derive(Clone, Debug)]
pub struct Options {
    pub settings: Settings,
    /// Names of GatewayClasses; all of the controller if it is empty.
    pub classes: Vec<String>,
    /// Namespaces of watched objects; all if it is empty.
    pub namespaces: Vec<String>,
    pub lease: LeaseName,
    /// The name of this replica, which no other one has.
    pub identity: String,
    pub election: Election,
    /// Times between attempts if the apiserver or Weir does not answer.
    pub backoff: Backoff,
}

/// Keeps a target in accord with a cluster until the future is dropped or `stop` is completed, then releases the lease.
pub async fn run<T: Target>(client: Client, options: Options, target: T, stop: impl Future<Output = ()>) {
    let store = Arc::new(Store::default());
    let problems = Arc::new(Problems::default());
    let scope =
        Scope { namespaces: options.namespaces.clone(), classes: options.classes.clone(), backoff: options.backoff };
    let mut watches = JoinSet::new();
    watch::spawn_all(&mut watches, &client, &scope, &store, &problems);
    let leadership = Arc::new(Leadership::default());
    let lease = leader::Lease::new(client.clone(), options.lease.clone(), options.identity.clone(), options.election);
    let writer = Writer::new(client, options.backoff);
    let loops = async {
        tokio::join!(
            reconcile::run(options.settings, options.backoff, &store, target, &writer),
            writer.run(&leadership, &problems),
            lease.run(&leadership, &problems),
        )
    };
    tokio::select! {
        _ = loops => {}
        () = stop => {}
    }
    lease.release(&leadership).await;
}
