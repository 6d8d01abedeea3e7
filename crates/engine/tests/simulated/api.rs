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

/// Returns a column of the row of an object in the output of `show stat`.
pub fn column(table: &str, object: &str, name: &str) -> String {
    let names = table.lines().next().unwrap().trim_start_matches("# ");
    let at = names.split(',').position(|one| one == name).unwrap();
    let row = table.lines().find(|line| line.starts_with(object)).unwrap();
    row.split(',').nth(at).unwrap().to_owned()
}
