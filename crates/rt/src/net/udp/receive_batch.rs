//! Received messages. A batch must never keep memory of its worker while it is empty.

use std::fmt;
use std::marker::PhantomData;

use super::receive_space::{Datagrams, ReceiveSpace};
use crate::current;

/// Received messages. It holds memory of the worker while it is not empty: it is to be processed and cleared before its
/// task waits.
#[derive(Default)]
pub struct ReceiveBatch {
    space: Option<Box<ReceiveSpace>>,
    /// The memory is counted by its worker: a batch stays there.
    _here: PhantomData<*const ()>,
}

impl ReceiveBatch {
    /// Creates an empty batch, which costs nothing.
    pub fn new() -> ReceiveBatch {
        ReceiveBatch::default()
    }

    pub(super) fn holding(space: Box<ReceiveSpace>) -> ReceiveBatch {
        ReceiveBatch { space: Some(space), _here: PhantomData }
    }

    pub(super) fn space_mut(&mut self) -> Option<&mut ReceiveSpace> {
        self.space.as_deref_mut()
    }

    /// Returns the number of bytes of all messages.
    pub(super) fn length(&self) -> usize {
        self.space.iter().flat_map(|space| &space.messages).map(|message| message.length).sum()
    }

    /// Returns the messages in the order of their arrival.
    pub fn iter(&self) -> impl Iterator<Item = Datagrams<'_>> {
        self.space.iter().flat_map(|space| space.iter())
    }

    /// Whether there are no messages.
    pub fn is_empty(&self) -> bool {
        self.space.as_ref().is_none_or(|space| space.messages.is_empty())
    }

    /// Removes the messages and returns their memory to the worker.
    pub fn clear(&mut self) {
        if let Some(space) = self.space.take() {
            current::try_with(|worker| worker.receive_spaces.give_back(space));
        }
    }
}

impl Drop for ReceiveBatch {
    fn drop(&mut self) {
        self.clear();
    }
}

impl fmt::Debug for ReceiveBatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.iter()).finish()
    }
}
