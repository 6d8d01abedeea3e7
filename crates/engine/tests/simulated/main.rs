//! The engine on `rt`'s simulator: the real engine, a virtual clock and network, one seed a world. The same behaviours
//! as in `tests/cases`, with exact virtual times and with workers and networks that a real machine cannot order about.

#![allow(clippy::unwrap_used, clippy::print_stderr, reason = "tests")]

extern crate weir_engine as engine;

mod api;
mod messages;
mod world;

mod accepting;
mod acme;
mod arrivals;
mod bodies;
mod budgets;
mod caching;
mod chaos;
mod check_pool;
mod checks;
mod compression;
mod connecting;
mod conversations;
mod dying;
mod early;
mod early_data;
mod ejections;
mod fcgi;
mod filters;
mod generations;
mod glitches;
mod grpc;
mod h2;
mod half_close;
mod health;
mod hedging;
mod http_client;
mod http_options;
mod inspecting;
mod links_by_tls;
mod maxconn;
mod orders;
mod panics;
mod parts;
mod peers;
mod persistence;
mod private;
mod queueing;
mod rates;
mod recording;
mod records;
mod resolving;
mod retries;
mod retry_on;
mod reuse;
mod reversing;
mod runtime;
mod scripts;
mod secure;
mod services;
mod several;
mod sharing;
mod slow_readers;
mod slowstart;
mod spliced_chunks;
mod stalls;
mod statistics;
mod stopping;
mod tables;
mod terminations;
mod timeouts;
mod tls;
mod tls_runtime;
mod trailers;
mod transfers;
mod tunnels;
mod upgrades;
mod waits;
