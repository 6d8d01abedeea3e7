//! Runs `weir_fuzz::expression` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::expression::run(data));
