//! Gateways of the controller's classes with their ListenerSets: addresses, listeners and conditions, apart from what depends on routes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gateway_api::apis::experimental::gateways::GatewayTls;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use crate::snapshot::{Gateway, ListenerSet, ObjectKey, Snapshot};

use super::addresses::{Assignment, assign};
use super::certificates;
use super::conditions::{Named, Verdict};
use super::conflicts::Claims;
use super::listeners::{ClientValidation, Clients, Contents, Listener, Owner, OwnerKind};
use super::model::{self, AllowedNamespaces, GROUP, ListenerSpec, ObjectRef};
use super::names;
use super::references::Referrer;
use super::settings::Settings;

/// All Gateways of the controller.
#[derive(Clone, Debug, Default)]
pub struct GatewayTable {
    pub gateways: BTreeMap<ObjectKey, GatewayPlan>,
    pub sets: BTreeMap<ObjectKey, SetPlan>,
    pub contents: Contents,
    /// Addresses are kept from one translation to the next.
    pub assignments: BTreeMap<ObjectKey, Assignment>,
}

/// A Gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct GatewayPlan {
    pub listeners: Vec<Listener>,
    /// Listeners of ListenerSets.
    pub set_listeners: Vec<Listener>,
    pub assignment: Assignment,
    pub attached_sets: i32,
    /// The name of the certificate that is sent to servers, if the Gateway has one.
    pub client_certificate: Option<String>,
    /// Whether the reference to that certificate can be followed.
    pub resolved: Option<Verdict>,
    /// Whether connections without valid certificates of clients are accepted although a Gateway verifies them.
    pub is_insecure: bool,
    /// Whether it refers to parameters, which are not supported.
    has_parameters: bool,
}

/// A ListenerSet; its listeners are with its Gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct SetPlan {
    pub gateway: ObjectKey,
    pub accepted: Verdict,
    pub programmed: Verdict,
    pub listeners: Vec<Listener>,
}

impl GatewayTable {
    /// Returns all listeners of an object.
    pub fn listeners(&self, kind: OwnerKind, key: &ObjectKey) -> Option<&[Listener]> {
        match kind {
            OwnerKind::Gateway => self.gateways.get(key).map(|g| g.listeners.as_slice()),
            OwnerKind::ListenerSet => self.sets.get(key).filter(|s| s.accepted.holds).map(|s| s.listeners.as_slice()),
        }
    }

    /// Returns the listeners that serve, with those of ListenerSets.
    pub fn serving(&self) -> impl Iterator<Item = &Listener> {
        self.gateways.values().flat_map(|g| g.listeners.iter().chain(&g.set_listeners)).filter(|l| l.is_programmed())
    }

    /// Builds the table. `former` is the table of the translation before.
    pub fn build(snapshot: &Snapshot, settings: &Settings, former: &Self) -> Self {
        let classes: BTreeSet<&str> = accepted_classes(snapshot, settings).collect();
        let mut gateways: Vec<(&ObjectKey, &Arc<Gateway>)> = snapshot
            .gateways
            .iter()
            .filter(|(key, g)| classes.contains(&*g.spec.gateway_class_name) && names::is_valid(key))
            .collect();
        gateways.sort_by_key(|&(key, g)| (age(&g.metadata), key));
        let assignments = assign(&gateways, &settings.addresses, &former.assignments);
        let mut table = Self { assignments, ..Self::default() };
        table.contents.checked = former.contents.checked.clone();
        table.contents.checked.retain(snapshot);
        let mut claims = Claims::default();
        for (key, gateway) in gateways {
            table.add_gateway(snapshot, key, gateway, &mut claims);
        }
        table
    }

