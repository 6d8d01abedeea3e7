//! Settings of the translation, which the controller's command line has.

use std::net::IpAddr;

/// Settings of the translation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// `spec.controllerName` of the GatewayClasses that are served.
    pub controller_name: String,
    pub addresses: Addresses,
}

impl Default for Settings {
    fn default() -> Self {
        Self { controller_name: "weir.dev/gateway".into(), addresses: Addresses::Pool(Vec::new()) }
    }
}

/// Where the listeners of Gateways are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Addresses {
    /// All Gateways share one address.
    Shared(IpAddr),
    /// Each Gateway gets an address of its own.
    Pool(Vec<Network>),
}

/// The addresses that share a prefix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    pub address: IpAddr,
    pub prefix: u8,
}
