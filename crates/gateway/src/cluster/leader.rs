//! Leader election by a Lease: one replica writes statuses. All replicas drive their own Weir.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use k8s_openapi::api::coordination::v1::{Lease as LeaseObject, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;
use kube::api::{ObjectMeta, PostParams};
use kube::{Api, Client};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use super::log::log;
use super::problems::{Problem, Problems, describe};

/// Times of an election.
#[derive(Clone, Copy, Debug)]
pub struct Election {
    /// A lease that is not renewed for this time is taken by another replica.
    pub duration: Duration,
    /// A leader that cannot renew its lease for this time stops writing, before another replica begins.
    pub deadline: Duration,
    /// The time between two attempts.
    pub period: Duration,
}

impl Default for Election {
    fn default() -> Self {
        Self { duration: Duration::from_secs(15), deadline: Duration::from_secs(10), period: Duration::from_secs(2) }
    }
}

/// The longest time of a request.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The name of the lease in the log.
const SUBJECT: &str = "the lease";

/// The namespace and the name of a Lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseName {
    pub namespace: String,
    pub name: String,
}

/// Whether this replica is the leader.
#[derive(Debug, Default)]
pub struct Leadership {
    is_leader: AtomicBool,
    gained: Notify,
}

impl Leadership {
    pub fn is_leader(&self) -> bool {
        self.is_leader.load(Ordering::Relaxed)
    }

    /// Waits until this replica becomes the leader.
    pub async fn gained(&self) {
        self.gained.notified().await;
    }

    fn set(&self, is_leader: bool) {
        if self.is_leader.swap(is_leader, Ordering::Relaxed) == is_leader {
            return;
        }
        if is_leader {
            log("this replica writes statuses: it has the lease");
            self.gained.notify_one();
        } else {
            log("this replica does not write statuses any longer: another one has the lease");
        }
    }
}

/// The Lease that the replicas compete for.
pub struct Lease {
    api: Api<LeaseObject>,
    name: String,
    identity: String,
    election: Election,
}

/// The version of another replica's lease and the time at which it was first seen: clocks of replicas are never compared.
struct Seen {
    version: Option<String>,
    since: Instant,
}

impl Lease {
    pub fn new(client: Client, name: LeaseName, identity: String, election: Election) -> Self {
        Self { api: Api::namespaced(client, &name.namespace), name: name.name, identity, election }
    }

    /// Acquires and renews the lease until the future is dropped.
    pub async fn run(&self, leadership: &Leadership, problems: &Problems) {
        let mut seen = Seen { version: None, since: Instant::now() };
        let mut renewed = Instant::now();
        loop {
            match timeout(TIMEOUT, self.attempt(&mut seen)).await {
                Ok(Ok(is_leader)) => {
                    problems.end(SUBJECT);
                    leadership.set(is_leader);
                    renewed = Instant::now();
                }
                Ok(Err(error)) => problems.begin(SUBJECT, Problem::of(&error), &describe(&error)),
                Err(_) => problems.begin(SUBJECT, Problem::Unreachable, "a request has taken too long"),
            }
            if renewed.elapsed() >= self.election.deadline {
                leadership.set(false);
            }
            sleep(self.election.period).await;
        }
    }

    /// Ends the lease, so that another replica takes it at once.
    pub async fn release(&self, leadership: &Leadership) {
        if !leadership.is_leader() {
            return;
        }
        let release = async {
            let mut lease = self.api.get(&self.name).await?;
            if holder(&lease) == Some(&self.identity) {
                let spec = lease.spec.get_or_insert_default();
                spec.holder_identity = None;
                spec.lease_duration_seconds = Some(1);
                spec.renew_time = Some(now());
                self.api.replace(&self.name, &PostParams::default(), &lease).await?;
            }
            Ok::<(), kube::Error>(())
        };
        match timeout(TIMEOUT, release).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => log(&format!("the lease is not released: {}", describe(&error))),
            Err(_) => log("the lease is not released: a request has taken too long"),
        }
    }

    /// Returns whether this replica has the lease.
    async fn attempt(&self, seen: &mut Seen) -> Result<bool, kube::Error> {
        let result = match self.api.get_opt(&self.name).await? {
            None => self.api.create(&PostParams::default(), &self.first()).await,
            Some(lease) if self.may_take(&lease, seen) => {
                self.api.replace(&self.name, &PostParams::default(), &self.taken(lease)).await
            }
            Some(_) => return Ok(false),
        };
        match result {
            Ok(_) => Ok(true),
            // Another replica was faster.
            Err(error) if Problem::of(&error) == Problem::Conflict => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns whether the lease is this replica's, released or expired.
    fn may_take(&self, lease: &LeaseObject, seen: &mut Seen) -> bool {
        let Some(holder) = holder(lease) else { return true };
        if *holder == self.identity {
            return true;
        }
        if seen.version != lease.metadata.resource_version {
            *seen = Seen { version: lease.metadata.resource_version.clone(), since: Instant::now() };
        }
        seen.since.elapsed() >= self.election.duration
    }

    fn first(&self) -> LeaseObject {
        let metadata = ObjectMeta { name: Some(self.name.clone()), ..ObjectMeta::default() };
        self.taken(LeaseObject { metadata, spec: None })
    }

    /// Returns the lease as it is when this replica has it.
    fn taken(&self, mut lease: LeaseObject) -> LeaseObject {
        let is_renewal = holder(&lease) == Some(&self.identity);
        let spec = lease.spec.get_or_insert_default();
        if !is_renewal {
            spec.acquire_time = Some(now());
            spec.lease_transitions = Some(spec.lease_transitions.map_or(0, |count| count.saturating_add(1)));
        }
        *spec = LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(self.election.duration.as_secs() as i32),
            renew_time: Some(now()),
            ..std::mem::take(spec)
        };
        lease
    }
}

fn holder(lease: &LeaseObject) -> Option<&String> {
    lease.spec.as_ref()?.holder_identity.as_ref().filter(|holder| !holder.is_empty())
}

fn now() -> MicroTime {
    MicroTime(Timestamp::now())
}
