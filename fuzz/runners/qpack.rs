//! Runs `weir_fuzz::qpack` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::qpack::run(data));
