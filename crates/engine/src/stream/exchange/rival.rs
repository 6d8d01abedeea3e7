//! An exchange while a second attempt runs beside it (`hedge-requests`): which of the two goes on. Must never choose a
//! server, and never touch what a client gets.

use std::task::{Context, Poll};

use super::{Answer, End, Exchange};
use crate::stream::client::Client;
use crate::stream::hedging::{self, Rival, Won};
use conn::exchange::{Standing, standing};

/// Both attempts.
pub struct Race {
    rival: Box<Rival>,
    /// How the second one stands.
    second: Standing,
    /// How the first one stands, which is the exchange's own.
    first: Standing,
}

impl Exchange<'_> {
    /// The client, for a second attempt.
    pub fn client(&mut self) -> &mut Client {
        self.client
    }

    /// A second attempt runs from here on.
    pub fn join(&mut self, rival: Option<Box<Rival>>) {
        let (first, second) = (Standing::Awaited, Standing::Awaited);
        self.race = rival.map(|rival| Box::new(Race { rival, second, first }));
    }

    /// The second attempt, which has won.
    pub fn take_winner(&mut self) -> Option<Won> {
        let race = *self.race.take()?;
        race.rival.into_won(race.first)
    }

    /// When a second attempt is due, while nothing of an answer has come.
    pub(super) fn overdue_at(&self) -> Option<base::moment::Moment> {
        self.terms.hedge_at.filter(|_| self.sent && !self.answered && self.answer == Answer::Awaited)
    }

    /// Lets both go on. `None`: the exchange goes on alone.
    pub(super) fn poll_race(&mut self, cx: &mut Context<'_>) -> Option<Poll<End>> {
        let mut race = self.race.take()?;
        if race.first == Standing::Awaited {
            race.first = self.look(cx);
        }
        if race.first != Standing::Good && race.second == Standing::Awaited {
            race.second = race.rival.poll(cx);
        }
        match (race.first, race.second) {
            (Standing::Awaited | Standing::Poor | Standing::Gone, Standing::Good)
            | (Standing::Gone, Standing::Poor) => {
                self.race = Some(race);
                return Some(Poll::Ready(End::Overtaken));
            }
            (Standing::Awaited, Standing::Awaited | Standing::Poor)
            | (Standing::Poor | Standing::Gone, Standing::Awaited) => {
                self.race = Some(race);
                return Some(self.poll_limits(cx));
            }
            (Standing::Good, _) | (Standing::Awaited, Standing::Gone) | (Standing::Poor, _) => {}
            (Standing::Gone, Standing::Gone) => {
                self.give_up_race(*race);
                return self.server_gone().err().map(Poll::Ready);
            }
        }
        self.give_up_race(*race);
        None
    }

    /// The second attempt ends.
    fn give_up_race(&mut self, race: Race) {
        hedging::judge(self.session, self.terms.backend, &race.rival, race.second);
        self.unparsed = !self.down.received().is_empty();
    }

    /// Reads what comes of the first answer until it can be judged.
    fn look(&mut self, cx: &mut Context<'_>) -> Standing {
        let mut read = 0;
        // A service has no rival.
        if self.upstream.is_service() {
            return Standing::Gone;
        }
        let found = standing::look(cx, &mut self.upstream, self.down.input_mut(), |bytes| read += bytes);
        if read > 0 {
            self.answered = true;
            self.state.borrow_mut().bytes.received += read as u64;
        }
        match found {
            Poll::Ready(standing) => standing,
            Poll::Pending => Standing::Awaited,
        }
    }

    /// `timeout server` has struck: what one of them has is better than nothing.
    pub(super) fn expire(&mut self, cx: &mut Context<'_>) -> Poll<End> {
        match self.race.take() {
            Some(race) if race.first == Standing::Poor => {
                self.give_up_race(*race);
                self.poll(cx)
            }
            Some(race) if race.second == Standing::Poor => {
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

    /// When the second attempt has to be looked at.
    pub(super) fn rival_deadline(&self) -> Option<base::moment::Moment> {
        let race = self.race.as_ref()?;
        race.rival.deadline().filter(|_| race.second == Standing::Awaited)
    }
}
