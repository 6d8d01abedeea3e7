//! References of routes to Services.

use crate::desired::{Filter, Protocol, ServerTls};
use crate::snapshot::{ObjectKey, Service, Snapshot};

use super::filters::{self, Unsupported};
use super::model::BackendRef;
use super::names;
use super::policies::{Encryption, PolicyTable};
use super::references::{Referrer, Target, is_permitted};

/// A port of a Service that a rule sends requests to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    pub service: ObjectKey,
    pub port: u16,
    /// The name that the port has in the Service and its EndpointSlices.
    pub port_name: String,
    /// The number that servers listen on, if an EndpointSlice has no ports.
    pub target_port: u16,
    pub weight: u32,
    /// Filters of this reference alone.
    pub filters: Vec<Filter>,
    pub protocol: Protocol,
    pub tls: Option<ServerTls>,
}

/// Why a reference cannot be followed: the reason and message of the condition ResolvedRefs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefFailure {
    pub reason: &'static str,
    pub message: String,
}

/// The result of following a reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Resolution {
    Found(Box<Member>),
    Failed(RefFailure),
    /// The reference itself is right, but its Service must not get requests.
    Refused,
    Unsupported(Unsupported),
}

/// The objects that references are resolved with, and the route that has them.
#[derive(Clone, Copy, Debug)]
pub struct Resolver<'a> {
    pub snapshot: &'a Snapshot,
    pub policies: &'a PolicyTable,
    pub kind: &'static str,
    pub namespace: &'a str,
}

impl Resolver<'_> {
    /// The Service that a reference names.
    pub fn key(&self, reference: &BackendRef) -> ObjectKey {
        ObjectKey::new(reference.namespace.as_deref().unwrap_or(self.namespace), &*reference.name)
    }

    pub fn resolve(&self, reference: &BackendRef) -> Resolution {
        let filters = match filters::of_backend(&reference.filters) {
            Ok(filters) => filters,
            Err(unsupported) => return Resolution::Unsupported(unsupported),
        };
        let member = self.find(reference).map(|member| Member { filters, ..member });
        match member {
            Err(failure) => Resolution::Failed(failure),
            Ok(member) => self.encrypt(member),
        }
    }

    fn encrypt(&self, mut member: Member) -> Resolution {
        match self.policies.encryption(&member.service, (!member.port_name.is_empty()).then_some(&*member.port_name)) {
            Encryption::Plain => {}
            Encryption::Tls(tls) => member.tls = Some(tls),
            Encryption::Refused(_) => return Resolution::Refused,
        }
        Resolution::Found(Box::new(member))
    }

    fn find(&self, reference: &BackendRef) -> Result<Member, RefFailure> {
        let failure = |reason, message| RefFailure { reason, message };
        let group = reference.group.as_deref().unwrap_or("");
        let kind = reference.kind.as_deref().unwrap_or("Service");
        if !group.is_empty() || kind != "Service" {
            return Err(failure("InvalidKind", format!("backends are Services, not {kind} of the group \"{group}\"")));
        }
        let key = self.key(reference);
        let from = Referrer { kind: self.kind, namespace: self.namespace };
        if !is_permitted(&self.snapshot.reference_grants, from, Target { kind: "Service", key: &key }) {
            return Err(failure(
                "RefNotPermitted",
                format!("no ReferenceGrant permits the reference to Service {key}"),
            ));
        }
        let missing = || failure("BackendNotFound", format!("Service {key} does not exist"));
        let service = self.snapshot.services.get(&key).filter(|_| names::is_valid(&key)).ok_or_else(missing)?;
        let weight = reference.weight.map_or(1, |w| u32::try_from(w).unwrap_or(0).min(1_000_000));
        let mut member = Member {
            service: key,
            port: 0,
            port_name: String::new(),
            target_port: 0,
            weight,
            filters: Vec::new(),
            protocol: Protocol::Http1,
            tls: None,
        };
        self.choose_port(reference, service, &mut member)?;
        Ok(member)
    }

    fn choose_port(&self, reference: &BackendRef, service: &Service, member: &mut Member) -> Result<(), RefFailure> {
        let failure = |reason, message| RefFailure { reason, message };
        let key = &member.service;
        let spec = service.spec.as_ref();
        if spec.and_then(|s| s.type_.as_deref()) == Some("ExternalName") {
            return Err(failure(
                "BackendNotFound",
                format!("Service {key} is of the type ExternalName, which is not supported"),
            ));
        }
        let ports = spec.and_then(|s| s.ports.as_deref()).unwrap_or_default();
        let number = reference.port;
        let found = ports.iter().find(|p| Some(p.port) == number).zip(number.and_then(|n| u16::try_from(n).ok()));
        let Some((port, number)) = found else {
            let number = number.map_or_else(|| "which a reference has to name".to_owned(), |n| n.to_string());
            return Err(failure("BackendNotFound", format!("Service {key} has no such port: {number}")));
        };
        if port.protocol.as_deref().is_some_and(|p| p != "TCP") {
            return Err(failure(
                "UnsupportedProtocol",
                format!("the port {number} of Service {key} is not of the protocol TCP"),
            ));
        }
        member.port = number;
        member.port_name = port.name.clone().unwrap_or_default();
        member.target_port = match &port.target_port {
            Some(k8s_openapi::apimachinery::pkg::util::intstr::IntOrString::Int(n)) => {
                u16::try_from(*n).unwrap_or(number)
            }
            _ => number,
        };
        member.protocol = self.protocol(port.app_protocol.as_deref());
        Ok(())
    }

    fn protocol(&self, app_protocol: Option<&str>) -> Protocol {
        match app_protocol {
            _ if self.kind == "GRPCRoute" => Protocol::Http2,
            Some("kubernetes.io/h2c") => Protocol::Http2,
            Some("kubernetes.io/ws" | "kubernetes.io/wss") => Protocol::WebSocket,
            _ => Protocol::Http1,
        }
    }
}
