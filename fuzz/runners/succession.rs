//! Runs `weir_fuzz::succession` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::succession::run(data));
