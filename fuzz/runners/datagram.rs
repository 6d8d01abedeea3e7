//! Runs `weir_fuzz::datagram` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::datagram::run(data));
