//! Runs `weir_fuzz::converter` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::converter::run(data));
