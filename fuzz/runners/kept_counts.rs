//! Runs `weir_fuzz::kept_counts` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::kept_counts::run(data));
