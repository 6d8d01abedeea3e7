//! Variables of the configuration (configuration manual, section 2.3): the pseudo-variables of a line, and those that
//! HAProxy defines.

use super::input::InputFile;
use crate::environment::Environment;
use crate::lexer::Variables;
use crate::text;
use std::borrow::Cow;

/// Variables of a line: the environment and its place.
pub(super) struct LineVariables<'a> {
    pub environment: &'a Environment,
    pub file: &'a str,
    pub line: u32,
    pub section: &'a str,
}

impl Variables for LineVariables<'_> {
    fn value(&self, name: &str) -> Option<Cow<'_, [u8]>> {
        match name {
            ".FILE" => Some(text::to_bytes(self.file)),
            ".LINE" => Some(Cow::Owned(self.line.to_string().into_bytes())),
            ".SECTION" => Some(text::to_bytes(self.section)),
            _ => self.environment.get(name).map(text::to_bytes),
        }
    }
}

/// The log formats that are defined only while the configuration is read.
pub const LOG_FORMATS: &[(&str, &str)] = &[
    (
        "HAPROXY_HTTP_LOG_FMT",
        "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r",
    ),
    (
        "HAPROXY_HTTP_CLF_LOG_FMT",
        "%{+Q}o %{-Q}ci - - [%trg] %r %ST %B \"\" \"\" %cp %ms %ft %b %s %TR %Tw %Tc %Tr %Ta %tsc %ac %fc %bc %sc %rc \
         %sq %bq %CC %CS %hrl %hsl",
    ),
    (
        "HAPROXY_HTTPS_LOG_FMT",
        "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc %ac/%fc/%bc/%sc/%rc %sq/%bq %hr %hs %{+Q}r \
         %[fc_err]/%[ssl_fc_err,hex]/%[ssl_c_err]/%[ssl_c_ca_err]/%[ssl_fc_is_resumed] %[ssl_fc_sni]/%sslv/%sslc",
    ),
    ("HAPROXY_TCP_LOG_FMT", "%ci:%cp [%t] %ft %b/%s %Tw/%Tc/%Tt %B %ts %ac/%fc/%bc/%sc/%rc %sq/%bq"),
    (
        "HAPROXY_TCP_CLF_LOG_FMT",
        "%{+Q}o %{-Q}ci - - [%T] \"TCP \" 000 %B \"\" \"\" %cp %ms %ft %b %s %Th %Tw %Tc %Tt %U %ts-- %ac %fc %bc %sc \
         %rc %sq %bq \"\" \"\" ",
    ),
    (
        "HAPROXY_KEYLOG_FC_LOG_FMT",
        "CLIENT_RANDOM %[ssl_fc_client_random,hex] %[ssl_fc_session_key,hex]\n\
         CLIENT_EARLY_TRAFFIC_SECRET %[ssl_fc_client_random,hex] %[ssl_fc_client_early_traffic_secret]\n\
         CLIENT_HANDSHAKE_TRAFFIC_SECRET %[ssl_fc_client_random,hex] %[ssl_fc_client_handshake_traffic_secret]\n\
         SERVER_HANDSHAKE_TRAFFIC_SECRET %[ssl_fc_client_random,hex] %[ssl_fc_server_handshake_traffic_secret]\n\
         CLIENT_TRAFFIC_SECRET_0 %[ssl_fc_client_random,hex] %[ssl_fc_client_traffic_secret_0]\n\
         SERVER_TRAFFIC_SECRET_0 %[ssl_fc_client_random,hex] %[ssl_fc_server_traffic_secret_0]\n\
         EXPORTER_SECRET %[ssl_fc_client_random,hex] %[ssl_fc_exporter_secret]\n\
         EARLY_EXPORTER_SECRET %[ssl_fc_client_random,hex] %[ssl_fc_early_exporter_secret]",
    ),
    (
        "HAPROXY_KEYLOG_BC_LOG_FMT",
        "CLIENT_RANDOM %[ssl_bc_client_random,hex]  %[ssl_bc_session_key,hex]\n\
         CLIENT_EARLY_TRAFFIC_SECRET %[ssl_bc_client_random,hex] %[ssl_bc_client_early_traffic_secret]\n\
         CLIENT_HANDSHAKE_TRAFFIC_SECRET %[ssl_bc_client_random,hex] %[ssl_bc_client_handshake_traffic_secret]\n\
         SERVER_HANDSHAKE_TRAFFIC_SECRET %[ssl_bc_client_random,hex] %[ssl_bc_server_handshake_traffic_secret]\n\
         CLIENT_TRAFFIC_SECRET_0 %[ssl_bc_client_random,hex] %[ssl_bc_client_traffic_secret_0]\n\
         SERVER_TRAFFIC_SECRET_0 %[ssl_bc_client_random,hex] %[ssl_bc_server_traffic_secret_0]\n\
         EXPORTER_SECRET %[ssl_bc_client_random,hex] %[ssl_bc_exporter_secret]\n\
         EARLY_EXPORTER_SECRET %[ssl_bc_client_random,hex] %[ssl_bc_early_exporter_secret]",
    ),
];

/// Defines the variables that HAProxy defines before it reads its files, as far as a process without a master has them.
/// The local peer is the argument of `-L` or the host's name.
pub fn define(environment: &mut Environment, version: &str, files: &[InputFile], local_peer: &str) {
    let branch: Vec<&str> = version.split(['.', '-']).take(2).collect();
    let names: Vec<&str> = files.iter().map(|file| file.name.as_str()).collect();
    let mut set = |name: &str, value: &str| {
        // This fails only if the environment is full.
        let _ = environment.set(name, value);
    };
    set("HAPROXY_STARTUP_VERSION", version);
    set("HAPROXY_BRANCH", &branch.join("."));
    set("HAPROXY_CFGFILES", &names.join(";"));
    set("HAPROXY_LOCALPEER", local_peer);
}

/// Defines the variables that exist only while files are read.
pub(super) fn define_log_formats(environment: &mut Environment) {
    for (name, value) in LOG_FORMATS {
        let _ = environment.set(name, value);
    }
}

/// Removes them.
pub(super) fn forget_log_formats(environment: &mut Environment) {
    environment.retain(|name| !LOG_FORMATS.iter().any(|(format, _)| *format == name));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn haproxy_defines_some() {
        let mut environment = Environment::new();
        let file = |name: &str| InputFile { name: name.into(), bytes: Vec::new() };
        define(&mut environment, "3.5-dev5", &[file("a"), file("b")], "me");
        define_log_formats(&mut environment);
        let shown: Vec<_> = environment.iter().filter(|(name, _)| !name.ends_with("_FMT")).collect();
        assert_eq!(
            shown,
            [
                ("HAPROXY_BRANCH", "3.5"),
                ("HAPROXY_CFGFILES", "a;b"),
                ("HAPROXY_LOCALPEER", "me"),
                ("HAPROXY_STARTUP_VERSION", "3.5-dev5")
            ]
        );
        assert!(environment.get("HAPROXY_TCP_LOG_FMT").unwrap().starts_with("%ci:%cp [%t] %ft"));
        forget_log_formats(&mut environment);
        assert_eq!(environment.iter().count(), 4);
    }
}
