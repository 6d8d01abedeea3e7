//! Fetches of HAProxy that Weir does not implement: an expression with one of them is rejected by name. Must never
//! contain a name that a family has.

#[rustfmt::skip]
pub const NAMES: &[&str] = &[
    "51d.all",
    "da-csv-fetch",
    "internal.htx.data", "internal.htx.free", "internal.htx.free_data", "internal.htx.has_eom",
    "internal.htx.nbblks", "internal.htx.size", "internal.htx.used", "internal.htx_blk.data",
    "internal.htx_blk.hdrname", "internal.htx_blk.hdrval", "internal.htx_blk.size", "internal.htx_blk.start_line",
    "internal.htx_blk.type",
    "wurfl-get", "wurfl-get-all",
];

/// Returns why a fetch is rejected, if no later version will support it either or if it depends on a larger feature.
pub fn reason(name: &str) -> Option<&'static str> {
    match name {
        _ if name.starts_with("internal.htx") => Some(
            "shows how HAProxy keeps messages in memory; Weir keeps them in another way and has nothing to show there",
        ),
        "51d.all" | "da-csv-fetch" | "wurfl-get" | "wurfl-get-all" => Some(
            "is not supported by Weir, which contains no vendor's library for the detection of devices; a map of User-Agent or \
             Sec-CH-UA fields, or a converter in Lua, can classify devices",
        ),
        _ => None,
    }
}
