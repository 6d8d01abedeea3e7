//! UDP sockets that a worker keeps to connect them again. Must never hold a connected one.

use std::collections::VecDeque;

use base::{Key, Moment};

use crate::sys::descriptor::Descriptor;

/// The kept sockets of a worker, the one that was kept first at the front.
#[derive(Default)]
pub(crate) struct KeptDatagrams {
    v4: VecDeque<Kept>,
    v6: VecDeque<Kept>,
}

/// A socket that waits for its next user.
pub(super) struct Kept {
    pub(super) descriptor: Descriptor,
    /// The source under which the driver watches it.
    pub(super) source: Option<Key>,
    pub(super) since: Moment,
}

impl KeptDatagrams {
    pub(super) fn of(&mut self, v6: bool) -> &mut VecDeque<Kept> {
        if v6 { &mut self.v6 } else { &mut self.v4 }
    }
}
