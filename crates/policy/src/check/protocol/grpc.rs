//! The gRPC health checking protocol (<https://github.com/grpc/grpc/blob/master/doc/health-checking.md>): the call of
//! `grpc.health.v1.Health/Check` and the evaluation of its response. Must never open a connection.

use super::Judgement;
use crate::check::{CheckStep, Connect, Content, Expect, ExpectMatch, Request};
use config::spec::MuxProtocol;
use expression::log_format::LogFormat;
use live::health::CheckStatus;

/// The method that is called.
const PATH: &str = "/grpc.health.v1.Health/Check";

/// Length of a message's prefix in bytes: compression flag and length.
const PREFIX: usize = 5;

/// The `ServingStatus` SERVING.
const SERVING: u64 = 1;

/// Encodes a length-prefixed message. The configuration limits the length of names, so that lengths fit.
fn message(service: &str) -> Vec<u8> {
    let mut fields = Vec::new();
    if !service.is_empty() {
        let length = service.len();
        // Field 1, bytes; then a varint of at most two bytes.
        fields.push(0x0a);
        if length < 0x80 {
            fields.push(length as u8);
        } else {
            fields.extend_from_slice(&[(length & 0x7f) as u8 | 0x80, (length >> 7) as u8]);
        }
        fields.extend_from_slice(service.as_bytes());
    }
    let mut framed = vec![0];
    framed.extend_from_slice(&(fields.len() as u32).to_be_bytes());
    framed.extend_from_slice(&fields);
    framed
}

/// Returns the steps of a call of the health service, over HTTP/2 regardless of the server's protocol.
pub(super) fn steps(service: &str, authority: &str) -> Vec<CheckStep> {
    let fields = [("content-type", "application/grpc"), ("te", "trailers"), ("user-agent", "grpc-weir")];
    let fields = fields.iter().filter_map(|(name, value)| {
        // Constant texts always compile.
        LogFormat::compile(value).ok().map(|value| (name.as_bytes().into(), value))
    });
    vec![
        CheckStep::Connect(Connect {
            default: true,
            linger: true,
            protocol: Some(MuxProtocol::Http2),
            alpn: Some(vec![b"h2".to_vec()]),
            ..Connect::default()
        }),
        CheckStep::Request(Request {
            method: Box::from(*b"POST"),
            target: Content::Bytes(format!("http://{authority}{PATH}").into_bytes().into()),
            version: Box::from(*b"HTTP/1.1"),
            fields: fields.collect(),
            body: Some(Content::Bytes(message(service).into())),
            comment: None,
        }),
        CheckStep::Expect(Box::new(Expect::new(ExpectMatch::Grpc))),
    ]
}

/// A server's response.
#[derive(Debug, Clone, Copy)]
pub struct GrpcAnswer<'a> {
    /// The HTTP status.
    pub status: u16,
    /// `content-type`.
    pub kind: Option<&'a [u8]>,
    /// `grpc-status`, from the trailers or the head.
    pub code: Option<&'a [u8]>,
    /// `grpc-message`, from the trailers or the head.
    pub words: Option<&'a [u8]>,
    pub body: &'a [u8],
}

impl GrpcAnswer<'_> {
    /// Evaluates a complete response.
    pub fn judge(&self) -> Judgement {
        if self.status != 200 {
            let code = i64::from(self.status);
            return Judgement::wrong(code, wire::http::reason(self.status));
        }
        if !self.kind.is_some_and(|kind| kind.to_ascii_lowercase().starts_with(b"application/grpc")) {
            return Judgement::invalid("not an answer of gRPC");
        }
        let digits = self.code.and_then(|code| std::str::from_utf8(code).ok());
        let Some(code) = digits.and_then(|digits| digits.trim().parse::<u32>().ok()) else {
            return Judgement::invalid("no gRPC status");
        };
        if code != 0 {
            let words = self.words.map(|words| format!(": {}", String::from_utf8_lossy(words))).unwrap_or_default();
            return Judgement::wrong(code.into(), format!("gRPC status {}{words}", name(code)));
        }
        match serving(self.body) {
            Some(SERVING) => Judgement::passed("SERVING"),
            Some(2) => Judgement::wrong(0, "NOT_SERVING"),
            Some(3) => Judgement::wrong(0, "SERVICE_UNKNOWN"),
            Some(_) => Judgement::wrong(0, "UNKNOWN"),
            None => Judgement::Failed { status: CheckStatus::L7Response, code: 0, info: "invalid message".into() },
        }
    }
}

