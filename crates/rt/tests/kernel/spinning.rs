//! Workers that never wait for events: their results must not depend on it.

use crate::rt;
use rt::Config;
use std::sync::Arc;
use std::time::Duration;

#[test]
fn a_spinning_worker_serves_timers_and_can_be_calmed() {
    let config = Config { spin: true, ..Config::default() };
    let main: rt::Main = Arc::new(|_| {
        Box::pin(async {
            rt::sleep(Duration::from_millis(1)).await;
            rt::stop_spinning();
            rt::sleep(Duration::from_millis(1)).await;
            rt::stop();
        })
    });
    std::thread::spawn(move || rt::run(&config, main).unwrap()).join().unwrap();
}
