//! Every way in which a client may frame and send a body. The body itself is a request that must not be processed.

/// A request in place of a body's data.
pub const SMUGGLED: &str = "GET /admin HTTP/1.1\r\nHost: smuggled\r\n\r\n";

/// The request that follows.
pub const NEXT: &str = "GET /next HTTP/1.1\r\nHost: next\r\n\r\n";

/// Whether a reader finds the end of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The request is complete, and its end is unambiguous.
    Known,
    /// The request is complete, but its client should have waited before it sent the body.
    Expected,
    /// The end is never received, or is invalid.
    Unknown,
}

/// One framing.
#[derive(Clone, Debug)]
pub struct Framing {
    pub name: &'static str,
    pub version: &'static str,
    pub fields: String,
    /// Bytes that follow the head at once.
    pub body: String,
    /// Bytes that follow later, with the number of milliseconds before each piece.
    pub later: Vec<(u64, String)>,
    pub end: End,
    pub has_body: bool,
}

impl Framing {
    /// Whether it is unknown at first if the body will be sent at all.
    pub fn is_unasked(&self) -> bool {
        self.fields.contains("Expect:") && self.body.is_empty()
    }
}

fn framing(name: &'static str, fields: &str, body: &str, later: &[&str], end: End) -> Framing {
    let later = later.iter().map(|piece| (20, (*piece).to_owned())).collect();
    let (fields, body) = (fields.to_owned(), body.to_owned());
    Framing { name, version: "1.1", fields, body, later, end, has_body: true }
}

/// All framings.
pub fn all() -> Vec<Framing> {
    let length = &format!("Content-Length: {}\r\n", SMUGGLED.len());
    let expecting = &format!("{length}Expect: 100-continue\r\n");
    let (first, second) = SMUGGLED.split_at(7);
    let chunks = &format!("{:x}\r\n{SMUGGLED}\r\n0\r\n\r\n", SMUGGLED.len());
    let two = [&*format!("7\r\n{first}"), &*format!("\r\n{:x};a=b\r\n{second}\r\n0\r\nx: y\r\n\r\n", second.len())];
    let coding = "Transfer-Encoding: chunked\r\n";
    let broken = &format!("zz\r\n{SMUGGLED}");
    let overlong = &format!("5\r\nhello{SMUGGLED}");
    // Its length covers the next request, which the client sends instead of the body.
    let lies = &format!("Content-Length: {}\r\nExpect: 100-continue\r\n", NEXT.len() + 5);
    let mut slowly = framing("chunks, a byte at a time", coding, "", &[], End::Known);
    slowly.later = chunks.bytes().map(|byte| (1, char::from(byte).to_string())).collect();
    vec![
        Framing { has_body: false, ..framing("none", "", "", &[], End::Known) },
        framing("length 0", "Content-Length: 0\r\n", "", &[], End::Known),
        framing("length, with the head", length, SMUGGLED, &[], End::Known),
        framing("length, later", length, "", &[SMUGGLED], End::Known),
        framing("length, in two pieces", length, first, &[second], End::Known),
        framing("length, not all of it", length, first, &[], End::Unknown),
        framing("chunks, with the head", coding, chunks, &[], End::Known),
        framing("chunks, later", coding, "", &[chunks], End::Known),
        framing("chunks, in pieces", coding, two[0], &[two[1]], End::Known),
        slowly,
        framing("chunks, not all of them", coding, two[0], &[], End::Unknown),
        framing("broken chunks, with the head", coding, broken, &[], End::Unknown),
        framing("broken chunks, later", coding, "", &[broken], End::Unknown),
        framing("a chunk that goes on, with the head", coding, overlong, &[], End::Unknown),
        framing("a chunk that goes on, later", coding, "5\r\n", &[&overlong[3..]], End::Unknown),
        framing("expecting, length later", expecting, "", &[SMUGGLED], End::Expected),
        framing("expecting, length with the head", expecting, SMUGGLED, &[], End::Known),
        framing("expecting, length in pieces", expecting, first, &[second], End::Known),
        framing("expecting, chunks later", &format!("{coding}Expect: 100-continue\r\n"), "", &[chunks], End::Expected),
        framing("expecting, nothing comes", expecting, "", &[], End::Unknown),
        framing("expecting, the next request comes", lies, "", &[NEXT], End::Unknown),
        Framing {
            version: "1.0",
            ..framing("1.0, length later", &format!("{length}Connection: keep-alive\r\n"), "", &[SMUGGLED], End::Known)
        },
        Framing {
            version: "1.0",
            ..framing("1.0, chunks later", &format!("{coding}Connection: keep-alive\r\n"), "", &[chunks], End::Expected)
        },
    ]
}
