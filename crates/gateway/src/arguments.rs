//! The command line of `weir-gateway`.

use std::net::IpAddr;
use std::path::PathBuf;

use crate::translate::{Addresses, Network};

/// The text of `--help`.
pub const HELP: &str = "\
usage: weir-gateway --state DIR --socket PATH [OPTION...]

Keeps a running Weir and the conditions of objects in accord with the Gateway API objects of a Kubernetes cluster.

  --state DIR             the directory of the files that Weir reads
  --socket PATH           the runtime API of Weir (its stats socket, level admin)
  --kubeconfig FILE       the cluster and credentials; those of the pod without it
  --controller-name NAME  spec.controllerName of served GatewayClasses (weir.dev/gateway)
  --class NAME            serves only this GatewayClass; may be repeated
  --namespace NAME        watches only this namespace; may be repeated
  --address IP            the address of all Gateways
  --addresses CIDR,...    networks from which each Gateway gets an address of its own; may be repeated
  --lease NAME            the Lease of leader election (weir-gateway)
  --lease-namespace NAME  its namespace; that of the pod or of the kubeconfig without it
  --version               prints the version
  --help                  prints this text
";

/// The command of a command line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Run(Box<Arguments>),
    Version,
    Help,
}

/// The arguments of a controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arguments {
    pub state: PathBuf,
    pub socket: PathBuf,
    pub kubeconfig: Option<PathBuf>,
    pub controller_name: String,
    pub classes: Vec<String>,
    pub namespaces: Vec<String>,
    pub addresses: Addresses,
    pub lease: String,
    pub lease_namespace: Option<String>,
}

/// Parses the arguments after the program's name. Values follow their option, as the next argument or after `=`.
pub fn parse(arguments: impl Iterator<Item = String>) -> Result<Command, String> {
    let mut draft = Draft::default();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        let (option, inline) = match argument.split_once('=') {
            Some((option, value)) if option.starts_with("--") => (option.to_owned(), Some(value.to_owned())),
            _ => (argument, None),
        };
        match option.as_str() {
            "--version" | "-V" => return Ok(Command::Version),
            "--help" | "-h" => return Ok(Command::Help),
            _ => {}
        }
        draft.check(&option)?;
        let value = inline.or_else(|| arguments.next()).ok_or_else(|| format!("{option} needs a value"))?;
        if value.is_empty() {
            return Err(format!("the value of {option} is empty"));
        }
        draft.set(&option, value)?;
    }
    draft.finish().map(|arguments| Command::Run(Box::new(arguments)))
}

#[derive(Default)]
struct Draft {
    state: Option<String>,
    socket: Option<String>,
    kubeconfig: Option<String>,
    controller_name: Option<String>,
    classes: Vec<String>,
    namespaces: Vec<String>,
    address: Option<IpAddr>,
    networks: Vec<Network>,
    lease: Option<String>,
    lease_namespace: Option<String>,
}

impl Draft {
    /// Returns an error for an unknown option, before its value is looked for.
    fn check(&self, option: &str) -> Result<(), String> {
        let is_known = HELP.lines().any(|line| line.trim_start().split(' ').next() == Some(option));
        if is_known { Ok(()) } else { Err(format!("unknown argument {option:?}")) }
    }

    fn set(&mut self, option: &str, value: String) -> Result<(), String> {
        let single = match option {
            "--state" => &mut self.state,
            "--socket" => &mut self.socket,
            "--kubeconfig" => &mut self.kubeconfig,
            "--controller-name" => &mut self.controller_name,
            "--lease" => &mut self.lease,
            "--lease-namespace" => &mut self.lease_namespace,
            "--class" => {
                self.classes.push(value);
                return Ok(());
            }
            "--namespace" => {
                self.namespaces.push(value);
                return Ok(());
            }
            "--address" => {
                let address = value.parse().map_err(|_| format!("--address: {value:?} is not an IP address"))?;
                if self.address.replace(address).is_some() {
                    return Err("--address is given twice".into());
                }
                return Ok(());
            }
            _ => {
                for network in value.split(',') {
                    self.networks.push(parse_network(network)?);
                }
                return Ok(());
            }
        };
        if single.replace(value).is_some() {
            return Err(format!("{option} is given twice"));
        }
        Ok(())
    }

