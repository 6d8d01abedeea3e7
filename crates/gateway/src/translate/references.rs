//! References from one namespace to another: they need a ReferenceGrant in the namespace of what they refer to.

use crate::snapshot::{ObjectKey, Objects, ReferenceGrant};

use super::model::GROUP;

/// An object that refers to another one. Its group is the Gateway API's.
#[derive(Clone, Copy, Debug)]
pub struct Referrer<'a> {
    pub kind: &'a str,
    pub namespace: &'a str,
}

/// An object that is referred to. Its group is the core group.
#[derive(Clone, Copy, Debug)]
pub struct Target<'a> {
    pub kind: &'a str,
    pub key: &'a ObjectKey,
}

/// Whether a reference is permitted: within a namespace, or by a grant.
pub fn is_permitted(grants: &Objects<ReferenceGrant>, from: Referrer<'_>, to: Target<'_>) -> bool {
    if from.namespace == to.key.namespace {
        return true;
    }
    let start = ObjectKey::new(&*to.key.namespace, "");
    grants
        .range(start..)
        .take_while(|(key, _)| key.namespace == to.key.namespace)
        .any(|(_, grant)| grants_from(grant, from) && grants_to(grant, to))
}

fn grants_from(grant: &ReferenceGrant, from: Referrer<'_>) -> bool {
    grant.spec.from.iter().any(|f| f.group == GROUP && f.kind == from.kind && f.namespace == from.namespace)
}

fn grants_to(grant: &ReferenceGrant, to: Target<'_>) -> bool {
    grant.spec.to.iter().any(|t| {
        t.group.is_empty()
            && t.kind == to.kind
            && t.name.as_ref().is_none_or(|name| name.is_empty() || *name == to.key.name)
    })
}
