//! Converters that store a sample in a capture slot. Must never change it.

use super::Converter;
use crate::sample::{Context, Type, Value};
use crate::{Arguments, Kind, Signature};

const SLOT: Signature = Signature::new(1, &[Kind::Int]);

/// Every converter of the family.
pub const TABLE: &[Converter] = &[
    Converter::new(
        "capture-req",
        SLOT,
        Type::Str,
        Type::Str,
        "Stores the string in the request capture slot of that index, from 0; no sample without that slot.",
        |c, value, a| capture(c, value, a, true),
    ),
    Converter::new(
        "capture-res",
        SLOT,
        Type::Str,
        Type::Str,
        "Stores the string in the response capture slot of that index, from 0; no sample without that slot.",
        |c, value, a| capture(c, value, a, false),
    ),
];

fn capture<'a>(context: &Context<'a>, value: Value<'a>, arguments: &'a Arguments, request: bool) -> Option<Value<'a>> {
    let plan = context.capture_plan()?;
    let index = usize::try_from(arguments.int(0)?).ok()?;
    let slots = if request { &plan.request } else { &plan.response };
    slots.get(index)?;
    let bytes = value.bytes()?;
    // While a log format with aliases is rendered the captures are borrowed: it prints those made before.
    if let Ok(mut captures) = context.captures?.try_borrow_mut() {
        captures.set(plan, request, index, bytes);
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn slots_that_are_not_there_give_no_sample() {
        let rows = [("str(abc),capture-req(0)", "<none>"), ("int(12),capture-res(9)", "<none>")];
        check_rows(&Scene::request("GET", "/", &[]), &rows);
    }
}
