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
    refused!("51degrees-allow-unmatched", "{ on | off }", "51Degrees: accepts unmatched devices."),
    refused!("51degrees-cache-size", "<number>", "51Degrees: size of the cache."),
    refused!("51degrees-data-file", "<file>", "51Degrees: data file."),
    refused!("51degrees-difference", "<number>", "51Degrees: accepted difference of hashes."),
    refused!("51degrees-drift", "<number>", "51Degrees: accepted drift of hashes."),
    refused!("51degrees-property-name-list", "[<name>...]", "51Degrees: properties to load."),
    refused!("51degrees-property-separator", "<character>", "51Degrees: separator of properties."),
    refused!("51degrees-use-performance-graph", "{ on | off }", "51Degrees: uses the performance graph."),
    refused!("51degrees-use-predictive-graph", "{ on | off }", "51Degrees: uses the predictive graph."),
    refused!("deviceatlas-json-cache", "<number>", "DeviceAtlas: size of the cache."),
    refused!("deviceatlas-json-file", "<path>", "DeviceAtlas: data file."),
    refused!("deviceatlas-log-level", "<value>", "DeviceAtlas: log level."),
    refused!("deviceatlas-properties-cookie", "<name>", "DeviceAtlas: cookie of client-side properties."),
    refused!("deviceatlas-separator", "<character>", "DeviceAtlas: separator of properties."),
    refused!("wurfl-cache-size", "<size>", "WURFL: size of the cache."),
    refused!("wurfl-data-file", "<file>", "WURFL: data file."),
    refused!("wurfl-engine-mode", "{ accuracy | performance }", "WURFL: target of the engine."),
    refused!("wurfl-information-list", "[<capability>]...", "WURFL: capabilities to load."),
    refused!("wurfl-information-list-separator", "<character>", "WURFL: separator of capabilities."),
    refused!("wurfl-patch-file", "[<file>...]", "WURFL: patches of the data."),
    refused!("wurfl-useragent-priority", "{ plain | sideloaded_browser }", "WURFL: which user agent has priority."),
];