    fn add_gateway(&mut self, snapshot: &Snapshot, key: &ObjectKey, gateway: &Gateway, claims: &mut Claims) {
        let assignment = self.assignments.get(key).cloned().unwrap_or(Assignment::NotAssigned);
        let has_parameters = gateway.spec.infrastructure.as_ref().is_some_and(|i| i.parameters_ref.is_some());
        let addresses = if has_parameters { Vec::new() } else { assignment.addresses().to_vec() };
        let owner = Owner { kind: OwnerKind::Gateway, key: key.clone() };
        let listeners =
            gateway.spec.listeners.iter().map(|l| Listener::new(owner.clone(), key.clone(), model::read(l))).collect();
        let mut validations = Validations { snapshot, key, tls: gateway.spec.tls.as_ref(), is_insecure: false };
        let mut plan = GatewayPlan {
            listeners,
            set_listeners: Vec::new(),
            assignment,
            attached_sets: 0,
            client_certificate: None,
            resolved: None,
            is_insecure: false,
            has_parameters,
        };
        plan.resolve_client_certificate(snapshot, key, gateway, &mut self.contents);
        self.complete(&mut plan.listeners, &mut validations, claims, &addresses);
        let allowed: AllowedNamespaces =
            gateway.spec.allowed_listeners.as_ref().map(|a| model::read(&a.namespaces)).unwrap_or_default();
        for (set_key, set) in sets_of(snapshot, key) {
            let owner = Owner { kind: OwnerKind::ListenerSet, key: set_key.clone() };
            let mut listeners: Vec<Listener> =
                set.spec.listeners.iter().map(|l| Listener::new(owner.clone(), key.clone(), read_entry(l))).collect();
            let is_allowed = allows_sets(snapshot, &allowed, key, &set_key.namespace);
            if is_allowed {
                self.complete(&mut listeners, &mut validations, claims, &addresses);
            }
            let refusal = match plan.refusal() {
                _ if !is_allowed => {
                    Some(Verdict::no("NotAllowed", "the Gateway does not allow ListenerSets of this namespace"))
                }
                refusal => refusal.map(|verdict| Verdict::no("ParentNotAccepted", verdict.message)),
            };
            let set_plan = SetPlan::new(key.clone(), listeners, refusal);
            if set_plan.accepted.holds {
                plan.attached_sets = plan.attached_sets.saturating_add(1);
                plan.set_listeners.extend(set_plan.listeners.iter().cloned());
            }
            self.sets.insert(set_key.clone(), set_plan);
        }
        plan.is_insecure = validations.is_insecure;
        self.gateways.insert(key.clone(), plan);
    }

    fn complete(
        &mut self,
        listeners: &mut [Listener],
        validations: &mut Validations<'_>,
        claims: &mut Claims,
        addresses: &[std::net::IpAddr],
    ) {
        claims.admit(listeners, addresses);
        for listener in listeners {
            listener.resolve_certificates(validations.snapshot, &mut self.contents);
            if let Some(validation) = listener
                .port()
                .and_then(|port| validations.of_port(port, listener.terminates_tls(), &mut self.contents))
            {
                listener.validate_clients(&validation);
            }
            listener.bind(addresses);
        }
    }
}

/// Names of the classes that are the controller's, and whose parameters it can follow.
fn accepted_classes<'a>(snapshot: &'a Snapshot, settings: &Settings) -> impl Iterator<Item = &'a str> {
    let controller = settings.controller_name.clone();
    let classes = snapshot.gateway_classes.iter();
    classes
        .filter(move |(_, class)| class.spec.controller_name == controller && class.spec.parameters_ref.is_none())
        .map(|(key, _)| &*key.name)
}

/// Objects in the order of their age; those without a time come last.
pub fn age(metadata: &ObjectMeta) -> (bool, Option<k8s_openapi::apimachinery::pkg::apis::meta::v1::Time>) {
    (metadata.creation_timestamp.is_none(), metadata.creation_timestamp.clone())
}

