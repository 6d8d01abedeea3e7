//! Runs `weir_fuzz::dns_answer` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::dns_answer::run(data));
