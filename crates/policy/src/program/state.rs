//! Creates live state from a program. Must never know how the state is used.

use super::{Backend, Program, Proxy, Server, ServerAddress};
use live::counters::Counters;
use live::{BackendPlan, CheckPlan, FrontendPlan, Live, LivePlan, ProxyPlan, ServerPlan};

impl Program {
    /// Creates live state; `random` is the key of the hash functions for data from requests.
    pub fn live(&self, random: u64) -> Live {
        let mut followers = Vec::new();
        for leader in self.proxies.iter().flat_map(|proxy| proxy.backend.iter().flat_map(|back| &back.servers)) {
            // Starts at the head of each tracking chain and visits all its followers.
            if leader.tracking.leader.is_none() {
                self.followers(leader, |leader, follower| {
                    followers.push((leader, follower));
                    true
                });
            }
        }
        let plan = LivePlan {
            maxconn: self.global.maxconn,
            rates: self.global.rates,
            compression_rate: self.global.compression.rate,
            proxies: self.proxies.iter().map(|proxy| proxy.plan()).collect(),
            followers,
            variable_limits: self.global.variables.limits(),
            variables: self.variables.clone(),
            names: self.names.clone(),
            tables: self.tables.clone(),
            caches: self.caches.clone(),
            limits: self.stores.limits.clone(),
            slots: self.stores.slots.clone(),
        };
        Live::new(plan, random)
    }

    /// Creates counters for a number of workers.
    pub fn counters(&self, workers: usize) -> Counters {
        let binds = |proxy: &Proxy| proxy.frontend.as_ref().map(|frontend| frontend.binds.len());
        let binds: Vec<Option<usize>> = self.proxies.iter().map(|proxy| binds(proxy)).collect();
        let counters = match self.global.shared_counters {
            None => Counters::new(&binds, self.servers, workers),
            Some(_) => Counters::shared(&binds, self.servers, workers),
        };
        if self.has_dashboard() {
            counters.measure_latency();
        }
        counters
    }

    /// Whether any proxy has a dashboard.
    pub fn has_dashboard(&self) -> bool {
        self.proxies.iter().any(|proxy| proxy.stats.as_ref().is_some_and(|page| page.dashboard))
    }
}

impl Proxy {
    /// Returns the parameters of the proxy's live state.
    pub fn plan(&self) -> ProxyPlan {
        let frontend = self.frontend.as_ref().map(|frontend| FrontendPlan {
            maxconn: frontend.maxconn,
            sessions_a_second: frontend.limits.sessions_a_second,
            binds: frontend.binds.iter().map(|bind| bind.maxconn).collect(),
            secure_binds: frontend.binds.iter().map(|bind| bind.tls.is_some()).collect(),
        });
        ProxyPlan {
            index: self.index,
            name: (*self.name).into(),
            mode: self.mode,
            disabled: self.disabled,
            unpublished: self.unpublished,
            frontend,
            backend: self.backend.as_ref().map(Backend::plan),
        }
    }
}

impl Backend {
    fn plan(&self) -> BackendPlan {
        BackendPlan {
            servers: self.servers.iter().map(Server::plan).collect(),
            balance: self.balance.clone(),
            hash: self.hash,
            allbackups: self.allbackups,
            fullconn: self.fullconn,
            persistence: self.persistence.clone(),
            outliers: self.limits.outliers,
            retry_budget: self.limits.retry_budget,
            hedge: self.limits.hedge,
        }
    }
}

impl Server {
    /// Returns the parameters of the server's live state.
    pub fn plan(&self) -> ServerPlan {
        let check = |rise, fall, initial| CheckPlan { rise, fall, initial };
        ServerPlan {
            index: self.index,
            id: self.id,
            place: self.place,
            weight: self.weight,
            maxconn: self.maxconn,
            minconn: self.minconn,
            maxqueue: self.maxqueue,
            disabled: self.disabled,
            backup: self.backup,
            slowstart: self.slowstart,
            resolved: !matches!(self.address, ServerAddress::Unresolved { .. }),
            follows: self.tracking.leader.is_some(),
            check: self.check.as_ref().map(|own| check(own.rise, own.fall, own.initial)),
            has_agent: self.agent.is_some(),
            unchecked_level: self.unchecked_level,
        }
    }
}
