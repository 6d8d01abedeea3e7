//! Any bytes as a Forwarded field: no panic, and two valid values joined by a comma are a valid one, whose last element
//! cannot be mistaken for a part of the first.


use wire::http::forwarded::{is_element, is_host, is_valid};

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let valid = is_valid(data);
    if valid {
        let mut joined = data.to_vec();
        joined.extend_from_slice(b",proto=http;for=192.0.2.1");
        assert!(is_valid(&joined));
        assert!(data.iter().filter(|byte| **byte == b'"').count().is_multiple_of(2));
    }
    if is_element(data) {
        assert!(valid);
    }
    if is_host(data) {
        let element = [b"host=\"", data, b"\""].concat();
        assert!(is_element(&element));
    }
}
