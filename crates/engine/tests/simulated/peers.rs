//! Tests of peers: connection attempts and timeouts, admission of incoming connections, and updates sent while requests
//! are served.

use testkit::{Peer, PeerOptions, Service, Stopwatch, sleep};
use wire::peers::{Definition, Message, Update, decode};

use crate::world::*;

/// The address of the other peer, and of this one.
const YOU: &str = "10.0.5.1:10000";
const ME: &str = "10.0.0.1:10000";
const RESYNC: [u8; 2] = [0, 0];
const HEARTBEAT: [u8; 2] = [0, 4];
/// A resynchronization has ended, and was only partial.
const PARTIAL: [u8; 2] = [0, 2];
const CONFIRM: [u8; 2] = [0, 3];

fn peers() -> Worlds {
    config(&format!(
        "peers p\n peer me {ME}\n peer you {YOU}\n table t type string len 20 size 100 expire 100s store gpc0\n\
         frontend f\n bind {WEIR}\n http-request track-sc0 path table p/t\n http-request sc-inc-gpc0(0)\n \
         http-request return status 200\n"
    ))
    .global("localpeer me")
}

fn hello(remote: &str, local: &str) -> String {
    format!("HAProxyS 2.1\n{remote}\n{local} {} 1\n", std::process::id())
}

async fn request(path: &str) {
    let mut client = Peer::connect(WEIR).await;
    client.send(format!("GET {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")).await;
    client.receive_head().await.unwrap();
}

/// Receives the next update of a connection, and returns its key and its data.
async fn update(peer: &mut Peer, known: &mut Option<Definition>) -> (Vec<u8>, String) {
    let mut heard = Vec::new();
    loop {
        heard.extend(peer.receive(1).await);
        let Some(frame) = decode(&heard, 16_384).unwrap() else { continue };
        match frame.message {
            Message::Definition(payload) => *known = Some(Definition::decode(payload).unwrap()),
            Message::Update(has, payload) => {
                let update = Update::decode(payload, has, known.as_ref().unwrap()).unwrap();
                return (update.key.to_vec(), format!("{:?}", update.data));
            }
            _ => {}
        }
        heard.clear();
    }
}

/// Waits for that update: others may be sent twice, since nothing is confirmed.
async fn hear(peer: &mut Peer, known: &mut Option<Definition>, wanted: &(Vec<u8>, String)) {
    while update(peer, known).await != *wanted {}
}

/// An update of a key with that counter.
fn counted(key: &str, times: u64) -> (Vec<u8>, String) {
    (key.into(), format!("[(2, 0, Number({times}))]"))
}

#[test]
fn a_peer_is_given_up_when_it_falls_silent() {
    peers().run(|_| async move {
        // There was no listener at first.
        let mut you = Service::at(YOU);
        let watch = Stopwatch::start();
        let mut peer = you.accept().await;
        assert!((4_990..=5_510).contains(&watch.elapsed().as_millis()), "{:?}", watch.elapsed());
        peer.expect(hello("you", "me")).await;
        peer.send("200\n").await;
        peer.send(PARTIAL).await;
        peer.expect(CONFIRM).await;
        let watch = Stopwatch::start();
        // It sends a heartbeat, and receives nothing.
        peer.expect(HEARTBEAT).await;
        watch.took(3_000);
        peer.expect_eof().await;
        watch.took(5_000);
        // The next attempt follows soon.
        let mut peer = you.accept().await;
        assert!((5_050..=7_060).contains(&watch.elapsed().as_millis()));
        peer.expect(hello("you", "me")).await;
        peer.send("300\n").await;
        peer.expect_eof().await;
        let watch = Stopwatch::start();
        let _peer = you.accept().await;
        assert!((4_990..=5_510).contains(&watch.elapsed().as_millis()), "{:?}", watch.elapsed());
    });
}

