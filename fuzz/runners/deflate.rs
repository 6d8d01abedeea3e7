//! Runs `weir_fuzz::deflate` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::deflate::run(data));
