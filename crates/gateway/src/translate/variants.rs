//! Backends of a route at a Gateway that sends a certificate to servers: those with TLS are its own.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::desired::{Filter, ServerTls};

use super::backends::BackendPlan;

/// The backends of a route at a Gateway.
#[derive(Debug)]
pub struct Variant {
    pub plans: Vec<Arc<BackendPlan>>,
    /// Names that differ from those of the route's backends.
    renamed: BTreeMap<String, String>,
}

impl Variant {
    /// Returns the backends with the Gateway's certificate, if it has one.
    pub fn new(plans: &[Arc<BackendPlan>], certificate: Option<&str>) -> Self {
        let Some(certificate) = certificate else { return Self { plans: plans.to_vec(), renamed: BTreeMap::new() } };
        let encrypted = |name: &str| plans.iter().any(|p| p.name == name && p.tls.is_some());
        let mirrors = |plan: &BackendPlan| {
            plan.filters.iter().any(|f| matches!(f, Filter::Mirror { backend, .. } if encrypted(backend)))
        };
        let names = plans
            .iter()
            .filter(|p| p.tls.is_some() || mirrors(p))
            .map(|p| (p.name.clone(), format!("{}:{certificate}", p.name)));
        let mut variant = Self { plans: Vec::with_capacity(plans.len()), renamed: names.collect() };
        for plan in plans {
            let own = if variant.renamed.contains_key(&plan.name) {
                Arc::new(variant.adapt(plan, certificate))
            } else {
                plan.clone()
            };
            variant.plans.push(own);
        }
        variant
    }

    fn adapt(&self, plan: &BackendPlan, certificate: &str) -> BackendPlan {
        let mut result = plan.clone();
        result.name = self.name(&plan.name).to_owned();
        result.tls = plan.tls.clone().map(|tls| ServerTls { certificate: Some(certificate.to_owned()), ..tls });
        for filter in &mut result.filters {
            if let Filter::Mirror { backend, .. } = filter {
                *backend = self.name(backend).to_owned();
            }
        }
        result
    }

    /// The name of a backend at the Gateway.
    pub fn name<'a>(&'a self, name: &'a str) -> &'a str {
        self.renamed.get(name).map_or(name, String::as_str)
    }
}
