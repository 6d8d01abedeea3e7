//! Device detection by vendors' libraries (section 3.1); HAProxy supports these keywords when built with the library,
//! and Weir rejects them: it contains no vendor's library.

use super::GlobalKeyword;
use crate::keyword::table::{Keyword, Status};

/// A row whose keyword is rejected by name.
macro_rules! refused {
    ($name:literal, $usage:literal, $doc:literal $(,)?) => {
        Keyword::new(
            (),
            $name,
            $usage,
            $doc,
            Status::Refused(concat!(
                "'",
                $name,
                "' is not supported by Weir, which contains no vendor's library for the detection of devices. A map of User-Agent \
                 or Sec-CH-UA fields (map_reg, map_sub) or a converter in Lua can classify devices.",
            )),
        )
    };
}

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    refused!("51degrees-allow-unmatched", "{ on | off }", "51Degrees: accept devices without a full match."),
    refused!("51degrees-cache-size", "<number>", "51Degrees: results remembered."),
    refused!("51degrees-data-file", "<file>", "51Degrees: the data."),
    refused!("51degrees-difference", "<number>", "51Degrees: accepted difference of hashes."),
    refused!("51degrees-drift", "<number>", "51Degrees: accepted drift of hashes."),
    refused!("51degrees-property-name-list", "[<name>...]", "51Degrees: properties to load."),
    refused!("51degrees-property-separator", "<character>", "51Degrees: what separates properties."),
    refused!("51degrees-use-performance-graph", "{ on | off }", "51Degrees: use the performance graph."),
    refused!("51degrees-use-predictive-graph", "{ on | off }", "51Degrees: use the predictive graph."),
    refused!("deviceatlas-json-cache", "<number>", "DeviceAtlas: results remembered."),
    refused!("deviceatlas-json-file", "<path>", "DeviceAtlas: the data."),
    refused!("deviceatlas-log-level", "<value>", "DeviceAtlas: how much is reported."),
    refused!("deviceatlas-properties-cookie", "<name>", "DeviceAtlas: cookie of client-side properties."),
    refused!("deviceatlas-separator", "<character>", "DeviceAtlas: what separates properties."),
    refused!("wurfl-cache-size", "<size>", "WURFL: results remembered."),
    refused!("wurfl-data-file", "<file>", "WURFL: the data."),
    refused!("wurfl-engine-mode", "{ accuracy | performance }", "WURFL: what the engine aims at."),
    refused!("wurfl-information-list", "[<capability>]...", "WURFL: capabilities to load."),
    refused!("wurfl-information-list-separator", "<character>", "WURFL: what separates capabilities."),
    refused!("wurfl-patch-file", "[<file>...]", "WURFL: patches of the data."),
    refused!("wurfl-useragent-priority", "{ plain | sideloaded_browser }", "WURFL: which user agent counts."),
];
