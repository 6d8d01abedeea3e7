//! A plan prepared for its workers: targets, shares of the load, and counters that must be exact over all
//! workers. Must never wait or use a socket.

use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use base::Moment;
use quic::Bytes;
use rt::net::Address;

use super::h2_request::FramedRequest;
use super::h3_request;
use crate::load::plan::{Pace, Plan, Protocol, Target};

/// A run, shared by its workers.
pub(super) struct LoadRun {
    pub(super) plan: Plan,
    pub(super) lanes: Vec<Lane>,
    /// Number of workers, at least one.
    pub(super) workers: usize,
    /// Start of the run: the time of the first worker that starts.
    start: OnceLock<Moment>,
    /// Remaining requests (`-n`), which workers take in pieces.
    budget: Option<AtomicU64>,
    /// Number of workers with connections.
    running: AtomicUsize,
    /// Number of workers whose part of the load has not ended.
    loading: AtomicUsize,
    /// At least one connection was established.
    connected: AtomicBool,
    trouble: Mutex<Option<String>>,
}

/// Connections to one address, and their requests.
pub(super) struct Lane {
    pub(super) address: Address,
    pub(super) requests: Vec<Request>,
    /// Server name of TLS; `None`: without TLS.
    pub(super) secure: Option<String>,
    pub(super) protocol: Protocol,
    pub(super) connections: u32,
    /// Pace of requests, over all workers.
    pub(super) pace: Pace,
    /// The reference client, which measures in addition to the load.
    pub(super) reference: bool,
}

pub(super) struct Request {
    /// Index among the plan's targets.
    pub(super) target: usize,
    pub(super) weight: u32,
    pub(super) bytes: Box<[u8]>,
    /// The same with `Connection: close`, for the last request of a connection.
    pub(super) closing: Box<[u8]>,
    pub(super) head_only: bool,
    /// The request as HTTP/2 frames, if HTTP/2 is used.
    pub(super) framed: Option<FramedRequest>,
    /// The request as the bytes of a stream, if HTTP/3 is used; otherwise empty.
    pub(super) stream: Bytes,
}

/// A connection slot of the run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct LaneStart {
    pub(super) lane: usize,
    /// Start time, relative to the start of the run.
    pub(super) begins: Duration,
}

impl LoadRun {
    pub(super) fn new(plan: Plan) -> Result<Self, String> {
        let lanes = lay_out(&plan)?;
        if lanes.iter().any(|lane| lane.secure.is_some()) {
            tls::Client::new(plan.tls_settings())?;
        }
        let workers = usize::try_from(plan.threads).unwrap_or(1).max(1);
        Ok(Self {
            lanes,
            workers,
            start: OnceLock::new(),
            budget: plan.requests.map(AtomicU64::new),
            running: AtomicUsize::new(workers),
            loading: AtomicUsize::new(workers),
            connected: AtomicBool::new(false),
            trouble: Mutex::new(None),
            plan,
        })
    }

    /// Returns the start of the run; the first call sets it.
    pub(super) fn start(&self) -> Moment {
        *self.start.get_or_init(rt::now)
    }

    /// Returns the number of connections of the run, including those of the reference client.
    pub(super) fn connections(&self) -> u64 {
        self.lanes.iter().map(|lane| u64::from(lane.connections)).sum()
    }

    /// Returns the connections of one worker: they are assigned round robin.
    pub(super) fn places(&self, worker: usize) -> Vec<LaneStart> {
        let mut places = Vec::new();
        let mut dealt = 0;
        for (lane, of) in self.lanes.iter().enumerate() {
            for number in 0..of.connections {
                if dealt % self.workers == worker {
                    let ramp = if of.reference { Duration::ZERO } else { self.plan.ramp_up };
                    let begins = ramp.mul_f64(f64::from(number) / f64::from(of.connections.max(1)));
                    places.push(LaneStart { lane, begins });
                }
                dealt += 1;
            }
        }
        places
    }

