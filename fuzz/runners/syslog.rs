//! Runs `weir_fuzz::syslog` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::syslog::run(data));
