//! The services that the program has without any configuration. Must never start one.

use engine::service::registry::Services;

/// Those that rules may name (`http-request use-service`). A new one is registered here, under a name and with what makes it.
pub fn built_in() -> Services {
    Services::default()
}
