//! Runs `weir_fuzz::forwarded` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::forwarded::run(data));