#[test]
fn one_that_answers_nothing_is_called_again() {
    peers().run(|_| async move {
        let mut you = Service::at(YOU);
        let mut peer = you.accept().await;
        let watch = Stopwatch::start();
        peer.expect(hello("you", "me")).await;
        peer.expect_eof().await;
        watch.took(4_000);
        let _peer = you.accept().await;
        assert!((4_990..=5_510).contains(&watch.elapsed().as_millis()), "{:?}", watch.elapsed());
    });
}

#[test]
fn who_comes_is_told_what_happens_and_replaces_who_came_before() {
    peers().run(|_| async move {
        let mut first = Peer::connect(ME).await;
        first.send(hello("me", "you")).await;
        first.expect("200\n").await;
        first.expect(RESYNC).await;
        request("/a").await;
        assert_eq!(update(&mut first, &mut None).await, counted("/a", 1));
        let mut second = Peer::connect(ME).await;
        second.send(hello("me", "you")).await;
        second.expect("200\n").await;
        first.expect_end().await;
        // Updates that were not confirmed are sent again.
        let mut known = None;
        assert_eq!(update(&mut second, &mut known).await, counted("/a", 1));
        request("/b").await;
        request("/a").await;
        assert_eq!(update(&mut second, &mut known).await, counted("/b", 1));
        assert_eq!(update(&mut second, &mut known).await, counted("/a", 2));
    });
}

#[test]
fn strangers_have_five_seconds() {
    peers().run(|world| async move {
        let watch = Stopwatch::start();
        let mut slow = Peer::connect(ME).await;
        slow.send("HAProxyS 2.1\nme\n").await;
        slow.expect_end().await;
        watch.took(5_000);
        let mut wrong = Peer::connect(ME).await;
        wrong.send(hello("me", "nobody")).await;
        wrong.expect("504\n").await;
        wrong.expect_end().await;
        // Of very many silent connections some are closed, so that one that sends its hello is admitted.
        for _ in 0..300 {
            world.scope.spawn(async {
                if let Ok(mut stranger) = Peer::try_connect(ME, PeerOptions::default()).await {
                    stranger.try_receive_head().await;
                }
            });
        }
        sleep(100).await;
        let mut peer = Peer::connect(ME).await;
        peer.send(hello("me", "you")).await;
        peer.expect("200\n").await;
    });
}

#[test]
fn a_stop_leaves_everybody() {
    peers().run(|world| async move {
        let mut peer = Peer::connect(ME).await;
        peer.send(hello("me", "you")).await;
        peer.expect("200\n").await;
        world.stop();
        peer.receive_rest().await;
        sleep(50).await;
        assert!(world.is_drained().await);
    });
}

#[test]
fn a_reload_in_place_keeps_the_connection_and_tells_what_new_sessions_do() {
    let with = |rule: &str| {
        config(&format!(
            "frontend f\n bind {WEIR}\n {rule}\n http-request track-sc0 path table p/t\n http-request sc-inc-gpc0(0)\n \
             http-request return status 200\n\
             peers p\n peer me {ME}\n peer you {YOU}\n table t type string len 20 size 100 expire 100s store gpc0\n"
        ))
        .global("localpeer me")
    };
    with("").run(move |world| async move {
        let mut you = Peer::connect(ME).await;
        you.send(hello("me", "you")).await;
        you.expect("200\n").await;
        you.expect(RESYNC).await;
        let mut known = None;
        request("/a").await;
        hear(&mut you, &mut known, &counted("/a", 1)).await;
        let mut old = Peer::connect(WEIR).await;
        old.send("GET /b HTTP/1.1\r\nHost: a\r\n\r\n").await;
        old.receive_head().await.unwrap();
        hear(&mut you, &mut known, &counted("/b", 1)).await;
        assert_eq!(world.adopt(&with("http-request set-path /new%[path]")), Ok(()));
        sleep(5).await;
        request("/a").await;
        hear(&mut you, &mut known, &counted("/new/a", 1)).await;
        // A session begun before the change behaves as before, in the same table.
        old.send("GET /b HTTP/1.1\r\nHost: a\r\n\r\n").await;
        old.receive_head().await.unwrap();
        hear(&mut you, &mut known, &counted("/b", 2)).await;
    });
}
