//! ACLs named by arguments of fetches and converters. Must never resolve an ACL that is defined below the line: so no
//! ACL can refer to itself.

use super::{Acl, Verdict};
use crate::sample::{Context, MissingInput};
use crate::{Argument, Arguments, Checking};
use std::sync::Arc;

/// An ACL that an argument names.
#[derive(PartialEq)]
pub(crate) struct AclReference {
    acl: Arc<Acl>,
    negated: bool,
}

impl AclReference {
    pub(crate) fn acl(&self) -> &Acl {
        &self.acl
    }

    /// Whether the ACL holds; `None`: unknown, or not known yet.
    pub(crate) fn holds(&self, context: &Context<'_>) -> Option<bool> {
        match self.acl.evaluate(context) {
            Verdict::Yes => Some(!self.negated),
            Verdict::No => Some(self.negated),
            Verdict::Unknown => context.missing(MissingInput::Nested),
        }
    }

    /// Replaces the nth argument, an ACL's name, with the ACL.
    pub(crate) fn resolve(
        arguments: &mut Arguments,
        index: usize,
        may_negate: bool,
        checking: &Checking<'_>,
    ) -> Result<(), String> {
        let text = arguments.utf8(index).unwrap_or_default();
        let (name, negated) = match text.strip_prefix('!').filter(|_| may_negate) {
            Some(name) => (name, true),
            None => (text, false),
        };
        let acl = checking.names.acl(name).ok_or_else(|| format!("ACL '{name}' not found"))?;
        arguments.set(index, Argument::Found(Arc::new(Self { acl, negated })));
        Ok(())
    }
}
