//! The loop from snapshots to what Weir serves: a change is applied at once if the loop is idle, and changes during an application are
//! applied together after it.

use std::collections::BTreeSet;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;

use super::backoff::Backoff;
use super::log::log;
use super::statuses::{self, Writer};
use super::store::Store;
use crate::desired::Desired;
use crate::translate::{Settings, Translator};

/// The program that serves a desired state: a running Weir, or a record of tests.
pub trait Target {
    /// Makes the target serve a state, and returns what failed. A state that failed is applied again.
    fn apply(&mut self, desired: &Desired) -> impl Future<Output = Result<(), String>>;
}

/// Applies snapshots until the future is dropped.
pub async fn run<T: Target>(settings: Settings, backoff: Backoff, store: &Store, mut target: T, writer: &Writer) {
    let mut translator = Translator::new(settings);
    let mut attempts = backoff;
    let mut reported = Reported::default();
    store.wait().await;
    loop {
        let (desired, writes) = {
            let contents = store.lock();
            let translation = translator.translate(&contents.snapshot, &Time(Timestamp::now()));
            reported.report(translation.warnings);
            (translation.desired, statuses::writes(&contents.snapshot, &translation.statuses))
        };
        match target.apply(&desired).await {
            Ok(()) => {
                reported.applied();
                attempts.reset();
                writer.offer(writes);
                store.wait().await;
            }
            Err(error) => {
                reported.failed(&error);
                tokio::select! {
                    () = tokio::time::sleep(attempts.next_delay()) => {}
                    () = store.wait() => {}
                }
            }
        }
    }
}

/// Lines that were logged: a line is not repeated while it stays true.
#[derive(Default)]
struct Reported {
    warnings: BTreeSet<String>,
    failure: Option<String>,
}

impl Reported {
    fn report(&mut self, warnings: Vec<String>) {
        let warnings: BTreeSet<String> = warnings.into_iter().collect();
        for warning in warnings.difference(&self.warnings) {
            log(warning);
        }
        self.warnings = warnings;
    }

    fn failed(&mut self, error: &str) {
        if self.failure.as_deref() != Some(error) {
            log(&format!("Weir has not got the current state, which is tried again: {error}"));
            self.failure = Some(error.to_owned());
        }
    }

    fn applied(&mut self) {
        if self.failure.take().is_some() {
            log("Weir has got the current state");
        }
    }
}
