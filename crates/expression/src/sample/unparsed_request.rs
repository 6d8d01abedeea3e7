//! An unparsed request in the bytes of a session in TCP mode: the engine does not parse it, but expressions may use
//! parts of it. Must never consume a byte.

use std::cell::{Cell, OnceCell};
use wire::h1::{HeadLimits, Parse, Scan, parse_request};
use wire::http::Head;

/// The contents of the bytes.
#[derive(Debug)]
pub enum UnparsedRequest {
    /// A complete head.
    Head(Head),
    /// An incomplete head.
    Part,
    /// Not a request.
    Nothing,
}

/// Parses the bytes on first use; for one evaluation.
#[derive(Debug, Default)]
pub struct Unread(OnceCell<UnparsedRequest>);

thread_local! {
    /// A spare head, kept so that parsing does not allocate.
    static SPARE: Cell<Option<Head>> = const { Cell::new(None) };
}

impl Unread {
    /// Returns the contents of the bytes.
    pub fn look(&self, bytes: &[u8]) -> &UnparsedRequest {
        self.0.get_or_init(|| {
            let mut head = SPARE.take().unwrap_or_default();
            match parse_request(bytes, &HeadLimits::default(), &mut Scan::default(), &mut head) {
                Ok(Parse::Complete { .. }) => UnparsedRequest::Head(head),
                unread => {
                    keep(head);
                    if unread.is_ok() { UnparsedRequest::Part } else { UnparsedRequest::Nothing }
                }
            }
        })
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        if let Some(UnparsedRequest::Head(head)) = self.0.take() {
            keep(head);
        }
    }
}

fn keep(mut head: Head) {
    head.clear();
    SPARE.set(Some(head));
}
