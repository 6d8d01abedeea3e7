//! The connection to a store: connects, identifies itself, writes commands and assigns answers, until a fault; then it connects
//! again, with growing pauses. Must never keep more of an answer than `answer-size`.

use std::collections::VecDeque;
use std::future::{Future as _, poll_fn};
use std::io::IoSlice;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::Moment;
use base::buffer::Buffer;
use config::diagnostic::Severity;
use config::spec::LogLevel;
use conn::dial::dial;
use conn::transport::Transport;
use rt::net::ConnectOptions;
use wire::resp::{OwnedReply, ReplyScan, next_reply, push_command};

use super::client::{Client, Failure, Outgoing, Pending, Slot};
use super::fault::Fault;
use super::script;
use crate::outgoing::{fixed_address, security};
use crate::worker::Worker;

/// First pause before another attempt to connect; doubled with each further one.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// Longest pause.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);
/// Capacity of the output that is kept, in bytes.
const KEPT: usize = 64 * 1024;
/// Duration of a connection after which the next pause is the first one again.
const STABLE: Duration = Duration::from_secs(10);

/// Maintains the connection until the process ends.
pub(super) async fn keep(worker: Rc<Worker>, index: usize, client: Arc<Client>, node: u64) {
    let mut pause = FIRST_PAUSE;
    let mut is_known = false;
    loop {
        let fault = match Link::establish(&client).await {
            Ok(mut link) => match link.begin(&client, node).await {
                Ok(nodes) => {
                    let began = rt::now();
                    is_known = false;
                    set_standing(&worker, index, false, nodes);
                    client.begin();
                    report(&worker, &client, None);
                    let fault = poll_fn(|cx| link.poll_fault(cx, &client)).await;
                    link.give_up();
                    if rt::now().saturating_since(began) >= STABLE {
                        pause = FIRST_PAUSE;
                    }
                    fault
                }
                Err(fault) => fault,
            },
            Err(fault) => fault,
        };
        set_standing(&worker, index, true, 0);
        if !std::mem::replace(&mut is_known, true) {
            report(&worker, &client, Some(&fault));
        }
        client.end(fault);
        // Nodes that lost the store together do not return together.
        rt::sleep(pause / 2 + (pause / 2).mul_f64((rt::random() >> 11) as f64 / (1_u64 << 53) as f64)).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Informs the limits of a store about its state.
fn set_standing(worker: &Worker, index: usize, is_lost: bool, nodes: u32) {
    for (_, limit) in worker.process.live.limits.of_store(index) {
        if nodes > 0 {
            limit.standing.set_nodes(nodes);
        }
        limit.standing.set(is_lost);
    }
}

/// Logs a change of state.
fn report(worker: &Worker, client: &Client, fault: Option<&Fault>) {
    let (name, server) = (&client.plan.name, &client.plan.server.name);
    let (level, severity, text) = match fault {
        None => (LogLevel::Notice, Severity::Notice, format!("Store {name} is UP, connected to server {server}.")),
        Some(fault) => (LogLevel::Alert, Severity::Alert, format!("Store {name} is LOST, server {server}: {fault}.")),
    };
    worker.logger.message(None, level, &text);
    worker.process.host.say(severity, &text);
}

/// A connection.
struct Link {
    stream: Transport,
    input: Buffer,
    /// The search for the end of the next answer.
    scan: ReplyScan,
    output: Vec<u8>,
    written: usize,
    /// Expected answers, in order.
    slots: VecDeque<(Arc<Slot>, Moment)>,
    timer: rt::Timer,
    /// Answers that were not counted yet.
    answered: usize,
}

impl Link {
    /// Connects.
    async fn establish(client: &Client) -> Result<Self, Fault> {
        let plan = &client.plan;
        let address = fixed_address(&plan.server.address);
        let address = address.ok_or_else(|| Fault::Connection("no address".to_owned()))?;
        let options = ConnectOptions::default();
        let mut timer = rt::Timer::new();
        timer.arm(Some(rt::now() + plan.connect_timeout));
        let mut dialing = pin!(dial(&address, &options, security(plan.server.tls.as_ref())));
        let connected = poll_fn(|cx| match dialing.as_mut().poll(cx) {
            Poll::Ready(connected) => Poll::Ready(Some(connected)),
            Poll::Pending => timer.poll_expired(cx).map(|()| None),
        });
        match connected.await {
            None => Err(Fault::NoConnection(plan.connect_timeout)),
            Some(Err(failure)) => Err(Fault::of_dialing(&failure)),
            Some(Ok(stream)) => Ok(Self {
                stream,
                input: Buffer::with_capacity(plan.answer_size),
                scan: ReplyScan::default(),
                output: Vec::new(),
                written: 0,
                slots: VecDeque::new(),
                timer,
                answered: 0,
            }),
        }
    }

    /// Identifies itself, selects the database and loads the script. Returns the number of nodes that use the store.
    async fn begin(&mut self, client: &Client, node: u64) -> Result<u32, Fault> {
        let plan = &client.plan;
        if let Some(login) = &plan.login {
            let mut arguments: Vec<&[u8]> = vec![b"AUTH"];
            arguments.extend(login.user.as_deref());
            arguments.push(&login.password.0);
            self.expect(client, "AUTH", &arguments).await?;
        }
        if plan.database != 0 {
            self.expect(client, "SELECT", &[b"SELECT", plan.database.to_string().as_bytes()]).await?;
        }
        let digest = script::digest();
        let loaded = self.expect(client, "SCRIPT LOAD", &[b"SCRIPT", b"LOAD", script::TEXT]).await?;
        if loaded != OwnedReply::Bulk(digest.as_bytes().into()) {
            return Err(Fault::Unexpected { command: "SCRIPT LOAD" });
        }
        let presence = script::presence(client, node);
        let arguments: Vec<&[u8]> = presence.iter().map(Vec::as_slice).collect();
        let nodes = self.expect(client, "EVALSHA", &arguments).await?;
        script::nodes(&nodes)
    }

    /// Sends a command, and returns its answer unless it is an error.
    async fn expect(
        &mut self,
        client: &Client,
        command: &'static str,
        arguments: &[&[u8]],
    ) -> Result<OwnedReply, Fault> {
        push_command(arguments, &mut self.output);
        let deadline = rt::now() + client.plan.server_timeout;
        let mut pending = self.expected(deadline);
        let answer = poll_fn(|cx| {
            let fault = self.poll_io(cx, client);
            if let Poll::Ready(answer) = Pin::new(&mut pending).poll(cx) {
                return Poll::Ready(Ok(answer));
            }
            fault.map(Err)
        });
        match answer.await? {
            Ok(OwnedReply::Error(answer)) => Err(Fault::refused(command, &answer)),
            Ok(answer) => Ok(answer),
            Err(_) => Err(Fault::Unexpected { command }),
        }
    }

    fn expected(&mut self, deadline: Moment) -> Pending {
        let (slot, pending) = Pending::new();
        self.slots.push_back((slot, deadline));
        pending
    }

    /// Exchanges commands and answers. Ready when the connection cannot be used.
    fn poll_fault(&mut self, cx: &mut Context<'_>, client: &Client) -> Poll<Fault> {
        let deadline = rt::now() + client.plan.server_timeout;
        let mut out = Outgoing { bytes: &mut self.output, slots: &mut self.slots, deadline };
        if let Err(fault) = client.take(cx, &mut out) {
            return Poll::Ready(fault);
        }
        let polled = self.poll_io(cx, client);
        client.note_progress(std::mem::take(&mut self.answered), self.output.len());
        polled
    }

    /// Writes and reads. Ready when the connection cannot be used.
    fn poll_io(&mut self, cx: &mut Context<'_>, client: &Client) -> Poll<Fault> {
        while self.written < self.output.len() {
            match self.stream.poll_write_slices(cx, &[IoSlice::new(&self.output[self.written..])], false) {
                Poll::Ready(Ok(count)) => self.written += count,
                Poll::Ready(Err(error)) => return Poll::Ready(Fault::Connection(error.to_string())),
                Poll::Pending => break,
            }
        }
        self.drop_written();
        loop {
            match self.stream.poll_read(cx, &mut self.input) {
                Poll::Ready(Ok(0)) => return Poll::Ready(Fault::Closed),
                Poll::Ready(Ok(_)) => {
                    if let Err(fault) = self.assign(client.plan.answer_size) {
                        return Poll::Ready(fault);
                    }
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Fault::Connection(error.to_string())),
                Poll::Pending => break,
            }
            if rt::slice_is_over() {
                cx.waker().wake_by_ref();
                break;
            }
        }
        self.timer.arm(self.slots.front().map(|(_, deadline)| *deadline));
        self.timer.poll_expired(cx).map(|()| Fault::NoAnswer(client.plan.server_timeout))
    }

    /// Drops what was written, once it is half of the output at least: each byte is moved a bounded number of times.
    fn drop_written(&mut self) {
        if self.written > 0 && self.written >= self.output.len() / 2 {
            self.output.drain(..self.written);
            self.output.shrink_to(self.output.len().max(KEPT));
            self.written = 0;
        }
    }

    /// Assigns the answers that have arrived.
    fn assign(&mut self, most: usize) -> Result<(), Fault> {
        while !self.input.is_empty() {
            let Some(length) = self.scan.end(self.input.data(), most).map_err(|_| Fault::Malformed)? else { break };
            self.scan = ReplyScan::default();
            let Ok(Ok((reply, taken))) = next_reply(&self.input.data()[..length], most) else {
                return Err(Fault::Malformed);
            };
            let (slot, _) = self.slots.pop_front().ok_or(Fault::Unrequested)?;
            slot.set(Ok(OwnedReply::from(reply)));
            self.input.consume(taken);
            self.answered += 1;
        }
        self.input.compact();
        Ok(())
    }

    /// Ends the commands without an answer.
    fn give_up(&mut self) {
        self.slots.drain(..).for_each(|(slot, _)| slot.set(Err(Failure::Lost)));
    }
}
