//! Runs `weir_fuzz::client_hello` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::client_hello::run(data));
