//! Runs `weir_fuzz::qmux` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::qmux::run(data));
