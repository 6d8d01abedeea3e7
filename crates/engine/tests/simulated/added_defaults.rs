//! Tests of servers that are added at run time with the options of `default-server for-added`.

use testkit::{Peer, Service, sleep};

use crate::api::{SOCKET, ask, order};
use crate::messages::*;
use crate::world::*;

/// Adds a server, and returns its settings: weight, `maxconn`, interval of its checks in seconds.
async fn added(world: &World, name: &str, words: &str) -> (u32, Option<u32>, Option<u64>) {
    assert_eq!(ask(&format!("add server l/{name} {words}")).await, "New server registered.\n\n", "{words}");
    settings(world, name)
}

fn settings(world: &World, name: &str) -> (u32, Option<u32>, Option<u64>) {
    let generation = world.shared().generation();
    let backend = generation.program.proxies[0].backend.as_ref().unwrap();
    let server = backend.servers.iter().find(|server| *server.name == *name).unwrap();
    let interval = server.check.as_ref().map(|check| check.pace.steady.as_secs());
    (server.weight, server.maxconn, interval)
}

/// Removes a server.
async fn remove(name: &str) {
    order(&format!("disable server l/{name}")).await;
    assert_eq!(ask(&format!("del server l/{name}")).await, "Server deleted.\n\n");
}

fn served(defaults: &str) -> Worlds {
    let servers = "server s1 10.0.1.1:80 from none check inter 60s init-state fully-up";
    listen(&format!("balance roundrobin\n {defaults}\n {servers}\n")).global(SOCKET).workers(&[1]).seeds(0..1)
}

#[test]
fn added_servers_begin_with_the_defaults_of_their_backend() {
    let lines = "default-server for-added weight 7 maxconn 50\n default-server check inter 9s init-state fully-up";
    served(lines).run(|world| async move {
        assert_eq!(added(&world, "a", "10.0.1.2:80").await, (7, Some(50), Some(9)));
        // Options of the command override, and repeating them changes nothing.
        assert_eq!(added(&world, "b", "10.0.1.3:80 weight 9 check inter 4s").await, (9, Some(50), Some(4)));
        assert_eq!(added(&world, "c", "10.0.1.4:80 check inter 9s weight 7 maxconn 50").await, (7, Some(50), Some(9)));
        assert_eq!(added(&world, "d", "10.0.1.5:80 from none weight 3").await, (3, None, None));
        assert_eq!(added(&world, "e", "10.0.1.6:80 from be:").await, (7, Some(50), Some(9)));
        // A server that tracks another one is not checked.
        assert_eq!(added(&world, "f", "10.0.1.7:80 track l/s1").await, (7, Some(50), None));
        assert_eq!(
            ask("add server l/g 10.0.1.7:80 check track l/s1").await,
            "unable to enable checks and tracking at the same time!\n\n"
        );
        // A removed server's slot is used again by one with the same settings.
        remove("a").await;
        assert_eq!(added(&world, "a", "10.0.1.9:80").await, (7, Some(50), Some(9)));
        for name in ["a", "b", "c", "d", "e", "f"] {
            remove(name).await;
        }
        // The tasks of their checks end.
        sleep(20_000).await;
        world.forget_log();
    });
}

#[test]
fn without_the_option_added_servers_begin_with_the_documented_defaults() {
    for lines in ["default-server weight 7 maxconn 50 check", "default-server name x weight 7"] {
        served(lines).run(|world| async move {
            assert_eq!(added(&world, "a", "10.0.1.2:80").await, (1, None, None));
            world.forget_log();
        });
    }
}

#[test]
fn a_reload_in_place_changes_what_later_servers_begin_with() {
    served("default-server weight 7").run(|world| async move {
        assert_eq!(added(&world, "a", "10.0.1.2:80").await.0, 1);
        for (line, weight) in [("for-added weight 7", 7), ("for-added weight 8", 8), ("weight 8", 1)] {
            assert_eq!(world.adopt(&served(&format!("default-server {line}"))), Ok(()));
            sleep(10).await;
            assert_eq!(added(&world, "b", "10.0.1.3:80").await.0, weight, "{line}");
        }
        world.forget_log();
    });
}

#[test]
fn files_for_tls_are_known_although_no_server_uses_them() {
    let lines = "default-server for-added ssl verify required ca-file ca.pem verifyhost a.example";
    served(lines).run(|world| async move {
        assert_eq!(ask("show ssl ca-file").await, "# filename\nca.pem - 1 certificate(s)\n\n");
        added(&world, "a", S2).await;
        order("enable server l/a").await;
        order("disable server l/s1").await;
        let mut service = Service::at(S2);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut peer = service.accept().await;
        assert_eq!(peer.receive(3).await, [22, 3, 1], "a hello");
        peer.reset();
        client.close();
        sleep(1_000).await;
        world.forget_log();
    });
}

#[test]
fn checks_of_added_servers_begin_by_command() {
    served("default-server for-added check inter 2s").run(|world| async move {
        added(&world, "a", S2).await;
        let mut service = Service::at(S2);
        sleep(10_000).await;
        service.is_left_alone();
        order("enable health l/a").await;
        order("enable server l/a").await;
        service.accept().await.expect_end().await;
        remove("a").await;
        sleep(20_000).await;
        world.forget_log();
    });
}
