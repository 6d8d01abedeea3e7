//! A SPOE engine while its proxy is compiled. Must never send a message.

use crate::program::SpoeCall;
use config::span::Span;
use config::spec::SpoeEvent;
use std::sync::Arc;

/// An engine of the current proxy.
pub(super) struct Engine {
    pub(super) name: String,
    /// Index of its filter in the proxy.
    pub(super) filter: usize,
    pub(super) span: Span,
    /// The messages of each event.
    pub(super) events: Vec<(SpoeEvent, Arc<SpoeCall>)>,
    /// The messages of each group, by the name that rules use.
    pub(super) groups: Vec<(String, Arc<SpoeCall>)>,
}
