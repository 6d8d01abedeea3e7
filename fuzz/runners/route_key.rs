//! Runs `weir_fuzz::route_key` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::route_key::run(data));
