//! `quic-initial` rules: decides on the first packet of a QUIC connection, before anything of it exists. Must never accept or
//! answer it.

use std::net::SocketAddr;
use std::rc::Rc;

use conn::quic::Arrival;
use live::Entry;
use policy::rule::Final;
use rt::net::SocketQuery;

use crate::generation::FrontendHandle;
use crate::session::Session;
use crate::stream::request::rules::run_connection;
use crate::worker::Worker;

/// The decision of the rules on the first packet of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The connection may begin.
    Accept,
    /// The packet is ignored.
    Drop,
    /// The client is informed that its connection is refused.
    Refuse,
    /// The client has to prove its address, unless it has done so.
    Retry,
}

/// Runs the rules of a frontend. A packet whose rules panic is ignored.
pub fn judge(worker: &Rc<Worker>, handle: &Rc<FrontendHandle>, bind: usize, arrival: &Arrival<'_>) -> Verdict {
    let rules = &handle.proxy.rules.quic_initial;
    if rules.is_empty() {
        return Verdict::Accept;
    }
    let mut verdict = Verdict::Drop;
    rt::contain(u64::MAX, || {
        // The samples of the rules are read from a session, which ends with them.
        let session = Session::new(worker, handle, bind, SocketQuery::of_none(), Some(arrival.peer()), None::<Entry>);
        let listening = arrival.listening();
        session.set_destination(SocketAddr::new(arrival.local().unwrap_or(listening.ip()), listening.port()));
        verdict = match run_connection(&session, rules, &mut |_| {}) {
            None => Verdict::Accept,
            Some(Final::Reject) => Verdict::Refuse,
            Some(Final::SendRetry) => Verdict::Retry,
            Some(_) => Verdict::Drop,
        };
    });
    verdict
}
