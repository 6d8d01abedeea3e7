//! What a benchmark measured: the model of `results.json`. The report and the sizing page are made from it alone. Must
//! never hold a figure that was not measured.

use crate::load::record::Counts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The version of the form; one that is not known is refused.
pub const FORM: u32 = 1;

/// A whole run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Results {
    /// [`FORM`].
    pub form: u32,
    /// When it began, RFC 3339.
    pub begun: String,
    /// The version of Weir that measured.
    pub weir: String,
    /// The command line that repeats it.
    pub command: String,
    /// The scenario file as it was read.
    pub scenario_text: String,
    /// Its name, title, and what it repeats.
    pub scenario: ScenarioName,
    /// Where it ran.
    pub machine: Machine,
    /// What was found before.
    #[serde(alias = "ground")]
    pub environment: Vec<Finding>,
    /// The proxies that were compared, in the order in which the scenario names them.
    pub proxies: Vec<ProxyName>,
    /// What was measured: one point for each proxy (and for the direct way) and each step of the sweep.
    pub points: Vec<Point>,
}

/// What the scenario says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScenarioName {
    /// A short name, without spaces.
    pub name: String,
    /// One line.
    pub title: String,
    /// The published method that it repeats.
    pub repeats: String,
}

/// The machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Machine {
    /// The processor's model.
    pub processor: String,
    /// Processors that may be used.
    pub cores: u32,
    /// Bytes of memory.
    pub memory: u64,
    /// Name and release of the kernel.
    pub kernel: String,
}

/// Something about the environment that would spoil a result, or that it stands well.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// What was looked at.
    pub subject: String,
    /// What was seen.
    pub seen: String,
    /// What it spoils and what helps; nothing when all is well.
    pub warning: Option<String>,
}

/// A proxy that is compared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyName {
    /// Its name in the scenario.
    pub name: String,
    /// What it says of its version.
    pub version: String,
    /// Its command line.
    pub command: Vec<String>,
}

/// One combination that was measured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The proxy's name; `None` without a proxy between.
    pub proxy: Option<String>,
    /// Object size, bytes.
    pub size: u64,
    /// Offered requests a second, where a rate was offered.
    pub rate: Option<f64>,
    /// Threads of the proxy; 0 without one.
    pub workers: u32,
    /// Connections of the load.
    pub connections: u32,
    /// Every round, in the order in which they ran.
    pub rounds: Vec<Round>,
}

/// One round of one combination.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Round {
    /// Its place among all rounds of the run, from 0: which came after which.
    pub order: u32,
    /// Each second.
    pub seconds: Vec<Counts>,
    /// The whole round.
    pub total: Counts,
    /// To the last byte: percentile and microseconds.
    pub latency: Vec<(f64, f64)>,
    /// Of the reference client; empty without one.
    pub reference: Vec<(f64, f64)>,
    /// Complete answers by status code.
    pub statuses: BTreeMap<u16, u64>,
    /// CPU of each thread of the proxy during the round; empty without a proxy.
    pub threads: Vec<ThreadTime>,
    /// CPU of the origins during the round, microseconds.
    pub origin_cpu: f64,
    /// CPU of the load during the round, microseconds.
    pub load_cpu: f64,
    /// Memory of the proxy at the end of the round, its connections still open.
    pub memory: Memory,
    /// Packets that the interface of the traffic received and sent during the round.
    pub packets: (u64, u64),
    /// System calls a request by name, where they were counted: in a round of their own, which is not timed, and told with
    /// the last one that is.
    pub system_calls: BTreeMap<String, f64>,
    /// What went wrong: the round counts for nothing then.
    pub fault: Option<String>,
}

/// CPU of one thread.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ThreadTime {
    /// Its process.
    pub process: u32,
    /// Its number.
    pub thread: u32,
    /// Its name.
    pub name: String,
    /// Microseconds in user space.
    pub user: f64,
    /// Microseconds in the kernel.
    pub system: f64,
}

/// Memory of the proxy's processes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Memory {
    /// Bytes of anonymous memory before the first connection.
    pub before: u64,
    /// Bytes of anonymous memory at the end.
    pub anonymous: u64,
    /// Bytes of resident memory at the end.
    pub resident: u64,
}
