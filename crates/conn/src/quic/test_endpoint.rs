//! An endpoint for connections to a server, for tests.

use std::sync::Arc;

use quic::cid::Place;
use quic::endpoint::{Settings, Target};
use quic::{Clock, Endpoint, Secrets};

/// Creates an endpoint.
pub(super) fn endpoint() -> Endpoint {
    let settings = Settings {
        place: Place::default(),
        secrets: Secrets::random([1; 32]),
        seed: [2; 32],
        clock: Clock::new(rt::clock::origin()),
        may_discover_mtu: false,
    };
    Endpoint::new(settings, None)
}

/// Creates a target that speaks HTTP/3.
pub(super) fn target() -> Target {
    let tls = tls::client::Settings { alpn: vec![b"h3".to_vec()], ..tls::client::Settings::default() };
    Target {
        peer: "10.0.0.1:443".parse().unwrap(),
        tls: Arc::new(tls::Client::new(tls).unwrap()),
        identity: tls::asked_name(Some("a.test"), None),
        alpn: None,
    }
}

/// Runs a script on the simulated clock.
pub(super) fn simulate(script: impl Future<Output = ()> + 'static) {
    rt::sim::run(1, 1, Arc::new(|_| Box::pin(async {})), script);
}
