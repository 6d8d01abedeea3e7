//! Which socket is asked. Must never connect.

use super::options::Options;
use crate::Outcome;
use crate::stats_socket::{Socket, USUAL};
use config::environment::Environment;
use config::spec::{AddressSpec, BindSpec, HostSpec, PortSpec, RuntimeLevel};
use config::{InputFile, LoadOptions};
use std::path::PathBuf;

/// The environment variable with the address of a stats socket.
const VARIABLE: &str = "WEIR_SOCKET";
/// The environment variable with the addresses of the master's sockets, as the master sets it.
const VARIABLE_OF_MASTER: &str = "HAPROXY_MASTER_CLI";
/// Common paths of the master's socket.
const USUAL_OF_MASTER: [&str; 5] = [
    "/run/weir/master.sock",
    "/run/weir-master.sock",
    "/run/haproxy/master.sock",
    "/run/haproxy-master.sock",
    "/var/run/haproxy-master.sock",
];

/// Returns the socket that the options name, or the first of the environment and of the usual paths.
///
/// # Errors
/// [`Outcome::Unreachable`]: there is none.
pub fn socket(options: &Options) -> Result<Socket, Outcome> {
    if let Some(word) = &options.socket {
        return Ok(Socket::parse(word));
    }
    if !options.files.is_empty() {
        return of_configuration(&options.files).map_err(Outcome::Unreachable);
    }
    let (variable, usual, option): (_, &[&str], _) = match options.is_master {
        true => (VARIABLE_OF_MASTER, &USUAL_OF_MASTER, "-S"),
        false => (VARIABLE, &USUAL, "-s"),
    };
    let named = std::env::var_os(variable).filter(|value| !value.is_empty());
    let named = named.map(|value| {
        let text = value.to_string_lossy();
        Socket::parse(&text.split([',', ';']).next().unwrap_or_default().into())
    });
    named.or_else(|| Socket::at(usual)).ok_or_else(|| {
        Outcome::Unreachable(format!("{option} names no socket, ${variable} is not set, and none is at a usual path"))
    })
}

/// Returns the socket of a configuration with the highest level.
fn of_configuration(files: &[PathBuf]) -> Result<Socket, String> {
    let read = |path: &PathBuf| {
        let bytes =
            std::fs::read(path).map_err(|error| format!("{}: {}", path.display(), super::exchange::reason(&error)))?;
        Ok(InputFile { name: path.to_string_lossy().into_owned(), bytes })
    };
    let inputs = files.iter().map(read).collect::<Result<Vec<_>, String>>()?;
    let loaded = config::load(&inputs, Environment::of_process(), &LoadOptions::default());
    let names = files.iter().map(|file| file.display().to_string()).collect::<Vec<_>>().join(", ");
    let mut sockets: Vec<&BindSpec> = loaded.spec.global.runtime.sockets.iter().collect();
    if sockets.is_empty() {
        return Err(format!("{names}: no line 'stats socket' in a section 'global'"));
    }
    let level = |socket: &&BindSpec| socket.access.level.unwrap_or(RuntimeLevel::Operator);
    sockets.sort_by_key(|socket| std::cmp::Reverse(level(socket)));
    let known = sockets.iter().find_map(|socket| address(&socket.address));
    known.ok_or_else(|| format!("{names}: the stats sockets are inherited, or have no address: use -s"))
}

/// Returns the address of a stats socket as a client reaches it. `None`: it has none that is known.
fn address(address: &AddressSpec) -> Option<Socket> {
    match address {
        AddressSpec::Unix { path, .. } => Some(Socket::Unix(path.into())),
        AddressSpec::Abstract { name, unpadded, .. } => {
            Some(Socket::Abstract { name: name.clone(), unpadded: *unpadded })
        }
        AddressSpec::Inet { host, port: PortSpec::Exact(port), family, .. } => {
            let host = match host {
                HostSpec::Any if *family == config::spec::Family::V6 => "::".to_owned(),
                HostSpec::Any => "*".to_owned(),
                HostSpec::Ip(address) => address.to_string(),
                HostSpec::Name(name) => name.clone(),
            };
            Some(Socket::Tcp(format!("{host}:{port}")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_socket_of_a_configuration_is_that_with_most_rights() {
        let rows = [
            ("global\n stats socket /a\n stats socket \"/${X}b\" level admin\n", Ok("/b")),
            ("global\n stats socket ipv4@*:9999 level admin\n", Ok("*:9999")),
            ("global\n stats socket fd@7 level admin\n stats socket abns@x\n", Ok("abns@x")),
            ("global\n stats socket fd@7\n", Err(())),
            ("frontend a\n bind :80\n", Err(())),
        ];
        for (at, (text, wanted)) in rows.iter().enumerate() {
            let path = std::env::temp_dir().join(format!("weir-ctl-places-{}-{at}", std::process::id()));
            std::fs::write(&path, text).expect("a file");
            let found = of_configuration(std::slice::from_ref(&path));
            std::fs::remove_file(&path).expect("removed");
            assert_eq!(found.map(|socket| socket.shown()).map_err(|_| ()), wanted.map(str::to_owned), "{text}");
        }
        assert!(of_configuration(&["/nowhere/x.cfg".into()]).is_err());
    }
}
