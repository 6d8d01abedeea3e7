//! Addresses and servers.

use super::{ProxyContext, ProxyKeyword, supported};
use crate::document::Line;
use crate::keyword::place::places::{BACK, BACK_ONLY_SECTION, DEFAULT_SERVER, FRONT_SECTION, SERVER};
use crate::keyword::{bind, server};

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(FRONT_SECTION, "bind", "<address>[,<address>...] [<option>...]", "Addresses to listen on.", bind),
    supported(SERVER, "server", "<name> <address>[:<port>] [<option>...]", "A server.", server),
    supported(
        DEFAULT_SERVER,
        "default-server",
        "[name <name>] [from <origin>] <option>...",
        "Options of the servers declared after this line.",
        default_server,
    ),
    supported(
        BACK,
        "http-send-name-header",
        "<name>",
        "Header field in which the server's name is sent to it.",
        http_send_name_header,
    ),
    supported(
        SERVER,
        "server-template",
        "<prefix> <count or range> <address>[:<port>] [<option>...]",
        "Declares several servers from one line.",
        server_template,
    ),
    supported(
        BACK_ONLY_SECTION,
        "be-unpublished",
        "",
        "Excludes the backend from the rules that select backends.",
        unpublished,
    ),
];

fn bind(context: &mut ProxyContext<'_>, line: &Line) {
    bind::read(context, line);
}

fn server(context: &mut ProxyContext<'_>, line: &Line) {
    server::read(context, line);
}

fn server_template(context: &mut ProxyContext<'_>, line: &Line) {
    server::read_template(context, line);
}

fn unpublished(context: &mut ProxyContext<'_>, _: &Line) {
    context.draft.spec.unpublished = true;
}

fn default_server(context: &mut ProxyContext<'_>, line: &Line) {
    server::read_defaults(context, line);
}

/// Names of header fields that would break the framing or the routing of every request.
const NOT_A_NAME_HEADER: &[&str] = &["host", "content-length", "transfer-encoding", "connection"];

fn http_send_name_header(context: &mut ProxyContext<'_>, line: &Line) {
    let Some(name) = line.words.get(1).filter(|word| !word.text.is_empty()) else {
        context.report.alert(line.span(1), "'http-send-name-header' requires a header string.");
        return;
    };
    if NOT_A_NAME_HEADER.iter().any(|forbidden| name.text.eq_ignore_ascii_case(forbidden)) {
        let message = format!("'{}' cannot be used as header name for 'http-send-name-header' directive.", name.text);
        context.report.alert(name.span, message);
        return;
    }
    if !name.text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)) {
        let message = format!("'http-send-name-header' : '{}' is not the name of a header.", name.text);
        context.report.alert(name.span, message);
        return;
    }
    context.draft.spec.http.send_name_header = Some(name.text.clone());
}
