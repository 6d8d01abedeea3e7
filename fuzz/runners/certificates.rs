//! Runs `weir_fuzz::certificates` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::certificates::run(data));
