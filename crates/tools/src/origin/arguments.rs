//! The command line of the origin. Must never open anything.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use rt::net::Address;

use crate::Outcome;

/// What the command line says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Where to listen.
    pub listen: Vec<Address>,
    /// Serve in the background.
    pub daemon: bool,
    /// The file that gets the process's number.
    pub pid_file: Option<PathBuf>,
    /// Workers; one for each processor where nothing is said.
    pub threads: Option<u16>,
    /// Connections at a time, at most.
    pub most: Option<u64>,
    /// Take datagrams at the same addresses, and forget them.
    pub datagrams: bool,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Serve.
    Serve(Settings),
    /// Print the page of help.
    Help,
}

/// The page of help.
pub const HELP: &str = "\
Answers HTTP requests with the size, status and delay that they ask for.

Usage: weir origin -L [ADDRESS:]PORT [-L ...] [options]

  -L [ADDRESS:]PORT  listen there; all IPv4 addresses without ADDRESS, [::1]:8080 for
                     IPv6. May be repeated. Several processes may share a port
  -D                 go to the background when all ports are open
  -n CONNECTIONS     concurrent connections; others wait (the limit on descriptors)
  -p FILE            write the process ID there
  --datagrams        receive and discard UDP datagrams at the same addresses, as a log
                     target for the measured program
  --threads NUMBER   workers (one for each processor that the process may use)
  -h, --help         print this page

SIGTERM and SIGINT end it at once, SIGUSR1 after the answers in progress.
GET /? prints the parameters of requests: curl 'http://127.0.0.1:PORT/?'
";

/// Options of haterm's that are known and not served, and why.
const UNSERVED: &[(&str, &str)] = &[
    ("-G", "there is no configuration behind the origin that a line could be added to"),
    ("-F", "there is no configuration behind the origin that a line could be added to"),
    ("-T", "the origin has no traces"),
    ("-C", "there is no configuration behind the origin to show"),
    ("-b", "the origin does not speak TLS yet"),
    ("-c", "the origin does not speak TLS yet"),
    ("-d", "the origin has no traces"),
    ("--tcp-bind-opts", "options of listening sockets are not supported yet"),
    ("--quic-bind-opts", "the origin does not speak QUIC yet"),
];

/// Reads the words behind the tool's name.
///
/// # Errors
/// [`Outcome::Misused`] with the word that was not understood.
pub fn parse(words: &[OsString]) -> Result<Command, Outcome> {
    let mut settings = Settings::default();
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let word = word.to_str().ok_or_else(|| misused(format!("{} is not text", word.display())))?;
        let (name, mut inline) = match word.split_once('=') {
            Some((name, value)) if name.starts_with("--") => (name, Some(value)),
            _ => (word, None),
        };
        let mut value = || {
            let value = inline.take().or_else(|| words.next().and_then(|value| value.to_str()));
            value.ok_or_else(|| misused(format!("{name} needs a value")))
        };
        match name {
            "-h" | "--help" => return Ok(Command::Help),
            "-D" => settings.daemon = true,
            "--datagrams" => settings.datagrams = true,
            "-L" => settings.listen.push(address(value()?)?),
            "-n" => settings.most = Some(number(name, value()?, 1, u64::MAX)?),
            "-p" => settings.pid_file = Some(value()?.into()),
            "--threads" => settings.threads = Some(number(name, value()?, 1, 1024)? as u16),
            _ => return Err(unknown(name)),
        }
        if inline.is_some() {
            return Err(misused(format!("{name} takes no value")));
        }
    }
    if settings.listen.is_empty() {
        return Err(misused("nowhere to listen: -L [ADDRESS:]PORT is missing".to_owned()));
    }
    Ok(Command::Serve(settings))
}

fn misused(why: String) -> Outcome {
    Outcome::Misused(why)
}

fn unknown(name: &str) -> Outcome {
    match UNSERVED.iter().find(|unserved| unserved.0 == name) {
        Some((_, why)) => misused(format!("option '{name}' of haterm is not supported: {why}")),
        None if name.starts_with('-') => misused(format!("unknown option '{name}'")),
        None => misused(format!("unexpected word '{name}'")),
    }
}

fn number(name: &str, text: &str, least: u64, most: u64) -> Result<u64, Outcome> {
    let number = text.parse().ok().filter(|number| (least..=most).contains(number));
    number.ok_or_else(|| match most {
        u64::MAX => misused(format!("{name} '{text}' is no number from {least} on")),
        _ => misused(format!("{name} '{text}' is no number from {least} to {most}")),
    })
}

