//! Mapping of hashes to servers: `hash-type` and related keywords.

use super::{ProxyContext, ProxyKeyword, supported};
use crate::document::Line;
use crate::keyword::argument::lenient;
use crate::keyword::place::places::{ANY, BACK, BACK_ONLY};
use crate::spec::{HashAffinity, HashFunction, HashMethod};

/// Every keyword of the family.
pub(super) const TABLE: &[ProxyKeyword] = &[
    supported(
        BACK,
        "hash-type",
        "{ map-based | consistent } [{ sdbm | djb2 | wt6 | crc32 | none } [avalanche]]",
        "How hashes are mapped to servers.",
        hash_type,
    ),
    supported(
        ANY,
        "hash-balance-factor",
        "<factor>",
        "Maximum load of a server relative to the average, in percent, with consistent hashing.",
        balance_factor,
    ),
    supported(
        BACK_ONLY,
        "hash-preserve-affinity",
        "{ always | maxconn | maxqueue }",
        "Whether requests stay on the server selected by a hash when it is full.",
        affinity,
    ),
];

const FUNCTIONS: &[(&str, HashFunction)] = &[
    ("sdbm", HashFunction::Sdbm),
    ("djb2", HashFunction::Djb2),
    ("wt6", HashFunction::Wt6),
    ("crc32", HashFunction::Crc32),
    ("none", HashFunction::None),
];

fn hash_type(context: &mut ProxyContext<'_>, line: &Line) {
    let report = &mut context.report;
    let method = match line.text(1) {
        "map-based" => HashMethod::MapBased,
        "consistent" => HashMethod::Consistent,
        "avalanche" => {
            let message = "experimental feature 'hash-type avalanche' is not supported anymore, please use 'hash-type \
                           map-based sdbm avalanche' instead.";
            return report.alert(line.span(1), message);
        }
        _ => return report.alert(line.span(1), "'hash-type' only supports 'consistent' and 'map-based'."),
    };
    let function = match (line.text(2), FUNCTIONS.iter().find(|row| row.0 == line.text(2))) {
        ("", _) => None,
        (_, Some(row)) => Some(row.1),
        (_, None) => {
            let message = "'hash-type' only supports 'sdbm', 'djb2', 'crc32', or 'wt6' hash functions.";
            return report.alert(line.span(2), message);
        }
    };
    let avalanche = match line.text(3) {
        "" => false,
        "avalanche" => true,
        _ => {
            let message = "'hash-type' only supports 'avalanche' as a modifier for hash functions.";
            return report.alert(line.span(3), message);
        }
    };
    let hash = &mut context.draft.spec.hash;
    (hash.method, hash.function, hash.avalanche) = (method, function, avalanche);
}

fn balance_factor(context: &mut ProxyContext<'_>, line: &Line) {
    let Some(word) = line.words.get(1) else {
        return context.report.alert(line.span(1), "'hash-balance-factor' expects an integer argument.");
    };
    context.draft.spec.hash.balance_factor = match lenient(word, "hash-balance-factor", &mut context.report) {
        0 => None,
        factor @ 101.. => Some(u32::try_from(factor).unwrap_or(u32::MAX)),
        _ => {
            let message = "'hash-balance-factor' must be 0 or greater than 100.";
            return context.report.alert(word.span, message);
        }
    };
}

fn affinity(context: &mut ProxyContext<'_>, line: &Line) {
    let word = line.text(1);
    context.draft.spec.hash.affinity = match word {
        "always" => HashAffinity::Always,
        "maxconn" => HashAffinity::Maxconn,
        "maxqueue" => HashAffinity::Maxqueue,
        "" => {
            let message = "'hash-preserve-affinity' needs a keyword to specify when to preserve hash affinity";
            return context.report.alert(line.span(1), message);
        }
        _ => {
            let message = format!("'hash-preserve-affinity': unknown keyword '{word}'");
            return context.report.alert(line.span(1), message);
        }
    };
}
