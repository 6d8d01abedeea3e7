//! Messages that most tests send and expect.

use std::rc::Rc;

use testkit::{Peer, Scope, Service};

/// A request as sent by a client, and as received by a server.
pub const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";
pub const GET_AT_SERVER: &str = "GET / HTTP/1.1\r\nhost: a\r\n\r\n";

/// An answer as sent by a server, and as received by a client.
pub const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
pub const OK_AT_CLIENT: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// A request for a path.
pub fn get(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// The same as received by a server.
pub fn get_at_server(path: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n")
}

/// The head of a request with a body.
pub fn post(length: usize) -> String {
    format!("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n")
}

/// The same as received by a server.
pub fn post_at_server(length: usize) -> String {
    format!("POST / HTTP/1.1\r\nhost: a\r\ncontent-length: {length}\r\n\r\n")
}

/// An answer with a body, as sent by a server.
pub fn answer(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

/// The same as received by a client.
pub fn answer_at_client(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len())
}

/// HAProxy's error page for a status, after which the client's connection is kept.
pub fn page(status: u16) -> Vec<u8> {
    with_connection(status, "")
}

/// HAProxy's error page for a status, after which the connection is closed.
pub fn closing_page(status: u16) -> Vec<u8> {
    with_connection(status, "connection: close\r\n")
}

fn with_connection(status: u16, connection: &str) -> Vec<u8> {
    let page = wire::http::error_pages::page(status).unwrap();
    let body = String::from_utf8(page.body()).unwrap();
    let (reason, length) = (page.reason, body.len());
    format!(
        "HTTP/1.1 {status} {reason}\r\ncontent-length: {length}\r\ncache-control: no-cache\r\ncontent-type: text/html\r\n\
         {connection}\r\n{body}"
    )
    .into_bytes()
}

/// The error page as sent if no request was parsed.
pub fn reader_page(status: u16) -> Vec<u8> {
    wire::http::error_pages::page(status).unwrap().message()
}

/// Serves at `address`, in the background, the answer `ok` to every request without a body.
pub fn serve_ok(scope: &Rc<Scope>, address: &str) -> Rc<std::cell::Cell<usize>> {
    Service::at(address).serve(scope, |mut peer: Peer, _| async move {
        while peer.receive_head().await.is_some() {
            if !peer.try_send(OK).await {
                return;
            }
        }
    })
}

/// Returns a client whose request has reached the server.
pub async fn asked() -> (Peer, Peer, Service) {
    let mut s1 = Service::at(crate::world::S1);
    let mut client = Peer::connect(crate::world::WEIR).await;
    client.send(GET).await;
    let mut server = s1.accept().await;
    server.expect(GET_AT_SERVER).await;
    (client, server, s1)
}

/// Returns a client that has sent the head of a request with a body of ten bytes, and three of these, to the server.
pub async fn uploading() -> (Peer, Peer, Service) {
    let mut s1 = Service::at(crate::world::S1);
    let mut client = Peer::connect(crate::world::WEIR).await;
    client.send(post(10) + "abc").await;
    let mut server = s1.accept().await;
    server.expect(post_at_server(10) + "abc").await;
    (client, server, s1)
}

/// Returns a client and a server with a tunnel between them.
pub async fn upgraded() -> (Peer, Peer, Service) {
    const SWITCH: &str = "HTTP/1.1 101 Switching\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n";
    let mut s1 = Service::at(crate::world::S1);
    let mut client = Peer::connect(crate::world::WEIR).await;
    client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n").await;
    let mut server = s1.accept().await;
    server.expect("GET / HTTP/1.1\r\nhost: a\r\nconnection: Upgrade\r\nupgrade: echo\r\n\r\n").await;
    server.send(SWITCH).await;
    client.expect(SWITCH).await;
    (client, server, s1)
}