fn sets_of<'a>(snapshot: &'a Snapshot, gateway: &ObjectKey) -> Vec<(&'a ObjectKey, &'a Arc<ListenerSet>)> {
    let mut sets: Vec<_> = snapshot
        .listener_sets
        .iter()
        .filter(|(key, set)| {
            let parent = &set.spec.parent_ref;
            parent.group.as_deref().unwrap_or(GROUP) == GROUP
                && parent.kind.as_deref().unwrap_or("Gateway") == "Gateway"
                && parent.name == gateway.name
                && parent.namespace.as_deref().unwrap_or(&key.namespace) == gateway.namespace
                && names::is_valid(key)
        })
        .collect();
    sets.sort_by_key(|&(key, set)| (age(&set.metadata), key));
    sets
}

fn read_entry(entry: &impl serde::Serialize) -> ListenerSpec {
    model::read(entry)
}

fn allows_sets(snapshot: &Snapshot, allowed: &AllowedNamespaces, gateway: &ObjectKey, namespace: &str) -> bool {
    match allowed.from.as_deref() {
        None => false,
        Some(_) => allows(snapshot, allowed, &gateway.namespace, namespace),
    }
}

/// Whether objects of a namespace are allowed by an object of the namespace `own`.
pub fn allows(snapshot: &Snapshot, allowed: &AllowedNamespaces, own: &str, namespace: &str) -> bool {
    match allowed.from.as_deref().unwrap_or("Same") {
        "All" => true,
        "Same" => own == namespace,
        "Selector" => {
            let Some(selector) = &allowed.selector else { return false };
            let found = snapshot.namespaces.get(&ObjectKey::new("", namespace));
            found.is_some_and(|n| selector.matches(n.metadata.labels.as_ref().unwrap_or(&BTreeMap::new())))
        }
        _ => false,
    }
}

/// How a Gateway's ports verify certificates of clients.
struct Validations<'a> {
    snapshot: &'a Snapshot,
    key: &'a ObjectKey,
    tls: Option<&'a GatewayTls>,
    is_insecure: bool,
}

#[derive(Debug, Default, serde::Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Validation {
    ca_certificate_refs: Vec<ObjectRef>,
    mode: Option<String>,
}

impl Validations<'_> {
    fn of_port(&mut self, port: u16, is_used: bool, contents: &mut Contents) -> Option<ClientValidation> {
        let frontend = self.tls?.frontend.as_ref().filter(|_| is_used)?;
        let own = frontend.per_port.iter().flatten().find(|p| p.port == i32::from(port));
        let validation: Validation = match own {
            Some(own) => model::read(own.tls.validation.as_ref()?),
            None => model::read(frontend.default.validation.as_ref()?),
        };
        let optional = validation.mode.as_deref() == Some("AllowInsecureFallback");
        self.is_insecure |= optional;
        let name = match own {
            Some(_) => format!("{}:{port}", names::object("ca", self.key)),
            None => names::object("ca", self.key),
        };
        let from = Referrer { kind: "Gateway", namespace: &self.key.namespace };
        let mut bundle = String::new();
        for reference in &validation.ca_certificate_refs {
            match certificates::authorities(self.snapshot, from, reference) {
                Ok(text) => bundle.push_str(&text),
                Err(error) => return Some(Err(error)),
            }
        }
        contents.authorities.insert(name.clone(), Arc::from(bundle));
        Some(Ok(Clients { authorities: name, optional }))
    }
}

