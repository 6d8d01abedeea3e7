//! From costs to machines: the number of requests per second that cores and a link can carry, and the resource that
//! limits it. Everything here is extrapolated; all assumptions are in [`ASSUMED`]. Must never read a result.

use super::costs::Costs;
use crate::bench::figures::count;

/// Values that the model assumes because they were not measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Assumptions {
    /// Share of its work that a core keeps when the number of cores is doubled, from two on.
    pub doubling: f64,
    /// Packets per second that a core receives when it only serves the interface; sent packets
    /// are the work of the sending core.
    pub packets: f64,
    /// Payload of a packet, in bytes.
    pub segment: f64,
    /// Overhead of each packet on the wire, in bytes: Ethernet with its gap, IP, TCP with timestamps.
    pub overhead: f64,
    /// Size of a request, in bytes.
    pub request: f64,
    /// Additional packets of a connection, in each direction.
    pub connection_packets: f64,
    /// Open client connections for each request per second.
    pub clients: f64,
    /// Response time of a server, in seconds.
    pub answer: f64,
    /// Number of servers.
    pub servers: f64,
    /// Ports for connections to one server's address.
    pub ports: f64,
    /// Maximum number of descriptors of a process.
    pub descriptors: f64,
    /// Kernel memory of an idle socket, in bytes.
    pub socket: f64,
    /// Memory for each core, in bytes.
    pub memory: f64,
    /// Shares of the CPU of a small kept request that a ring (io_uring) saves, least and most: a trial with 64 connections
    /// (docs/performance.md). Weir has no such driver.
    pub ring_saves: [f64; 2],
}

/// The assumptions. The page contains the source of each.
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
    ring_saves: [0.04, 0.07],
};

/// Resource that limits the load.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// Cores, most of which run the proxy.
    Cpu,
    /// The link, in bits per second in one direction.
    Bits,
    /// Cores, most of which receive packets from the interface.
    Packets,
    /// Memory for the open connections.
    Memory,
    /// Descriptors of the process, with the kernel's default limit.
    Descriptors,
    /// Ports for connections to the servers.
    Ports,
}

impl Limit {
    /// All limits.
    pub const ALL: [Self; 6] = [Self::Cpu, Self::Bits, Self::Packets, Self::Memory, Self::Descriptors, Self::Ports];

    /// Returns the name in the page.
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

/// Use of connections by requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Connections are kept open on both sides.
    KeepAlive,
    /// Each request opens a connection on both sides.
    Close,
}

/// A machine and its load.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Case {
    pub cores: u32,
    /// Bandwidth of the link in each direction, in bits per second.
    pub link: f64,
    /// Size of an object, in bytes.
    pub size: u64,
    /// Use of connections.
    pub style: Style,
}

/// Returns the share of a single core's work that each of that number of cores does.
#[must_use]
pub fn efficiency(costs: &Costs, assumed: &Assumptions, cores: u32) -> f64 {
    if cores <= 1 {
        return 1.0;
    }
    let second = costs.kept.unwrap_or(assumed.doubling);
    second * assumed.doubling.powf(f64::from(cores).log2() - 1.0)
}

/// Returns the CPU of a request in microseconds; `None` if this style was not measured.
#[must_use]
pub fn cpu(costs: &Costs, style: Style, size: u64) -> Option<f64> {
    let request = costs.request(size);
    match style {
        Style::KeepAlive => Some(request),
        Style::Close => Some(request + costs.connections()?),
    }
}

/// Returns packets and bytes of a request in one direction of the link: incoming data is also sent on the other side.
#[must_use]
pub fn wire(costs: &Costs, assumed: &Assumptions, style: Style, size: u64) -> (f64, f64) {
    let answer = count(size) + costs.head;
    let data = (answer / assumed.segment).ceil().max(1.0);
    // The request, the response, and an acknowledgement for every second packet of it.
    let mut packets = 1.0 + data + (data / 2.0).floor();
    if style == Style::Close {
        packets += 2.0 * assumed.connection_packets;
    }
    (packets, answer + assumed.request + packets * assumed.overhead)
}

/// Returns the requests per second at which the resource is exhausted. The cores are divided between the proxy and the
/// interface so that both are fully used: the larger part is the limit, and the other one is `None`, like values that
/// were not measured.
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

/// Returns the memory of an open client connection in bytes, including its share of server connections; `None` if it
/// was not measured.
#[must_use]
pub fn client_memory(costs: &Costs, assumed: &Assumptions) -> Option<f64> {
    let sockets = 1.0 + assumed.answer / assumed.clients;
    Some(costs.memory? + sockets * assumed.socket)
}

/// Returns every known limit, the lowest one first.
#[must_use]
pub fn limits(costs: &Costs, assumed: &Assumptions, case: &Case) -> Vec<(Limit, f64)> {
    let mut known: Vec<(Limit, f64)> =
        Limit::ALL.into_iter().filter_map(|kind| Some((kind, limit(costs, assumed, case, kind)?))).collect();
    known.sort_by(|left, right| left.1.total_cmp(&right.1));
    known
}
