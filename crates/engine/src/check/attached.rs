//! Checks of a server that opens its connections itself (reverse HTTP): a check is sent over such a connection, beside requests,
//! or fails. Must never open one.

use conn::sequential_client::Solo;
use conn::worker_links::ShareTerms;
use live::health::CheckStatus;
use policy::check::Connect;

use super::running::{Outcome, RunningCheck, Waited};
use crate::worker::attachments::Kind;
use crate::worker::connection_waiter::Waiting;

impl RunningCheck<'_> {
    /// Attaches the check to a connection that the server has opened.
    pub(super) async fn attach(&mut self, connect: &Connect) -> Result<(), Outcome> {
        // The message of HAProxy, which tries to open one.
        let fails = || Outcome::new(CheckStatus::SocketError, "Invalid argument".to_owned());
        let Some(name) = self.pool_name(connect) else { return Err(fails()) };
        let kind = Kind::new(self.server.serial, &name);
        let worker = self.worker;
        let waiting = Waiting::join(worker, kind.clone());
        loop {
            let link = waiting.is_first().then(|| {
                let pool = &worker.process.pool;
                worker.links.take(
                    pool,
                    kind.server,
                    ShareTerms { proven: false, may_share: &|is_early| !is_early },
                    kind.key(),
                )
            });
            if let Some(link) = link.flatten() {
                let Some(solo) = Solo::sharing(link.carrier) else { return Err(fails()) };
                self.keep_alone();
                self.connection.solo = Some(Box::new(solo));
                self.restart_timeout();
                return Ok(());
            }
            if !waiting.announce() {
                return Err(fails());
            }
            if let Waited::Expired = self.within(|cx| waiting.poll(cx)).await {
                return Err(self.not_in_time(connect));
            }
        }
    }
}
