//! Agent checks: programs beside servers that are queried periodically for the load that their server can take (configuration
//! manual, section 5.2, "agent-check"). Must never look at a health check.

use conn::transport::{self, Transport};
use std::io::IoSlice;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use base::buffer::Buffer;
use base::moment::Moment;
use live::health::{CheckStatus, Operation, Report};
use live::{Admin, Checker, ServerPlace};
use policy::check::{AgentAnswer, AgentCheck};
use policy::program::{Proxy, Server, ServerAddress};
use rt::net::Address;

use super::running::Waited;
use super::{agent_http, messages};
use crate::service::transitions::Orderer;
use crate::service::{transitions, weight};
use crate::worker::Worker;

/// Maximum bytes of a response that are read; a longer one is not a valid line.
const LONGEST: usize = 4_096;

/// Starts the agent checks that are assigned to this worker.
pub(super) fn start(worker: &Rc<Worker>) {
    let workers = worker.process.workers();
    let generation = worker.generation();
    for proxy in generation.program.proxies.iter().filter(|proxy| !proxy.disabled) {
        let asked: Vec<_> = proxy.servers().filter_map(|server| Some((server, server.agent.as_ref()?))).collect();
        for (place, (server, agent)) in asked.iter().enumerate() {
            if server.serial % workers != worker.id {
                continue;
            }
            // Spreads the first checks over the interval.
            let offset = agent.interval.mul_f64(place as f64 / asked.len() as f64);
            let (worker, place) = (Rc::clone(worker), proxy.place_of(server));
            rt::spawn(rt::Class::Background, rt::NO_TAG, watch(worker, place, 0, offset));
        }
    }
}

/// Starts the agent check of a server that was added.
pub(super) fn add(worker: &Rc<Worker>, place: ServerPlace, occupant: u32) {
    let task = watch(Rc::clone(worker), place, occupant, Duration::ZERO);
    rt::spawn(rt::Class::Background, rt::NO_TAG, task);
}

/// Runs agent checks of a server until the process stops, the server is removed, or another one (`occupant`) has its slot.
async fn watch(worker: Rc<Worker>, place: ServerPlace, occupant: u32, offset: Duration) {
    rt::sleep(offset).await;
    let state = &worker.process.live.proxies[place.proxy];
    while !worker.process.is_stopping() && state.health(place.server, Checker::Agent).is_some() {
        let Some(next) = ask_once(&worker, place, occupant).await else { return };
        rt::sleep_until(next).await;
    }
}

/// Runs one check with the current configuration. Returns the time of the next; `None`: the server no longer has an agent check.
async fn ask_once(worker: &Worker, place: ServerPlace, occupant: u32) -> Option<Moment> {
    let generation = worker.generation();
    let proxy = generation.proxy(place.proxy);
    let server = proxy.server(place.server)?;
    let agent = server.agent.as_ref()?;
    let begun = rt::now();
    let is_same = || worker.process.live.proxies[proxy.index].occupant(server.index) == occupant;
    if !is_same() {
        return None;
    }
    if worker.process.live.proxies[proxy.index].begin_check(server.index, Checker::Agent) {
        let running = worker.activity.begin_check();
        // Boxed, so that the task does not hold its memory between two checks.
        let answer = Box::pin(Question::new(worker, proxy, server, agent, begun).ask()).await;
        drop(running);
        if !is_same() {
            return None;
        }
        let took = rt::now().saturating_since(begun);
        match answer {
            Ok(line) => apply(worker, proxy, server, &line, took),
            Err((status, info)) => {
                let report = Report { status, code: None, took, info };
                super::conclude(worker, proxy, server, Checker::Agent, report);
            }
        }
    }
    Some(super::next_after(worker, begun, agent.interval))
}

