//! Device detection by vendors' libraries (section 3.1); HAProxy knows them when built with the library.

use super::{GlobalKeyword, not_yet};

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    not_yet("51degrees-allow-unmatched", "{ on | off }", "51Degrees: accept devices without a full match."),
    not_yet("51degrees-cache-size", "<number>", "51Degrees: results remembered."),
    not_yet("51degrees-data-file", "<file>", "51Degrees: the data."),
    not_yet("51degrees-difference", "<number>", "51Degrees: accepted difference of hashes."),
    not_yet("51degrees-drift", "<number>", "51Degrees: accepted drift of hashes."),
    not_yet("51degrees-property-name-list", "[<name>...]", "51Degrees: properties to load."),
    not_yet("51degrees-property-separator", "<character>", "51Degrees: what separates properties."),
    not_yet("51degrees-use-performance-graph", "{ on | off }", "51Degrees: use the performance graph."),
    not_yet("51degrees-use-predictive-graph", "{ on | off }", "51Degrees: use the predictive graph."),
    not_yet("deviceatlas-json-cache", "<number>", "DeviceAtlas: results remembered."),
    not_yet("deviceatlas-json-file", "<path>", "DeviceAtlas: the data."),
    not_yet("deviceatlas-log-level", "<value>", "DeviceAtlas: how much is reported."),
    not_yet("deviceatlas-properties-cookie", "<name>", "DeviceAtlas: cookie of client-side properties."),
    not_yet("deviceatlas-separator", "<character>", "DeviceAtlas: what separates properties."),
    not_yet("wurfl-cache-size", "<size>", "WURFL: results remembered."),
    not_yet("wurfl-data-file", "<file>", "WURFL: the data."),
    not_yet("wurfl-engine-mode", "{ accuracy | performance }", "WURFL: what the engine aims at."),
    not_yet("wurfl-information-list", "[<capability>]...", "WURFL: capabilities to load."),
    not_yet("wurfl-information-list-separator", "<character>", "WURFL: what separates capabilities."),
    not_yet("wurfl-patch-file", "[<file>...]", "WURFL: patches of the data."),
    not_yet("wurfl-useragent-priority", "{ plain | sideloaded_browser }", "WURFL: which user agent counts."),
];
