//! Fetches of a gRPC call's status (Weir's own; <https://github.com/grpc/grpc/blob/master/doc/PROTOCOL-HTTP2.md>), from
//! the trailers of the response, or from the head of one without messages. Must never read a body.

use super::Fetch;
use super::side::{RESPONSE, head};
use crate::sample::{Context, Places, Type, Value};
use crate::{Arguments, Signature};

const NONE: Signature = Signature::NONE;
/// HAProxy's name of the data that these fetches need.
const ANSWER: &str = "HTTP response";

/// Every fetch of the family.
#[rustfmt::skip]
pub const TABLE: &[Fetch] = &[
    Fetch::new("grpc_message", NONE, Type::Str, Places::SERVER_LAYER5,
        "Message of the status of a gRPC call, percent-encoded. Weir's own.", message).needing(ANSWER).at_end(),
    Fetch::new("grpc_status", NONE, Type::Int, Places::SERVER_LAYER5,
        "Status of a gRPC call, from the trailers or the header of the response. Weir's own.", status).needing(ANSWER).at_end(),
];

/// Returns a field of the trailers, or else of the head.
fn field<'a>(context: &Context<'a>, name: &[u8]) -> Option<&'a [u8]> {
    let head = head::<RESPONSE>(context)?;
    head.trailers.as_ref().and_then(|trailers| trailers.first(name)).or_else(|| head.first(name))
}

fn status<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let digits = std::str::from_utf8(field(context, b"grpc-status")?).ok()?;
    digits.trim_ascii().parse::<u32>().ok().map(|status| Value::Int(status.into()))
}

fn message<'a>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    field(context, b"grpc-message").map(Value::Str)
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};
    use wire::http::Fields;

    #[test]
    fn trailers_count_before_the_head() {
        let answer = |trailers: &[(&str, &str)], head: &[(&str, &str)]| {
            let mut scene = Scene::response(200, head);
            let mut fields = Fields::new();
            trailers.iter().for_each(|(name, value)| fields.append(name.as_bytes(), value.as_bytes()));
            if let Some(head) = &mut scene.response {
                head.trailers = (!fields.is_empty()).then(|| Box::new(fields));
            }
            scene
        };
        let alone = [("grpc-status", "12"), ("grpc-message", "no%20such")];
        let rows = [("grpc_status", "5"), ("grpc_message", "no%20such"), ("grpc_message,url_dec", "no such")];
        check_rows(&answer(&[("grpc-status", "5")], &alone), &rows);
        check_rows(&answer(&[], &alone), &[("grpc_status", "12"), ("grpc_status,add(1)", "13")]);
        let none = [("grpc_status", "<none>"), ("grpc_message", "<none>")];
        check_rows(&answer(&[("a", "b")], &[("grpc-status", "x")]), &none);
        check_rows(&Scene::request("GET", "/", &[]), &none);
    }
}
