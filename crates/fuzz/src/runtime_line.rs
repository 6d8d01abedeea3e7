//! Any bytes as a line of the runtime API: no panic, no bytes lost between the semicolons, bounded words, and a payload
//! ends at the same position, however much of it is available.


use control::runtime::line::{MAX_WORDS, announces_payload, commands, payload_end, words};

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let (line, input) = match data.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (data, &[][..]),
    };
    let found = commands(line);
    assert_eq!(found.join(&b';'), line, "commands and the semicolons between them are the line");
    for command in found {
        let Ok(words) = words(command) else { continue };
        assert!(words.len() <= MAX_WORDS);
        let length: usize = words.iter().map(|word| config::text::to_bytes(word).len()).sum();
        assert!(length <= command.len() && words.iter().all(|word| !word.is_empty()));
    }
    let Some((before, marker)) = announces_payload(line) else { return };
    assert!(line.starts_with(before) && marker.len() <= 64);
    let whole = payload_end(input, marker);
    if let Some((payload, all)) = whole {
        assert!(payload <= all && all <= input.len() && input[all - 1] == b'\n');
        for length in 0..all {
            assert_eq!(payload_end(&input[..length], marker), None, "it ends with its last byte");
        }
        assert_eq!(payload_end(&input[..all], marker), whole);
    }
}
