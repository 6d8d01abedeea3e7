//! Fetches of a response line and of a whole transaction (section 7.3.6). Must never read a header field.

use super::Fetch;
use super::request::number_of_version;
use super::side::{RESPONSE, head};
use crate::sample::{Context, Places, Type, Value};
use crate::{Arguments, Signature};

const NONE: Signature = Signature::NONE;
/// HAProxy's name of the data that these fetches need.
const ANSWER: &str = "HTTP response";
const VERSION: &str = "Version of the response, such as 1.1.";
const HTTP: &str = "Whether the client's data is an HTTP request.";

/// Every fetch of the family.
#[rustfmt::skip]
pub const TABLE: &[Fetch] = &[
    Fetch::new("http_first_req", NONE, Type::Bool, Places::TRANSACTION, "Whether this is the first request of its connection.",
        is_first),
    Fetch::new("internal.strm.is_htx", NONE, Type::Bool, Places::RUNNING, "Whether the stream is processed as HTTP.", is_http),
    Fetch::new("req.proto_http", NONE, Type::Bool, Places::TRANSACTION, HTTP, super::payload::proto_http),
    Fetch::new("req_proto_http", NONE, Type::Bool, Places::TRANSACTION, HTTP, super::payload::proto_http),
    Fetch::new("res.comp", NONE, Type::Bool, Places::SERVER_LAYER5, "Whether Weir compresses the response.", is_compressed)
        .needing(ANSWER),
    Fetch::new("res.comp_algo", NONE, Type::Str, Places::SERVER_LAYER5, "Algorithm of the compression of the response.",
        algorithm).needing(ANSWER),
    Fetch::new("res.ver", NONE, Type::Str, Places::SERVER_LAYER5, VERSION, version).needing(ANSWER),
    Fetch::new("resp_ver", NONE, Type::Str, Places::SERVER_LAYER5, VERSION, version).needing(ANSWER),
    Fetch::new("server_status", NONE, Type::Int, Places::SERVER_LAYER5, "Status of the response as received from the server.", from_server)
        .needing(ANSWER),
    Fetch::new("status", NONE, Type::Int, Places::SERVER_LAYER5, "Status of the response.", status).needing(ANSWER),
    Fetch::new("txn.status", NONE, Type::Int, Places::SERVER_LAYER5, "Status of the response as logged.", logged)
        .needing(ANSWER),
];

fn is_first<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    context.probes.stream().map(|_| Value::Bool(context.transaction.first))
}

fn is_compressed<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    Some(Value::Bool(context.transaction.compression.is_some()))
}

fn algorithm<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    context.transaction.compression.map(|name| Value::Str(name.as_bytes()))
}

fn is_http<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    Some(Value::Bool(context.request.is_some()))
}

fn version<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    number_of_version(head::<RESPONSE>(context)?).map(Value::Str)
}

fn status<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    head::<RESPONSE>(context).map(|head| Value::Int(head.status().into()))
}

fn from_server<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    context.transaction.server_status.map(|status| Value::Int(status.into()))
}

fn logged<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    // Bytes that are not a request do not start a transaction.
    context.request?;
    match context.response {
        // The status that is being sent to the client is the one that will be logged.
        Some(head) => Some(Value::Int(head.status().into())),
        None => context.transaction.status.map(|status| Value::Int(status.into())),
    }
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};
    use crate::fetch;
    use crate::sample::{EvalPlace, Transaction};

    #[test]
    fn answers_and_transactions() {
        let transaction = Transaction {
            first: true,
            server_status: Some(404),
            status: Some(410),
            compression: Some("gzip"),
            cache: None,
        };
        let rows = [
            ("status", "410"),
            ("txn.status", "410"),
            ("server_status", "404"),
            ("res.comp", "1"),
            ("res.comp_algo", "gzip"),
            ("res.ver", "1.1"),
            ("resp_ver", "1.1"),
            ("req.ver", "1.1"),
            ("http_first_req", "1"),
            ("req.proto_http", "<none>"),
            ("internal.strm.is_htx", "1"),
        ];
        check_rows(&Scene { transaction, ..Scene::response(410, &[]) }, &rows);
        let request = Scene { transaction: Transaction::default(), ..Scene::request("GET", "/", &[]) };
        let rows = [
            ("status", "<none>"),
            ("txn.status", "<none>"),
            ("server_status", "<none>"),
            ("res.comp", "0"),
            ("res.comp_algo", "<none>"),
            ("http_first_req", "0"),
            ("req.proto_http", "1"),
            ("req_proto_http", "1"),
        ];
        check_rows(&request, &rows);
        check_rows(&Scene::default(), &[("req.proto_http", "<incomplete>"), ("internal.strm.is_htx", "0")]);
    }

    #[test]
    fn what_they_need_is_told_as_haproxy_tells_it() {
        let rows = [("status", "HTTP response"), ("res.hdr", "HTTP response headers"), ("method", "HTTP request")];
        for (name, needed) in rows {
            let refusal = fetch::ROWS.find(name).and_then(|row| row.refusal(EvalPlace::Connection));
            assert!(refusal.is_some_and(|text| text.contains(&format!("needs '{needed}'"))), "{name}");
        }
    }
}
