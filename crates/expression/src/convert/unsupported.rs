//! Converters that HAProxy has and Weir has not yet: an expression with one of them is refused by its name. Must never hold
//! a name that a family has.

/// Their names.
#[rustfmt::skip]
pub const NAMES: &[&str] = &[
    "51d.single", "da-csv-conv",
];