impl GatewayPlan {
    fn resolve_client_certificate(
        &mut self,
        snapshot: &Snapshot,
        key: &ObjectKey,
        gateway: &Gateway,
        contents: &mut Contents,
    ) {
        let reference = gateway
            .spec
            .tls
            .as_ref()
            .and_then(|tls| tls.backend.as_ref())
            .and_then(|b| b.client_certificate_ref.as_ref());
        let Some(reference) = reference else { return };
        let from = Referrer { kind: "Gateway", namespace: &key.namespace };
        match certificates::certificate(snapshot, &mut contents.checked, from, &model::read::<ObjectRef>(reference)) {
            Ok(certificate) => {
                let name = names::object("crt", &certificate.key);
                contents.certificates.insert(name.clone(), certificate.pem);
                self.client_certificate = Some(name);
                self.resolved = Some(Verdict::yes("ResolvedRefs"));
            }
            Err(error) => {
                let is_forbidden = matches!(error, certificates::RefError::NotPermitted(_));
                let reason = if is_forbidden { "RefNotPermitted" } else { "InvalidClientCertificateRef" };
                self.resolved = Some(Verdict::no(reason, error.message()));
            }
        }
    }

    /// The conditions of the Gateway's status.
    pub fn verdicts(&self) -> Vec<Named> {
        let accepted = self.accepted();
        let mut result =
            vec![Named::new("Accepted", accepted.clone()), Named::new("Programmed", self.programmed(&accepted))];
        result.extend(self.resolved.clone().map(|verdict| Named::new("ResolvedRefs", verdict)));
        if self.is_insecure {
            let verdict = Verdict::yes_with(
                "ConfigurationChanged",
                "connections without a valid certificate of the client are accepted",
            );
            result.push(Named::new("InsecureFrontendValidationMode", verdict));
        }
        result
    }

    /// Why the Gateway is refused, whatever its listeners are.
    fn refusal(&self) -> Option<Verdict> {
        if let Assignment::UnsupportedType(message) = &self.assignment {
            return Some(Verdict::no("UnsupportedAddress", &**message));
        }
        self.has_parameters
            .then(|| Verdict::no("InvalidParameters", "parameters of the infrastructure are not supported"))
    }

    fn accepted(&self) -> Verdict {
        if let Some(verdict) = self.refusal() {
            return verdict;
        }
        let refused: Vec<&str> = self.listeners.iter().filter(|l| !l.accepted.holds).map(|l| &*l.spec.name).collect();
        let message = format!("listeners that are not accepted: {}", refused.join(", "));
        if refused.is_empty() {
            Verdict::yes("Accepted")
        } else if refused.len() < self.listeners.len() || self.attached_sets > 0 {
            Verdict::yes_with("ListenersNotValid", message)
        } else {
            Verdict::no("ListenersNotValid", message)
        }
    }

    fn programmed(&self, accepted: &Verdict) -> Verdict {
        let serves = self.listeners.iter().chain(&self.set_listeners).any(Listener::is_programmed);
        match &self.assignment {
            _ if !accepted.holds => Verdict::no("Invalid", &*accepted.message),
            Assignment::NotUsable { message, .. } => Verdict::no("AddressNotUsable", &**message),
            Assignment::NotAssigned => {
                Verdict::no("AddressNotAssigned", "there is no free address in the controller's networks")
            }
            _ if serves => Verdict::yes("Programmed"),
            _ => Verdict::no("Invalid", "no listener can serve"),
        }
    }
}

impl SetPlan {
    fn new(gateway: ObjectKey, listeners: Vec<Listener>, refusal: Option<Verdict>) -> Self {
        let accepted = if let Some(refusal) = refusal {
            refusal
        } else if listeners.iter().any(|l| l.accepted.holds && l.resolved.holds) {
            Verdict::yes("Accepted")
        } else {
            Verdict::no("ListenersNotValid", "no listener is accepted and has its references")
        };
        let programmed = match &accepted {
            verdict if !verdict.holds => verdict.clone(),
            _ if listeners.iter().any(Listener::is_programmed) => Verdict::yes("Programmed"),
            _ => Verdict::no("Invalid", "no listener can serve"),
        };
        Self { gateway, accepted, programmed, listeners }
    }

    /// The conditions of the ListenerSet's status.
    pub fn verdicts(&self) -> Vec<Named> {
        vec![Named::new("Accepted", self.accepted.clone()), Named::new("Programmed", self.programmed.clone())]
    }
}
