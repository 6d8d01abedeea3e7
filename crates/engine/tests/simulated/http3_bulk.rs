//! Tests of bulk payload towards clients of HTTP/3: it is handed over with its buffers, which come back once it is acknowledged.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::Mutex;
use std::time::Duration;

use testkit::{Service, sleep, text};

use crate::http3_client::Client;
use crate::messages::*;
use crate::parts::{End, Part};
use crate::world::*;

const QUIC: &str = "10.0.0.1:443";

/// More than the windows of a client, and no multiple of a buffer.
const LENGTH: usize = 1_234_567;

/// Returns the numbers of unused pieces and of pieces in use of worker 0.
async fn pieces(client: &mut Client) -> (usize, usize) {
    let found = Arc::new(Mutex::new((0, 0)));
    let note = Arc::clone(&found);
    rt::post(
        0,
        Box::new(move || {
            let pool = rt::pools().into_iter().find(|pool| pool.name == "piece").unwrap();
            *note.lock().unwrap() = (pool.kept, pool.used);
        }),
    );
    client.beside(sleep(10)).await;
    *found.lock().unwrap()
}

/// The client reads nothing for a while, so that pieces wait for its window.
#[test]
fn buffers_of_bulk_come_back() {
    let body = "    server s1 10.0.1.1:80";
    config(&format!("listen l\n    bind quic4@{QUIC} ssl crt a.pem\n{body}\n")).seeds(0..3).workers(&[1]).run(
        |world| async move {
            let mut s1 = Service::at(S1);
            for (number, window) in [100_000, 131_072, 1_000_000].into_iter().enumerate() {
                let mut client = Client::connect_paused(&format!("10.0.9.1:{}", 5_000 + number), QUIC, window).await;
                let id = client.request("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
                let mut server = client.beside(s1.accept()).await;
                client.beside(server.expect(get_at_server("/1"))).await;
                let payload = text(LENGTH, number as u64);
                let sent = Rc::new(payload.clone());
                let sending = async move {
                    server.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {LENGTH}\r\n\r\n")).await;
                    server.send(&sent[..]).await;
                    server
                };
                client.beside(rt::sleep(Duration::from_millis(50))).await;
                client.resume();
                client.beside(sending).await;
                let answered = client.answer(id).await;
                assert!(answered.ended && answered.payload == payload, "{} bytes", answered.payload.len());
                client.close().await;
                let (kept, used) = pieces(&mut client).await;
                assert!(kept > 0 && used == 0, "{kept} {used}");
            }
            world.forget_log();
        },
    );
}

/// Trailers that arrive while a piece waits for the client's window.
#[test]
fn trailers_follow_bulk() {
    let body = "    server s1 10.0.1.1:80 proto h2";
    config(&format!("listen l\n    bind quic4@{QUIC} ssl crt a.pem\n{body}\n")).seeds(0..3).workers(&[1]).run(
        |world| async move {
            let mut s1 = Service::at(S1);
            for (number, window) in (0..8).map(|number| (number, 60_000 + 10_000 * number)) {
                let mut client = Client::connect_paused(&format!("10.0.9.1:{}", 5_000 + number), QUIC, window).await;
                let id = client.request("GET /1 HTTP/1.1\r\nHost: a\r\n\r\n").await;
                let payload = text(400_000, 1);
                let sent = payload.clone();
                let answering = async {
                    let mut origin = End::accept(&mut s1).await;
                    let stream = origin.expect_request("GET /1 HTTP/1.1\r\nhost: a\r\n\r\n", b"").await;
                    origin.send(Part::Head, stream, "HTTP/1.1 200 OK\r\n\r\n").await;
                    origin.stream(stream, &sent).await;
                    origin.send(Part::HeadAlone, stream, "x-end: yes\r\n\r\n").await;
                    origin
                };
                client.beside(rt::sleep(Duration::from_millis(100))).await;
                client.resume();
                let _origin = client.beside(answering).await;
                let answered = client.answer(id).await;
                assert!(answered.ended && answered.payload == payload, "{} bytes", answered.payload.len());
                assert_eq!(answered.trailers, ["x-end: yes"]);
                client.close().await;
            }
            world.forget_log();
        },
    );
}
