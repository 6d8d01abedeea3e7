//! Any bytes as the output of a store: no panic, replies end where they say, the same result in pieces, and commands come back
//! as arrays of their arguments.

use wire::resp::{Incomplete, Reply, next_reply, push_command};

/// Maximum size of a reply in bytes.
const MOST: usize = 4_096;

/// Runs on one input; panics if a property is violated.
pub fn run(input: &[u8]) {
    let mut rest = input;
    while let Ok(decoded) = next_reply(rest, MOST) {
        match decoded {
            Ok((_, taken)) => {
                assert!(taken <= rest.len() && taken <= MOST);
                for shorter in [0, 1, taken / 2, taken - 1] {
                    let Ok(Err(Incomplete { least })) = next_reply(&rest[..shorter], MOST) else {
                        panic!("a reply is there before its end");
                    };
                    assert!(shorter < least && least <= taken, "{shorter} {least} {taken}");
                }
                rest = &rest[taken..];
            }
            Err(Incomplete { least }) => {
                assert!(rest.len() < least && least <= MOST);
                break;
            }
        }
    }
    let arguments: Vec<&[u8]> = input.split(|byte| *byte == b' ').take(20).map(|one| &one[..one.len().min(100)]).collect();
    let mut command = Vec::new();
    push_command(&arguments, &mut command);
    let expected = Reply::Array(arguments.into_iter().map(Reply::Bulk).collect());
    assert_eq!(next_reply(&command, MOST), Ok(Ok((expected, command.len()))));
}
