//! Runs `weir_fuzz::cookie` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::cookie::run(data));
