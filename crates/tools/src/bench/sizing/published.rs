//! Figures published by others, each with its source. Must never contain a figure that is not in its source, nor one
//! of ours.

/// Kind of a figure, by which it is compared with ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Requests per second over connections kept open on both sides.
    KeepAlive,
    /// Requests per second with a server connection for each.
    ServerClose,
    /// Requests per second with a connection for each on both sides.
    Close,
    /// Forwarded TCP connections per second.
    Connection,
    /// Open connections in a gigabyte of memory.
    ConnectionsPerGigabyte,
    /// A quantity that is not measured here.
    Other,
}

#[derive(Debug, Clone, Copy)]
pub struct Published {
    pub date: &'static str,
    pub program: &'static str,
    /// The quantity, with the size of the object as far as it is published.
    pub what: &'static str,
    pub figure: f64,
    /// Cores of the proxy, and additional cores for interrupts.
    pub cores: (f64, f64),
    pub machine: &'static str,
    /// Index into [`SOURCES`].
    pub source: usize,
    /// Kind of our figure that it is compared with.
    pub kind: Kind,
}

/// HAProxy's figures on 64 cores, of the third source.
#[derive(Debug, Clone, Copy)]
pub struct LargeMachine {
    /// Requests per second, least and most.
    pub requests: [f64; 2],
    /// Packets per second at which the network was saturated.
    pub packets: f64,
    /// Rate of data with objects of 30 kB, in Gbit/s.
    pub gigabits: f64,
    /// Maximum mean latency that the proxy added, in microseconds.
    pub added_micros: f64,
}

/// See [`LargeMachine`].
pub const GRAVITON: LargeMachine =
    LargeMachine { requests: [2_040_000.0, 2_080_000.0], packets: 4_150_000.0, gigabits: 92.0, added_micros: 400.0 };

/// Sources of the figures.
pub const SOURCES: &[(&str, &str)] = &[
    (
        "HAProxy, \"Quick test of version 1.4-dev2\", 2009-08-23",
        "https://www.haproxy.org/10g.html. Its text was read as far as the lab's description; the page that describes the \
         lab of 2008 (https://www.haproxy.org/10g-20080419.html) names the machine of the proxy, and the one of April 2009 \
         says that it has hardly changed.",
    ),
    (
        "HAProxy's Starter Guide (intro.txt), section 3.5, \"Sizing\"",
        "https://docs.haproxy.org/dev/intro.html. It names HAProxy 1.6, which came out in October 2015, and no date of its own.",
    ),
    (
        "HAProxy Technologies, \"HAProxy Forwards Over 2 Million HTTP Requests per Second on a Single Arm-based AWS Graviton2 \
         Instance\", April 2021",
        "https://www.haproxy.com/blog/haproxy-forwards-over-2-million-http-requests-per-second-on-a-single-aws-arm-instance/. \
         The size of the object, and whether connections were kept, are not mentioned in the text that was read. The commands that go with it \
         (https://gist.github.com/haproxytechblog/1013c08a5bc0d24670c8b1901c6067fd) spread the interrupts of the interface over 16 queues. \
         The latency (160 µs without the proxy, 560 µs with it, at most 400 µs added on average, the machine saturated) was read as \
         https://tfir.io/haproxy-reaches-over-2-million-requests-per-second-on-a-single-arm-based-aws-graviton2-instance/ repeats it. The limit of \
         4.15 million packets a second was read where others quote the article. The 92 Gbit/s with objects of 30 kB are attributed to \
         the same test; no text with them was found.",
    ),
    (
        "NGINX, \"Testing the Performance of NGINX and NGINX Plus Web Servers\", 2017-08-24",
        "https://www.nginx.com/blog/testing-the-performance-of-nginx-and-nginx-plus-web-servers/ describes the method; the table was \
         read as https://e-whisper.com/posts/56821/ repeats it. The date is that of a copy of the article. A web server that answers by itself, without connections \
         to servers. Two machines, dual 40 Gbit/s, 50 connections, a process for each CPU.",
    ),
];

const LAB_2009: &str = "Core 2 Duo E8200, 2.66 GHz (the lab of 2008), 10 Gbit/s";
const I7: &str = "Core i7, 3.7 GHz, 2 × 10 Gbit/s, Linux 3.10";
const GRAVITON_NAME: &str = "AWS Graviton2, 64 cores, 100 Gbit/s";
const XEON_V3: &str = "2 × Xeon E5 v3, 36 cores, 2 × 40 Gbit/s";

