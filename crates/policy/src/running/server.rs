//! Fetches of a server: name, state, load, weight (section 7.3.2 and 7.3.3). Must never change a server.

use crate::program::ProgramContext;
use expression::fetch::{Fetch, SampleOf, plain};
use expression::sample::{Context, Places, Type, Value};
use expression::{Argument, Arguments, Kind, Signature};
use live::{Admin, ServerStatus};

/// The fetches of this family.
pub const TABLE: &[Fetch] = &[
    number("srv_conn", "Current requests of a server.", |context, arguments| {
        Some(Value::Int(status(context, arguments)?.load.served.into()))
    }),
    number("srv_conn_free", "Free connection slots of a server; -1: no limit.", |context, arguments| {
        let load = status(context, arguments)?.load;
        let free = i64::from(load.limit.saturating_sub(load.served));
        Some(Value::Int(if load.limit == u32::MAX { -1 } else { free }))
    }),
    plain("srv_id", Type::Int, Places::SERVER, "The server's number.", |context, _| {
        Some(Value::Int(context.server()?.id.into()))
    }),
    Fetch::new(
        "srv_is_up",
        SERVER,
        Type::Bool,
        Places::RUNNING,
        "Whether a server is usable.",
        |context, arguments| {
            let status = status(context, arguments)?;
            Some(Value::Bool(status.up && status.admin != Admin::Maintenance))
        },
    ),
    number("srv_iweight", "Configured weight of a server.", |context, arguments| {
        Some(Value::Int(status(context, arguments)?.initial_weight.into()))
    }),
    plain("srv_name", Type::Str, Places::SERVER, "The server's name.", |context, _| {
        Some(Value::Str(context.server()?.name.as_bytes()))
    }),
    number("srv_queue", "Queued requests of a server.", |context, arguments| {
        Some(Value::Int(status(context, arguments)?.load.queued.into()))
    }),
    number("srv_sess_rate", "Session rate of a server: sessions in the last second.", |context, arguments| {
        let Argument::Server(backend, server) = *arguments.get(0) else { return None };
        let serial = context.proxy(backend)?.backend.as_ref()?.servers.get(server)?.serial;
        super::proxy::server_rate(context, serial)
    }),
    number("srv_uweight", "Current weight of a server, as configured or set at run time.", |context, arguments| {
        Some(Value::Int(status(context, arguments)?.weight.into()))
    }),
    number("srv_weight", "Effective weight of a server.", |context, arguments| {
        Some(Value::Int(status(context, arguments)?.effective_weight.into()))
    }),
];

const SERVER: Signature = Signature::new(1, &[Kind::Server]);

const fn number(name: &'static str, doc: &'static str, eval: SampleOf) -> Fetch {
    Fetch::new(name, SERVER, Type::Int, Places::RUNNING, doc, eval)
}

fn status(context: &Context<'_>, arguments: &Arguments) -> Option<ServerStatus> {
    let Argument::Server(backend, server) = *arguments.get(0) else { return None };
    context.live()?.proxies.get(backend)?.status(server)
}

#[cfg(test)]
mod tests {
    use crate::running::tests::{Scene, check_rows};

    #[test]
    fn an_idle_server() {
        let rows = [
            ("srv_conn(be/srv)", "0"),
            ("srv_conn_free(be/srv)", "-1"),
            ("srv_id", "1"),
            ("srv_name", "srv"),
            ("srv_is_up(be/srv)", "1"),
            ("srv_iweight(be/srv)", "1"),
            ("srv_uweight(be/srv)", "1"),
            ("srv_weight(be/srv)", "1"),
            ("srv_queue(be/srv)", "0"),
            ("srv_sess_rate(be/srv)", "0"),
            ("srv_conn(be/x)", "!fetch method 'srv_conn' : unable to find server 'be/x' at position 1"),
        ];
        check_rows(&Scene::running(), &rows);
        check_rows(&Scene::default(), &[("srv_conn(be/srv)", "<none>"), ("srv_name", "<none>")]);
    }
}
