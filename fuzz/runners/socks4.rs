//! Runs `weir_fuzz::socks4` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::socks4::run(data));
