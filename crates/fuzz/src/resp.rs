//! Any bytes as the output of a store: no panic, replies end where they say, the same result in pieces, and commands come back
//! as arrays of their arguments.

use wire::resp::{Incomplete, Malformed, Reply, ReplyScan, next_reply, push_command};

/// Maximum size of a reply in bytes.
const MOST: usize = 4_096;

/// Looks for the end of a reply that arrives in pieces of that size.
fn scanned(input: &[u8], piece: usize) -> Result<Option<usize>, Malformed> {
    let mut scan = ReplyScan::default();
    for length in (0..input.len()).step_by(piece.max(1)).chain([input.len()]) {
        let found = scan.end(&input[..length], MOST)?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Runs on one input; panics if a property is violated.
pub fn run(input: &[u8]) {
    let mut rest = input;
    while let Ok(decoded) = next_reply(rest, MOST) {
        let ends = [scanned(rest, rest.len()), scanned(rest, 1)];
        match decoded {
            Ok((_, taken)) => {
                assert!(taken <= rest.len() && taken <= MOST);
                assert_eq!(ends, [Ok(Some(taken)); 2]);
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
                // Errors in the elements of an array are found earlier.
                assert!(ends[0] == ends[1] && matches!(ends[0], Ok(None) | Err(Malformed)), "{ends:?}");
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
