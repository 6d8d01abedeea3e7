//! Runs `weir_fuzz::patterns` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::patterns::run(data));
