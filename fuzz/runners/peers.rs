//! Runs `weir_fuzz::peers` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::peers::run(data));
