//! Runs `weir_fuzz::spoe_file` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::spoe_file::run(data));
