//! Tests of a reload in place after runtime commands that change or add servers, with requests that wait for a server,
//! and of counters that outlive the process.

use testkit::{Peer, Service, sleep};

use crate::api;
use crate::messages::*;
use crate::world::*;

/// A proxy with these lines, whose answers contain a mark.
fn marked(mark: &str, lines: &str) -> Worlds {
    listen(&format!("http-response set-header x-mark {mark}\n{lines}")).global(api::SOCKET)
}

/// Fields of the servers of `l` in `show servers state`: name, address, operational state, administrative state,
/// weight.
async fn states() -> Vec<String> {
    let shown = api::ask("show servers state l").await;
    let rows = shown.lines().filter(|line| line.contains(" l "));
    rows.map(|row| {
        let fields: Vec<&str> = row.split(' ').collect();
        [3, 4, 5, 6, 7].map(|at| fields[at]).join(" ")
    })
    .collect()
}

#[test]
fn servers_of_a_template_keep_what_orders_have_changed() {
    let farm =
        |count: usize| marked("x", &format!("balance roundrobin\nserver-template s {count} 10.0.1.1:80 weight 10"));
    farm(3).run(move |world| async move {
        serve_ok(&world.scope, S1);
        serve_ok(&world.scope, S2);
        api::order("set server l/s1 weight 5").await;
        api::order("set server l/s2 state maint").await;
        assert!(api::ask("set server l/s3 addr 10.0.1.2").await.contains("changed from '10.0.1.1' to '10.0.1.2'"));
        let changed = ["s1 10.0.1.1 2 0 5", "s2 10.0.1.1 0 1 10", "s3 10.0.1.2 2 0 10"];
        assert_eq!(states().await, changed);
        assert_eq!(world.adopt(&farm(5)), Ok(()));
        sleep(5).await;
        let more = ["s4 10.0.1.1 2 0 10", "s5 10.0.1.1 2 0 10"];
        assert_eq!(states().await, [&changed[..], &more].concat());
        assert_eq!(world.adopt(&farm(2)), Ok(()));
        sleep(5).await;
        assert_eq!(states().await, changed[..2]);
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/")).await;
        assert!(client.receive_head().await.is_some_and(|head| head.starts_with("HTTP/1.1 200")));
        // A server that was removed and returns has the state in the configuration.
        assert_eq!(world.adopt(&farm(3)), Ok(()));
        sleep(5).await;
        assert_eq!(states().await, [changed[0], changed[1], "s3 10.0.1.1 2 0 10"]);
        world.forget_log();
    });
}

#[test]
fn a_server_that_orders_added_ends_what_it_serves_when_it_goes() {
    marked("x", "balance roundrobin\nserver s1 10.0.1.1:80").run(|world| async move {
        let mut s2 = Service::at(S2);
        assert!(api::ask("add server l/s2 10.0.1.2:80").await.contains("New server registered."));
        api::order("enable server l/s2").await;
        api::order("disable server l/s1").await;
        let mut client = Peer::connect(WEIR).await;
        client.send(get("/")).await;
        let mut server = s2.accept().await;
        server.expect(get_at_server("/")).await;
        assert_eq!(world.adopt(&marked("y", "balance roundrobin\nserver s1 10.0.1.1:80")), Ok(()));
        sleep(5).await;
        assert_eq!(states().await, ["s1 10.0.1.1 0 1 1"], "an order stays, an added server does not");
        server.send(answer("s2")).await;
        assert!(client.receive_head().await.is_some_and(|head| head.contains("x-mark: x")));
        client.expect("s2").await;
        // Its name is free.
        assert!(api::ask("add server l/s2 10.0.1.2:80").await.contains("New server registered."));
        // The next configuration contains it: from then on it belongs to the configuration.
        let both = "balance roundrobin\nserver s1 10.0.1.1:80\nserver s2 10.0.1.2:80";
        assert_eq!(world.adopt(&marked("z", both)), Ok(()));
        sleep(5).await;
        assert!(states().await.iter().any(|state| state.starts_with("s2 10.0.1.2 ")), "{:?}", states().await);
        assert_eq!(world.adopt(&marked("w", both)), Ok(()));
        sleep(5).await;
        assert_eq!(states().await.len(), 2);
        world.forget_log();
    });
}

#[test]
fn requests_that_wait_keep_their_time_and_their_turn() {
    let queue = |mark: &str, time: &str| {
        marked(mark, &format!("timeout queue {time}\nserver s1 10.0.1.1:80 maxconn 1 maxqueue 2"))
    };
    queue("old", "1s").run(move |world| async move {
        let (mut first, mut server, mut s1) = asked().await;
        let mut old = Peer::connect(WEIR).await;
        old.send(get("/old")).await;
        sleep(500).await;
        assert_eq!(world.adopt(&queue("new", "30s")), Ok(()));
        sleep(5).await;
        let mut new = Peer::connect(WEIR).await;
        new.send(get("/new")).await;
        // A request that waited before has its old timeout.
        let watch = testkit::Stopwatch::start();
        assert!(old.receive_head().await.is_some_and(|head| head.starts_with("HTTP/1.1 503")));
        assert!((400..=500).contains(&watch.elapsed().as_millis()), "{:?}", watch.elapsed());
        sleep(5_000).await;
        // The other one continues to wait.
        server.send(answer("first")).await;
        assert!(first.receive_head().await.is_some_and(|head| head.contains("x-mark: old")));
        first.expect("first").await;
        drop(first);
        let mut next = server;
        if next.try_receive_head().await.is_none() {
            next = s1.accept().await;
            next.receive_head().await.unwrap();
        }
        next.send(answer("new")).await;
        assert!(new.receive_head().await.is_some_and(|head| head.contains("x-mark: new")));
        new.expect("new").await;
        world.forget_log();
    });
}

/// GUIDs in a stats file, whose counters the next process would begin with.
async fn kept_counts() -> Vec<String> {
    let shown = api::ask("dump stats-file").await;
    let rows = shown.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|row| row.split(',').next().unwrap_or_default().to_owned()).collect()
}

#[test]
fn counts_that_outlive_the_process_go_on() {
    let with = |more: &str| marked("x", &format!("guid px\nserver s1 10.0.1.1:80 guid sv1\n{more}"));
    with("").run(move |world| async move {
        serve_ok(&world.scope, S1);
        let ask = || async {
            let mut client = Peer::connect(WEIR).await;
            client.send(get("/")).await;
            assert!(client.receive_head().await.is_some());
        };
        ask().await;
        let before = kept_counts().await;
        assert_eq!(world.adopt(&with("http-request set-header a b\nserver s2 10.0.1.2:80 guid sv2 weight 0")), Ok(()));
        ask().await;
        sleep(5).await;
        assert_eq!(kept_counts().await.len(), before.len() + 1);
        let dumped = api::ask("dump stats-file").await;
        let columns: Vec<&str> = dumped.lines().find(|line| line.starts_with("#be")).unwrap().split(',').collect();
        let at = columns.iter().position(|column| *column == "stot").expect("a column");
        let row = dumped.lines().find(|line| line.starts_with("sv1,")).unwrap();
        assert_eq!(row.split(',').nth(at), Some("2"));
        world.forget_log();
    });
}
