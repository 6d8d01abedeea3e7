//! Fetches of the buffered bytes of a body (section 7.3.6). Must never wait for more of them.

use super::Fetch;
use super::side::{REQUEST, RESPONSE, head};
use crate::sample::{Context, Places, Type, Value};
use crate::{Arguments, Signature};
use wire::http::Framing;

const DATA: &str = "Bytes of the body received so far.";
const LENGTH: &str = "Number of bytes of the body received so far.";
const SIZE: &str = "Announced length of the body in bytes; without one, the number of bytes received so far.";

const NONE: Signature = Signature::NONE;

/// Every fetch of the family.
#[rustfmt::skip]
pub const TABLE: &[Fetch] = &[
    Fetch::new("req.body", NONE, Type::Bin, Places::REQUEST, DATA, data::<REQUEST>),
    Fetch::new("req.body_len", NONE, Type::Int, Places::REQUEST, LENGTH, length::<REQUEST>),
    Fetch::new("req.body_size", NONE, Type::Int, Places::REQUEST, SIZE, size::<REQUEST>),
    Fetch::new("res.body", NONE, Type::Bin, Places::RESPONSE, DATA, data::<RESPONSE>),
    Fetch::new("res.body_len", NONE, Type::Int, Places::RESPONSE, LENGTH, length::<RESPONSE>),
    Fetch::new("res.body_size", NONE, Type::Int, Places::RESPONSE, SIZE, size::<RESPONSE>),
];

/// The buffered body of that message.
pub(super) fn payload<'a, const SIDE: u8>(context: &Context<'a>) -> Option<&'a [u8]> {
    let (framing, data) = (head::<SIDE>(context)?.framing, context.bytes.data);
    Some(context.bytes.extract.map_or(data, |extract| extract(context.arena, framing, data)))
}

fn data<'a, const SIDE: u8>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    payload::<SIDE>(context).map(Value::Bin)
}

fn length<'a, const SIDE: u8>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    payload::<SIDE>(context).map(|data| Value::Int(data.len() as i64))
}

fn size<'a, const SIDE: u8>(context: &Context<'a>, _: &'a Arguments) -> Option<Value<'a>> {
    let size = match head::<SIDE>(context)?.framing {
        Framing::Length(length) => i64::try_from(length).unwrap_or(i64::MAX),
        _ => payload::<SIDE>(context)?.len() as i64,
    };
    Some(Value::Int(size))
}

#[cfg(test)]
mod tests {
    use crate::expression::tests::{Scene, check_rows};
    use wire::http::Framing;

    fn request(framing: Framing, bytes: &str) -> Scene {
        let mut scene = Scene { bytes: bytes.into(), ..Scene::request("POST", "/", &[]) };
        scene.request.as_mut().expect("a head").framing = framing;
        scene
    }

    #[test]
    fn bytes_that_are_here() {
        // The framing, the bytes after the head; the body, its length and its size.
        let rows: &[(Framing, &str, [&str; 3])] = &[
            (Framing::None, "", ["", "0", "0"]),
            (Framing::Length(3), "abc", ["616263", "3", "3"]),
            (Framing::Length(9), "abc", ["616263", "3", "9"]),
            (Framing::Chunked, "abc", ["616263", "3", "3"]),
            (Framing::Chunked, "1\r\na", ["310d0a61", "4", "4"]),
            (Framing::UntilClose, "abc", ["616263", "3", "3"]),
        ];
        for (framing, bytes, [body, length, size]) in rows {
            let expected = [("req.body", *body), ("req.body_len", *length), ("req.body_size", *size)];
            check_rows(&request(*framing, bytes), &expected);
        }
    }

    #[test]
    fn bodies_of_answers() {
        let mut answer = Scene { bytes: b"ab".to_vec(), ..Scene::response(200, &[]) };
        answer.response.as_mut().expect("a head").framing = Framing::Length(5);
        check_rows(&answer, &[("res.body", "6162"), ("res.body_len", "2"), ("res.body_size", "5")]);
        check_rows(&Scene::bytes(b"abc"), &[("req.body", "<none>"), ("res.body", "<none>")]);
        check_rows(&Scene::default(), &[("req.body_len", "<incomplete>")]);
    }
}
