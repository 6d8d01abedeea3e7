//! Statuses of GatewayClasses, Gateways, ListenerSets and policies.

use std::collections::{BTreeMap, BTreeSet};

use gateway_api::apis::experimental::gateways::{GatewayStatus, GatewayStatusAddresses};
use gateway_api::apis::standard::backendtlspolicies::BackendTlsPolicyStatus;
use gateway_api::apis::standard::gatewayclasses::{GatewayClassStatus, GatewayClassStatusSupportedFeatures};
use gateway_api::apis::standard::listenersets::ListenerSetStatus;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use serde::{Deserialize, Serialize};

use crate::snapshot::{BackendTLSPolicy, Gateway, GatewayClass, ListenerSet, ObjectKey};

use super::attach::ListenerId;
use super::conditions::{Moment, Named, Verdict, conditions};
use super::features;
use super::gateways::{GatewayPlan, SetPlan};
use super::listeners::Listener;
use super::model::{self, GROUP, ListenerStatus, ParentRef, RouteKind};
use super::policies::PolicyPlan;

/// The numbers of routes of listeners.
pub type Counts = BTreeMap<ListenerId, i32>;

/// The most entries of a list of ancestors, as the API has it.
const MOST_ANCESTORS: usize = 16;

/// Returns the status of a GatewayClass of the controller, if it differs.
pub fn class(class: &GatewayClass, now: &Time) -> Option<GatewayClassStatus> {
    let verdict = match &class.spec.parameters_ref {
        None => Verdict::yes("Accepted"),
        Some(_) => Verdict::no("InvalidParameters", "parameters are not supported"),
    };
    let current = class.status.clone().unwrap_or_default();
    let moment = Moment { generation: class.metadata.generation, now };
    let supported =
        features::SUPPORTED.iter().map(|name| GatewayClassStatusSupportedFeatures { name: (*name).to_owned() });
    let status = GatewayClassStatus {
        conditions: Some(conditions(
            &[Named::new("Accepted", verdict)],
            current.conditions.as_deref().unwrap_or_default(),
            moment,
        )),
        supported_features: Some(supported.collect()),
    };
    (status != current).then_some(status)
}

/// Returns the status of a Gateway, if it differs.
pub fn gateway(gateway: &Gateway, plan: &GatewayPlan, counts: &Counts, now: &Time) -> Option<GatewayStatus> {
    let current = gateway.status.clone().unwrap_or_default();
    let moment = Moment { generation: gateway.metadata.generation, now };
    let known: Vec<ListenerStatus> = model::read(&current.listeners);
    let address =
        |a: &std::net::IpAddr| GatewayStatusAddresses { r#type: Some("IPAddress".into()), value: a.to_string() };
    let addresses: Vec<_> = plan.assignment.addresses().iter().map(address).collect();
    let has_sets = plan.attached_sets > 0 || current.attached_listener_sets.is_some();
    let status = GatewayStatus {
        addresses: (!addresses.is_empty()).then_some(addresses),
        attached_listener_sets: has_sets.then_some(plan.attached_sets),
        conditions: Some(conditions(&plan.verdicts(), current.conditions.as_deref().unwrap_or_default(), moment)),
        listeners: Some(model::read(&listeners(&plan.listeners, &known, counts, moment))),
    };
    (status != current).then_some(status)
}

/// Returns the status of a ListenerSet, if it differs.
pub fn listener_set(set: &ListenerSet, plan: &SetPlan, counts: &Counts, now: &Time) -> Option<ListenerSetStatus> {
    let current = set.status.clone().unwrap_or_default();
    let moment = Moment { generation: set.metadata.generation, now };
    let known: Vec<ListenerStatus> = model::read(&current.listeners);
    let status = ListenerSetStatus {
        conditions: Some(conditions(&plan.verdicts(), current.conditions.as_deref().unwrap_or_default(), moment)),
        listeners: Some(model::read(&listeners(&plan.listeners, &known, counts, moment))),
    };
    (status != current).then_some(status)
}

fn listeners(
    listeners: &[Listener],
    known: &[ListenerStatus],
    counts: &Counts,
    moment: Moment<'_>,
) -> Vec<ListenerStatus> {
    let of = |listener: &Listener| {
        let current =
            known.iter().find(|l| l.name == listener.spec.name).map(|l| l.conditions.as_slice()).unwrap_or_default();
        ListenerStatus {
            attached_routes: counts.get(&listener.id()).copied().unwrap_or(0),
            conditions: conditions(&listener.verdicts(), current, moment),
            name: listener.spec.name.clone(),
            supported_kinds: listener
                .kinds
                .iter()
                .map(|kind| RouteKind { group: Some(GROUP.into()), kind: (*kind).to_owned() })
                .collect(),
        }
    };
    listeners.iter().map(of).collect()
}

/// The status of a policy; the generated type has the same form.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
struct PolicyStatus {
    ancestors: Vec<AncestorStatus>,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AncestorStatus {
    ancestor_ref: ParentRef,
    conditions: Vec<Condition>,
    controller_name: String,
}

/// Returns the status of a BackendTLSPolicy for the Gateways whose routes use its Services, if it differs.
pub fn policy(
    policy: &BackendTLSPolicy,
    plan: &PolicyPlan,
    gateways: &BTreeSet<ObjectKey>,
    controller: &str,
    now: &Time,
) -> Option<BackendTlsPolicyStatus> {
    let current: PolicyStatus = policy.status.as_ref().map(model::read).unwrap_or_default();
    let moment = Moment { generation: policy.metadata.generation, now };
    let mut ancestors: Vec<AncestorStatus> =
        current.ancestors.iter().filter(|a| a.controller_name != controller).cloned().collect();
    for key in gateways {
        let ancestor_ref = ParentRef {
            group: Some(GROUP.into()),
            kind: Some("Gateway".into()),
            name: key.name.clone(),
            namespace: Some(key.namespace.clone()),
            ..ParentRef::default()
        };
        let known =
            current.ancestors.iter().find(|a| a.controller_name == controller && a.ancestor_ref == ancestor_ref);
        let known = known.map(|a| a.conditions.as_slice()).unwrap_or_default();
        let conditions = conditions(&plan.verdicts(), known, moment);
        ancestors.push(AncestorStatus { ancestor_ref, conditions, controller_name: controller.to_owned() });
    }
    ancestors.truncate(MOST_ANCESTORS);
    let is_same = ancestors.len() == current.ancestors.len() && ancestors.iter().all(|a| current.ancestors.contains(a));
    let status = PolicyStatus { ancestors };
    (!is_same).then(|| serde_json::to_value(status).and_then(serde_json::from_value).ok()).flatten()
}
