//! State of the agents that the filters of a stream ask. Must never ask one.

/// Processing state of a stream, by agent.
#[derive(Default)]
pub(crate) struct StreamAgents(Vec<(usize, Progress)>);

/// Processing state of a stream for one agent.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Progress {
    /// An error has disabled the later events.
    pub(crate) disabled: bool,
    /// Bit mask of the processed events.
    pub(crate) done: u8,
    /// Total processing time of all events and groups, in milliseconds.
    pub(crate) total: i64,
}

impl StreamAgents {
    pub(crate) fn of(&mut self, agent: usize) -> &mut Progress {
        let place = self.0.iter().position(|(known, _)| *known == agent).unwrap_or_else(|| {
            self.0.push((agent, Progress::default()));
            self.0.len() - 1
        });
        &mut self.0[place].1
    }
}
