//! From costs to machines: how many requests a second some cores and a link carry, and what runs out first. Everything
//! here is extrapolated, and what it assumes is written in [`ASSUMED`] and nowhere else. Must never read a result.

use super::costs::Costs;
use crate::bench::figures::count;

/// What the model takes for granted where nothing was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assumptions {
    /// Share of its work that a core keeps when the cores are doubled, from two on.
    pub doubling: f64,
    /// Packets a second that a core receives when it does nothing else than to serve the interface; those that are sent are
    /// the work of the core that sends.
    pub packets: f64,
    /// Bytes of a packet's payload.
    pub segment: f64,
    /// Bytes on the wire that each packet adds: Ethernet with its gap, IP, TCP with timestamps.
    pub overhead: f64,
    /// Bytes of a request.
    pub request: f64,
    /// Packets that a connection adds to the requests on it, in each direction.
    pub connection_packets: f64,
    /// Open client connections for each request a second.
    pub clients: f64,
    /// Seconds that a server takes to answer.
    pub answer: f64,
    /// Servers.
    pub servers: f64,
    /// Ports for connections to one server's address.
    pub ports: f64,
    /// Descriptors of a process.
    pub descriptors: f64,
    /// Bytes of the kernel for an idle socket.
    pub socket: f64,
    /// Bytes of memory for each core.
    pub memory: f64,
}

/// What is assumed. The page tells where each of them comes from.
pub const ASSUMED: Assumptions = Assumptions {
    doubling: 0.92,
    packets: 1.25e6,
    segment: 1448.0,
    overhead: 90.0,
    request: 120.0,
    connection_packets: 2.0,
    clients: 1.0,
    answer: 0.010,
    servers: 10.0,
    ports: 28_232.0,
    descriptors: 1_048_576.0,
    socket: 4096.0,
    memory: 4.0 * 1024.0 * 1024.0 * 1024.0,
};

/// What can run out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// The cores, most of which run the proxy.
    Cpu,
    /// The link, in bits a second in one direction.
    Bits,
    /// The cores, most of which take packets from the interface.
    Packets,
    /// Memory for the open connections.
    Memory,
    /// Descriptors of the process, as the kernel limits them by default.
    Descriptors,
    /// Ports for connections to the servers.
    Ports,
}

impl Limit {
    /// Every one.
    pub const ALL: [Self; 6] = [Self::Cpu, Self::Bits, Self::Packets, Self::Memory, Self::Descriptors, Self::Ports];

    /// In the page's words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cpu => "CPU",
            Self::Bits => "bits",
            Self::Packets => "packets",
            Self::Memory => "memory",
            Self::Descriptors => "descriptors",
            Self::Ports => "ports",
        }
    }
}

/// How requests come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Connections stay on both sides.
    KeepAlive,
    /// Each request opens a connection on both sides.
    Close,
}

/// A machine and what is asked of it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Case {
    /// Cores.
    pub cores: u32,
    /// Bits a second of the link, in each direction.
    pub link: f64,
    /// Bytes of an object.
    pub size: u64,
    /// How requests come.
    pub style: Style,
}

/// The share of a single core's work that each of that many cores does.
#[must_use]
pub fn efficiency(costs: &Costs, assumed: &Assumptions, cores: u32) -> f64 {
    if cores <= 1 {
        return 1.0;
    }
    let second = costs.kept.unwrap_or(assumed.doubling);
    second * assumed.doubling.powf(f64::from(cores).log2() - 1.0)
}

/// CPU of a request, microseconds; `None` where this style was not measured.
#[must_use]
pub fn cpu(costs: &Costs, style: Style, size: u64) -> Option<f64> {
    let request = costs.request(size);
    match style {
        Style::KeepAlive => Some(request),
        Style::Close => Some(request + costs.connections()?),
    }
}

/// Packets and bytes of a request in one direction of the link: what comes in goes out again on the other side.
#[must_use]
pub fn wire(costs: &Costs, assumed: &Assumptions, style: Style, size: u64) -> (f64, f64) {
    let answer = count(size) + costs.head;
    let data = (answer / assumed.segment).ceil().max(1.0);
    // The request, the answer, and an acknowledgement for every second packet of it.
    let mut packets = 1.0 + data + (data / 2.0).floor();
    if style == Style::Close {
        packets += 2.0 * assumed.connection_packets;
    }
    (packets, answer + assumed.request + packets * assumed.overhead)
}

/// Requests a second at which that runs out. The cores are shared out between the proxy and the interface so that both are
/// full: what the larger part of them does is called the limit, and the other one is `None`, as is what was not measured.
#[must_use]
pub fn limit(costs: &Costs, assumed: &Assumptions, case: &Case, limit: Limit) -> Option<f64> {
    let cores = f64::from(case.cores);
    let (packets, bytes) = wire(costs, assumed, case.style, case.size);
    Some(match limit {
        Limit::Cpu | Limit::Packets => {
            let (proxy, interface) = (cpu(costs, case.style, case.size)?, packets * 1e6 / assumed.packets);
            if (interface > proxy) != (limit == Limit::Packets) {
                return None;
            }
            cores * efficiency(costs, assumed, case.cores) * 1e6 / (proxy + interface)
        }
        Limit::Bits => case.link / 8.0 / bytes,
        Limit::Memory => cores * assumed.memory / client_memory(costs, assumed)? / assumed.clients,
        Limit::Descriptors => assumed.descriptors / (assumed.clients + assumed.answer),
        Limit::Ports => assumed.servers * assumed.ports / assumed.answer,
    })
}

/// Bytes of memory that an open client costs, its share of connections to servers with it; `None` where it was not measured.
#[must_use]
pub fn client_memory(costs: &Costs, assumed: &Assumptions) -> Option<f64> {
    let sockets = 1.0 + assumed.answer / assumed.clients;
    Some(costs.memory? + sockets * assumed.socket)
}

/// Every limit that is known, the one that comes first before the others.
#[must_use]
pub fn limits(costs: &Costs, assumed: &Assumptions, case: &Case) -> Vec<(Limit, f64)> {
    let mut known: Vec<(Limit, f64)> =
        Limit::ALL.into_iter().filter_map(|kind| Some((kind, limit(costs, assumed, case, kind)?))).collect();
    known.sort_by(|left, right| left.1.total_cmp(&right.1));
    known
}
