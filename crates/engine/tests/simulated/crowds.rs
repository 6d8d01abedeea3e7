//! Tests of clients that open as many streams as they can: their own streams wait for each other, and other clients are
//! served without delay.

use testkit::{Peer, PeerOptions, Service, Stopwatch, sleep};
use wire::h2::{ErrorCode, Kind, flag};

use crate::h2::{Client, block};
use crate::messages::*;
use crate::world::*;

/// Starts a server that answers GET at once, and requests with a body after their end.
fn serve(world: &World) -> std::rc::Rc<std::cell::Cell<usize>> {
    let uploads = std::rc::Rc::new(std::cell::Cell::new(0));
    let counted = std::rc::Rc::clone(&uploads);
    Service::at(S1).serve(&world.scope, move |mut peer, _| {
        let counted = std::rc::Rc::clone(&counted);
        async move {
            while let Some(head) = peer.try_receive_head().await {
                if head.starts_with("POST") {
                    counted.set(counted.get() + 1);
                    let (_, _) = peer.try_receive_chunked().await;
                }
                if !peer.try_send(OK).await {
                    break;
                }
            }
        }
    });
    uploads
}

/// Checks that requests of another address are answered at once.
async fn quiet_clients_are_served(port: u16) {
    let from = Some(format!("10.0.9.9:{port}"));
    let mut quiet = Peer::connect_with(WEIR, PeerOptions { from }).await;
    let watch = Stopwatch::start();
    for _ in 0..10 {
        quiet.send(GET).await;
        quiet.expect(OK_AT_CLIENT).await;
    }
    assert!(watch.elapsed().as_millis() < 50, "{:?}", watch.elapsed());
}

async fn upload(client: &mut Client, stream: u32) {
    client.request(stream, false, &block("POST", "/", &[])).await;
}

/// Uploads of one address leave some of the requests that a backend's servers accept to others. Others begin one by one as these
/// end.
#[test]
fn uploads_of_one_address_leave_places_to_others() {
    listen("server s1 10.0.1.1:80 maxconn 4").workers(&[1]).seeds(0..4).run(|world| async move {
        let uploads = serve(&world);
        let mut greedy = Client::connect().await;
        for number in 0..5 {
            upload(&mut greedy, 2 * number + 1).await;
        }
        sleep(20).await;
        assert_eq!(uploads.get(), 3);
        quiet_clients_are_served(4001).await;
        // The end or the reset of an upload lets another one begin; a waiting one is reset as well.
        greedy.frame(Kind::Data, flag::END_STREAM, 3, b"x").await;
        greedy.expect(3, 200, "ok").await;
        sleep(20).await;
        assert_eq!(uploads.get(), 4);
        greedy.frame(Kind::RstStream, 0, 9, &ErrorCode::Cancel.bytes()).await;
        greedy.frame(Kind::RstStream, 0, 1, &ErrorCode::Cancel.bytes()).await;
        sleep(20).await;
        assert_eq!(uploads.get(), 4);
        upload(&mut greedy, 11).await;
        sleep(20).await;
        assert_eq!(uploads.get(), 5);
        world.forget_log();
    });
}

/// Beyond a half, uploads of one address wait while other clients have what is left, and begin soon after these have ended.
#[test]
fn uploads_beyond_a_half_wait_while_others_need_the_servers() {
    listen("server s1 10.0.1.1:80 maxconn 8").workers(&[1]).seeds(0..4).run(|world| async move {
        let uploads = serve(&world);
        let from = Some("10.0.9.9:4003".to_string());
        let mut others = Vec::new();
        for port in 0..2 {
            let from = from.as_ref().map(|from| from.replace("4003", &format!("{}", 4003 + port)));
            let mut other = Peer::connect_with(WEIR, PeerOptions { from }).await;
            other.send("POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n").await;
            others.push(other);
        }
        sleep(20).await;
        assert_eq!(uploads.get(), 2);
        let mut greedy = Client::connect().await;
        for number in 0..8 {
            upload(&mut greedy, 2 * number + 1).await;
        }
        sleep(100).await;
        assert_eq!(uploads.get(), 2 + 4);
        quiet_clients_are_served(4010).await;
        for other in &mut others {
            other.send("0\r\n\r\n").await;
            other.expect(OK_AT_CLIENT).await;
        }
        sleep(100).await;
        assert_eq!(uploads.get(), 2 + 7);
        quiet_clients_are_served(4011).await;
        world.forget_log();
    });
}

