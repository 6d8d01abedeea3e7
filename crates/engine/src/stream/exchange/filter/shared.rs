//! `filter bwlim-in` and `filter bwlim-out` with a key (configuration manual, section 9.7): limits the bytes per period of all
//! streams with the same key together. The bytes are counted in a stick table. Must never change a byte.

use std::sync::Arc;

use base::buffer::Buffer;
use config::spec::DataKind;
use conn::flow::{FilterOutput, forward};
use expression::sample::Direction;
use live::table::Pinned;
use policy::program::SharedBandwidth;

use crate::filter::{Filter, FilterContext};

/// Smallest piece to send without `min-size`: the payload of a TCP segment.
const SEGMENT: u64 = 1_448;

/// A stream's filter of a shared limit.
pub(super) struct SharedBandwidthFilter {
    plan: Arc<SharedBandwidth>,
    limit: u64,
    /// The stick table entry that counts; `None`: no rule has enabled the filter, or there is no key.
    entry: Option<Pinned>,
}

impl SharedBandwidthFilter {
    pub(super) fn new(plan: Arc<SharedBandwidth>) -> Self {
        Self { limit: plan.limit, plan, entry: None }
    }

    /// Sets its limit, its own for `None`, and the entry that counts. It is enabled once it has an entry.
    pub(super) fn limit(&mut self, bytes: Option<u64>, entry: Option<Pinned>) {
        self.limit = bytes.unwrap_or(self.plan.limit);
        self.entry = entry.or(self.entry.take());
    }
}

impl Filter for SharedBandwidthFilter {
    fn wants(&self, direction: Direction) -> bool {
        self.entry.is_some() && (direction == Direction::Request) == self.plan.upload
    }

    fn body(
        &mut self,
        _: &FilterContext,
        _: Direction,
        input: &mut Buffer,
        output: &mut Buffer,
        _: bool,
    ) -> FilterOutput {
        let Some(entry) = &self.entry else {
            forward(input, output, usize::MAX);
            return if input.is_empty() { FilterOutput::Through } else { FilterOutput::Again };
        };
        if input.is_empty() {
            return FilterOutput::Through;
        }
        let kind = if self.plan.upload { DataKind::BytesInRate } else { DataKind::BytesOutRate };
        let (now, waiting) = (rt::now(), input.len() as u64);
        let least = self.plan.min_size.max(SEGMENT.min(self.limit / 10)).clamp(1, self.limit.max(1)).min(waiting);
        match entry.take_bytes(kind, now, self.limit, least, waiting) {
            Err(moment) => FilterOutput::Until(moment),
            Ok(bytes) => {
                let gone = forward(input, output, usize::try_from(bytes).unwrap_or(usize::MAX)) as u64;
                if gone < bytes {
                    entry.give_back(kind, now, bytes - gone);
                }
                if input.is_empty() { FilterOutput::Through } else { FilterOutput::Again }
            }
        }
    }
}
