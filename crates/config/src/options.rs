//! Properties of the program that the language can query: its level, its features, its libraries. The binary sets them;
//! the defaults are here. Must never query the system.

/// The supported level of HAProxy's configuration language: used by `version_atleast` and `$HAPROXY_BRANCH`.
pub const LANGUAGE_LEVEL: &str = "3.5-dev5";

/// HAProxy's feature names, and whether Weir has an equivalent.
pub const FEATURES: &[(&str, bool)] = &[
    ("51DEGREES", false),
    ("ACCEPT4", true),
    ("ACME", true),
    ("BACKTRACE", true),
    ("CLOSEFROM", false),
    ("CPU_AFFINITY", true),
    ("CRYPT_H", true),
    ("DEVICEATLAS", false),
    ("DL", false),
    ("ECH", false),
    ("ENGINE", false),
    ("EPOLL", true),
    ("EVPORTS", false),
    ("FCGI", true),
    ("GETADDRINFO", true),
    ("H2", true),
    ("HAVE_TCP_MD5SIG", true),
    ("KQUEUE", false),
    ("KTLS", false),
    ("LIBATOMIC", false),
    ("LIBCRYPT", true),
    ("LINUX_CAP", true),
    ("LINUX_SPLICE", true),
    ("LINUX_TPROXY", true),
    ("LUA", true),
    ("MATH", true),
    ("MEMORY_PROFILING", false),
    ("NETFILTER", true),
    ("NS", true),
    ("OBSOLETE_LINKER", false),
    ("OPENSSL", true),
    ("OPENSSL_AWSLC", true),
    ("OPENSSL_WOLFSSL", false),
    ("PCRE", false),
    ("PCRE2", true),
    ("PCRE2_JIT", false),
    ("PCRE_JIT", false),
    ("POLL", false),
    ("PRCTL", true),
    ("PROCCTL", false),
    ("PROMEX", true),
    ("PTHREAD_EMULATION", false),
    ("QUIC", true),
    ("QUIC_OPENSSL_COMPAT", false),
    ("RT", true),
    ("SHM_OPEN", false),
    ("SLZ", false),
    ("SPOE", true),
    ("SSL", true),
    ("STATIC_PCRE", false),
    ("STATIC_PCRE2", false),
    ("TFO", true),
    ("THREAD", true),
    ("THREAD_DUMP", true),
    ("TPROXY", true),
    ("TRACE", true),
    // Conditions recognize Weir by it: HAProxy has no such feature.
    ("WEIR", true),
    ("WURFL", false),
    ("ZLIB", true),
];

/// Names that `enabled(…)` accepts (section 2.4), and whether each is on unless the command line turns it off.
pub const RUN_TIME_OPTIONS: &[(&str, bool)] = &[
    ("POLL", false),
    ("EPOLL", true),
    ("KQUEUE", false),
    ("EVPORTS", false),
    ("SPLICE", true),
    ("GETADDRINFO", true),
    ("REUSEPORT", true),
    ("FAST-FORWARD", true),
    ("SERVER-SSL-VERIFY-NONE", false),
];

/// Results of the conditions about the TLS library.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SslLibrary {
    /// Name and version, as `ssllib_name_startswith` compares them: `OpenSSL 3.0.2`.
    pub name: String,
    /// The OpenSSL version whose interface it offers, such as `3.0.2`.
    pub openssl_version: String,
    /// The API number of AWS-LC.
    pub awslc_api: Option<u32>,
    /// Whether it runs in FIPS mode.
    pub fips_mode: bool,
}

impl SslLibrary {
    /// Returns the library whose algorithms Weir uses. It offers the interface of OpenSSL 1.1.1.
    fn own() -> Self {
        Self { name: "AWS-LC".to_owned(), openssl_version: "1.1.1".to_owned(), awslc_api: Some(37), fips_mode: false }
    }
}

/// Options of the reader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LanguageOptions {
    /// Version that `version_atleast` and `version_before` compare with.
    pub version: &'static str,
    /// Results of `feature`.
    pub features: Vec<(&'static str, bool)>,
    /// Results of `enabled`.
    pub run_time_options: Vec<(&'static str, bool)>,
    /// Results of the conditions about the TLS library, which are all false without one.
    pub ssl: Option<SslLibrary>,
    /// `-L` was given, so that `localpeer` does not change `HAPROXY_LOCALPEER`.
    pub local_peer_is_fixed: bool,
}

impl Default for LanguageOptions {
    fn default() -> Self {
        Self {
            version: LANGUAGE_LEVEL,
            features: FEATURES.to_vec(),
            run_time_options: RUN_TIME_OPTIONS.to_vec(),
            ssl: Some(SslLibrary::own()),
            local_peer_is_fixed: false,
        }
    }
}

impl LanguageOptions {
    /// Turns a run-time option on or off (`-dS` turns `SPLICE` off). Returns false if there is no such option.
    pub fn set_run_time_option(&mut self, name: &str, on: bool) -> bool {
        let row = self.run_time_options.iter_mut().find(|row| row.0 == name);
        row.map(|row| row.1 = on).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keyword::SupportLevel;
    use crate::spec::MuxProtocol;

    #[test]
    fn names_are_sorted_and_there_once() {
        assert!(FEATURES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    /// Features that keywords depend on are enabled exactly where these keywords are supported.
    #[test]
    fn features_are_those_of_the_keywords() {
        let rows = [
            ("ACME", "global", "acme.scheduler"),
            ("CPU_AFFINITY", "global", "cpu-map"),
            ("FCGI", "proxy", "use-fcgi-app"),
            ("HAVE_TCP_MD5SIG", "bind", "tcp-md5sig"),
            ("LUA", "global", "lua-load"),
            ("NS", "bind", "namespace"),
            ("QUIC", "bind", "quic-force-retry"),
            ("SPOE", "filter", "spoe"),
            ("SSL", "bind", "ssl"),
            ("TFO", "bind", "tfo"),
            ("THREAD", "global", "nbthread"),
            ("TPROXY", "bind", "transparent"),
            ("TRACE", "filter", "trace"),
            ("WURFL", "global", "wurfl-data-file"),
            ("51DEGREES", "global", "51degrees-data-file"),
            ("DEVICEATLAS", "global", "deviceatlas-json-file"),
            ("ZLIB", "filter", "compression"),
        ];
        let entries = crate::keyword::catalogue::entries();
        for (feature, kind, name) in rows {
            let entry = entries.iter().find(|entry| (entry.kind, entry.name) == (kind, name));
            let standing = entry.unwrap_or_else(|| panic!("{kind} {name}")).standing;
            let works = standing == SupportLevel::Supported;
            assert!(FEATURES.contains(&(feature, works)), "{feature}: '{name}' works: {works}");
        }
        for (feature, protocol) in
            [("H2", MuxProtocol::Http2), ("FCGI", MuxProtocol::Fcgi), ("SPOE", MuxProtocol::Spop)]
        {
            assert!(FEATURES.contains(&(feature, true)), "{}", protocol.name());
        }
        let ssl = LanguageOptions::default().ssl.is_some();
        assert!(["SSL", "OPENSSL"].iter().all(|name| FEATURES.contains(&(name, ssl))));
    }

    #[test]
    fn options_can_be_turned_off() {
        let mut options = LanguageOptions::default();
        assert!(options.set_run_time_option("SPLICE", false));
        assert!(options.run_time_options.contains(&("SPLICE", false)));
        assert!(!options.set_run_time_option("NOPE", true));
    }
}