/// Applies a response. The end of a maintenance is applied last: a server that the same response marks down never serves.
fn apply(worker: &Worker, proxy: &Proxy, server: &Server, line: &[u8], took: Duration) {
    let answer = AgentAnswer::parse(line);
    let state = &worker.process.live.proxies[proxy.index];
    let enabled = state.health(server.index, Checker::Agent).is_some_and(|agent| agent.is_enabled());
    let change = answer.admin.filter(|admin| enabled || *admin == Admin::Ready);
    let set_admin = |admin| {
        let now = state.status(server.index).map(|status| status.forced);
        if now != Some(admin) {
            transitions::set_admin(worker, proxy, server, admin, Orderer::Agent);
        }
    };
    change.filter(|admin| *admin != Admin::Ready).into_iter().for_each(set_admin);
    let report = report(worker, proxy, server, answer, enabled, took);
    super::conclude(worker, proxy, server, Checker::Agent, report);
    change.filter(|admin| *admin == Admin::Ready).into_iter().for_each(set_admin);
}

/// Sets the weight and `maxconn` of a response. Returns the health that it reports.
fn report(
    worker: &Worker,
    proxy: &Proxy,
    server: &Server,
    answer: AgentAnswer,
    enabled: bool,
    took: Duration,
) -> Report {
    let state = &worker.process.live.proxies[proxy.index];
    let mut warning = None;
    if let Some(written) = answer.weight.as_deref().filter(|_| enabled) {
        match weight::parse(written, server.weight) {
            Ok(weight) => weight::set(worker, proxy, server, weight, Orderer::Agent),
            Err(sentence) => warning = Some(sentence),
        }
    }
    if let Some(written) = answer.maxconn.as_deref().filter(|_| enabled) {
        match written.parse::<u32>() {
            Ok(most) => state.set_maxconn(server.index, (most > 0).then_some(most)),
            Err(_) => warning = Some("maxconn string empty or preceded by garbage"),
        }
    }
    let status = match &answer.health {
        Some(word) => match word.operation {
            Operation::Up => CheckStatus::L7Ok,
            Operation::Stopping => CheckStatus::L7Conditional,
            Operation::Down => CheckStatus::L7Status,
        },
        None => CheckStatus::Checked,
    };
    let code = status.is_application().then_some(0);
    Report { status, code, took, info: answer.info(warning) }
}

/// One query of an agent.
struct Question<'a> {
    worker: &'a Worker,
    server: &'a Server,
    agent: &'a AgentCheck,
    deadline: Moment,
    /// `timeout check`: maximum time after the connection is established.
    timeout: Option<Duration>,
    timer: rt::Timer,
}

/// Status and message of a query without a valid response.
type Failure = (CheckStatus, String);

impl<'a> Question<'a> {
    fn new(worker: &'a Worker, proxy: &'a Proxy, server: &'a Server, agent: &'a AgentCheck, begun: Moment) -> Self {
        let check = proxy.backend.as_ref().map(|backend| &backend.check);
        let timeout = check.and_then(|check| check.timeout);
        let connect = check.and_then(|check| check.connect).filter(|_| timeout.is_some());
        let bound = connect.map_or(agent.interval, |connect| connect.min(agent.interval));
        Self { worker, server, agent, deadline: begun + bound, timeout, timer: rt::Timer::new() }
    }

    /// Connects, sends the configured string and returns the agent's line.
    async fn ask(mut self) -> Result<Vec<u8>, Failure> {
        let orders = self.worker.process.checks.targets.agent(self.server.serial);
        let destination = self.destination(orders.address, orders.port)?;
        let mut stream = self.connect(&Address::Inet(destination)).await?;
        if let Some(timeout) = self.timeout {
            self.deadline = rt::now() + timeout;
        }
        let request =
            self.agent.uri.as_deref().map(|uri| agent_http::request(uri, self.server.host.as_deref(), destination));
        let sent = request.as_deref().or(orders.send.as_deref()).unwrap_or(&self.agent.send);
        let mut at = 0;
        while at < sent.len() {
            let rest = [IoSlice::new(&sent[at..])];
            match self.within(|cx| stream.poll_write_slices(cx, &rest, false)).await {
                Waited::Done(Ok(written)) => at += written,
                Waited::Done(Err(error)) => return Err((CheckStatus::SocketError, messages::of_system(&error))),
                Waited::Expired => return Err((CheckStatus::L7Timeout, String::new())),
            }
        }
        let line = match request {
            Some(_) => self.read_response(&mut stream).await,
            None => self.read(&mut stream).await,
        };
        let _ = stream.set_linger_zero();
        line
    }

