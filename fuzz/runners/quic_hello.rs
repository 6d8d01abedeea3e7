//! Runs `weir_fuzz::quic_hello` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::quic_hello::run(data));
