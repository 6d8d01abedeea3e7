//! Runs `weir_fuzz::keys` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::keys::run(data));
