//! Runs `weir_fuzz::config_reader` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::config_reader::run(data));
