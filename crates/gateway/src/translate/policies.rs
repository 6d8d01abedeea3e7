//! BackendTLSPolicies: how connections to the ports of Services are encrypted.

use std::collections::BTreeMap;
use std::sync::Arc;

use gateway_api::apis::standard::backendtlspolicies::{
    BackendTlsPolicyTargetRefs, BackendTlsPolicyValidationSubjectAltNamesType,
};

use crate::desired::ServerTls;
use crate::snapshot::{BackendTLSPolicy, ObjectKey, Snapshot};

use super::certificates::{self, RefError};
use super::conditions::{Named, Verdict, shorten};
use super::gateways::age;
use super::hostnames;
use super::model::{self, ObjectRef};
use super::names;
use super::references::Referrer;

/// The target of a policy.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct PolicyTarget {
    service: ObjectKey,
    /// The name of a port; all ports without one.
    port: Option<String>,
}

/// All policies, by what they are attached to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyTable {
    targets: BTreeMap<PolicyTarget, ObjectKey>,
    pub policies: BTreeMap<ObjectKey, PolicyPlan>,
    /// Bundles of authorities by name.
    pub authorities: BTreeMap<String, Arc<str>>,
}

/// A policy.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyPlan {
    pub accepted: Verdict,
    pub resolved: Verdict,
    /// The Services that it is attached to.
    pub services: Vec<ObjectKey>,
    tls: Option<ServerTls>,
}

/// The encryption of connections to a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Encryption {
    Plain,
    Tls(ServerTls),
    /// The policy cannot be followed, so there must not be any connection.
    Refused(String),
}

impl PolicyTable {
    pub fn build(snapshot: &Snapshot) -> Self {
        let mut policies: Vec<_> =
            snapshot.backend_tls_policies.iter().filter(|(key, _)| names::is_valid(key)).collect();
        policies.sort_by_key(|&(key, policy)| (age(&policy.metadata), key));
        let mut table = Self::default();
        for (key, policy) in policies {
            table.add(snapshot, key, policy);
        }
        table
    }

    fn add(&mut self, snapshot: &Snapshot, key: &ObjectKey, policy: &BackendTLSPolicy) {
        let mut plan = PolicyPlan {
            accepted: Verdict::yes("Accepted"),
            resolved: Verdict::yes("ResolvedRefs"),
            services: Vec::new(),
            tls: None,
        };
        plan.resolve(snapshot, key, policy, &mut self.authorities);
        let mut is_conflicted = false;
        let mut is_attached = false;
        for target in policy.spec.target_refs.iter().filter(|t| is_service(t)) {
            let service = ObjectKey::new(&*key.namespace, &*target.name);
            plan.services.push(service.clone());
            let target = PolicyTarget { service, port: target.section_name.clone() };
            match self.targets.entry(target) {
                std::collections::btree_map::Entry::Vacant(entry) => {
                    entry.insert(key.clone());
                    is_attached = true;
                }
                std::collections::btree_map::Entry::Occupied(_) => is_conflicted = true,
            }
        }
        if is_conflicted && !is_attached {
            plan.accepted = Verdict::no("Conflicted", "an older policy is attached to the Service");
        }
        self.policies.insert(key.clone(), plan);
    }

    /// Returns how connections to a Service's port are encrypted.
    pub fn encryption(&self, service: &ObjectKey, port: Option<&str>) -> Encryption {
        let of = |port: Option<&str>| {
            self.targets.get(&PolicyTarget { service: service.clone(), port: port.map(str::to_owned) })
        };
        let Some(key) = port.and_then(|port| of(Some(port))).or_else(|| of(None)) else { return Encryption::Plain };
        match self.policies.get(key).and_then(|plan| plan.tls.clone()) {
            Some(tls) => Encryption::Tls(tls),
            None => Encryption::Refused(format!("BackendTLSPolicy {key} cannot be followed")),
        }
    }
}

fn is_service(target: &BackendTlsPolicyTargetRefs) -> bool {
    target.group.is_empty() && target.kind == "Service"
}

impl PolicyPlan {
    fn resolve(
        &mut self,
        snapshot: &Snapshot,
        key: &ObjectKey,
        policy: &BackendTLSPolicy,
        authorities: &mut BTreeMap<String, Arc<str>>,
    ) {
        let validation = &policy.spec.validation;
        let hostname = validation.hostname.to_ascii_lowercase();
        if !hostnames::is_valid(&hostname) || hostname.starts_with('*') {
            self.accepted = Verdict::no("Invalid", format!("{} is not a hostname", validation.hostname));
            return;
        }
        let references = validation.ca_certificate_refs.as_deref().unwrap_or_default();
        let mut bundle = String::new();
        for reference in references {
            let from = Referrer { kind: "BackendTLSPolicy", namespace: &key.namespace };
            match certificates::authorities(snapshot, from, &model::read::<ObjectRef>(reference)) {
                Ok(text) => bundle.push_str(&text),
                Err(error) => {
                    let reason =
                        if matches!(error, RefError::Kind(_)) { "InvalidKind" } else { "InvalidCACertificateRef" };
                    self.resolved = Verdict::no(reason, error.message());
                }
            }
        }
        let is_system = validation.well_known_ca_certificates.as_deref() == Some("System");
        if references.is_empty() && !is_system {
            let other = validation.well_known_ca_certificates.as_deref().unwrap_or_default();
            self.accepted = Verdict::no("Invalid", format!("the well-known certificates {other} are not supported"));
            return;
        }
        if !references.is_empty() && bundle.is_empty() {
            self.accepted = Verdict::no("NoValidCACertificate", &*self.resolved.message);
            return;
        }
        let name = (!bundle.is_empty()).then(|| format!("{}:policy", names::object("ca", key)));
        authorities.extend(name.clone().map(|name| (name, Arc::from(bundle))));
        self.tls = Some(ServerTls {
            server_name: hostname,
            names: alternative_names(policy),
            authorities: name,
            certificate: None,
        });
    }

    /// The conditions of the policy's status, for each Gateway.
    pub fn verdicts(&self) -> Vec<Named> {
        vec![Named::new("Accepted", self.accepted.clone()), Named::new("ResolvedRefs", self.resolved.clone())]
    }
}

fn alternative_names(policy: &BackendTLSPolicy) -> Vec<String> {
    let names = policy.spec.validation.subject_alt_names.iter().flatten();
    let names = names.filter_map(|name| match name.r#type {
        BackendTlsPolicyValidationSubjectAltNamesType::Hostname => name.hostname.clone(),
        BackendTlsPolicyValidationSubjectAltNamesType::Uri => name.uri.clone(),
    });
    names.filter(|name| !name.is_empty() && shorten(name) == *name && name.is_ascii() && !name.contains(' ')).collect()
}
