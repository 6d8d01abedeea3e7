//! Tests of the watchdog's report about a session that has blocked its worker.

use std::sync::{Arc, Mutex};

use testkit::{Peer, Service, sleep};

use crate::messages::*;
use crate::world::*;

#[test]
fn a_tag_names_the_frontend_and_the_client_while_the_session_lives() {
    config("listen l\n bind 10.0.0.1:80\n server s1 10.0.1.1:80").run(|world| async move {
        let named = Arc::new(Mutex::new(Vec::new()));
        let ask = || {
            for worker in 0..rt::workers() {
                let notes = Arc::clone(&named);
                // The first sessions of a worker have small numbers in either half of their keys.
                let names = (0..8_u64).flat_map(|low| (0..8_u64).map(move |high| high << 32 | low));
                let found = move || notes.lock().unwrap().extend(names.clone().find_map(engine::describe_session));
                rt::post(worker as rt::WorkerId, Box::new(found));
            }
        };
        let client = Peer::connect(WEIR).await;
        sleep(10).await;
        assert_eq!(world.sessions(), 1);
        ask();
        sleep(10).await;
        let living = std::mem::take(&mut *named.lock().unwrap());
        assert!(living.len() == 1 && living[0].starts_with("frontend l, client 10."), "{living:?}");
        drop(client);
        sleep(10).await;
        ask();
        sleep(10).await;
        assert!(named.lock().unwrap().is_empty(), "nothing is told of sessions that have ended");
    });
}

#[test]
fn a_session_that_kept_its_worker_is_ended_by_its_tag() {
    config("listen l\n bind 10.0.0.1:80\n server s1 10.0.1.1:80").run(|world| async move {
        let mut servers = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut server = servers.accept().await;
        server.expect(GET_AT_SERVER).await;
        for worker in 0..rt::workers() {
            let mut names = (0..8_u64).flat_map(|low| (0..8_u64).map(move |high| high << 32 | low));
            rt::post(worker as rt::WorkerId, Box::new(move || drop(names.find_map(engine::end_session))));
        }
        client.expect_end().await;
        server.expect_end().await;
        let lines = world.take_log().await;
        assert!(lines.len() == 1 && lines[0].contains(" IC-- "), "{lines:?}");
    });
}
