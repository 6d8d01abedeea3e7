//! Runs `weir_fuzz::otel_file` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::otel_file::run(data));
