//! Sockets by the functions of the C library, as preloaded libraries need them: the same tests as by system calls.
#![allow(clippy::unwrap_used, clippy::print_stderr, dead_code, reason = "tests")]

/// The runtime, which calls functions of the C library whenever it runs.
mod rt {
    pub use weir_rt::*;

    pub fn run(config: &Config, main: Main) -> std::io::Result<()> {
        SocketCalls::Named.set();
        weir_rt::run(config, main)
    }
}

#[path = "kernel/datagrams.rs"]
mod datagrams;
#[path = "kernel/streams.rs"]
mod streams;
#[path = "kernel/support.rs"]
mod support;
#[path = "kernel/udp.rs"]
mod udp;
