//! Tests that a panic ends one stream and nothing else.

use testkit::{Peer, Service, sleep};

use crate::api;
use crate::messages::*;
use crate::world::*;

/// The frontend `l` refers to a proxy that does not exist: serving a request of it panics.
fn broken(mode: &str) -> Worlds {
    config(&format!(
        "listen l\n bind 10.0.0.1:80\n {mode}\n maxconn 3\n server s1 10.0.1.1:80\n\
         listen m\n bind 10.0.0.1:81\n server s1 10.0.1.1:80 maxconn 1"
    ))
    .global(api::SOCKET)
    .broken_by(|program| {
        let proxy = std::sync::Arc::make_mut(&mut program.proxies[0]);
        proxy.frontend.as_mut().unwrap().at_once = Some(99);
    })
}

#[test]
fn a_panic_is_contained_counted_and_logged() {
    broken("").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut other = Peer::connect("10.0.0.1:81").await;
        other.send(GET).await;
        let mut server = s1.accept().await;
        server.expect(GET_AT_SERVER).await;
        for _ in 0..5 {
            let mut client = Peer::connect(WEIR).await;
            client.send(GET).await;
            client.expect_end().await;
            world.expect_log(&[r#"l l/<NOSRV> 0/-1/-1/-1/0 -1 # - - I--- 2/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        }
        let counted = |left| format!("\n{left:<10} BUG executor.rs run(): \"a task panicked\"\n");
        assert!(api::ask("debug counters").await.contains(&counted(5)));
        api::order("debug counters reset bug").await;
        assert!(api::ask("debug counters all").await.contains(&counted(0)));
        sleep(10).await;
        assert_eq!(world.sessions(), 1, "places were given back");
        server.send(OK).await;
        other.expect(OK_AT_CLIENT).await;
        world.expect_log(&[r#"m m/s1 0/0/0/10/10 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
    });
}

#[test]
fn a_panic_in_tcp_mode_closes_the_clients_connection() {
    broken("mode tcp\n option tcplog").run(|world| async move {
        for _ in 0..5 {
            let mut client = Peer::connect(WEIR).await;
            client.expect_end().await;
            world.expect_log(&["l l/<NOSRV> -1/-1/0 0 I- 1/1/0/0/0 0/0"]).await;
        }
    });
}
