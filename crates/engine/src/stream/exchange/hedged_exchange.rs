//! An exchange with a concurrent second attempt (`hedge-requests`): selects the attempt that continues. Must never
//! choose a server, and never change what a client receives.

use std::task::{Context, Poll};

use super::{Answer, End, Exchange};
use crate::stream::client::Client;
use crate::stream::server::hedging::{self, Rival, WinningAttempt};
use conn::exchange::{AttemptRank, attempt_rank};

/// State of both attempts.
pub struct Race {
    rival: Box<Rival>,
    /// State of the second attempt.
    second: AttemptRank,
    /// State of the first attempt, which is the exchange's own.
    first: AttemptRank,
}

impl Exchange<'_> {
    /// Returns the client, for a second attempt.
    pub fn client(&mut self) -> &mut Client {
        self.client
    }

    /// Starts the race with a second attempt.
    pub fn join(&mut self, rival: Option<Box<Rival>>) {
        let (first, second) = (AttemptRank::Awaited, AttemptRank::Awaited);
        self.race = rival.map(|rival| Box::new(Race { rival, second, first }));
    }

    /// Takes the second attempt after it has won.
    pub fn take_winner(&mut self) -> Option<WinningAttempt> {
        let race = *self.race.take()?;
        race.rival.into_won(race.first)
    }

    /// Returns when a second attempt is due, as long as no byte of an answer has been received.
    pub(super) fn overdue_at(&self) -> Option<base::moment::Moment> {
        self.terms
            .hedge_at
            .filter(|_| self.request.is_sent && !self.reply.has_begun && self.reply.progress == Answer::Awaited)
    }

    /// Polls both attempts. `None`: the exchange continues alone.
    pub(super) fn poll_race(&mut self, cx: &mut Context<'_>) -> Option<Poll<End>> {
        let mut race = self.race.take()?;
        if race.first == AttemptRank::Awaited {
            race.first = self.look(cx);
        }
        if race.first != AttemptRank::Good && race.second == AttemptRank::Awaited {
            race.second = race.rival.poll(cx);
        }
        match (race.first, race.second) {
            (AttemptRank::Awaited | AttemptRank::Poor | AttemptRank::Gone, AttemptRank::Good)
            | (AttemptRank::Gone, AttemptRank::Poor) => {
                self.race = Some(race);
                return Some(Poll::Ready(End::Overtaken));
            }
            (AttemptRank::Awaited, AttemptRank::Awaited | AttemptRank::Poor)
            | (AttemptRank::Poor | AttemptRank::Gone, AttemptRank::Awaited) => {
                self.race = Some(race);
                return Some(self.poll_limits(cx));
            }
            (AttemptRank::Good, _) | (AttemptRank::Awaited, AttemptRank::Gone) | (AttemptRank::Poor, _) => {}
            (AttemptRank::Gone, AttemptRank::Gone) => {
                self.give_up_race(*race);
                return self.server_gone().err().map(Poll::Ready);
            }
        }
        self.give_up_race(*race);
        None
    }

    /// Ends the second attempt.
    fn give_up_race(&mut self, race: Race) {
        hedging::report_loser(self.session, self.terms.backend, &race.rival, race.second);
        self.reply.unparsed = !self.reply.message.reader.received().is_empty();
    }

    /// Reads the first answer until its status is known.
    fn look(&mut self, cx: &mut Context<'_>) -> AttemptRank {
        let mut read = 0;
        // A service has no second attempt.
        if self.upstream.is_service() {
            return AttemptRank::Gone;
        }
        let found =
            attempt_rank::look(cx, &mut self.upstream, self.reply.message.reader.input_mut(), |bytes| read += bytes);
        if read > 0 {
            self.reply.has_begun = true;
            self.state.borrow_mut().accounting.bytes.received += read as u64;
        }
        match found {
            Poll::Ready(standing) => standing,
            Poll::Pending => AttemptRank::Awaited,
        }
    }

    /// Handles an expired `timeout server`: an answer that reports a failure is better than none.
    pub(super) fn expire(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        match self.race.take() {
            Some(race) if race.first == AttemptRank::Poor => {
                self.give_up_race(*race);
                self.poll(cx)
            }
            Some(race) if race.second == AttemptRank::Poor => {
                self.race = Some(race);
                Poll::Ready(End::Overtaken)
            }
            Some(race) => {
                self.give_up_race(*race);
                Poll::Ready(self.server_expired())
            }
            None => Poll::Ready(self.server_expired()),
        }
    }

    /// Returns the next deadline of the second attempt.
    pub(super) fn rival_deadline(&self) -> Option<base::moment::Moment> {
        let race = self.race.as_ref()?;
        race.rival.deadline().filter(|_| race.second == AttemptRank::Awaited)
    }
}
