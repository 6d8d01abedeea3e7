//! A reload in place meets what connections are in the middle of: requests that were sent together, and tunnels.

use testkit::{Peer, Service, sleep};

use crate::api;
use crate::messages::*;
use crate::world::*;

/// A proxy whose answers bear a mark, before these lines.
fn marked(mark: &str, lines: &str) -> Worlds {
    listen(&format!("http-response set-header x-mark {mark}\n{lines}")).global(api::SOCKET)
}

const ONE: &str = "server s1 10.0.1.1:80\n";
const BOTH: &str = "server s2 10.0.1.2:80\n server s1 10.0.1.1:80\n";

#[test]
fn requests_that_were_sent_together_are_all_answered() {
    marked("old", ONE).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send([get("/1"), get("/2"), get("/3")].concat()).await;
        let mut server = s1.accept().await;
        server.expect(get_at_server("/1")).await;
        assert_eq!(world.adopt(&marked("new", ONE)), Ok(()));
        sleep(5).await;
        for path in ["/1", "/2", "/3"] {
            if path != "/1" {
                server.expect(get_at_server(path)).await;
            }
            server.send(answer("ok")).await;
            let head = client.receive_head().await.expect("an answer");
            assert!(head.starts_with("HTTP/1.1 200") && head.contains("x-mark: old"), "{head}");
            client.expect("ok").await;
        }
    });
}

#[test]
fn a_tunnel_outlives_its_server_and_its_configuration() {
    marked("old", ONE).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: custom\r\n\r\n").await;
        let mut server = s1.accept().await;
        assert!(server.receive_head().await.is_some());
        server.send("HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: custom\r\n\r\n").await;
        assert!(client.receive_head().await.is_some_and(|head| head.contains(" 101 ")));
        for lines in ["server s2 10.0.1.2:80\n", BOTH, ONE] {
            assert_eq!(world.adopt(&marked("new", lines)), Ok(()));
            sleep(3_000).await;
            client.send("ping").await;
            server.expect("ping").await;
            server.send("pong").await;
            client.expect("pong").await;
        }
    });
}
