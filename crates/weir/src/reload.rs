//! `weir reload`: requests a reload through the master CLI, prints the answer, and exits with the result. Must never
//! read a configuration.

use crate::files::reason;
use crate::messages::Messages;
use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

const USAGE: &str = "\
USAGE
    weir reload [-S ADDRESS]    asks the master at that address of its command line for a reload, as 'reload' there does

    ADDRESS is what the master was started with behind -S: a path, or an IP address and a port. Without it the variable
    HAPROXY_MASTER_CLI names it. The messages of the reload are printed.

STATUS
    0 when the new configuration is served; 1 when it is not; 2 when the master cannot be asked
";

/// The environment variable with the address of the master CLI.
const VARIABLE: &str = "HAPROXY_MASTER_CLI";

/// Runs the command with its arguments.
#[must_use]
pub fn run(words: &[OsString]) -> ExitCode {
    let mut messages = Messages::new(false, false);
    let address = match words {
        [] => std::env::var(VARIABLE).ok(),
        [flag, address] if flag == "-S" => address.to_str().map(str::to_owned),
        [word] if word == "--help" || word == "-h" => {
            crate::print(USAGE);
            return ExitCode::SUCCESS;
        }
        _ => {
            messages.alert("'weir reload' takes '-S ADDRESS' alone. See 'weir reload --help'.");
            return ExitCode::from(2);
        }
    };
    let Some(address) = address else {
        messages.alert("no master was named: use -S ADDRESS. See 'weir reload --help'.");
        return ExitCode::from(2);
    };
    match ask(&address) {
        Ok(answer) => conclude(&answer),
        Err(error) => {
            messages.alert(&format!("Cannot ask the master at '{address}' : {}", reason(&error)));
            ExitCode::from(2)
        }
    }
}

/// Prints the messages and returns the result as an exit code.
fn conclude(answer: &str) -> ExitCode {
    let (success, said) = answer.split_once("\n--\n").unwrap_or(("", answer));
    crate::print(said.trim_end_matches('\n'));
    crate::print("\n");
    ExitCode::from(u8::from(success != "Success=1"))
}

fn ask(address: &str) -> io::Result<String> {
    let first = address.split([',', ';']).next().unwrap_or_default();
    let path = first.strip_prefix("unix@").or(Some(first).filter(|first| first.starts_with('/')));
    match path {
        Some(path) => exchange(UnixStream::connect(path)?, |stream| stream.shutdown(Shutdown::Write)),
        None => {
            let bare = first.strip_prefix("ipv4@").or(first.strip_prefix("ipv6@")).unwrap_or(first);
            exchange(TcpStream::connect(bare)?, |stream| stream.shutdown(Shutdown::Write))
        }
    }
}

/// Sends the command and reads the answer until the connection closes.
fn exchange<S: Read + Write>(mut stream: S, end: impl FnOnce(&S) -> io::Result<()>) -> io::Result<String> {
    /// Maximum length of an answer in bytes: the messages of a start are limited to less.
    const MOST: u64 = 1 << 20;
    stream.write_all(b"reload\n")?;
    end(&stream)?;
    let mut answer = Vec::new();
    stream.take(MOST).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}
