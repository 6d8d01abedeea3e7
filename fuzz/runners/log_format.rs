//! Runs `weir_fuzz::log_format` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::log_format::run(data));
