//! Compiles `udp-lb` sections: what differs from other proxies. Must never open a socket.

use crate::program::{Bind, BindAddress, FlowSettings, QuicPassthrough};
use config::spec::ProxySpec;
use std::num::NonZeroU32;
use std::time::Duration;

/// Idle time of flows without `timeout client` and `timeout server`.
const IDLE: Duration = Duration::from_secs(60);

/// Compiles the settings of flows. `None`: the section is none of datagrams.
pub(super) fn flow_settings(written: &ProxySpec) -> Option<Box<FlowSettings>> {
    let own = written.udp.as_deref()?;
    let (client, server) = (written.timeouts.client, written.timeouts.server);
    // As for the two sides of a connection, the shorter one ends it.
    let quic = own.quic.as_ref().map(|quic| QuicPassthrough { server_id: quic.value.server_id });
    let shorter = [client, server].into_iter().flatten().min();
    Some(Box::new(FlowSettings {
        requests: own.requests.and_then(NonZeroU32::new),
        responses: own.responses,
        payload: own.payload as usize,
        idle: shorter.map_or(IDLE, Duration::from_millis),
        are_apart: own.requests.is_some() || own.responses == Some(0) || quic.is_some(),
        quic,
    }))
}

/// Makes the addresses of a section those of datagrams.
pub(super) fn receive_datagrams(binds: &mut [Bind]) {
    for bind in binds {
        if let BindAddress::Inet(address) = bind.address {
            bind.address = BindAddress::Udp(address);
        }
    }
}