#[rustfmt::skip]
pub const FIGURES: &[Published] = &[
    Published { date: "2009-08", program: "HAProxy 1.4-dev2", what: "TCP sessions a second, not passed on", figure: 132_000.0, cores: (1.0, 0.0), machine: LAB_2009, source: 0, kind: Kind::Other },
    Published { date: "2009-08", program: "HAProxy 1.4-dev2", what: "redirected and closed requests a second", figure: 108_000.0, cores: (1.0, 0.0), machine: LAB_2009, source: 0, kind: Kind::Other },
    Published { date: "2009-08", program: "HAProxy 1.4-dev2", what: "forwarded requests a second, 64 bytes, close", figure: 40_000.0, cores: (1.0, 0.0), machine: LAB_2009, source: 0, kind: Kind::Close },
    Published { date: "2015", program: "HAProxy 1.6", what: "filtered TCP connections a second", figure: 300_000.0, cores: (1.0, 2.0), machine: I7, source: 1, kind: Kind::Other },
    Published { date: "2015", program: "HAProxy 1.6", what: "TCP connections a second, passed on", figure: 83_000.0, cores: (1.0, 2.0), machine: I7, source: 1, kind: Kind::Connection },
    Published { date: "2015", program: "HAProxy 1.6", what: "HTTP connections a second, passed on", figure: 82_000.0, cores: (1.0, 2.0), machine: I7, source: 1, kind: Kind::Close },
    Published { date: "2015", program: "HAProxy 1.6", what: "requests a second, server-close", figure: 97_000.0, cores: (1.0, 2.0), machine: I7, source: 1, kind: Kind::ServerClose },
    Published { date: "2015", program: "HAProxy 1.6", what: "requests a second, end-to-end keep-alive", figure: 243_000.0, cores: (1.0, 2.0), machine: I7, source: 1, kind: Kind::KeepAlive },
    Published { date: "2015", program: "HAProxy 1.6", what: "saturated connections in a GB, the kernel's buffers with them", figure: 20_000.0, cores: (0.0, 0.0), machine: I7, source: 1, kind: Kind::ConnectionsPerGigabyte },
    Published { date: "2017-08", program: "nginx, as a web server", what: "requests a second, 0 bytes, 1 CPU", figure: 145_551.0, cores: (1.0, 0.0), machine: XEON_V3, source: 3, kind: Kind::Other },
    Published { date: "2017-08", program: "nginx, as a web server", what: "requests a second, 0 bytes, 32 CPUs", figure: 3_019_182.0, cores: (32.0, 0.0), machine: XEON_V3, source: 3, kind: Kind::Other },
    Published { date: "2017-08", program: "nginx, as a web server", what: "requests a second, 1 KB, 1 CPU", figure: 74_091.0, cores: (1.0, 0.0), machine: XEON_V3, source: 3, kind: Kind::Other },
    Published { date: "2017-08", program: "nginx, as a web server", what: "requests a second, 10 KB, 1 CPU", figure: 54_684.0, cores: (1.0, 0.0), machine: XEON_V3, source: 3, kind: Kind::Other },
    Published { date: "2017-08", program: "nginx, as a web server", what: "connections a second, 0 bytes, 1 CPU", figure: 34_344.0, cores: (1.0, 0.0), machine: XEON_V3, source: 3, kind: Kind::Other },
    Published { date: "2021-04", program: "HAProxy 2.4-dev", what: "requests a second", figure: 2_070_000.0, cores: (64.0, 0.0), machine: GRAVITON_NAME, source: 2, kind: Kind::KeepAlive },
    Published { date: "2021-04", program: "HAProxy 2.3", what: "requests a second", figure: 2_040_000.0, cores: (64.0, 0.0), machine: GRAVITON_NAME, source: 2, kind: Kind::KeepAlive },
    Published { date: "2021-04", program: "HAProxy 2.3 and 2.4-dev", what: "packets a second of the saturated network", figure: GRAVITON.packets, cores: (0.0, 0.0), machine: GRAVITON_NAME, source: 2, kind: Kind::Other },
    Published { date: "2021-04", program: "HAProxy, a development version", what: "requests a second", figure: 1_030_000.0, cores: (8.0, 0.0), machine: "Xeon W-2145, 8 cores, 16 threads", source: 2, kind: Kind::KeepAlive },
];

/// Published data rates.
pub const BANDWIDTHS: &[(&str, &str, &str, usize)] = &[
    (
        "2015",
        "HAProxy 1.6, one core and two for interrupts",
        "10 Gbit/s from objects of 41 KB on, 20 Gbit/s from 256 KB on",
        1,
    ),
    (
        "2017-08",
        "nginx, as a web server, 8 CPUs and more",
        "91,640 requests of 100 KB a second (75 Gbit/s), and no more with 16 to 36 CPUs",
        3,
    ),
    ("2021-04", "HAProxy 2.3, 64 cores", "92 Gbit/s from objects of 30 kB", 2),
    ("2021", "HAProxy 2.4, 64 cores", "100 Gbit/s (the size of the objects is not published)", 1),
];

/// Figures that were searched and not found, or found without values.
pub const NOT_FOUND: &[&str] = &[
    "The tables of HAProxy's tests at 10 Gbit/s of April 2008 and April 2009 (rate and CPU by object size): the pages exist, \
     their tables were not in what could be read.",
    "A published HAProxy benchmark of 2011 or 2012, and one at 40 Gbit/s of 2016 or 2017: none was found. HAProxy's guide says \
     that threads are needed for more than 40 Gbit/s, and gives no measurement with it.",
    "The tables of the NGINX Plus sizing guide (the reverse proxy): its description of the method was found, its figures were not.",
];
