//! Runs `weir_fuzz::spop` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::spop::run(data));
