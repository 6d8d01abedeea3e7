//! Tests of a reload in place during exchanges: pipelined requests, HTTP/2 streams, requests in a queue, tunnels; and
//! certificates that were set at run time.

use testkit::{Peer, Service, both, sleep};
use tls::provider::Version;

use crate::api;
use crate::messages::*;
use crate::parts::{End, Part};
use crate::secure::{Secure, client as secure_client, read_file};
use crate::world::*;

/// A proxy with these lines, whose answers contain a mark.
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

/// Streams of both sides continue even if the address that their clients have connected to is closed for new ones.
#[test]
fn long_downloads_of_streams_go_on() {
    const OTHER: &str = "10.0.0.1:81";
    fn served(binds: &str, mark: &str) -> Worlds {
        let lines = "http-reuse always\n server s1 10.0.1.1:80 proto h2";
        config(&format!("listen l\n{binds} http-response set-header x-mark {mark}\n{lines}")).global(api::SOCKET)
    }
    let both_binds = format!(" bind {WEIR}\n bind {OTHER}\n");
    served(&both_binds, "old").workers(&[1]).shuffled().seeds(0..8).run(|world| async move {
        let mut s1 = Service::at(S1);
        let (mut one, mut two) = (End::connect().await, End::open(OTHER).await);
        one.get(1, "/1").await;
        let mut server = End::accept(&mut s1).await;
        two.get(1, "/2").await;
        let mut streams = Vec::new();
        for path in ["/1", "/2"] {
            let stream = server.expect_request(&get_at_server(path), b"").await;
            server.send(Part::Head, stream, "HTTP/1.1 200 OK\r\n\r\n").await;
            server.stream(stream, b"begun").await;
            streams.push(stream);
        }
        assert_eq!(world.adopt(&served(&format!(" bind {WEIR}\n"), "new")), Ok(()));
        sleep(1_000).await;
        let long = testkit::text(200_000, 7);
        for (end, stream) in [&mut two, &mut one].into_iter().zip(streams.into_iter().rev()) {
            let (answered, ()) = both(end.message(1), server.upload(stream, &long)).await;
            assert!(answered.head.contains("x-mark: old\r\n") && answered.end == Some(Part::End), "{}", answered.head);
            assert!(answered.payload == [b"begun", &*long].concat(), "{} bytes", answered.payload.len());
            assert!(end.gone.is_none() && server.gone.is_none(), "nobody is sent away");
        }
        assert_eq!(s1.accepted(), 1);
        world.forget_log();
    });
}

/// Requests of streams that wait for a slot at their server get it, with whichever configuration they began.
#[test]
fn streams_that_wait_in_a_queue_are_served() {
    let lines = "http-reuse always\n server s1 10.0.1.1:80 maxconn 1 proto h2";
    marked("old", lines).shuffled().seeds(0..8).run(|world| async move {
        let lines = "http-reuse always\n server s1 10.0.1.1:80 maxconn 1 proto h2";
        let mut s1 = Service::at(S1);
        let mut client = End::connect().await;
        client.get(1, "/1").await;
        let mut server = End::accept(&mut s1).await;
        let first = server.expect_request(&get_at_server("/1"), b"").await;
        for stream in [3, 5, 7] {
            client.get(stream, &format!("/{stream}")).await;
        }
        sleep(5).await;
        assert_eq!(world.adopt(&marked("new", lines)), Ok(()));
        sleep(5).await;
        server.answer(first, b"1").await;
        for stream in [3, 5, 7] {
            let asked = server.expect_request(&get_at_server(&format!("/{stream}")), b"").await;
            server.answer(asked, stream.to_string().as_bytes()).await;
        }
        for stream in [1, 3, 5, 7] {
            let answered = client.message(stream).await;
            assert!(answered.head.contains("x-mark: old\r\n"), "{}", answered.head);
            assert_eq!(answered.payload, stream.to_string().as_bytes());
        }
        assert_eq!(s1.accepted(), 1);
        world.forget_log();
    });
}

const SECURE: &str = "10.0.0.1:443";

/// Returns the certificate shown on a connection, from an answer.
async fn shown(own: &mut Secure) -> String {
    own.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    let head = own.receive_head().await;
    assert!(head.starts_with("HTTP/1.1 200 OK\r\ncontent-length: 40\r\n"), "{head}");
    String::from_utf8(own.receive(40).await).unwrap()
}

/// A certificate that was set at run time is shown until the files are read again. Established connections keep it, and
/// an uncommitted change is kept.
#[test]
fn certificates_are_read_anew_and_changes_under_way_go_on() {
    fn served(mark: &str) -> Worlds {
        let lines = format!(
            "listen l\n bind {SECURE} ssl crt a.pem\n http-response set-header x-mark {mark}\n\
             http-request return status 200 content-type text/plain lf-string %[ssl_f_sha1,hex]\n"
        );
        config(&lines).global(api::SOCKET)
    }
    fn version() -> (Version, Version) {
        (Version::Tls13, Version::Tls13)
    }
    served("old").workers(&[2]).seeds(0..1).run(|world| async move {
        let fresh = async || shown(&mut Secure::connect(SECURE, &secure_client(version()), 1_000).await.unwrap()).await;
        let payload = |file: &str| String::from_utf8(read_file(file).unwrap()).unwrap();
        let of_file = fresh().await;
        api::ask(&format!("set ssl cert a.pem <<\n{}\n", payload("other.pem"))).await;
        assert_eq!(api::ask("commit ssl cert a.pem").await, "Committing a.pem.\nSuccess!\n\n");
        let mut standing = Secure::connect(SECURE, &secure_client(version()), 1_000).await.unwrap();
        let set = shown(&mut standing).await;
        assert_ne!(set, of_file);
        api::ask(&format!("set ssl cert a.pem <<\n{}\n", payload("client.pem"))).await;
        assert_eq!(world.adopt(&served("new")), Ok(()));
        sleep(50).await;
        assert_eq!(fresh().await, of_file);
        assert_eq!(shown(&mut standing).await, set);
        assert_eq!(api::ask("commit ssl cert a.pem").await, "Committing a.pem.\nSuccess!\n\n");
        let last = fresh().await;
        assert!(last != of_file && last != set);
        assert_eq!(shown(&mut standing).await, set);
        world.forget_log();
    });
}