/// `PORT`, `ADDRESS:PORT` or `[ADDRESS]:PORT`; another port behind those is for TLS.
fn address(text: &str) -> Result<Address, Outcome> {
    let wrong = || misused(format!("-L '{text}' is no [ADDRESS:]PORT"));
    let (host, ports) = match text.strip_prefix('[') {
        Some(rest) => {
            let (host, ports) = rest.split_once(']').ok_or_else(wrong)?;
            (Some(host), ports.strip_prefix(':').ok_or_else(wrong)?)
        }
        None => match text.split_once(':') {
            Some((host, ports)) => (Some(host), ports),
            None => (None, text),
        },
    };
    let host: IpAddr = match host {
        None | Some("" | "*") => Ipv4Addr::UNSPECIFIED.into(),
        Some(host) => host.parse().map_err(|_| wrong())?,
    };
    let port = match ports.split_once(':') {
        None => ports.parse::<u16>().map_err(|_| wrong())?,
        Some((clear, tls)) if clear.parse::<u16>().is_ok() && tls.parse::<u16>().is_ok() => {
            return Err(misused(format!("-L '{text}' asks for TLS on port {tls}: TLS and QUIC are not supported yet")));
        }
        Some(_) => return Err(wrong()),
    };
    Ok(Address::Inet(SocketAddr::new(host, port)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<Command, Outcome> {
        parse(&line.split_whitespace().map(OsString::from).collect::<Vec<_>>())
    }

    #[test]
    fn addresses_are_read_in_all_their_forms() {
        for (text, expected) in [
            ("8080", "0.0.0.0:8080"),
            (":8080", "0.0.0.0:8080"),
            ("*:8080", "0.0.0.0:8080"),
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("[::1]:80", "[::1]:80"),
            ("[]:80", "0.0.0.0:80"),
        ] {
            let expected = Address::Inet(expected.parse().unwrap());
            assert_eq!(address(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn a_command_line_is_read() {
        let expected = Settings {
            listen: vec![address("80").unwrap(), address("[::1]:81").unwrap()],
            daemon: true,
            pid_file: Some("/run/o".into()),
            threads: Some(3),
            most: Some(100),
            datagrams: true,
        };
        assert_eq!(read("-L 80 -D --datagrams -p /run/o --threads=3 -L [::1]:81 -n 100"), Ok(Command::Serve(expected)));
        assert_eq!(read("-L 80 --help nonsense"), Ok(Command::Help));
    }

    #[test]
    fn what_is_not_understood_is_named() {
        for (line, expected) in [
            ("", "nowhere to listen: -L [ADDRESS:]PORT is missing"),
            ("-D", "nowhere to listen: -L [ADDRESS:]PORT is missing"),
            ("-L", "-L needs a value"),
            ("-L x", "-L 'x' is no [ADDRESS:]PORT"),
            ("-L 65536", "-L '65536' is no [ADDRESS:]PORT"),
            ("-L name:80", "-L 'name:80' is no [ADDRESS:]PORT"),
            ("-L [::1:80", "-L '[::1:80' is no [ADDRESS:]PORT"),
            ("-L ::1:80", "-L '::1:80' is no [ADDRESS:]PORT"),
            ("-L 80:81:x", "-L '80:81:x' is no [ADDRESS:]PORT"),
            ("-L :80:81", "-L ':80:81' asks for TLS on port 81: TLS and QUIC are not supported yet"),
            ("-L [::1]:80:81", "-L '[::1]:80:81' asks for TLS on port 81: TLS and QUIC are not supported yet"),
            ("-L 80 -n 0", "-n '0' is no number from 1 on"),
            ("-L 80 --threads 0", "--threads '0' is no number from 1 to 1024"),
            ("-L 80 --threads=many", "--threads 'many' is no number from 1 to 1024"),
            ("-L 80 -x", "unknown option '-x'"),
            ("-L 80 81", "unexpected word '81'"),
        ] {
            assert_eq!(read(line), Err(Outcome::Misused(expected.to_owned())), "{line}");
        }
    }

    #[test]
    fn options_that_wait_for_later_are_named_as_such() {
        for (name, why) in UNSERVED {
            let expected = format!("option '{name}' of haterm is not supported: {why}");
            assert_eq!(read(&format!("-L 80 {name} value")), Err(Outcome::Misused(expected)));
        }
    }
}