/// An upload waits at most as long as a request in a queue.
#[test]
fn uploads_wait_as_long_as_in_a_queue() {
    listen("timeout queue 300ms\n server s1 10.0.1.1:80 maxconn 2").workers(&[1]).seeds(0..2).run(|world| async move {
        let _uploads = serve(&world);
        let mut greedy = Client::connect().await;
        upload(&mut greedy, 1).await;
        upload(&mut greedy, 3).await;
        let watch = Stopwatch::start();
        assert!(greedy.answer(3).await.head.starts_with(":status: 503\n"));
        assert!((299..320).contains(&watch.elapsed().as_millis()), "{:?}", watch.elapsed());
        world.forget_log();
    });
}

/// Complete requests are no uploads, whatever their number; and uploads do not wait if servers have no limit.
#[test]
fn requests_that_are_whole_wait_for_nobody() {
    listen("server s1 10.0.1.1:80 maxconn 4").workers(&[1]).seeds(0..2).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Client::connect().await;
        for number in 0..4 {
            client.get(2 * number + 1, "/").await;
        }
        for _ in 0..4 {
            drop(s1.accept().await);
        }
        world.forget_log();
    });
    listen("server s1 10.0.1.1:80").workers(&[1]).seeds(0..2).run(|world| async move {
        let uploads = serve(&world);
        let mut client = Client::connect().await;
        for number in 0..50 {
            upload(&mut client, 2 * number + 1).await;
        }
        sleep(50).await;
        assert_eq!(uploads.get(), 50);
        world.forget_log();
    });
}

/// Streams of one address leave some of the server connections that the process can have to others. As many as a half may wait, and
/// further ones are refused.
#[test]
fn streams_of_one_address_leave_connections_to_others() {
    listen("timeout http-request 2s\n server s1 10.0.1.1:80").global("maxconn 100").workers(&[1]).seeds(0..1).run(
        |world| async move {
            let uploads = serve(&world);
            let mut greedy = Vec::new();
            for _ in 0..8 {
                let mut client = Client::connect().await;
                for number in 0..100 {
                    upload(&mut client, 2 * number + 1).await;
                }
                greedy.push(client);
            }
            sleep(50).await;
            // Of 512 all but a sixteenth, and the first of each connection.
            assert_eq!(uploads.get(), 480 + 3);
            quiet_clients_are_served(4002).await;
            greedy[7].expect_reset(199, ErrorCode::RefusedStream).await;
            // A waiting one begins when another one has ended.
            greedy[0].frame(Kind::Data, flag::END_STREAM, 3, b"x").await;
            greedy[0].expect(3, 200, "ok").await;
            sleep(20).await;
            assert_eq!(uploads.get(), 480 + 4);
            // The others are refused after a long wait.
            sleep(2000).await;
            greedy[5].expect_reset(199, ErrorCode::RefusedStream).await;
            world.forget_log();
        },
    );
}

/// A client that has reset its connection before its request was read uses no server.
#[test]
fn clients_that_have_left_cost_no_connection_to_a_server() {
    listen("maxconn 1\n server s1 10.0.1.1:80").workers(&[1]).seeds(0..4).run(|world| async move {
        let mut s1 = Service::at(S1);
        let first = Peer::connect(WEIR).await;
        sleep(10).await;
        let mut second = Peer::connect(WEIR).await;
        second.send(GET).await;
        second.reset();
        sleep(10).await;
        first.close();
        sleep(50).await;
        s1.is_left_alone();
        world.forget_log();
    });
}
