//! Runs `weir_fuzz::fcgi_answer` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::fcgi_answer::run(data));
