//! Listeners of Gateways and ListenerSets: which are accepted, what they need, and where they are.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use crate::snapshot::{ObjectKey, Snapshot};

use super::certificates::{self, Checked, RefError};
use super::conditions::{Named, Verdict};
use super::hostnames::{self, ANY};
use super::model::{GROUP, ListenerSpec, RouteKind};
use super::names;
use super::references::Referrer;

/// The protocol of a listener.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Protocol {
    Http,
    Https,
    Tls,
    Tcp,
}

impl Protocol {
    fn of(text: &str) -> Option<Self> {
        match text {
            "HTTP" => Some(Self::Http),
            "HTTPS" => Some(Self::Https),
            "TLS" => Some(Self::Tls),
            "TCP" => Some(Self::Tcp),
            _ => None,
        }
    }

    /// The kinds of routes that a listener can have.
    pub fn kinds(self) -> &'static [&'static str] {
        match self {
            Self::Http | Self::Https => &["HTTPRoute", "GRPCRoute"],
            Self::Tls => &["TLSRoute"],
            Self::Tcp => &["TCPRoute"],
        }
    }
}

/// The kind of object that a listener is a part of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum OwnerKind {
    Gateway,
    ListenerSet,
}

impl OwnerKind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Gateway => "Gateway",
            Self::ListenerSet => "ListenerSet",
        }
    }
}

/// The object that a listener is a part of.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    pub kind: OwnerKind,
    pub key: ObjectKey,
}

/// A listener, with all that its routes and its status need.
#[derive(Clone, Debug, PartialEq)]
pub struct Listener {
    pub owner: Owner,
    pub gateway: ObjectKey,
    pub spec: ListenerSpec,
    /// `*` for all hosts.
    pub hostname: String,
    /// None for a protocol that is not supported.
    pub protocol: Option<Protocol>,
    /// The kinds of routes that it accepts.
    pub kinds: Vec<&'static str>,
    /// Where it is, unless it is not accepted or its references cannot be followed.
    pub sockets: Vec<SocketAddr>,
    /// Names of certificates.
    pub certificates: Vec<String>,
    /// The bundle that clients' certificates are verified with.
    pub clients: Option<Clients>,
    pub accepted: Verdict,
    pub resolved: Verdict,
    pub conflicted: Verdict,
}

/// How a Gateway verifies certificates of clients.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Clients {
    pub authorities: String,
    pub optional: bool,
}

/// The verification of clients' certificates on a port, or why its authorities are unknown.
pub type ClientValidation = Result<Clients, RefError>;

/// Contents that listeners refer to, by the names that they have in Weir.
#[derive(Clone, Debug, Default)]
pub struct Contents {
    pub checked: Checked,
    pub certificates: BTreeMap<String, Arc<str>>,
    pub authorities: BTreeMap<String, Arc<str>>,
}

impl Listener {
    /// Returns a listener on its own; conflicts with others are found later.
    pub fn new(owner: Owner, gateway: ObjectKey, spec: ListenerSpec) -> Self {
        let protocol = Protocol::of(&spec.protocol);
        let hostname =
            spec.hostname.as_deref().filter(|h| !h.is_empty()).map_or_else(|| ANY.to_owned(), str::to_ascii_lowercase);
        let mut listener = Self {
            owner,
            gateway,
            hostname,
            protocol,
            kinds: Vec::new(),
            sockets: Vec::new(),
            certificates: Vec::new(),
            clients: None,
            accepted: Verdict::yes("Accepted"),
            resolved: Verdict::yes("ResolvedRefs"),
            conflicted: Verdict::no("NoConflicts", ""),
            spec,
        };
        listener.check_form();
        listener.choose_kinds();
        listener
    }

    fn check_form(&mut self) {
        if self.protocol.is_none() {
            let message = format!("the protocol {} is not supported", self.spec.protocol);
            self.accepted = Verdict::no("UnsupportedProtocol", message);
        } else if self.hostname != ANY && !hostnames::is_valid(&self.hostname) {
            self.accepted = Verdict::no("UnsupportedValue", format!("{} is not a hostname", self.hostname));
        } else if self.port().is_none() {
            self.accepted = Verdict::no("PortUnavailable", format!("{} is not a port", self.spec.port));
        }
    }

    pub fn port(&self) -> Option<u16> {
        u16::try_from(self.spec.port).ok().filter(|port| *port != 0)
    }

