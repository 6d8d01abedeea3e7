//! The command line of the origin. Must never open anything.

use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use rt::net::Address;

use super::certificate::Kind;
use crate::Outcome;

/// Settings of the command line.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Settings {
    /// Listening addresses without TLS.
    pub listen: Vec<Address>,
    /// Listening addresses with TLS.
    pub secure: Vec<Address>,
    /// Listening addresses for HTTP/3.
    pub quic: Vec<Address>,
    /// Listening addresses of the FastCGI application.
    pub fcgi: Vec<Address>,
    /// Listening addresses of the SPOP agent.
    pub spop: Vec<Address>,
    /// File of the certificate, which may contain its key; without it, a certificate is generated.
    pub certificate: Option<PathBuf>,
    pub key: Option<PathBuf>,
    /// Key type of a generated certificate.
    pub kind: Kind,
    /// Run in the background.
    pub daemon: bool,
    /// File that receives the process id.
    pub pid_file: Option<PathBuf>,
    /// Number of workers; default: one for each processor.
    pub threads: Option<u16>,
    /// Maximum number of concurrent connections.
    pub most: Option<u64>,
    /// Receive datagrams at the same addresses, and discard them.
    pub datagrams: bool,
    /// Line of text that bodies consist of, without its end.
    pub text: Option<String>,
}

/// Task selected by the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Serve(Box<Settings>),
    /// Print the help text.
    Help,
}

pub const HELP: &str = "\
Answers HTTP/1, HTTP/2 and HTTP/3 requests with the size, status and delay that they ask for.

Usage: weir origin -L [ADDRESS:]PORT[:TLSPORT] [-L ...] [options]

  -L [ADDRESS:]PORT[:TLSPORT]
                     listen there, and by TLS on the second port; all IPv4 addresses
                     without ADDRESS, [::1]:8080 for IPv6. May be repeated. Several
                     processes may share a port
  --tls [ADDRESS:]PORT
                     listen there by TLS alone
  --quic [ADDRESS:]PORT
                     listen there by QUIC for HTTP/3
  --fcgi [ADDRESS:]PORT
                     listen there as a FastCGI application
  --spop [ADDRESS:]PORT
                     listen there as an agent of SPOP, which sets txn.<prefix>.score
  --cert FILE        show that certificate (PEM, with its chain and its key)
  --key FILE         its key, where that is in another file
  -c CURVE           make a certificate with a key over P-256 (the default) or P-384
  -b BITS            make one with an RSA key of 2048, 3072 or 4096 bits
  -D                 go to the background when all ports are open
  -n CONNECTIONS     concurrent connections; others wait (the limit on descriptors)
  -p FILE            write the process ID there
  --datagrams        receive and discard UDP datagrams at the same addresses, as a log
                     target for the measured program
  --text TEXT        answer requests without parameters with this line; other bodies
                     repeat it
  --threads NUMBER   workers (one for each processor that the process may use)
  -h, --help         print this page

SIGTERM and SIGINT end it at once, SIGUSR1 after the answers in progress.
GET /? prints the parameters of requests: curl 'http://127.0.0.1:PORT/?'
";

/// Maximum length of `--text`, in bytes.
const LONGEST_TEXT: usize = 1000;

/// haterm's options that are recognized and not supported, with the reason.
const UNSERVED: &[(&str, &str)] = &[
    ("-G", "there is no configuration behind the origin that a line could be added to"),
    ("-F", "there is no configuration behind the origin that a line could be added to"),
    ("-T", "the origin has no traces"),
    ("-C", "there is no configuration behind the origin to show"),
    ("-d", "the origin has no traces"),
    ("--tcp-bind-opts", "options of listening sockets are not supported yet"),
    ("--quic-bind-opts", "options of listening sockets are not supported yet"),
];

/// Parses the words after the tool's name.
///
/// # Errors
/// [`Outcome::Misused`] with the word that is not understood.
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
            "-L" => {
                let (clear, secure) = address(name, value()?)?;
                settings.listen.push(clear);
                settings.secure.extend(secure);
            }
            "--tls" => settings.secure.push(one_address(name, value()?)?),
            "--quic" => settings.quic.push(one_address(name, value()?)?),
            "--fcgi" => settings.fcgi.push(one_address(name, value()?)?),
            "--spop" => settings.spop.push(one_address(name, value()?)?),
            "--cert" => settings.certificate = Some(value()?.into()),
            "--key" => settings.key = Some(value()?.into()),
            "-c" => settings.kind = curve(value()?)?,
            "-b" => settings.kind = bits(value()?)?,
            "-n" => settings.most = Some(number(name, value()?, 1, u64::MAX)?),
            "-p" => settings.pid_file = Some(value()?.into()),
            "--text" => settings.text = Some(line(value()?)?),
            "--threads" => settings.threads = Some(number(name, value()?, 1, 1024)? as u16),
            _ => return Err(unknown(name)),
        }
        if inline.is_some() {
            return Err(misused(format!("{name} takes no value")));
        }
    }
    let Settings { listen, secure, quic, fcgi, spop, .. } = &settings;
    if [listen, secure, quic, fcgi, spop].iter().all(|all| all.is_empty()) {
        return Err(misused("nowhere to listen: -L [ADDRESS:]PORT is missing".to_owned()));
    }
    if settings.key.is_some() && settings.certificate.is_none() {
        return Err(misused("--key needs --cert".to_owned()));
    }
    Ok(Command::Serve(Box::new(settings)))
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

