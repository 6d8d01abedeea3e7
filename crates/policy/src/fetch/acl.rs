//! ACLs as samples (section 7.3.2), and for whoever else evaluates one by its name. Must never be asked for an ACL that
//! stands below: so none asks for itself.

use super::Fetch;
use crate::condition::{Acl, Verdict};
use crate::expression::{Argument, Arguments, Checking, Kind, Signature};
use crate::sample::{Context, Places, Type, Value};
use std::sync::Arc;

/// Every fetch of the family.
pub const TABLE: &[Fetch] = &[Fetch::new(
    "acl",
    Signature::new(1, &[Kind::Str; 12]),
    Type::Bool,
    Places::EVERYWHERE,
    "Whether all of these ACLs match; a name behind an exclamation mark has to fail.",
    evaluate,
)
.checked(check)];

/// An ACL that an argument names.
#[derive(PartialEq)]
pub(crate) struct Named {
    acl: Arc<Acl>,
    negated: bool,
}

impl Named {
    /// The ACL.
    pub(crate) fn acl(&self) -> &Acl {
        &self.acl
    }

    /// Whether it holds; `None`: that cannot be told, or not yet.
    pub(crate) fn holds(&self, context: &Context<'_>) -> Option<bool> {
        match self.acl.evaluate(context) {
            Verdict::Yes => Some(!self.negated),
            Verdict::No => Some(self.negated),
            Verdict::Unknown => context.missing(),
        }
    }
}

/// Puts an ACL in the place of the nth argument.
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
    arguments.set(index, Argument::Found(Arc::new(Named { acl, negated })));
    Ok(())
}

fn check(arguments: &mut Arguments, checking: &Checking<'_>) -> Result<(), String> {
    (0..12)
        .filter(|index| *index == 0 || arguments.has(*index))
        .collect::<Vec<_>>()
        .into_iter()
        .try_for_each(|index| resolve(arguments, index, true, checking))
}

fn evaluate<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let mut all = true;
    for named in (0..12).map_while(|index| arguments.made::<Named>(index)) {
        all &= named.holds(context)?;
    }
    Some(Value::Bool(all))
}
