//! Events of servers and certificates, for subscribed scripts (`core.event_sub` of HAProxy's Lua manual). Without subscribers an
//! event costs a check of a flag. Must never wait for a subscriber.

use live::timeline::{Author, TimelineKind};
use live::{Checker, Transition};
use policy::program::{Proxy, Server};

use crate::health_watch;
pub use crate::service::event_queue::{
    CertificateEvent, Checked, Event, Events, Listener, ServerEvent, ServerEventKind, WantedRecord,
};
use crate::timeline;
use crate::worker::{Process, Worker};

fn tell_of(process: &Process, proxy: &Proxy, server: &Server, what: ServerEventKind) {
    process.events.tell(&Event::Server(Box::new(ServerEvent {
        place: proxy.place_of(server),
        name: (&*server.name).into(),
        id: server.id,
        revision: process.events.revision(server),
        proxy: (*proxy.name).into(),
        proxy_id: proxy.id,
        what,
    })));
}

/// Reports a server that was added at run time.
pub fn added(process: &Process, proxy: &Proxy, server: &Server) {
    {
        let revisions = &mut *process.events.revisions();
        revisions.next += u32::from(std::mem::take(&mut revisions.removed));
        revisions.known.insert(server.serial, revisions.next);
    }
    timeline::server(process, TimelineKind::ServerAdded, Author::Cli, proxy, server, || {
        format!("Server {}/{} was added.", proxy.name, server.name)
    });
    tell_of(process, proxy, server, ServerEventKind::Added);
    health_watch::changed(process);
}

/// Reports a server that is about to be removed.
pub fn removed(process: &Process, proxy: &Proxy, server: &Server) {
    process.events.revisions().removed = true;
    timeline::server(process, TimelineKind::ServerRemoved, Author::Cli, proxy, server, || {
        format!("Server {}/{} was removed.", proxy.name, server.name)
    });
    tell_of(process, proxy, server, ServerEventKind::Removed);
    health_watch::changed(process);
}

/// Reports a server whose address or port changed, or that no longer has an address.
pub fn moved(process: &Process, proxy: &Proxy, server: &Server) {
    if process.events.are_heard() {
        tell_of(process, proxy, server, ServerEventKind::Moved);
    }
}

/// Reports the result of a check.
pub(crate) fn checked(worker: &Worker, proxy: &Proxy, server: &Server, checker: Checker) {
    if worker.process.events.are_heard()
        && let Some(checked) = last_check(worker, proxy, server, checker)
    {
        tell_of(&worker.process, proxy, server, ServerEventKind::Checked(checked));
    }
}

/// Reports a state change of a server; `why`: `None` if a check caused it.
pub(crate) fn changed(
    worker: &Worker,
    proxy: &Proxy,
    server: &Server,
    transition: Transition,
    why: Option<&'static str>,
) {
    if !worker.process.events.are_heard() {
        return;
    }
    let checkers = [Checker::Health, Checker::Agent];
    let check = checkers.into_iter().filter(|_| why.is_none()).find_map(|own| last_check(worker, proxy, server, own));
    tell_of(&worker.process, proxy, server, ServerEventKind::Changed(transition, check, why.unwrap_or_default()));
}

fn last_check(worker: &Worker, proxy: &Proxy, server: &Server, checker: Checker) -> Option<Checked> {
    let health = worker.process.live.proxies[proxy.index].health(server.index, checker)?;
    let (rise, fall) = health.thresholds();
    let report = health.last().clone();
    Some(Checked { agent: checker == Checker::Agent, report, level: health.level(), rise, fall })
}

/// Reports a DNS record that a certificate needs, or that the certificate was installed.
pub(crate) fn certificate(process: &Process, name: &str, record: impl FnOnce() -> Option<WantedRecord>) {
    if process.events.are_heard() {
        process.events.tell(&Event::Certificate(Box::new(CertificateEvent { name: name.into(), record: record() })));
    }
}
