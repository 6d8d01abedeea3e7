//! Runs `weir_fuzz::client_ip` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::client_ip::run(data));
