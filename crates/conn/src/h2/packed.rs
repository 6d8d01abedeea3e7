//! The state of a connection without streams on its way to another worker. Must never contain a stream.

use super::counts::Counts;
use super::output::Output;
use super::queue::Queue;
use super::rare_list::RareList;
use super::state::{Closing, Life, PeerSettings, State};
use super::traffic::TrafficSlot;
use super::{Role, Terms};
use crate::conduct::Conduct;

/// The state of a connection that may be sent to another thread.
pub(super) struct PackedState {
    role: Role,
    terms: Terms,
    newest: u32,
    begun: u32,
    peer: PeerSettings,
    unread_settings: bool,
    closing: Closing,
    life: Life,
    counts: Counts,
    conduct: Conduct,
    reset: RareList<u32>,
    output: Output,
    queue: Queue,
    window: i64,
    owed: u32,
    shareable: u32,
}

impl PackedState {
    pub(super) fn of(state: State) -> Self {
        let State { role, terms, mut traffic, newest, begun, peer, unread_settings, closing, life, .. } = state;
        let State { conduct, reset, queue, window, owed, shareable, task: _, .. } = state;
        let (counts, output) = traffic.get_mut().map_or_else(Default::default, |traffic| {
            (std::mem::take(&mut traffic.counts), std::mem::take(&mut traffic.output))
        });
        traffic.rest();
        let life = Life { pinged: false, ..life };
        Self {
            role,
            terms: *terms,
            newest,
            begun,
            peer,
            unread_settings,
            closing,
            life,
            counts,
            conduct,
            reset,
            output,
            queue,
            window,
            owed,
            shareable,
        }
    }

    pub(super) fn unpack(self) -> State {
        let Self { role, terms, newest, begun, peer, unread_settings, closing, life, .. } = self;
        let Self { counts, conduct, reset, output, queue, window, owed, shareable, .. } = self;
        let mut traffic = TrafficSlot::default();
        if counts != Counts::default() || !output.is_empty() {
            (traffic.lend().counts, traffic.lend().output) = (counts, output);
        }
        State {
            traffic,
            newest,
            begun,
            peer,
            unread_settings,
            closing,
            life,
            conduct,
            reset,
            queue,
            window,
            owed,
            shareable,
            ..State::new(role, terms)
        }
    }
}
