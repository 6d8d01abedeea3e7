//! Runs `weir_fuzz::former_states` under libFuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| weir_fuzz::former_states::run(data));
