//! Results of a benchmark: the model of `results.json`. The report and the sizing page are made from it alone. Must
//! never hold a figure that was not measured.

use crate::load::record::Counts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the format; an unknown one is rejected.
pub const FORM: u32 = 1;

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`FORM`].
    pub form: u32,
    /// Start time, RFC 3339.
    pub begun: String,
    /// Version of Weir that ran the benchmark.
    pub weir: String,
    /// Command line that repeats the run.
    pub command: String,
    /// The scenario file as it was read.
    pub scenario_text: String,
    /// Name and title of the scenario, and the method that it repeats.
    pub scenario: ScenarioName,
    pub machine: Machine,
    /// Findings about the environment before the run.
    #[serde(alias = "ground")]
    pub environment: Vec<Finding>,
    /// The compared proxies, in the order of the scenario.
    pub proxies: Vec<ProxyName>,
    /// Measurements: one point for each proxy (and for the direct way) and each step of the sweep.
    pub points: Vec<Point>,
}

/// Description of a scenario.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioName {
    /// A short name, without spaces.
    pub name: String,
    pub title: String,
    /// The published method that it repeats.
    pub repeats: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's model.
    pub processor: String,
    /// Number of available processors.
    pub cores: u32,
    /// Size of memory, in bytes.
    pub memory: u64,
    /// Name and release of the kernel.
    pub kernel: String,
}

/// A checked property of the environment, with a warning if it would distort a result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The checked property.
    pub subject: String,
    /// The observed value.
    pub seen: String,
    /// The effect and a remedy; `None` if there is no problem.
    pub warning: Option<String>,
}

/// A proxy that is compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyName {
    /// Name in the scenario.
    pub name: String,
    /// Version as printed by the program.
    pub version: String,
    pub command: Vec<String>,
}

/// One measured combination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The proxy's name; `None` for the direct way.
    pub proxy: Option<String>,
    /// Object size, bytes.
    pub size: u64,
    /// Offered requests per second, if the rate was limited.
    pub rate: Option<f64>,
    /// Threads of the proxy; 0 without one.
    pub workers: u32,
    /// Connections of the load.
    pub connections: u32,
    /// Rounds, in the order of execution.
    pub rounds: Vec<Round>,
}

/// One round of one combination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Index among all rounds of the run, from 0, in the order of execution.
    pub order: u32,
    /// Counts of each second.
    pub seconds: Vec<Counts>,
    /// The whole round.
    pub total: Counts,
    /// Percentiles of the time to the last byte, with microseconds.
    pub latency: Vec<(f64, f64)>,
    /// Percentiles of the reference client; empty without one.
    pub reference: Vec<(f64, f64)>,
    /// Complete responses by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// CPU of each thread of the proxy during the round; empty without a proxy.
    pub threads: Vec<ThreadTime>,
    /// CPU of the origins during the round, microseconds.
    pub origin_cpu: f64,
    /// CPU of the load during the round, microseconds.
    pub load_cpu: f64,
    /// Memory of the proxy at the end of the round, with its connections still open.
    pub memory: Memory,
    /// Packets received and sent by the interface of the traffic during the round.
    pub packets: (u64, u64),
    /// System calls per request by name, if counted: in a separate, untimed round, stored with
    /// the last timed one.
    pub system_calls: BTreeMap<String, f64>,
    /// The error of an invalid round, which is not counted.
    pub fault: Option<String>,
}

/// CPU of one thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadTime {
    /// Process id.
    pub process: u32,
    /// Thread id.
    pub thread: u32,
    pub name: String,
    /// Microseconds in user space.
    pub user: f64,
    /// Microseconds in the kernel.
    pub system: f64,
}

/// Memory of the proxy's processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Anonymous memory before the first connection, in bytes.
    pub before: u64,
    /// Anonymous memory at the end, in bytes.
    pub anonymous: u64,
    /// Resident memory at the end, in bytes.
    pub resident: u64,
}
