//! Runs `weir_fuzz::bgp` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::bgp::run(data));