    /// Takes a piece of the budget; unlimited without `-n`.
    pub(super) fn take_budget(&self) -> Option<u64> {
        /// Pieces are large enough to avoid contention, and small enough that no worker keeps the last requests.
        const LARGEST_PIECE: u64 = 64;
        let Some(budget) = &self.budget else { return Some(u64::MAX) };
        let piece = |left: u64| (left / (8 * self.workers as u64)).clamp(1, LARGEST_PIECE).min(left);
        let less = |left: u64| (left > 0).then(|| left - piece(left));
        budget.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).ok().map(piece)
    }

    /// Records that a worker's connections have all ended. Returns whether it was the last worker.
    pub(super) fn worker_ended(&self) -> bool {
        self.running.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Records that a worker's part of the load has ended. Returns whether it was the last worker.
    pub(super) fn load_ended(&self) -> bool {
        self.loading.fetch_sub(1, Ordering::AcqRel) == 1
    }

    /// Whether all requests of the budget were taken.
    pub(super) fn is_spent(&self) -> bool {
        self.budget.as_ref().is_some_and(|budget| budget.load(Ordering::Relaxed) == 0)
    }

    /// Records that a connection was established.
    pub(super) fn note_connected(&self) {
        if !self.connected.load(Ordering::Relaxed) {
            self.connected.store(true, Ordering::Relaxed);
        }
    }

    /// Whether connecting has failed, and never succeeded.
    pub(super) fn is_in_vain(&self) -> bool {
        !self.connected.load(Ordering::Relaxed) && self.trouble().is_some()
    }

    /// Stores the first failure to connect.
    pub(super) fn report_trouble(&self, text: impl FnOnce() -> String) {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(text);
    }

    /// Returns the first failure to connect.
    pub(super) fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Returns one lane for each address, with and without TLS, and one more for the reference client at each address for
/// which it has a connection.
fn lay_out(plan: &Plan) -> Result<Vec<Lane>, String> {
    let mut lanes: Vec<Lane> = Vec::new();
    for (number, target) in plan.targets.iter().enumerate().filter(|(_, target)| target.weight > 0) {
        let lane = lane_of(plan, number, target, plan.pace)?;
        match lanes.iter_mut().find(|other| other.reaches(&lane)) {
            Some(same) => same.requests.extend(lane.requests),
            None => lanes.push(lane),
        }
    }
    if lanes.is_empty() {
        return Err("no URL has a weight".to_owned());
    }
    let mut beside = Vec::new();
    if let Some(reference) = plan.reference {
        for (number, target) in plan.targets.iter().enumerate().filter(|(_, target)| target.weight > 0) {
            let lane = lane_of(plan, number, target, Pace::Constant(reference.rate))?;
            let lane = Lane { reference: true, protocol: plan.protocol.with_one_stream(), ..lane };
            match beside.iter_mut().find(|other: &&mut Lane| other.reaches(&lane)) {
                Some(same) => same.requests.extend(lane.requests),
                None => beside.push(lane),
            }
        }
        beside.truncate(usize::try_from(reference.connections).unwrap_or(usize::MAX).max(1));
        share_out(&mut beside, reference.connections.max(1));
    }
    if (plan.connections as usize) < lanes.len() {
        return Err(format!("{} connections cannot reach {} addresses", plan.connections, lanes.len()));
    }
    share_out(&mut lanes, plan.connections);
    lanes.append(&mut beside);
    Ok(lanes)
}

/// Divides connections and rate among lanes by the weights of their requests: at least one connection each, and the
/// largest remainders receive the rest.
fn share_out(lanes: &mut [Lane], connections: u32) {
    let weight = |lane: &Lane| lane.requests.iter().map(|request| u64::from(request.weight)).sum::<u64>();
    let total: u64 = lanes.iter().map(weight).sum::<u64>().max(1);
    let mut left = u64::from(connections).saturating_sub(lanes.len() as u64);
    let spare = left;
    let mut remainders = Vec::new();
    for (number, lane) in lanes.iter_mut().enumerate() {
        let of = weight(lane);
        let exact = spare as f64 * of as f64 / total as f64;
        let whole = (exact as u64).min(left);
        left -= whole;
        lane.connections = 1 + u32::try_from(whole).unwrap_or(u32::MAX - 1);
        remainders.push((exact - exact.floor(), number));
        let share = of as f64 / total as f64;
        lane.pace = match lane.pace {
            Pace::AsFastAsAnswered => Pace::AsFastAsAnswered,
            Pace::AtMost(rate) => Pace::AtMost(rate * share),
            Pace::Constant(rate) => Pace::Constant(rate * share),
        };
    }
    remainders.sort_by(|one, other| other.0.total_cmp(&one.0).then(one.1.cmp(&other.1)));
    for (_, number) in remainders.into_iter().cycle().take(usize::try_from(left).unwrap_or(0)) {
        lanes[number].connections += 1;
    }
}

fn lane_of(plan: &Plan, number: usize, target: &Target, pace: Pace) -> Result<Lane, String> {
    Ok(Lane {
        address: Address::Inet(target.address),
        secure: target.secure.clone(),
        protocol: plan.protocol,
        requests: vec![request_of(number, target, plan.protocol)?],
        connections: 0,
        pace,
        reference: false,
    })
}

impl Lane {
    /// Whether both use the same connections.
    fn reaches(&self, other: &Self) -> bool {
        self.address == other.address && self.secure == other.secure
    }
}

fn request_of(number: usize, target: &Target, protocol: Protocol) -> Result<Request, String> {
    let (framed, stream) = match protocol {
        Protocol::Http1 => (None, Bytes::new()),
        Protocol::Http2 { .. } => (Some(FramedRequest::new(target)?), Bytes::new()),
        Protocol::Http3 { .. } => (None, h3_request::stream_bytes(target)?),
    };
    Ok(Request {
        target: number,
        weight: target.weight,
        bytes: target.request.clone().into(),
        closing: target.last_request.clone().into(),
        head_only: target.head_only,
        framed,
        stream,
    })
}