    /// Returns the address of the agent; `address` and `port` are those of commands.
    fn destination(&self, address: Option<IpAddr>, port: Option<u16>) -> Result<SocketAddr, Failure> {
        let port = port.unwrap_or(self.agent.port);
        match (address.or(self.agent.address), &*self.worker.process.outgoing.address(self.server)) {
            (Some(ip), _) | (None, &ServerAddress::Inet { ip, .. }) => Ok((ip, port).into()),
            (None, _) => Err((CheckStatus::L4Connection, "no address to connect to".to_owned())),
        }
    }

    async fn connect(&mut self, destination: &Address) -> Result<Transport, Failure> {
        let route = self.worker.process.outgoing.route(self.server.serial).filter(|route| !route.blocked);
        let Some(route) = route else {
            return Err((CheckStatus::L4Connection, "no way to the server".to_owned()));
        };
        let failed = |error: &std::io::Error| (CheckStatus::L4Connection, messages::of_system(error));
        let mut connecting = transport::connect(destination, &route.options).map_err(|error| failed(&error))?;
        match self.within(|cx| Pin::new(&mut connecting).poll(cx)).await {
            Waited::Done(Ok(stream)) => Ok(stream),
            Waited::Done(Err(error)) => Err(failed(&error)),
            Waited::Expired => Err((CheckStatus::L4Timeout, String::new())),
        }
    }

    /// Reads up to the end of the first line, or to the end of the stream.
    async fn read(&mut self, stream: &mut Transport) -> Result<Vec<u8>, Failure> {
        let mut input = Buffer::with_capacity(LONGEST);
        loop {
            if let Some(end) = input.data().iter().position(|byte| matches!(byte, b'\r' | b'\n')) {
                return Ok(input.data()[..end].to_vec());
            }
            if input.room() == 0 {
                return Err((CheckStatus::L7Response, "Buffer full".to_owned()));
            }
            match self.within(|cx| stream.poll_read(cx, &mut input)).await {
                Waited::Done(Ok(0)) if input.is_empty() => {
                    // Sending (even an empty string) is step 1, receiving is step 2.
                    return Err((CheckStatus::L7Response, "TCPCHK got an empty response at step 2".to_owned()));
                }
                Waited::Done(Ok(0)) => {
                    return Err((CheckStatus::Checked, "Ignoring incomplete line from agent".to_owned()));
                }
                Waited::Done(Ok(_)) => {}
                Waited::Done(Err(error)) => return Err((CheckStatus::SocketError, messages::of_system(&error))),
                Waited::Expired => return Err((CheckStatus::L7Timeout, String::new())),
            }
        }
    }

    /// Reads a response of HTTP up to the end of the first line of its body.
    async fn read_response(&mut self, stream: &mut Transport) -> Result<Vec<u8>, Failure> {
        let mut input = Buffer::with_capacity(agent_http::LONGEST);
        let mut ended = false;
        loop {
            match agent_http::line(input.data(), ended) {
                Ok(Some(line)) => return Ok(line),
                Ok(None) => {}
                Err(why) => return Err((CheckStatus::L7Response, why)),
            }
            if input.room() == 0 {
                return Err((CheckStatus::L7Response, "Buffer full".to_owned()));
            }
            match self.within(|cx| stream.poll_read(cx, &mut input)).await {
                Waited::Done(Ok(count)) => ended = count == 0,
                Waited::Done(Err(error)) => return Err((CheckStatus::SocketError, messages::of_system(&error))),
                Waited::Expired => return Err((CheckStatus::L7Timeout, String::new())),
            }
        }
    }

    /// Polls an attempt until the deadline.
    async fn within<T>(&mut self, mut attempt: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Waited<T> {
        self.timer.arm(Some(self.deadline));
        let timer = &mut self.timer;
        std::future::poll_fn(|cx| match attempt(cx) {
            Poll::Ready(done) => Poll::Ready(Waited::Done(done)),
            Poll::Pending => timer.poll_expired(cx).map(|()| Waited::Expired),
        })
        .await
    }
}