    fn choose_kinds(&mut self) {
        let supported = self.protocol.map_or(&[][..], Protocol::kinds);
        let asked = &self.spec.allowed_routes.kinds;
        if asked.is_empty() {
            self.kinds = supported.to_vec();
            return;
        }
        let is_kind =
            |kind: &RouteKind, name: &str| kind.group.as_deref().unwrap_or(GROUP) == GROUP && kind.kind == name;
        self.kinds = supported.iter().copied().filter(|name| asked.iter().any(|kind| is_kind(kind, name))).collect();
        if let Some(other) = asked.iter().find(|kind| !supported.iter().any(|name| is_kind(kind, name))) {
            self.resolved =
                Verdict::no("InvalidRouteKinds", format!("routes of the kind {} cannot be attached", other.kind));
        }
    }

    /// Whether TLS ends at the listener.
    pub fn terminates_tls(&self) -> bool {
        let is_passthrough = self.spec.tls.as_ref().and_then(|tls| tls.mode.as_deref()) == Some("Passthrough");
        match self.protocol {
            Some(Protocol::Https) => true,
            Some(Protocol::Tls) => !is_passthrough,
            _ => false,
        }
    }

    /// Follows the references to certificates.
    pub fn resolve_certificates(&mut self, snapshot: &Snapshot, contents: &mut Contents) {
        if !self.terminates_tls() || !self.accepted.holds {
            return;
        }
        let from = Referrer { kind: self.owner.kind.name(), namespace: &self.owner.key.namespace };
        let references = self.spec.tls.as_ref().map(|tls| tls.certificate_refs.as_slice()).unwrap_or_default();
        if references.is_empty() {
            self.resolved = Verdict::no("InvalidCertificateRef", "the listener has no certificate");
        }
        for reference in references {
            match certificates::certificate(snapshot, &mut contents.checked, from, reference) {
                Ok(certificate) => {
                    let name = names::object("crt", &certificate.key);
                    contents.certificates.insert(name.clone(), certificate.pem);
                    self.certificates.push(name);
                }
                Err(error) => {
                    let reason = if matches!(error, RefError::NotPermitted(_)) {
                        "RefNotPermitted"
                    } else {
                        "InvalidCertificateRef"
                    };
                    self.resolved = Verdict::no(reason, error.message());
                }
            }
        }
    }

    /// Takes over how clients' certificates are verified on the listener's port.
    pub fn validate_clients(&mut self, validation: &ClientValidation) {
        if !self.terminates_tls() || !self.accepted.holds {
            return;
        }
        match validation {
            Ok(clients) => self.clients = Some(clients.clone()),
            Err(error) => {
                let reason = match error {
                    RefError::NotPermitted(_) => "RefNotPermitted",
                    RefError::Kind(_) => "InvalidCACertificateKind",
                    RefError::Missing(_) | RefError::Malformed(_) => "InvalidCACertificateRef",
                };
                self.resolved = Verdict::no(reason, error.message());
                self.accepted = Verdict::no("NoValidCACertificate", error.message());
            }
        }
    }

    pub fn conflict(&mut self, reason: &'static str, message: impl Into<String>) {
        let message = message.into();
        self.accepted = Verdict::no(reason, message.clone());
        self.conflicted = Verdict { holds: true, reason, message };
    }

    /// Whether the listener serves requests: its routes may still be missing.
    pub fn is_programmed(&self) -> bool {
        !self.sockets.is_empty()
    }

    /// Binds the listener to its Gateway's addresses if it can serve.
    pub fn bind(&mut self, addresses: &[IpAddr]) {
        let can_serve =
            self.accepted.holds && !self.kinds.is_empty() && (!self.terminates_tls() || !self.certificates.is_empty());
        if let Some(port) = self.port().filter(|_| can_serve) {
            self.sockets = addresses.iter().map(|address| SocketAddr::new(*address, port)).collect();
        }
    }

    /// The conditions of the listener's status.
    pub fn verdicts(&self) -> Vec<Named> {
        let programmed = if self.is_programmed() {
            Verdict::yes("Programmed")
        } else if self.conflicted.holds {
            Verdict::no(self.conflicted.reason, &*self.conflicted.message)
        } else if self.accepted.holds && self.resolved.holds {
            Verdict::no("Pending", "the Gateway has no address")
        } else {
            let cause = if self.accepted.holds { &self.resolved } else { &self.accepted };
            Verdict::no("Invalid", &*cause.message)
        };
        vec![
            Named::new("Accepted", self.accepted.clone()),
            Named::new("Programmed", programmed),
            Named::new("ResolvedRefs", self.resolved.clone()),
            Named::new("Conflicted", self.conflicted.clone()),
        ]
    }
}