/// Checks a line of text for bodies.
fn line(text: &str) -> Result<String, Outcome> {
    if text.is_empty() || text.len() > LONGEST_TEXT {
        return Err(misused(format!("--text needs 1 to {LONGEST_TEXT} bytes, this is {}", text.len())));
    }
    Ok(text.to_owned())
}

fn curve(text: &str) -> Result<Kind, Outcome> {
    match text {
        "P-256" => Ok(Kind::P256),
        "P-384" => Ok(Kind::P384),
        _ => Err(misused(format!("-c '{text}' is neither P-256 nor P-384"))),
    }
}

fn bits(text: &str) -> Result<Kind, Outcome> {
    match text {
        "2048" => Ok(Kind::Rsa(2048)),
        "3072" => Ok(Kind::Rsa(3072)),
        "4096" => Ok(Kind::Rsa(4096)),
        _ => Err(misused(format!("-b '{text}' is none of 2048, 3072 and 4096"))),
    }
}

/// Parses an address without a TLS port.
fn one_address(name: &str, text: &str) -> Result<Address, Outcome> {
    match address(name, text)? {
        (address, None) => Ok(address),
        _ => Err(misused(format!("{name} '{text}' is no [ADDRESS:]PORT"))),
    }
}

/// Parses `PORT`, `ADDRESS:PORT` or `[ADDRESS]:PORT`; another port after it is for TLS.
fn address(name: &str, text: &str) -> Result<(Address, Option<Address>), Outcome> {
    let wrong = || misused(format!("{name} '{text}' is no [ADDRESS:]PORT"));
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
    let (clear, secure) = match ports.split_once(':') {
        None => (ports, None),
        Some((clear, secure)) => (clear, Some(secure)),
    };
    let at = |port: &str| {
        let port = port.parse::<u16>().map_err(|_| wrong())?;
        Ok(Address::Inet(SocketAddr::new(host, port)))
    };
    Ok((at(clear)?, secure.map(at).transpose()?))
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
            assert_eq!(address("-L", text), Ok((expected, None)), "{text}");
        }
    }

    fn at(text: &str) -> Address {
        Address::Inet(text.parse().unwrap())
    }

    #[test]
    fn a_command_line_is_read() {
        let expected = Settings {
            listen: vec![at("0.0.0.0:80"), at("[::1]:81"), at("127.0.0.1:82")],
            secure: vec![at("127.0.0.1:443"), at("0.0.0.0:444")],
            quic: vec![at("127.0.0.1:443")],
            fcgi: vec![at("0.0.0.0:9000")],
            spop: vec![at("127.0.0.1:9001")],
            certificate: Some("/c".into()),
            key: Some("/k".into()),
            kind: Kind::Rsa(2048),
            daemon: true,
            pid_file: Some("/run/o".into()),
            threads: Some(3),
            most: Some(100),
            datagrams: true,
            text: Some("one".into()),
        };
        let line = "-L 80 -D --datagrams -p /run/o --threads=3 -L [::1]:81 -n 100 -L 127.0.0.1:82:443 --tls 444 --cert /c \
                    --key /k -b 2048 --fcgi 9000 --quic 127.0.0.1:443 --spop=127.0.0.1:9001 --text one";
        assert_eq!(read(line), Ok(Command::Serve(Box::new(expected))));
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
            ("-L 80 --tls :81:82", "--tls ':81:82' is no [ADDRESS:]PORT"),
            ("--quic 81:82", "--quic '81:82' is no [ADDRESS:]PORT"),
            ("--fcgi 81:82", "--fcgi '81:82' is no [ADDRESS:]PORT"),
            ("-L 80 --key k", "--key needs --cert"),
            ("-L 80 -c P-521", "-c 'P-521' is neither P-256 nor P-384"),
            ("-L 80 -b 1024", "-b '1024' is none of 2048, 3072 and 4096"),
            ("-L 80 -n 0", "-n '0' is no number from 1 on"),
            ("-L 80 --threads 0", "--threads '0' is no number from 1 to 1024"),
            ("-L 80 --threads=many", "--threads 'many' is no number from 1 to 1024"),
            ("-L 80 --text", "--text needs a value"),
            ("-L 80 --text=", "--text needs 1 to 1000 bytes, this is 0"),
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
