//! Runs `weir_fuzz::origin_request` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::origin_request::run(data));
