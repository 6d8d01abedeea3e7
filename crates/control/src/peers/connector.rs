//! Connects to peers when due, wakes connections when there are updates to send, and teaches a newer process at the
//! end. Must never connect to a peer that has a connection.

use conn::dial::dial;
use conn::transport::Transport;
use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::buffer::Buffer;
use config::spec::LogLevel;
use live::peers::{Section, Ticket};
use policy::program::{LinkTls, ServerAddress};
use rt::net::ConnectOptions;
use wire::peers::{Hello, Status, read_line};

use super::conversation::{converse, send};
use super::tasks::PeerTasks;
use engine::outgoing::{fixed_address, plain, security};

/// Timeout to connect, and to receive the response to the hello.
const ANSWER: Duration = Duration::from_secs(4);
/// Minimum interval between checks for updates, so that simultaneous updates are sent together.
const GATHERING: Duration = Duration::from_millis(1);
/// Attempts to connect to a newer process, and the pause between them.
const ATTEMPTS: (u32, Duration) = (5, Duration::from_millis(200));

/// Maintains a section until the process stops.
pub(super) async fn keep(circle: Rc<PeerTasks>) {
    circle.worker.watch_stop().await;
    let mut keeper = PeerConnector {
        known: vec![0; circle.party().plan.tables.len()],
        timer: rt::Timer::new(),
        gathered: rt::now(),
        circle,
    };
    poll_fn(|cx| keeper.poll_stopped(cx)).await;
}

struct PeerConnector {
    circle: Rc<PeerTasks>,
    /// By table, the last update for which connections were woken.
    known: Vec<u32>,
    timer: rt::Timer,
    /// Until this time connections are not woken for updates.
    gathered: base::Moment,
}

impl PeerConnector {
    fn poll_stopped(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.circle.worker.process.is_stopping() {
            return Poll::Ready(());
        }
        self.circle.keep(cx);
        let now = rt::now();
        if self.circle.with(|section| section.sum(now)) == Some(true) {
            cx.waker().wake_by_ref();
        }
        self.log_notices();
        let asked = self.circle.with(|section| section.tick(now, rt::random()));
        let refreshed = self.has_refreshments(cx, now);
        if refreshed || asked == Some(true) {
            self.circle.wake_connections();
        }
        let next = self.call(now);
        self.timer.arm(next.into_iter().chain((self.gathered > now).then_some(self.gathered)).min());
        if self.timer.poll_expired(cx).is_ready() {
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }

    /// Logs events of the section's sums.
    fn log_notices(&self) {
        for notice in self.circle.with(Section::take_notices).unwrap_or_default() {
            self.circle.worker.logger.message(None, LogLevel::Alert, &notice.to_string());
        }
    }

    /// Whether there are updates to send. Also registers this task to be woken by the next update.
    fn has_refreshments(&mut self, cx: &Context<'_>, now: base::Moment) -> bool {
        if now < self.gathered {
            return false;
        }
        let mut found = false;
        for (table, known) in self.circle.party().plan.tables.iter().zip(&mut self.known) {
            if table.table.wait_for_update(*known, cx.waker()) {
                *known = table.table.last_update();
                found = true;
            }
        }
        if found {
            self.gathered = now + GATHERING;
        }
        found
    }

    /// Connects to the peers that are due. Returns when to call it again.
    fn call(&self, now: base::Moment) -> Option<base::Moment> {
        let remotes = &self.circle.party().plan.section.remotes;
        let mut next = self.circle.with(|section| section.deadline()).flatten();
        for (peer, remote) in remotes.iter().enumerate() {
            let Some(at) = self.circle.with(|section| section.call_at(peer)).flatten() else { continue };
            if at > now {
                next = Some(next.map_or(at, |next| next.min(at)));
                continue;
            }
            let Some(Some((ticket, hello))) = self.circle.with(|section| section.call(peer, now, rt::random())) else {
                continue;
            };
            let way = PeerRoute {
                address: remote.address.clone(),
                options: plain(&remote.connecting),
                tls: remote.tls.clone(),
            };
            let call = call(Rc::clone(&self.circle), way, ticket, hello);
            rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
                call.await;
            });
        }
        next
    }
}