    fn finish(self) -> Result<Arguments, String> {
        let addresses = match (self.address, self.networks) {
            (Some(_), networks) if !networks.is_empty() => {
                return Err("--address and --addresses exclude each other".into());
            }
            (Some(address), _) => Addresses::Shared(address),
            (None, networks) if networks.is_empty() => return Err("--address or --addresses is needed".into()),
            (None, networks) => Addresses::Pool(networks),
        };
        Ok(Arguments {
            state: self.state.ok_or("--state is needed")?.into(),
            socket: self.socket.ok_or("--socket is needed")?.into(),
            kubeconfig: self.kubeconfig.map(PathBuf::from),
            controller_name: self.controller_name.unwrap_or_else(|| "weir.dev/gateway".into()),
            classes: self.classes,
            namespaces: self.namespaces,
            addresses,
            lease: self.lease.unwrap_or_else(|| "weir-gateway".into()),
            lease_namespace: self.lease_namespace,
        })
    }
}

/// Parses `10.0.0.0/28`, or an address alone.
fn parse_network(text: &str) -> Result<Network, String> {
    let error = || format!("--addresses: {text:?} is not a network, such as 10.0.0.0/28");
    let (address, prefix) = match text.split_once('/') {
        Some((address, prefix)) => (address, Some(prefix)),
        None => (text, None),
    };
    let address: IpAddr = address.parse().map_err(|_| error())?;
    let longest = if address.is_ipv4() { 32 } else { 128 };
    let prefix: u8 = prefix.map_or(Ok(longest), |prefix| prefix.parse().map_err(|_| error()))?;
    if prefix > longest {
        return Err(format!("--addresses: the prefix of {text:?} is longer than {longest} bits"));
    }
    Ok(Network { address, prefix })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Command, String> {
        parse(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_command_line_is_read() {
        let Ok(Command::Run(arguments)) = parsed(
            "--state /s --socket=/a --addresses 10.0.0.0/28,fd00::/120 --addresses 10.1.0.1 --class a --class b",
        ) else {
            panic!("refused")
        };
        assert_eq!(arguments.classes, ["a", "b"]);
        assert_eq!(arguments.controller_name, "weir.dev/gateway");
        let network = |address: &str, prefix| Network { address: address.parse().expect("address"), prefix };
        let networks = vec![network("10.0.0.0", 28), network("fd00::", 120), network("10.1.0.1", 32)];
        assert_eq!(arguments.addresses, Addresses::Pool(networks));
        assert_eq!(parsed("--help"), Ok(Command::Help));
        assert_eq!(parsed("--state /s --version"), Ok(Command::Version));
    }

    #[test]
    fn errors_name_the_argument() {
        let cases = [
            ("", "--address or --addresses is needed"),
            ("--address 10.0.0.1", "--state is needed"),
            ("--state /s --address 10.0.0.1", "--socket is needed"),
            ("--state", "--state needs a value"),
            ("--state= ", "the value of --state is empty"),
            ("--state /s --state /t", "--state is given twice"),
            ("--port 1", "unknown argument \"--port\""),
            ("run", "unknown argument \"run\""),
            ("--address localhost", "--address: \"localhost\" is not an IP address"),
            ("--addresses 10.0.0.0/33", "--addresses: the prefix of \"10.0.0.0/33\" is longer than 32 bits"),
            ("--addresses 10.0.0/8", "--addresses: \"10.0.0/8\" is not a network, such as 10.0.0.0/28"),
            ("--address 10.0.0.1 --addresses 10.0.0.0/8", "--address and --addresses exclude each other"),
        ];
        for (text, error) in cases {
            assert_eq!(parsed(text), Err(error.to_owned()), "{text}");
        }
    }
}
