//! Runs `weir_fuzz::ocsp` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::ocsp::run(data));
