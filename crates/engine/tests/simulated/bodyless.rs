//! Tests of answers without a body whose server signals their end later, or sends a body nevertheless: the client gets
//! the head at once, and its next request is sent after the server has ended the previous one.

use testkit::{Peer, Service, sleep};

use crate::fcgi;
use crate::messages::*;
use crate::parts::{End, Part};
use crate::world::*;

/// The client's request, the server's answer, and the head that the client gets.
const ROWS: [(&str, &str, &str); 3] = [
    (
        "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n",
    ),
    (GET, "HTTP/1.1 204 No Content\r\n\r\n", "HTTP/1.1 204 No Content\r\n\r\n"),
    (GET, "HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n", "HTTP/1.1 304 Not Modified\r\netag: x\r\n\r\n"),
];

/// Checks that the stream with this number has ended, and that the client's next request is served over the same
/// connection.
async fn goes_on(mut origin: End, number: u32, client: &mut Peer) {
    let next = origin.expect_head(&get_at_server("/next")).await;
    assert_eq!(origin.messages[&number].end, Some(Part::End), "it was not reset");
    origin.answer(next, b"ok").await;
    client.expect(OK_AT_CLIENT).await;
}

#[test]
fn the_end_of_a_stream_holds_the_next_request_back() {
    for (request, answered, at_client) in ROWS {
        for payload in ["", "hello"] {
            listen("server p1 10.0.1.1:80 proto h2").shuffled().run(move |world| async move {
                let mut s1 = Service::at(S1);
                let mut client = Peer::connect(WEIR).await;
                client.send(format!("{request}{}", get("/next"))).await;
                let mut origin = End::accept(&mut s1).await;
                origin.settle().await;
                let number = origin.expect_head(&request.replace("Host", "host")).await;
                origin.send(Part::Head, number, answered).await;
                client.expect(at_client).await;
                origin.peer.expect_silence(100).await;
                if !payload.is_empty() {
                    // Payload is not allowed there, and is dropped.
                    origin.send(Part::Data, number, payload).await;
                    sleep(100).await;
                    assert_eq!(origin.messages.len(), 1);
                }
                origin.send(Part::End, number, "").await;
                goes_on(origin, number, &mut client).await;
                world.forget_log();
            });
        }
    }
}

/// A rule changes a HEAD request to another method: the server's body is read to its end, over every protocol.
#[test]
fn a_body_that_only_the_server_knows_of_is_read_to_its_end() {
    const HEAD: &str = "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n";
    const AT_CLIENT: &str = "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n";
    let rule = "http-request set-method GET";
    listen(&format!("{rule}\n server p1 10.0.1.1:80 proto h2")).shuffled().run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(format!("{HEAD}{}", get("/next"))).await;
        let mut origin = End::accept(&mut s1).await;
        let number = origin.expect_head(GET_AT_SERVER).await;
        origin.send(Part::Head, number, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").await;
        client.expect(AT_CLIENT).await;
        sleep(100).await;
        assert_eq!(origin.messages.len(), 1);
        origin.upload(number, b"hello").await;
        goes_on(origin, number, &mut client).await;
        world.forget_log();
    });
    let app = format!(
        "listen l\n bind {WEIR}\n use-fcgi-app a\n {rule} if {{ path / }}\n server s1 10.0.1.1:80 proto fcgi\nfcgi-app a\n docroot \
         /w\n option keep-conn\n"
    );
    config(&app).run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        // The second one is an ordinary HEAD request, which the application answers with a body nevertheless.
        client.send(format!("{HEAD}{}{}", HEAD.replace("/ ", "/b "), get("/next"))).await;
        let mut server = s1.accept().await;
        for method in ["GET", "HEAD"] {
            let asked = fcgi::request(&mut server).await;
            assert_eq!(asked.get("REQUEST_METHOD"), method);
            server.send(fcgi::record(6, b"Date: d\r\nContent-Type: t\r\nContent-Length: 5\r\n\r\nhe")).await;
            client.expect("HTTP/1.1 200 OK\r\ndate: d\r\ncontent-type: t\r\ncontent-length: 5\r\n\r\n").await;
            sleep(100).await;
            server.expect_silence(50).await;
            server.send([fcgi::record(6, b"llo"), fcgi::record(6, b""), fcgi::record(3, &[0; 8])].concat()).await;
        }
        assert_eq!(fcgi::request(&mut server).await.get("SCRIPT_NAME"), "/next");
        server.send(fcgi::answered(fcgi::PLAIN)).await;
        client.receive_until("ok").await;
        drop(server);
        world.forget_log();
    });
}
