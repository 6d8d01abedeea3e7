//! Runs `weir_fuzz::chunk_decoder` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::chunk_decoder::run(data));
