//! The finished program from outside: arguments, messages, exit statuses, signals, the daemon, the demonstration.
//! Must never wait for a moment to pass: only for a line, a connection, a file or an end.

#![allow(clippy::print_stderr, reason = "a test that is skipped says so")]

mod acme;
mod balancers;
mod browser;
mod budget;
mod cache_disk;
mod check;
mod check_hints;
mod check_rules;
mod check_verdicts;
mod clients;
mod command_line;
mod condition;
mod content_codings;
mod counts;
mod crowd;
mod dashboard;
mod dashboard_page;
mod demonstration;
mod descriptors;
mod early_data;
mod exhaustion;
mod external;
mod grpc;
mod handover;
mod http2_peers;
mod lua;
mod lua_beside;
mod lua_bombs;
mod lua_classes;
mod lua_decoded;
mod lua_filters;
mod lua_manual;
mod lua_results;
mod manual;
mod master;
mod memory;
mod metrics;
mod multipath;
mod namespaces;
mod networks;
mod ocsp;
mod offload_faults;
mod packages;
mod pages;
mod peers;
mod php_fpm;
mod pki;
#[path = "../shared/ports.rs"]
mod ports;
mod reload;
mod reload_rights;
mod restart;
mod rights;
mod saved_state;
mod serve;
mod services;
mod shared_counts;
mod sockpair;
mod spoe;
mod support;
mod tls_limit;
mod tls_peers;
mod unit;
