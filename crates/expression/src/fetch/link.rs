//! Fetches of the connection to the server, and of a stream's position on both connections (sections 7.3.3 and 7.3.4).
//! Must never touch a connection.

use super::transport::speaks_http;
use super::{Fetch, plain};
use crate::sample::{Context, LinkFacts, Places, Type, Value};

const SERVER: Places = Places::SERVER_LAYER5;
const CLIENT: Places = Places::of(".YYYYYYYYYYYYYYYYYY...");
const INT: Type = Type::Int;

/// Every fetch of the family.
pub const TABLE: &[Fetch] = &[
    plain("bc_err", INT, SERVER, "Error code of the connection to the server; 0: no error.", |c, _| {
        Some(Value::Int(link(c)?.error.number().into()))
    }),
    plain(
        "bc_err_name",
        Type::Str,
        SERVER,
        "Name of the error of the connection to the server; empty: no error.",
        |c, _| Some(Value::Str(link(c)?.error.name().as_bytes())),
    ),
    plain("bc_err_str", Type::Str, SERVER, "Description of the error of the connection to the server.", |c, _| {
        Some(Value::Str(link(c)?.error.message().as_bytes()))
    }),
    plain("bc_glitches", INT, SERVER, "Glitches counted on the connection to the server.", |c, _| {
        let glitches = link(c)?.protocol.glitches;
        speaks_http(c).then(|| Value::Int(glitches.into()))
    }),
    plain("bc_nb_streams", INT, SERVER, "Number of streams on the connection to the server.", |c, _| {
        Some(Value::Int(link(c)?.protocol.streams.into()))
    }),
    plain("bc_reused", Type::Bool, SERVER, "Whether the connection to the server was reused.", |c, _| {
        Some(Value::Bool(c.probes.stream()?.link.is_some_and(|link| link.answers > 0)))
    }),
    plain(
        "bc_settings_streams_limit",
        INT,
        SERVER,
        "Maximum number of concurrent streams on the connection to the server.",
        |c, _| Some(Value::Int(link(c)?.protocol.limit.into())),
    ),
    plain("bs.aborted", INT, SERVER, "Always 0: stream resets of servers are not recorded.", |c, _| {
        c.probes.stream().map(|_| Value::Int(0))
    })
    .needing("server-side connection"),
    plain("bs.id", INT, SERVER, "Number of the request on the connection to the server, from 0.", |c, _| {
        Some(Value::Int(link(c)?.answers.into()))
    })
    .needing("server-side connection"),
    plain("bs.rst_code", INT, SERVER, "No sample: reset codes of servers are not recorded.", |_, _| None)
        .needing("server-side connection"),
    plain("fs.aborted", INT, CLIENT, "Always 0: stream resets of clients are not recorded.", |c, _| {
        c.probes.stream().map(|_| Value::Int(0))
    }),
    plain(
        "fs.id",
        INT,
        CLIENT,
        "Identifier of the stream on the client's connection; with HTTP/1, number of the request, from 0.",
        |c, _| Some(Value::Int(c.probes.stream()?.client_streams.into())),
    ),
    plain("fs.rst_code", INT, CLIENT, "No sample: reset codes of clients are not recorded.", |_, _| None),
];

fn link(context: &Context<'_>) -> Option<LinkFacts> {
    context.probes.stream()?.link
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};

    #[test]
    fn a_connection_that_was_used_before() {
        let rows = [
            ("bc_err", "0"),
            ("bc_err_name", ""),
            ("bc_err_str", "Success"),
            ("bc_glitches", "0"),
            ("bc_nb_streams", "1"),
            ("bc_reused", "1"),
            ("bc_settings_streams_limit", "1"),
            ("bs.aborted", "0"),
            ("bs.id", "1"),
            ("bs.rst_code", "<none>"),
            ("fs.aborted", "0"),
            ("fs.id", "3"),
            ("fs.rst_code", "<none>"),
        ];
        check_rows(&Scene::response(200, &[]), &rows);
    }
}
