//! Known differences, each with its reason: a fetch or converter in the case, and how the answers differ. Must never
//! hide another difference of a case that contains such a name.

/// A known difference.
struct KnownDifference {
    /// The fetch or converter, as a whole word.
    name: &'static str,
    /// Prefix of the HAProxy versions that differ.
    versions: &'static str,
    /// HAProxy's answer, as far as known.
    theirs: Theirs,
    /// The reason.
    reason: &'static str,
}

/// The kind of a difference.
enum Theirs {
    /// Any: the sample depends on the implementation.
    Anything,
    /// Weir's answer contains the first text where HAProxy's contains the second.
    Instead(&'static str, &'static str),
    /// HAProxy has no sample where Weir has one.
    Nothing,
}

use Theirs::{Anything, Instead, Nothing};

const BLANKS: &str = "HAProxy writes blanks into the request line, where they end the target";

const KNOWN: &[KnownDifference] = &[
    known("time", "", Anything, "HAProxy takes the second 0 for a day in 1900"),
    known("utime", "", Anything, "HAProxy takes the second 0 for a day in 1900"),
    known("ltime", "", Anything, "HAProxy takes the second 0 for a day in 1900"),
    known("ms_utime", "", Anything, "HAProxy takes the second 0 for a day in 1900"),
    known("ms_ltime", "", Anything, "HAProxy takes the second 0 for a day in 1900"),
    known("us_utime", "", Anything, "HAProxy takes the second 0 for a day in 1900"),
    known("us_ltime", "", Anything, "HAProxy takes the second 0 for a day in 1900"),
    known("http_date", "", Anything, "HAProxy takes the second 0 for a day in 1900"),
    known("capture.res.ver", "", Anything, "HAProxy reads a version before there is an answer"),
    known("be2dec", "", Anything, "HAProxy loses what is beyond four bytes of a chunk"),
    known("le2dec", "", Anything, "HAProxy loses what is beyond four bytes of a chunk"),
    known("src", "2.", Anything, "HAProxy 2 takes an address for a number"),
    known("dst", "2.", Anything, "HAProxy 2 takes an address for a number"),
    known("fc_src", "2.", Anything, "HAProxy 2 takes an address for a number"),
    known("fc_dst", "2.", Anything, "HAProxy 2 takes an address for a number"),
    known("fe_id", "2.", Instead("3", "2"), "HAProxy 2 gives the second proxy of a configuration another number"),
    known("url_param", "2.", Anything, "HAProxy 2 takes no third argument"),
    known("urlp", "2.", Anything, "HAProxy 2 takes no third argument"),
    known("urlp_val", "2.", Anything, "HAProxy 2 takes no third argument"),
    known("word", "2.", Anything, "HAProxy 2 gives an empty text for a word that is not there"),
    known(
        "quic_enabled",
        "",
        Anything,
        "a HAProxy that is built without QUIC has no such sample; the manual knows yes and no",
    ),
    known(
        "last_entity",
        "3.",
        Nothing,
        "HAProxy notes the rule that ends an evaluation behind what that rule puts together",
    ),
    known(
        "last_rule_file",
        "",
        Nothing,
        "HAProxy notes the rule that ends an evaluation behind what that rule puts together",
    ),
    known(
        "term_events",
        "3.",
        Instead("{-,-,-,-,-,-,-}", "{,,,,,-,-}"),
        "the manual leaves the form open for what there was none of",
    ),
    known("txn.sess_term_state", "", Anything, "HAProxy knows how a stream ends before it has answered"),
    known("sess_term_state", "", Anything, "HAProxy knows how a stream ends before it has answered"),
    known(
        "jwt_header_query",
        "3.",
        Nothing,
        "3.5-dev5 has no sample without a path; the manual knows the decoded part",
    ),
    known(
        "jwt_payload_query",
        "3.",
        Nothing,
        "3.5-dev5 has no sample without a path; the manual knows the decoded part",
    ),
    known("set-path", "", Instead("%20", " "), BLANKS),
    known("set-pathq", "", Instead("%20", " "), BLANKS),
    known("set-query", "", Instead("%20", " "), BLANKS),
    known("set-uri", "", Instead("%20", " "), BLANKS),
    known("replace-path", "", Instead("%20", " "), BLANKS),
    known("replace-pathq", "", Instead("%20", " "), BLANKS),
    known("replace-uri", "", Instead("%20", " "), BLANKS),
    known("dump_all_vars", "", Anything, "variables of the session are those of the cases before"),
];

/// Cases that HAProxy rejects and Weir accepts, with the reason.
const REFUSED: &[(&str, &str)] = &[(" -1:1", "HAProxy takes a range that begins below 0 for none")];

const fn known(name: &'static str, versions: &'static str, theirs: Theirs, reason: &'static str) -> KnownDifference {
    KnownDifference { name, versions, theirs, reason }
}

/// Splits a case into words.
fn words(case: &str) -> impl Iterator<Item = &str> {
    case.split(|letter: char| !(letter.is_ascii_alphanumeric() || matches!(letter, '_' | '.' | '-')))
}

/// Whether a difference between the answers to a case is known.
pub fn is_known(case: &str, version: &str, (ours, theirs): (&str, &str)) -> bool {
    KNOWN.iter().any(|row| {
        version.starts_with(row.versions)
            && words(case).any(|word| word == row.name)
            && match row.theirs {
                Anything => true,
                // Parts of the request may contain either text on both sides.
                Instead(own, other) => ours.replace(own, other) == theirs.replace(own, other),
                // A converter may turn only one of them into no sample, and a condition may depend on it.
                Nothing => theirs.len() < ours.len() || case.contains("set-var(txn.yes)"),
            }
    })
}

/// Whether one of the programs may reject a case.
pub fn may_be_refused(case: &str, version: &str) -> bool {
    let refused = REFUSED.iter().any(|(part, _)| case.contains(part));
    refused
        || KNOWN.iter().any(|row| {
            matches!(row.theirs, Anything)
                && version.starts_with(row.versions)
                && words(case).any(|word| word == row.name)
        })
}

#[test]
fn every_known_difference_has_its_reason() {
    for row in KNOWN {
        assert!(!row.name.is_empty() && row.reason.len() > 10, "{}", row.name);
    }
    let form = ("<{-,-,-,-,-,-,-}>", "<{,,,,,-,-}>");
    assert!(is_known("%[term_events]", "3.5", form) && !is_known("%[term_events]", "3.5", ("<a>", "<b>")));
    assert!(!is_known("%[my.term_events]", "3.5", form) && !is_known("%[term_events]", "2.6", form));
}
