//! Converters of the names of proxies and servers: their existence and state. Must never change a state.

use crate::program::ProgramContext;
use expression::Signature;
use expression::convert::Converter;
use expression::sample::{Context, Type, Value};
use live::{Admin, ServerStatus};

/// The converters of this family.
pub const TABLE: &[Converter] = &[
    Converter::new(
        "fe_exists",
        Signature::NONE,
        Type::Str,
        Type::Bool,
        "Whether a frontend of that name exists.",
        |context, value, _| {
            let name = value.bytes()?;
            let mut proxies = context.program()?.proxies.iter();
            Some(Value::Bool(proxies.any(|proxy| proxy.frontend.is_some() && proxy.name.as_bytes() == name)))
        },
    ),
    Converter::new(
        "nbsrv",
        Signature::NONE,
        Type::Str,
        Type::Int,
        "Number of usable servers of the named backend.",
        |context, value, _| {
            let backend = backend(context, value.bytes()?)?;
            let (servers, state) =
                (&context.proxy(backend)?.backend.as_ref()?.servers, context.live()?.proxies.get(backend)?);
            let usable =
                servers.iter().filter(|server| state.load(server.index).is_some_and(|(_, takes_part)| takes_part));
            Some(Value::Int(usable.count() as i64))
        },
    ),
    Converter::new(
        "srv_is_up",
        Signature::NONE,
        Type::Str,
        Type::Bool,
        "Whether the named server (`backend/server`) is up.",
        |context, value, _| {
            let (backend, server) = server(context, value.bytes()?)?;
            let status = context.live()?.proxies.get(backend)?.status(server)?;
            Some(Value::Bool(is_up(&status)))
        },
    ),
    Converter::new(
        "srv_queue",
        Signature::NONE,
        Type::Str,
        Type::Int,
        "Queued requests of the named server (`backend/server`).",
        |context, value, _| {
            let (backend, server) = server(context, value.bytes()?)?;
            let (_, queued) = context.live()?.proxies.get(backend)?.queued(Some(server));
            Some(Value::Int(i64::from(queued)))
        },
    ),
];

fn is_up(status: &ServerStatus) -> bool {
    status.up && status.admin != Admin::Maintenance
}

/// Returns the index of the backend with that name.
fn backend(context: &Context<'_>, name: &[u8]) -> Option<usize> {
    let mut proxies = context.program()?.proxies.iter();
    let found = proxies.find(|proxy| proxy.backend.is_some() && proxy.name.as_bytes() == name)?;
    Some(found.index)
}

/// Returns the indices of the backend and of the server with that name, by default in the request's backend.
fn server(context: &Context<'_>, name: &[u8]) -> Option<(usize, usize)> {
    let (backend, name) = match memchr::memchr(b'/', name) {
        Some(at) => (backend(context, &name[..at])?, &name[at + 1..]),
        None => (context.backend?, name),
    };
    let servers = &context.proxy(backend)?.backend.as_ref()?.servers;
    let server = servers.iter().find(|server| server.name.as_bytes() == name)?;
    Some((backend, server.index))
}

#[cfg(test)]
mod tests {
    use crate::running::tests::{Scene, check_rows};

    /// Without a program nothing is found; results with a program are tested end to end.
    #[test]
    fn nothing_is_found_while_nothing_runs() {
        check_rows(
            &Scene::default(),
            &[
                ("str(fe),fe_exists", "<none>"),
                ("str(be),nbsrv", "<none>"),
                ("str(be/srv),srv_is_up", "<none>"),
                ("str(srv),srv_queue", "<none>"),
            ],
        );
    }
}
