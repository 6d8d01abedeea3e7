//! Runs `weir_fuzz::regex` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::regex::run(data));