/// The address and the options of a peer.
struct PeerRoute {
    address: ServerAddress,
    options: ConnectOptions,
    tls: Option<LinkTls>,
}

/// Connects to a peer and exchanges messages until the connection ends. True: a newer process was taught everything.
async fn call(circle: Rc<PeerTasks>, way: PeerRoute, ticket: Ticket, hello: Hello) -> bool {
    let greeted = greet(&circle, &way, ticket, &hello).await;
    let mut taught = false;
    if let Some((stream, input)) = greeted {
        circle.wake_keeper();
        taught = converse(&circle, stream, input, ticket).await;
    }
    circle.with(|section| section.ended(ticket, rt::now(), rt::random()));
    circle.wake_keeper();
    taught
}

/// Connects, sends the hello and reads the status. `None`: the connection or the handshake failed.
async fn greet(circle: &Rc<PeerTasks>, way: &PeerRoute, ticket: Ticket, hello: &Hello) -> Option<(Transport, Buffer)> {
    let mut timer = rt::Timer::new();
    timer.arm(Some(rt::now() + ANSWER));
    let address = fixed_address(&way.address)?;
    let mut dialing = pin!(dial(&address, &way.options, security(way.tls.as_ref())));
    let connected = while_wanted(circle, ticket, &mut timer, |cx| dialing.as_mut().poll(cx)).await?;
    let mut stream = connected.ok()?;
    circle.with(|section| section.reached(ticket));
    let mut text = Vec::new();
    hello.encode(&mut text);
    let mut sent = 0;
    while_wanted(circle, ticket, &mut timer, |cx| send(&mut stream, cx, &text, &mut sent)).await?.ok()?;
    let mut input = Buffer::with_capacity(rt::buffer_size());
    loop {
        let line = read_line(input.data()).ok()?.map(|(line, length)| (Status::of_line(line), length));
        if let Some((status, length)) = line {
            let stands = circle.with(|section| section.answered(ticket, status?, rt::now()).then_some(()));
            input.consume(length);
            return stands.flatten().map(|()| (stream, input));
        }
        let read = while_wanted(circle, ticket, &mut timer, |cx| stream.poll_read(cx, &mut input)).await?;
        if !matches!(read, Ok(count) if count > 0) {
            return None;
        }
    }
}

/// Waits for a step of the handshake. `None`: it timed out, or the connection is no longer wanted.
async fn while_wanted<T>(
    circle: &Rc<PeerTasks>,
    ticket: Ticket,
    timer: &mut rt::Timer,
    mut step: impl FnMut(&mut Context<'_>) -> Poll<T>,
) -> Option<T> {
    poll_fn(|cx| {
        circle.wait(ticket.peer, cx);
        if circle.with(|section| section.stands(ticket)) != Some(true) {
            return Poll::Ready(None);
        }
        match step(cx) {
            Poll::Ready(done) => Poll::Ready(Some(done)),
            Poll::Pending => timer.poll_expired(cx).map(|()| None),
        }
    })
    .await
}

/// Called when the exchange of the section ends and its sockets are closed: if a newer process listens on the address, teaches it
/// everything.
pub(super) async fn teach_successor(circle: &Rc<PeerTasks>) {
    circle.with(|section| section.leave(rt::now()));
    circle.wake_connections();
    let Some(address) = circle.party().plan.section.own_address.clone() else { return };
    for attempt in 0..ATTEMPTS.0 {
        if attempt > 0 {
            rt::sleep(ATTEMPTS.1).await;
        }
        let called = circle.with(|section| section.call(section.local(), rt::now(), rt::random()));
        let Some(Some((ticket, hello))) = called else { return };
        let tls = circle.party().plan.section.own_tls.clone();
        let way = PeerRoute { address: address.clone(), options: ConnectOptions::default(), tls };
        if call(Rc::clone(circle), way, ticket, hello).await || !has_answered(circle) {
            return;
        }
    }
}

/// Whether a connection was established at all.
fn has_answered(circle: &PeerTasks) -> bool {
    use live::peers::LastStatus;
    let status = circle.with(|section| section.status().peers.pop().map(|local| local.last_status)).flatten();
    !matches!(status, None | Some(LastStatus::None | LastStatus::Handshake))
}
