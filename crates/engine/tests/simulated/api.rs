//! The runtime API of the proxy under test, for tests that give it orders.

use testkit::Peer;

/// Where it listens.
const ADDRESS: &str = "10.0.0.2:9001";
/// The line of `global` that has it listen there.
pub const SOCKET: &str = "stats socket 10.0.0.2:9001 level admin";

/// What is answered to an order.
pub async fn ask(typed: &str) -> String {
    let mut peer = Peer::connect(ADDRESS).await;
    peer.send(format!("{typed}\n")).await;
    peer.half_close();
    String::from_utf8(peer.receive_rest().await).unwrap()
}

/// An order that is followed without a word.
pub async fn order(typed: &str) {
    assert_eq!(ask(typed).await, "\n", "{typed}");
}