/// Returns the status in a message; 0 if it has none. `None` if the body is not exactly one such message.
fn serving(body: &[u8]) -> Option<u64> {
    let (prefix, message) = body.split_at_checked(PREFIX)?;
    let length = u32::from_be_bytes(*prefix.last_chunk()?);
    if prefix[0] != 0 || usize::try_from(length) != Ok(message.len()) {
        return None;
    }
    let (mut rest, mut status) = (message, 0);
    while !rest.is_empty() {
        let key = varint(&mut rest)?;
        match key & 7 {
            0 => {
                let value = varint(&mut rest)?;
                if key >> 3 == 1 {
                    status = value;
                }
            }
            1 => rest = rest.get(8..)?,
            2 => {
                let length = usize::try_from(varint(&mut rest)?).ok()?;
                rest = rest.get(length..)?;
            }
            5 => rest = rest.get(4..)?,
            _ => return None,
        }
    }
    Some(status)
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    let length = rest.iter().take(10).position(|byte| *byte < 0x80)? + 1;
    let (taken, behind) = rest.split_at(length);
    *rest = behind;
    Some(taken.iter().rev().fold(0, |number, byte| number << 7 | u64::from(byte & 0x7f)))
}

/// Returns the name of a status code (<https://github.com/grpc/grpc/blob/master/doc/statuscodes.md>).
fn name(code: u32) -> String {
    const NAMES: [&str; 17] = [
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    ];
    NAMES.get(code as usize).map_or_else(|| code.to_string(), |name| (*name).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_name_the_service() {
        assert_eq!(message(""), [0; 5]);
        assert_eq!(message("a.B"), *b"\0\0\0\0\x05\x0a\x03a.B");
        let long = message(&"x".repeat(200));
        assert_eq!(long[..8], [0, 0, 0, 0, 203, 0x0a, 0xc8, 0x01]);
    }

    #[test]
    fn answers_mean_what_the_protocol_says() {
        let well = GrpcAnswer {
            status: 200,
            kind: Some(b"application/grpc+proto"),
            code: Some(b"0"),
            words: None,
            body: b"\0\0\0\0\x02\x08\x01",
        };
        let rows = [
            (well, "passed 0 SERVING"),
            (GrpcAnswer { body: b"\0\0\0\0\x02\x08\x02", ..well }, "L7STS 0 NOT_SERVING"),
            (GrpcAnswer { body: b"\0\0\0\0\x02\x08\x03", ..well }, "L7STS 0 SERVICE_UNKNOWN"),
            (GrpcAnswer { body: b"\0\0\0\0\0", ..well }, "L7STS 0 UNKNOWN"),
            (GrpcAnswer { body: b"\0\0\0\0\x05\x12\x01a\x08\x01", ..well }, "passed 0 SERVING"),
            (GrpcAnswer { body: b"", ..well }, "L7RSP 0 invalid message"),
            (GrpcAnswer { body: b"\x01\0\0\0\x02\x08\x01", ..well }, "L7RSP 0 invalid message"),
            (GrpcAnswer { body: b"\0\0\0\0\x03\x08\x01", ..well }, "L7RSP 0 invalid message"),
            (GrpcAnswer { body: b"\0\0\0\0\x02\x0b\x01", ..well }, "L7RSP 0 invalid message"),
            (
                GrpcAnswer { code: Some(b"5"), words: Some(b"unknown"), ..well },
                "L7STS 5 gRPC status NOT_FOUND: unknown",
            ),
            (GrpcAnswer { code: Some(b"12"), ..well }, "L7STS 12 gRPC status UNIMPLEMENTED"),
            (GrpcAnswer { code: Some(b"99"), ..well }, "L7STS 99 gRPC status 99"),
            (GrpcAnswer { code: None, ..well }, "L7RSP 0 no gRPC status"),
            (GrpcAnswer { kind: Some(b"text/html"), ..well }, "L7RSP 0 not an answer of gRPC"),
            (GrpcAnswer { status: 503, ..well }, "L7STS 503 Service Unavailable"),
        ];
        for (answer, expected) in rows {
            let judged = match answer.judge() {
                Judgement::Passed { code, info } => format!("passed {code} {}", info.unwrap_or_default()),
                Judgement::Failed { status, code, info } => format!("{} {code} {info}", status.name()),
                other => format!("{other:?}"),
            };
            assert_eq!(judged, expected, "{answer:?}");
        }
    }
}
