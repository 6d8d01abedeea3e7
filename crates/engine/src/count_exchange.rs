//! Schedule of the exchange of counters with other processes ("shm-stats-file"): every second on a helper thread, and at the end
//! of the process. Must never make a worker wait.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use config::diagnostic::Severity;

use crate::shared_counts::Sharing;
use crate::worker::{Process, Worker};

/// Interval between exchanges.
const PERIOD: Duration = Duration::from_secs(1);

/// Starts the periodic exchange. Only the first worker does so.
pub fn start(worker: &Rc<Worker>) {
    if worker.id != 0 || !worker.process.service::<Sharing>().is_set() {
        return;
    }
    let process = Arc::clone(&worker.process);
    rt::spawn(rt::Class::Normal, u64::MAX, async move {
        loop {
            rt::sleep(PERIOD).await;
            let shared = Arc::clone(&process);
            let complaint = process.helpers.run(move || exchange_all(&shared)).await.flatten();
            if let Some(complaint) = complaint {
                process.host.say(Severity::Warning, &complaint);
            }
        }
    });
}

/// Exchanges all counters. Returns a warning the first time that something fails.
fn exchange_all(process: &Process) -> Option<String> {
    let mut counts = process.service::<Sharing>().get()?;
    let complaint = match counts.exchange(&process.generation().program, &process.counters) {
        Ok(true) => return None,
        Ok(false) => {
            "shm stats file: not every object with a guid has room in it; their counters are not shared".to_owned()
        }
        // Another process holds the lock; the next exchange retries.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => return None,
        Err(error) => format!("shm stats file: counters cannot be shared : {error}"),
    };
    (!std::mem::replace(&mut counts.complained, true)).then_some(complaint)
}

/// `clear counters`: clears the counters of one server, or of all objects, in every process. Returns once that is done.
pub async fn clear(process: &Arc<Process>, server: Option<usize>) {
    if !process.service::<Sharing>().is_set() {
        return;
    }
    let shared = Arc::clone(process);
    let job = move || {
        let mut counts = shared.service::<Sharing>().get()?;
        counts.clear(&shared.counters, server).err()
    };
    if let Some(error) = process.helpers.run(job).await.flatten() {
        process.host.say(Severity::Warning, &format!("shm stats file: counters cannot be cleared : {error}"));
    }
}

/// Whether the counters of a server are shared.
pub fn shares_server(process: &Process, serial: usize) -> bool {
    let counts = process.service::<Sharing>().get();
    counts.is_some_and(|counts| counts.has_server(serial))
}

/// Exchanges the counters for the last time, and releases the records unless the next process continues them. Call it after the
/// last worker has ended.
pub fn finish(process: &Process, are_kept: bool) {
    let Some(mut counts) = process.service::<Sharing>().get() else { return };
    let _ = counts.exchange(&process.generation().program, &process.counters);
    if !are_kept {
        let _ = counts.release();
    }
}
