//! ACLs as samples (section 7.3.2), also for callers that evaluate an ACL by its name. Must never resolve an ACL that
//! is defined below the line: so no ACL can refer to itself.

use super::Fetch;
use crate::condition::AclReference;
use crate::sample::{Context, Places, Type, Value};
use crate::{Arguments, Checking, Kind, Signature};

/// Every fetch of the family.
pub const TABLE: &[Fetch] = &[Fetch::new(
    "acl",
    Signature::new(1, &[Kind::Str; 12]),
    Type::Bool,
    Places::EVERYWHERE,
    "Whether all of the named ACLs match; `!` before a name inverts it.",
    evaluate,
)
.checked(check)];

fn check(arguments: &mut Arguments, checking: &Checking<'_>) -> Result<(), String> {
    (0..12)
        .filter(|index| *index == 0 || arguments.has(*index))
        .collect::<Vec<_>>()
        .into_iter()
        .try_for_each(|index| AclReference::resolve(arguments, index, true, checking))
}

fn evaluate<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let mut all = true;
    for named in (0..12).map_while(|index| arguments.made::<AclReference>(index)) {
        all &= named.holds(context)?;
    }
    Some(Value::Bool(all))
}
