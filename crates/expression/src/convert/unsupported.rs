//! Converters of HAProxy that Weir does not implement: an expression with one of them is rejected by name. Must never
//! contain a name that a family has.

#[rustfmt::skip]
pub const NAMES: &[&str] = &[
    "51d.single", "da-csv-conv",
];

/// Returns why a converter is rejected, if no later version will support it either.
pub fn reason(name: &str) -> Option<&'static str> {
    matches!(name, "51d.single" | "da-csv-conv").then_some(
        "is not supported by Weir, which contains no vendor's library for the detection of devices; a map of User-Agent or \
         Sec-CH-UA fields, or a converter in Lua, can classify devices",
    )
}
