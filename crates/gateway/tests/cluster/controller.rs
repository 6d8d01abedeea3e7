//! A controller whose target is a record: what it applies is sent to the test, which lets each application end.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use gateway::cluster::{self, Backoff, Election, LeaseName, Options, Target};
use gateway::desired::{Desired, FrontendKind};
use gateway::translate::{Addresses, Network, Settings};
use kube::{Client, Config};
use tokio::sync::mpsc::{self, UnboundedReceiver, UnboundedSender};
use tokio::sync::{Semaphore, oneshot};
use tokio::task::JoinHandle;

/// A running controller.
pub struct Controller {
    applied: UnboundedReceiver<Desired>,
    /// A permit for each application that may end.
    pub gate: Arc<Semaphore>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

struct Record {
    applied: UnboundedSender<Desired>,
    gate: Arc<Semaphore>,
}

impl Target for Record {
    async fn apply(&mut self, desired: &Desired) -> Result<(), String> {
        let _ = self.applied.send(desired.clone());
        self.gate.acquire().await.map_err(|error| error.to_string())?.forget();
        Ok(())
    }
}

impl Controller {
    /// Starts a controller whose applications end at once.
    pub fn start(apiserver: SocketAddr) -> Self {
        let controller = Self::start_gated(apiserver, "a");
        controller.gate.add_permits(1000);
        controller
    }

    pub fn start_gated(apiserver: SocketAddr, identity: &str) -> Self {
        let config = Config::new(format!("http://{apiserver}").parse().expect("address"));
        let client = Client::try_from(config).expect("client");
        let network = Network { address: "10.32.0.0".parse().expect("address"), prefix: 24 };
        let moment = Duration::from_millis(1);
        let options = Options {
            settings: Settings { addresses: Addresses::Pool(vec![network]), ..Settings::default() },
            classes: Vec::new(),
            namespaces: Vec::new(),
            lease: LeaseName { namespace: "weir".into(), name: "weir-gateway".into() },
            identity: identity.into(),
            // Attempts follow each other at once, and a lease never expires within a test.
            election: Election { period: moment, ..Election::default() },
            backoff: Backoff::new(moment, moment),
        };
        let (sender, applied) = mpsc::unbounded_channel();
        let gate = Arc::new(Semaphore::new(0));
        let record = Record { applied: sender, gate: gate.clone() };
        let (stop, stopped) = oneshot::channel();
        let stopped = async move {
            let _ = stopped.await;
        };
        let task = tokio::task::spawn_local(cluster::run(client, options, record, stopped));
        Self { applied, gate, stop, task }
    }

    /// Waits for the next application, and returns the hosts of its routes.
    pub async fn applied(&mut self) -> BTreeSet<String> {
        hosts(&self.applied.recv().await.expect("controller"))
    }

    /// Waits for an application with these hosts of routes; those before it are dropped.
    pub async fn applies(&mut self, expected: &[&str]) {
        let expected: BTreeSet<String> = expected.iter().map(|host| (*host).to_owned()).collect();
        while self.applied().await != expected {}
    }

    pub fn has_applied(&mut self) -> bool {
        self.applied.try_recv().is_ok()
    }

    /// Ends the controller, and returns when it has ended.
    pub async fn stop(self) {
        let _ = self.stop.send(());
        self.task.await.expect("controller");
    }
}

fn hosts(desired: &Desired) -> BTreeSet<String> {
    let mut hosts = BTreeSet::new();
    for frontend in desired.frontends.values() {
        if let FrontendKind::Http { routes, .. } = &frontend.kind {
            hosts.extend(routes.iter().map(|route| route.host.clone()).filter(|host| host.ends_with("example.com")));
        }
    }
    hosts
}
