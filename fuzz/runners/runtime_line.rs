//! Runs `weir_fuzz::runtime_line` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::runtime_line::run(data));
