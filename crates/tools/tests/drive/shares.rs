//! Shares of the load: budgets over several workers, requests per connection, weights, the reference client.

use std::cell::RefCell;
use std::rc::Rc;

use testkit::Service;
use weir_tools::load::plan::{Pace, Plan, Reference};

use crate::support::*;

#[test]
fn a_number_of_requests_is_exact_over_several_workers() {
    for requests in [1, 7, 1_000] {
        let plan = Plan { connections: 10, threads: 3, requests: Some(requests), ..plan() };
        let seen = Rc::new(RefCell::new(None));
        let served = Rc::clone(&seen);
        let run = run(plan, move |scope| async move { *served.borrow_mut() = Some(serve(&scope, SERVER, || 1)) });
        let seen = seen.borrow().as_ref().unwrap().get();
        assert_eq!((seen, run.total.requests, run.total.answers), (requests, requests, requests));
        assert_eq!(run.total.statuses[100], requests);
        assert_eq!(run.total.received, requests * ANSWER.len() as u64);
        assert_eq!((run.total.first_byte.len(), run.total.errors.failures()), (requests, 0));
        assert_eq!(run.seconds.iter().map(|second| second.3).sum::<u64>(), requests);
    }
}

#[test]
fn a_connection_carries_so_many_requests_and_asks_to_close_with_the_last() {
    let plan = Plan { connections: 2, requests: Some(30), requests_per_connection: Some(3), ..plan() };
    let heads = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&heads);
    let run = run(plan, move |scope| async move {
        Service::at(SERVER).serve(&scope.clone(), move |mut peer, number| {
            let noted = Rc::clone(&noted);
            async move {
                while let Some(head) = peer.try_receive_head().await {
                    let last = head.contains("Connection: close");
                    noted.borrow_mut().push((number, last));
                    if !peer.try_send(ANSWER).await || last {
                        return;
                    }
                }
            }
        });
    });
    assert_eq!((run.total.answers, run.total.connections, run.total.errors.failures()), (30, 10, 0));
    for connection in 0..10 {
        let of: Vec<bool> = heads.borrow().iter().filter(|head| head.0 == connection).map(|head| head.1).collect();
        assert_eq!(of, [false, false, true], "connection {connection}");
    }
}

#[test]
fn weights_are_kept_and_spread_evenly() {
    let targets = vec![target(SERVER, "/often", 3), target(SERVER, "/seldom", 1)];
    let plan = Plan { targets, requests: Some(400), ..plan() };
    let paths = Rc::new(RefCell::new(String::new()));
    let noted = Rc::clone(&paths);
    let run = run(plan, move |scope| async move {
        Service::at(SERVER).serve(&scope.clone(), move |mut peer, _| {
            let noted = Rc::clone(&noted);
            async move {
                while let Some(head) = peer.try_receive_head().await {
                    noted.borrow_mut().push(if head.starts_with("GET /often ") { 'o' } else { 's' });
                    peer.try_send(ANSWER).await;
                }
            }
        });
    });
    assert_eq!(run.total.answers, 400);
    let paths = paths.borrow();
    assert_eq!(paths.matches('s').count(), 100);
    assert!(!paths.contains("oooo") && !paths.contains("ss"), "never more than three in a row");
}

#[test]
fn weights_share_connections_and_rate_among_addresses() {
    const OTHER: &str = "10.0.0.2:80";
    let targets = vec![target(SERVER, "/", 3), target(OTHER, "/", 1)];
    let pace = Pace::Constant(100.0);
    let plan = Plan { targets, connections: 8, threads: 2, duration: Some(seconds(4)), pace, ..plan() };
    let counts = Rc::new(RefCell::new(Vec::new()));
    let noted = Rc::clone(&counts);
    let run = run(plan, move |scope| async move {
        noted.borrow_mut().extend([serve(&scope, SERVER, || 1), serve(&scope, OTHER, || 1)]);
    });
    let counts: Vec<u64> = counts.borrow().iter().map(|count| count.get()).collect();
    assert_eq!(run.total.connections, 8);
    assert!((298..=302).contains(&counts[0]) && (98..=102).contains(&counts[1]), "{counts:?}");
}

#[test]
fn the_reference_client_measures_beside_the_load_and_is_not_a_part_of_it() {
    let reference = Some(Reference { rate: 20.0, connections: 2 });
    let plan = Plan { connections: 4, threads: 2, duration: Some(seconds(5)), reference, ..plan() };
    let seen = Rc::new(RefCell::new(None));
    let served = Rc::clone(&seen);
    let run = run(plan, move |scope| async move { *served.borrow_mut() = Some(serve(&scope, SERVER, || 10)) });
    let seen = seen.borrow().as_ref().unwrap().get();
    assert!((98..=102).contains(&run.total.reference.len()), "{}", run.total.reference.len());
    assert_eq!(run.total.requests + run.total.reference.len(), seen);
    assert_eq!((run.total.connections, run.total.answers), (4, run.total.last_byte.len()));
    assert!(run.total.reference.mean() > 10e6 && run.total.reference.mean() < 13e6);
}
