//! Any bytes as a request to the test origin: no panic, the same result in pieces, and parameters within their limits.
//!
//! The first byte selects the pieces and the random values.


use std::cell::RefCell;

use tools::origin::request::{Progress, Reader};
use wire::haterm::Parameters;
use wire::http::Head;

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    let [choice, input @ ..] = data else { return };
    let random = || u64::from(*choice) << 56;
    let within_bounds = |parameters: &Parameters| {
        assert!((100..1000).contains(&parameters.status));
        assert!(parameters.wait <= 24 * 3600 * 1000);
        assert!(i64::try_from(parameters.size).is_ok());
    };
    within_bounds(&Parameters::read(input, random));

    let shared = RefCell::new(Head::new());
    let whole = Reader::default().read(input, &shared, random);
    if let Progress::Complete(request, consumed) = &whole {
        assert!(*consumed <= input.len());
        within_bounds(&request.parameters);
    }
    let (mut reader, piece) = (Reader::default(), usize::from(*choice % 7) + 1);
    let mut in_pieces = Progress::Partial;
    let mut end = 0;
    while in_pieces == Progress::Partial && end < input.len() {
        end = (end + piece).min(input.len());
        in_pieces = reader.read(&input[..end], &shared, random);
    }
    match (&whole, &in_pieces) {
        // In pieces, a request too long is rejected at another byte, and an invalid line only at its end.
        (Progress::Refused(_), Progress::Refused(_)) => {}
        (Progress::Refused(_), Progress::Partial) => {
            assert!(input.last() != Some(&b'\n'), "a line that ended is judged")
        }
        _ => assert_eq!(whole, in_pieces),
    }
}
