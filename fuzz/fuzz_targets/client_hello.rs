//! A TLS hello: whatever comes, the parts that are found lie within it, and a hello that is whole stays what it is when
//! more comes behind it.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wire::client_hello::{Found, extension, hello, sslv2};

fuzz_target!(|data: &[u8]| {
    let _ = sslv2(data);
    let Found::Whole(found) = hello(data) else { return };
    let mut longer = data.to_vec();
    longer.extend_from_slice(b"more");
    assert_eq!(hello(&longer), Found::Whole(found));
    let Some(client) = found.client() else { return };
    for part in [client.server_name(), client.first_protocol(), client.numbers(extension::SUPPORTED_GROUPS)] {
        assert!(part.is_none_or(|part| part.len() < data.len()));
    }
    assert!(client.key_share_groups().count() <= data.len() / 4);
});
