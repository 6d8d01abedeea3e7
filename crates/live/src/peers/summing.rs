//! The sums of a section over its peers: values are requested from each peer's process, and its former one's are removed
//! once they are known. Must never count a peer's sums as values.

use super::section::Section;
use super::sums::{ASK_AGAIN, Notice};
use crate::table::Origin;
use base::moment::Moment;

impl Section {
    /// Adds changes of this instance's own values to the sums, and removes values of former processes. Call it when a
    /// table has changed; true: there is more to do.
    pub fn sum(&mut self, now: Moment) -> bool {
        let own = Origin { index: self.local() as u16, epoch: 0 };
        self.sums.advance(&self.setting.tables, own, now)
    }

    /// Returns the events to be logged since the last call.
    pub fn take_notices(&mut self) -> Vec<Notice> {
        self.sums.take_notices()
    }

    /// Processes the announcements of a peer: requests all its values, unless those of this process are known.
    pub(super) fn identified(&mut self, at: usize, process: Option<u64>, now: Moment) {
        let peer = &mut self.peers[at];
        if self.sums.is_empty() || peer.status.local {
            return;
        }
        let is_back = peer.origin.identify(process);
        if is_back && peer.origin.may_report_duplicate(now) {
            let (section, peer) = (self.setting.name.clone(), peer.status.name.clone());
            self.sums.notice(Notice::Duplicate { section, peer });
        }
        if self.peers[at].origin.must_ask(process) {
            self.ask_origin(at);
        }
    }

    fn ask_origin(&mut self, at: usize) {
        let peer = &mut self.peers[at];
        if let Some(session) = &mut peer.session {
            // A teacher was asked already.
            session.asks |= self.teacher != Some(at);
            session.learning = true;
            // Another process may have sent a part of its values before.
            (peer.origin.asked, peer.origin.ask_at, peer.origin.known) = (true, None, None);
        }
    }

    /// Requests values again that a peer did not know completely. True: a request is to be sent.
    pub(super) fn ask_origins_again(&mut self, now: Moment) -> bool {
        let mut asks = false;
        for at in 0..self.peers.len() {
            if self.peers[at].session.is_some() && self.peers[at].origin.ask_at.is_some_and(|then| now >= then) {
                self.ask_origin(at);
                asks = true;
            }
        }
        asks
    }

    /// When values are requested again.
    pub(super) fn next_origin_request(&self) -> Option<Moment> {
        let of_sessions = self.peers.iter().filter(|peer| peer.session.is_some());
        of_sessions.filter_map(|peer| peer.origin.ask_at).min()
    }

    /// Processes the end of a peer's values: those that it has not sent are values of a former process.
    pub(super) fn origin_taught(&mut self, at: usize, everything: bool, now: Moment) {
        let origin = &mut self.peers[at].origin;
        if !std::mem::take(&mut origin.asked) {
            return;
        }
        if !everything {
            origin.ask_at = Some(now + ASK_AGAIN);
            return;
        }
        origin.learned();
        let present = Origin { index: at as u16, epoch: origin.epoch };
        self.sums.remove_former(present);
    }

    /// Processes the definition of a peer's table whose values are summed. `why`: it is not summed completely.
    pub(super) fn origin_defined(&mut self, at: usize, table: usize, why: Option<String>, now: Moment) {
        let peer = &mut self.peers[at];
        if !peer.origin.note_unlike(table, why.as_ref()) || !peer.origin.may_report(now) {
            return;
        }
        let (section, peer) = (self.setting.name.clone(), peer.status.name.clone());
        let table = self.setting.tables[table].table.plan.name.clone();
        self.sums.notice(match why {
            Some(why) => Notice::Unlike { section, peer, table, why },
            None => Notice::Alike { section, peer, table },
        });
    }
}
