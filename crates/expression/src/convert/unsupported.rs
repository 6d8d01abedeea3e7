//! Converters that HAProxy has and Weir has not yet: an expression with one of them is refused by its name. Must never hold
//! a name that a family has.

/// Their names.
#[rustfmt::skip]
pub const NAMES: &[&str] = &[
    "51d.single", "da-csv-conv",
];

/// Why a name is refused that no later version will take as it is.
pub fn reason(name: &str) -> Option<&'static str> {
    matches!(name, "51d.single" | "da-csv-conv").then_some(
        "is not supported by Weir, which contains no vendor's library for the detection of devices; a map of User-Agent or \
         Sec-CH-UA fields, or a converter in Lua, can classify devices",
    )
}
