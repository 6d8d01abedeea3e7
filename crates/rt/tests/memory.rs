//! Which tasks wait when memory is short, by their stages. A program of its own with one test, because the memory
//! account is per process. Allocations are not counted in it: the test adds the bytes.

use base::memory::{PROCESS, Supply};
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use weir_rt as rt;

use rt::{Class, Stage};

const MB: isize = 1 << 20;
/// Scarce from 48 MB on, critical from 56 MB on; from 60 MB on not even a few tasks proceed.
const BUDGET: usize = 64 << 20;
/// Tasks of each stage.
const TASKS: usize = 20;
/// A worker checks for memory every 10 ms, and nothing happens in between.
const LOOK: Duration = Duration::from_millis(10);

/// Number of tasks of each stage that have proceeded: underway, requests, connections.
type Counts = [usize; 3];

/// Starts the tasks, those first that are to wait longest; the list receives the stages that proceed, in order.
fn start() -> Rc<RefCell<Vec<Stage>>> {
    let gone_on = Rc::new(RefCell::new(Vec::new()));
    for stage in [Stage::Connection, Stage::Request, Stage::Underway].into_iter().flat_map(|stage| [stage; TASKS]) {
        let gone_on = Rc::clone(&gone_on);
        rt::spawn(Class::Normal, 0, async move {
            poll_fn(|context| rt::poll_memory(context, stage)).await;
            gone_on.borrow_mut().push(stage);
        });
    }
    gone_on
}

fn counts(gone_on: &[Stage]) -> Counts {
    [Stage::Underway, Stage::Request, Stage::Connection]
        .map(|wanted| gone_on.iter().filter(|stage| **stage == wanted).count())
}

/// Sets the memory in use to `used` MB, and returns the number of tasks that have proceeded immediately and after each
/// of three checks, and the order in which the others proceed once memory is available again.
fn under(used: isize, supply: Supply) -> (Vec<Counts>, Vec<Stage>) {
    PROCESS.set_budget(BUDGET);
    PROCESS.enter(used * MB);
    assert_eq!(PROCESS.supply(), supply);
    rt::sim::run(1, 1, Arc::new(|_| Box::pin(async {})), async move {
        let gone_on = start();
        let mut found = Vec::new();
        rt::sleep(LOOK / 2).await;
        for _ in 0..4 {
            found.push(counts(&gone_on.borrow()));
            rt::sleep(LOOK).await;
        }
        let before = gone_on.borrow().len();
        PROCESS.enter(-used * MB);
        rt::sleep(LOOK * 2).await;
        let after = gone_on.borrow()[before..].to_vec();
        (found, after)
    })
}

/// All tasks of the stages, in this order.
fn all(stages: &[Stage]) -> Vec<Stage> {
    stages.iter().flat_map(|stage| [*stage; TASKS]).collect()
}

#[test]
fn what_goes_on_comes_before_what_is_new() {
    let rows = [
        (47, Supply::Ample, [[20, 20, 20]; 4], &[][..]),
        (48, Supply::Scarce, [[20, 0, 0], [20, 8, 0], [20, 16, 0], [20, 20, 0]], &[Stage::Connection]),
        (56, Supply::Critical, [[0, 0, 0], [8, 0, 0], [16, 0, 0], [20, 0, 0]], &[Stage::Request, Stage::Connection]),
        (60, Supply::Critical, [[0, 0, 0]; 4], &[Stage::Underway, Stage::Request, Stage::Connection]),
    ];
    for (used, supply, expected, later) in rows {
        let (found, after) = under(used, supply);
        assert_eq!(found, expected, "{used} MB in use: underway, requests, connections");
        assert_eq!(after, all(later), "{used} MB in use, and then none");
    }
}
