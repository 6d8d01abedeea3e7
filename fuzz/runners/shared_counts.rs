//! Runs `weir_fuzz::shared_counts` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::shared_counts::run(data));
