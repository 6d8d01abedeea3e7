//! A simulated run: its plan, its servers, and its counters.

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use testkit::{Peer, Scope, Service, sleep};
use weir_tools::Outcome;
use weir_tools::load::counters::Counters;
use weir_tools::load::drive::{Drive, Gathering, Report, Sink};
use weir_tools::load::plan::{Output, Pace, Plan, Protocol, Target, Tls};
use weir_tools::load::show::{Second, Show};

/// Address of the server.
pub const SERVER: &str = "10.0.0.1:80";

pub const fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

pub const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Returns a target with one URL on a server.
pub fn target(address: &str, path: &str, weight: u32) -> Target {
    let head = format!("GET {path} HTTP/1.1\r\nHost: a\r\n");
    Target {
        url: format!("http://{address}{path}"),
        address: address.parse().unwrap(),
        secure: None,
        weight,
        request: format!("{head}\r\n").into_bytes(),
        last_request: format!("{head}Connection: close\r\n\r\n").into_bytes(),
        head_only: false,
    }
}

/// Returns a plan with one connection on one thread that requests `/`.
pub fn plan() -> Plan {
    Plan {
        targets: vec![target(SERVER, "/", 1)],
        connections: 1,
        threads: 1,
        duration: None,
        requests: None,
        requests_per_connection: None,
        ramp_up: Duration::ZERO,
        think: Duration::ZERO,
        timeout: None,
        pace: Pace::AsFastAsAnswered,
        reference: None,
        stop_on_error: false,
        first_untimed: false,
        send_with_handshake: false,
        protocol: Protocol::Http1,
        tls: Tls::default(),
        overhead: None,
        output: Output::default(),
    }
}

/// Output of a run.
pub struct Run {
    /// Each second: time, length, open connections, responses.
    pub seconds: Vec<(Duration, Duration, u64, u64)>,
    pub total: Counters,
    pub length: Duration,
    pub trouble: Option<String>,
}

#[derive(Default)]
struct RecordedOutput {
    seconds: Vec<(Duration, Duration, u64, u64)>,
    end: Option<(Counters, Duration)>,
}

struct Recorder(Arc<Mutex<RecordedOutput>>);

impl Show for Recorder {
    fn begin(&mut self, _plan: &Plan) -> Result<(), Outcome> {
        Ok(())
    }

    fn second(&mut self, second: &Second, _total: &Counters) -> Result<(), Outcome> {
        let line = (second.at, second.length, second.open, second.counters.answers);
        self.0.lock().unwrap().seconds.push(line);
        Ok(())
    }

    fn end(&mut self, total: &Counters, length: Duration) -> Result<(), Outcome> {
        self.0.lock().unwrap().end = Some((total.clone(), length));
        Ok(())
    }
}

struct Direct {
    gathering: Mutex<Gathering>,
    ended: AtomicBool,
}

impl Sink for Direct {
    fn report(&self, report: Report) -> Result<(), Box<Report>> {
        self.gathering.lock().unwrap().take(report).unwrap();
        Ok(())
    }

    fn ended(&self) {
        self.ended.store(true, Ordering::SeqCst);
    }
}

/// Runs a plan beside a script, to its end.
pub fn run<F: Future<Output = ()> + 'static>(plan: Plan, script: impl FnOnce(Rc<Scope>) -> F + 'static) -> Run {
    let drive = Drive::new(plan.clone()).unwrap();
    let shown = Arc::new(Mutex::new(RecordedOutput::default()));
    let gathering = Gathering::new(&plan, Box::new(Recorder(Arc::clone(&shown))), drive.workers()).unwrap();
    let sink = Arc::new(Direct { gathering: Mutex::new(gathering), ended: AtomicBool::new(false) });
    let main = drive.main(Arc::clone(&sink) as Arc<dyn Sink>);
    rt::sim::run(7, drive.workers(), main, async move {
        let scope = Rc::new(Scope::new());
        scope.spawn(script(Rc::clone(&scope)));
        while !sink.ended.load(Ordering::SeqCst) {
            sleep(5).await;
        }
        scope.end();
    });
    let mut shown = shown.lock().unwrap();
    let (total, length) = shown.end.take().unwrap();
    Run { seconds: std::mem::take(&mut shown.seconds), total, length, trouble: drive.trouble() }
}

/// A response with a small body.
pub const ANSWER: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Number of requests that a server received.
pub type Count = Rc<Cell<u64>>;

/// Serves at an address, with a delay of `delay` milliseconds before each response. `Connection: close` is supported.
pub fn serve(scope: &Rc<Scope>, at: &str, delay: impl Fn() -> u64 + Copy + 'static) -> Count {
    let count = Count::default();
    let counted = Rc::clone(&count);
    Service::at(at).serve(scope, move |peer, _| answer_all(peer, Rc::clone(&counted), delay));
    count
}

async fn answer_all(mut peer: Peer, count: Count, delay: impl Fn() -> u64) {
    while let Some(head) = peer.try_receive_head().await {
        count.set(count.get() + 1);
        let millis = delay();
        if millis > 0 {
            sleep(millis).await;
        }
        if !peer.try_send(ANSWER).await || head.contains("Connection: close") {
            return;
        }
    }
}

/// Returns the milliseconds of virtual time since the start of the simulation.
pub fn elapsed() -> u64 {
    u64::try_from(rt::sim::network().elapsed().as_millis()).unwrap()
}
