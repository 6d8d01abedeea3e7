//! A request that lies in the bytes of a session in TCP mode: it is not parsed by the engine, but expressions may ask for parts of
//! it. Must never take a byte away.

use std::cell::{Cell, OnceCell};
use wire::h1::{HeadLimits, Parse, Scan, parse_request};
use wire::http::Head;

/// What the bytes hold.
#[derive(Debug)]
pub enum Found {
    /// A whole head.
    Head(Head),
    /// What may become one.
    Part,
    /// Something else.
    Nothing,
}

/// What is found in the same bytes on the first request; for one evaluation.
#[derive(Debug, Default)]
pub struct Unread(OnceCell<Found>);

thread_local! {
    /// The memory of a head, kept so that no look allocates.
    static SPARE: Cell<Option<Head>> = const { Cell::new(None) };
}

impl Unread {
    /// Looks into the bytes.
    pub fn look(&self, bytes: &[u8]) -> &Found {
        self.0.get_or_init(|| {
            let mut head = SPARE.take().unwrap_or_default();
            match parse_request(bytes, &HeadLimits::default(), &mut Scan::default(), &mut head) {
                Ok(Parse::Complete { .. }) => Found::Head(head),
                unread => {
                    keep(head);
                    if unread.is_ok() { Found::Part } else { Found::Nothing }
                }
            }
        })
    }
}

impl Drop for Unread {
    fn drop(&mut self) {
        if let Some(Found::Head(head)) = self.0.take() {
            keep(head);
        }
    }
}

fn keep(mut head: Head) {
    head.clear();
    SPARE.set(Some(head));
}
