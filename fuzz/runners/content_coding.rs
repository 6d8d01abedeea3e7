//! Runs `weir_fuzz::content_coding` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::content_coding::run(data));
