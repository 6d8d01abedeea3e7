//! Runs `weir_fuzz::trace_context` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::trace_context::run(data));
