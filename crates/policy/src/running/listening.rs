//! Fetches of listening sockets, of the process's connections, and of all variables (section 7.3.2 and 7.3.3). Must
//! never change a counter.

use crate::program::{Bind, ProgramContext};
use expression::fetch::{Fetch, plain};
use expression::sample::{Context, Places, Type, Value};
use expression::variable;
use expression::{Argument, Arguments, Checking, Kind, Signature};
use std::sync::Arc;

/// The fetches of this family.
pub const TABLE: &[Fetch] = &[
    plain("act_conn", Type::Int, Places::EVERYWHERE, "Current connections of the process.", act_conn),
    plain("dst_conn", Type::Int, Places::CLIENT_SESSION, "Current connections of the listening socket.", dst_conn),
    Fetch::new("dump_all_vars", DUMP, Type::Str, Places::EVERYWHERE, "All variables with their values.", dump_all)
        .checked(check_dump),
    plain("so_id", Type::Int, Places::CLIENT_SESSION, "Number (`id`) of the listening socket.", |c, _| {
        Some(Value::Int(bind(c)?.id.into()))
    }),
    plain("so_name", Type::Str, Places::CLIENT_SESSION, "Name of the listening socket.", |c, _| {
        bind(c).filter(|bind| bind.is_named).map(|bind| Value::Str(bind.name.as_bytes()))
    }),
];

const DUMP: Signature = Signature::new(0, &[Kind::Str, Kind::Str, Kind::Str]);

fn act_conn<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    Some(Value::Int(context.live()?.process.actconn().into()))
}

fn bind<'a>(context: &Context<'a>) -> Option<&'a Bind> {
    let index = context.probes.session()?.bind;
    context.frontend()?.frontend.as_ref()?.binds.get(index)
}

/// The sockets of one frontend share a counter, unless the address has a `maxconn` of its own.
fn dst_conn<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let (index, bind) = (context.frontend?, context.probes.session()?.bind);
    let counters = context.counters()?;
    let counters = || counters.workers.iter().filter_map(|worker| worker.proxies.get(index)?.binds.get(bind));
    let begun: u64 = counters().map(|counters| counters.begun.get()).sum();
    let ended: u64 = counters().map(|counters| counters.ended.get()).sum();
    Some(Value::Int(begun.saturating_sub(ended) as i64))
}

fn check_dump(arguments: &mut Arguments, _: &Checking<'_>) -> Result<(), String> {
    let scope = match arguments.utf8(0) {
        None | Some("") => None,
        Some(name) => {
            let known = variable::SCOPES.into_iter().find(|scope| scope.name() == name);
            let wrong = || format!("invalid scope '{name}', must be one of: sess, txn, req, res, proc");
            Some(known.ok_or_else(wrong)?)
        }
    };
    arguments.set(0, Argument::Made(Arc::new(scope)));
    Ok(())
}

fn dump_all<'a>(context: &Context<'a>, arguments: &'a Arguments) -> Option<Value<'a>> {
    let scope = *arguments.made::<Option<variable::Scope>>(0)?;
    let known = context.live()?.names.read().ok()?;
    let mut text = context.text(256);
    let (prefix, delimiter) = (arguments.text(1).unwrap_or_default(), arguments.text(2).unwrap_or(b", "));
    variable::dump(&context.variables, &known, scope, prefix, delimiter, &mut text);
    text.finish().map(Value::Str)
}

#[cfg(test)]
mod tests {
    use crate::running::tests::{Scene, check_rows};

    #[test]
    fn the_listening_socket() {
        check_rows(&Scene::running(), &[("so_id", "1"), ("so_name", "<none>"), ("dst_conn", "0"), ("act_conn", "0")]);
    }
}
