//! Listening in network namespaces that the test makes and removes, and on addresses that are nobody's. Skipped, with a
//! word, where that is not permitted.

use std::process::Command;
use std::sync::Arc;

use crate::rt;
use crate::support::*;
use rt::net::{Address, BindOptions, Listener, ListeningSocket, Namespace};

/// A namespace with a loopback device. Dropping it removes it.
struct Made(String);

impl Made {
    fn new(name: &str) -> Option<Made> {
        let name = format!("weir-{name}-{}", std::process::id());
        let ip = |arguments: &[&str]| Command::new("ip").args(arguments).output();
        match ip(&["netns", "add", &name]) {
            Ok(output) if output.status.success() => {}
            Ok(output) => {
                eprintln!("skipped: ip netns add: {}", String::from_utf8_lossy(&output.stderr).trim());
                return None;
            }
            Err(error) => {
                eprintln!("skipped: ip: {error}");
                return None;
            }
        }
        let made = Made(name);
        assert!(ip(&["-n", &made.0, "link", "set", "lo", "up"]).unwrap().status.success());
        Some(made)
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let _ = Command::new("ip").args(["netns", "del", &self.0]).output();
    }
}

#[test]
fn a_listener_in_a_namespace_is_reached_from_there_alone() {
    let Some(made) = Made::new("listen") else { return };
    let options = BindOptions { namespace: Some(made.0.clone()), ..BindOptions::default() };
    let socket = Arc::new(ListeningSocket::bind(&any_port(), &options).unwrap());
    let Address::Inet(address) = *socket.local_address() else { panic!("no internet address") };
    assert!(std::net::TcpStream::connect(address).is_err(), "nobody listens outside");
    let inside = Namespace::open(&made.0).unwrap();
    let client = inside.run(|| std::net::TcpStream::connect(address)).unwrap().unwrap();
    let from = Address::Inet(client.local_addr().unwrap());
    on_one_worker(move || {
        let (socket, from) = (Arc::clone(&socket), from.clone());
        async move {
            let mut listener = Listener::new(socket).unwrap();
            let (_, peer) = listener.accept().await.unwrap();
            assert_eq!(peer, from);
        }
    });
    drop(client);
}

#[test]
fn a_namespace_that_does_not_exist_is_an_error() {
    let options = BindOptions { namespace: Some("weir-nowhere".to_owned()), ..BindOptions::default() };
    let error = ListeningSocket::bind(&any_port(), &options).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::NotFound);
    assert_eq!(Namespace::open("../net").unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
}

/// In a namespace of its own, so that no address of the machine is touched.
#[test]
fn an_address_that_is_nobodys_is_bound_transparently() {
    let Some(made) = Made::new("transparent") else { return };
    let namespace = Some(made.0.clone());
    let address = Address::Inet("192.0.2.1:80".parse().unwrap());
    let plain = BindOptions { namespace: namespace.clone(), ..BindOptions::default() };
    let error = ListeningSocket::bind(&address, &plain).unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::AddrNotAvailable);
    let transparent = BindOptions { namespace, transparent: true, ..BindOptions::default() };
    assert_eq!(ListeningSocket::bind(&address, &transparent).unwrap().local_address(), &address);
}

#[test]
fn a_device_restricts_who_gets_in() {
    let Some(made) = Made::new("device") else { return };
    let ip = |arguments: &[&str]| Command::new("ip").args(["-n", &made.0]).args(arguments).status().unwrap().success();
    // Two devices, each end of a pair of its own; connections from inside go over the loopback device.
    if !ip(&["link", "add", "weir0", "type", "dummy"]) {
        eprintln!("skipped: no dummy devices");
        return;
    }
    assert!(ip(&["addr", "add", "192.0.2.1/24", "dev", "weir0"]) && ip(&["link", "set", "weir0", "up"]));
    let inside = Namespace::open(&made.0).unwrap();
    let address = Address::Inet("192.0.2.1:0".parse().unwrap());
    for (interface, reached) in [("lo", true), ("weir0", false)] {
        let options = BindOptions {
            namespace: Some(made.0.clone()),
            interface: Some(interface.to_owned()),
            ..BindOptions::default()
        };
        let socket = ListeningSocket::bind(&address, &options).unwrap();
        let to = socket.local_address().inet().unwrap();
        let connected = inside.run(|| std::net::TcpStream::connect(to)).unwrap();
        assert_eq!(connected.is_ok(), reached, "{interface}");
    }
}
