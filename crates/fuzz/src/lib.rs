//! Fuzz targets: for each parser of untrusted bytes, a function that feeds it any bytes and checks its properties.
//! `fuzz/` runs them under libFuzzer; `tests/corpus` runs them on the inputs in `fuzz/corpus/`. Must never do I/O or
//! depend on anything that changes from run to run.

#![cfg(feature = "tests")]

pub mod evaluation;

/// Declares the modules and the table of the targets.
macro_rules! targets {
    ($($name:ident),* $(,)?) => {
        $(pub mod $name;)*

        /// Every target: its name and its function.
        pub const TARGETS: &[(&str, fn(&[u8]))] = &[$((stringify!($name), $name::run)),*];
    };
}

targets! {
    balance_key,
    bgp,
    certificates,
    chunk_decoder,
    client_hello,
    client_ip,
    config_reader,
    content_coding,
    converter,
    cookie,
    datagram,
    deflate,
    dns_answer,
    expression,
    fcgi_answer,
    former_states,
    forwarded,
    h1_request,
    h1_response,
    h2_connection,
    h2_request,
    h3_connection,
    h3_frames,
    kept_counts,
    keys,
    log_format,
    ocsp,
    origin_request,
    otel_file,
    patterns,
    peers,
    proxy_protocol,
    qmux,
    qpack,
    quic_hello,
    regex,
    resp,
    route_key,
    runtime_line,
    shared_counts,
    socks4,
    spoe_file,
    spop,
    succession,
    syslog,
    trace_context,
}
