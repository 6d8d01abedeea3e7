//! The shipped scenarios. Must never contain one that its own test cannot read.

macro_rules! shipped {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../scenarios/", $name, ".toml")))
    };
}

/// Name and text of every shipped scenario.
pub const SHIPPED: &[(&str, &str)] = &[
    shipped!("keep-alive"),
    shipped!("keep-alive-onecore"),
    shipped!("keep-alive-1000"),
    shipped!("keep-alive-1000-onecore"),
    shipped!("one-connection"),
    shipped!("one-connection-onecore"),
    shipped!("client-close"),
    shipped!("client-close-onecore"),
    shipped!("forward-close"),
    shipped!("forward-close-onecore"),
    shipped!("server-close"),
    shipped!("session-rate"),
    shipped!("redirect-rate"),
    shipped!("rules-10-onecore"),
    shipped!("map-million-onecore"),
    shipped!("stick-table-onecore"),
    shipped!("checks-tcp"),
    shipped!("checks-http"),
    shipped!("reject-connection-onecore"),
    shipped!("reject-content-onecore"),
    shipped!("deny-onecore"),
    shipped!("reject-onecore"),
    shipped!("deny-keep-alive-onecore"),
    shipped!("redirect-onecore"),
    shipped!("redirect-keep-alive-onecore"),
    shipped!("connection-rate"),
    shipped!("tcp-keep-alive"),
    shipped!("connections"),
    shipped!("size-sweep"),
    shipped!("forwarder"),
    shipped!("bodies-http"),
    shipped!("bodies-http-onecore"),
    shipped!("bodies-tcp"),
    shipped!("bodies-tcp-onecore"),
    shipped!("cache-hits"),
    shipped!("cache-hits-onecore"),
    shipped!("cache-hits-workers"),
    shipped!("compression"),
    shipped!("spoe-onecore"),
    shipped!("fastcgi-onecore"),
    shipped!("fastcgi-multiplexed-onecore"),
    shipped!("exporter"),
    shipped!("workers-sweep"),
    shipped!("rate-sweep"),
    shipped!("tls-handshake-full"),
    shipped!("tls-handshake-full-12"),
    shipped!("tls-handshake-full-rsa"),
    shipped!("tls-handshake-resumed"),
    shipped!("tls-handshake-resumed-12"),
    shipped!("tls-keep-alive"),
    shipped!("tls-1m"),
    shipped!("tls-idle"),
    shipped!("h2-h1"),
    shipped!("h2-h2"),
    shipped!("h2-1m"),
    shipped!("h2-grpc"),
    shipped!("h2-idle"),
    shipped!("h2-1000-streams"),
    shipped!("h2-32-streams"),
    shipped!("h3-return"),
    shipped!("h3-h1"),
    shipped!("h3-1m"),
    shipped!("h3-handshake-full"),
    shipped!("h3-handshake-resumed"),
    shipped!("h3-idle"),
];

/// Returns the text of a shipped scenario.
#[must_use]
pub fn find(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(known, _)| *known == name).map(|(_, text)| *text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_shipped_scenario_is_read_and_listed_under_its_name() {
        for (name, text) in SHIPPED {
            let source = super::super::read(&format!("{name}.toml"), text).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(source.scenario.name.get_ref(), name);
            assert!(!source.scenario.repeats.is_empty(), "{name} says what it repeats");
        }
    }

    #[test]
    fn every_file_of_the_folder_is_shipped() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/scenarios");
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap();
            assert!(find(name).is_some(), "{} is not listed", path.display());
        }
    }
}
