//! The runtime on real sockets, over loopback. Nothing here depends on how long anything takes.
#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

use weir_rt as rt;

mod activity;
mod brief;
mod connected;
mod datagrams;
mod listeners;
mod namespaces;
mod options;
mod parked;
mod passing;
mod process;
mod rejections;
mod spinning;
mod splices;
mod steering;
mod streams;
mod support;
mod tasks;
mod udp;
mod watchdog;
