//! The runtime API of the proxy under test, for tests that send commands.

use testkit::Peer;

/// The address of the runtime API.
const ADDRESS: &str = "10.0.0.2:9001";
/// The line of `global` that enables it.
pub const SOCKET: &str = "stats socket 10.0.0.2:9001 level admin";

/// Sends a command and returns its output.
pub async fn ask(typed: &str) -> String {
    let mut peer = Peer::connect(ADDRESS).await;
    peer.send(format!("{typed}\n")).await;
    peer.half_close();
    String::from_utf8(peer.receive_rest().await).unwrap()
}

/// Sends a command whose output has to be empty.
pub async fn order(typed: &str) {
    assert_eq!(ask(typed).await, "\n", "{typed}");
}
