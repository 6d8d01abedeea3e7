//! Runs `weir_fuzz::balance_key` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::balance_key::run(data));
