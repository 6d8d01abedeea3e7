//! Queries to the machine while a configuration is loaded: files, folders, hosts, accounts, namespaces, passphrases. A
//! privileged process records the answers; a process that has dropped its privileges loads the configuration from such
//! a record. Must never query the machine if a record is given.

pub mod encoding;

use crate::files::{self, Unreadable, reason};
use config::spec::Family;
use config::{InputFile, text};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Read as _};
use std::net::{IpAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use zeroize::Zeroize;

pub use encoding::{LARGEST, Unsent};

/// An answer of the machine: words, or the reason of a failure with the system's error number (0: none).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The result.
    Found(Vec<Vec<u8>>),
    /// The error number and the reason.
    Failed(i32, String),
}

/// Queries and their answers. The answers are zeroized when the record is dropped, because they include private keys.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Record(BTreeMap<Vec<u8>, Answer>);

impl Drop for Record {
    fn drop(&mut self) {
        for answer in self.0.values_mut() {
            if let Answer::Found(words) = answer {
                words.iter_mut().for_each(Zeroize::zeroize);
            }
        }
    }
}

/// The source of answers on this thread.
enum Source {
    System,
    /// The system; its answers are recorded.
    Recorded(Record),
    /// Only a record; the second value is the first query without an answer in it.
    Given(Record, Option<String>),
}

thread_local! {
    static SOURCE: RefCell<Source> = const { RefCell::new(Source::System) };
}

/// Types of queries: the first byte of each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Kind {
    Inputs = b'I',
    File = b'F',
    Folder = b'D',
    Host = b'H',
    FirstAddress = b'A',
    User = b'U',
    Group = b'G',
    Namespace = b'N',
    Passphrase = b'P',
    HostName = b'O',
}

/// Runs `work` and also returns a record of its queries.
pub fn recording<T>(work: impl FnOnce() -> T) -> (T, Record) {
    SOURCE.with(|source| *source.borrow_mut() = Source::Recorded(Record::default()));
    let done = work();
    match SOURCE.with(|source| source.replace(Source::System)) {
        Source::Recorded(record) => (done, record),
        _ => (done, Record::default()),
    }
}

/// Runs `work` with a record instead of the machine. Also returns the first query that is not in the record.
pub fn given<T>(record: Record, work: impl FnOnce() -> T) -> (T, Option<String>) {
    SOURCE.with(|source| *source.borrow_mut() = Source::Given(record, None));
    let done = work();
    match SOURCE.with(|source| source.replace(Source::System)) {
        Source::Given(_, missing) => (done, missing),
        _ => (done, None),
    }
}

fn ask(kind: Kind, words: &[&[u8]], system: impl FnOnce() -> Answer) -> Answer {
    let question = || {
        let mut question = vec![kind as u8];
        for word in words {
            question.extend_from_slice(word);
            question.push(0);
        }
        question
    };
    let known = SOURCE.with(|source| match &mut *source.borrow_mut() {
        Source::System | Source::Recorded(_) => None,
        Source::Given(record, missing) => Some(record.0.get(&question()).cloned().unwrap_or_else(|| {
            let name = words.first().map_or_else(String::new, |word| String::from_utf8_lossy(word).into_owned());
            missing.get_or_insert(name);
            Answer::Failed(0, "the master has not read it".to_owned())
        })),
    });
    if let Some(known) = known {
        return known;
    }
    let answer = system();
    SOURCE.with(|source| {
        if let Source::Recorded(record) = &mut *source.borrow_mut() {
            record.0.insert(question(), answer.clone());
        }
    });
    answer
}

impl Answer {
    fn of_system<T>(result: io::Result<T>, words: impl FnOnce(T) -> Vec<Vec<u8>>) -> Self {
        match result {
            Ok(found) => Self::Found(words(found)),
            Err(error) => Self::Failed(error.raw_os_error().unwrap_or(0), reason(&error)),
        }
    }

    /// Returns the words, or the system's error.
    fn into_system(self) -> io::Result<Vec<Vec<u8>>> {
        match self {
            Self::Found(words) => Ok(words),
            Self::Failed(0, why) => Err(io::Error::other(why)),
            Self::Failed(number, _) => Err(io::Error::from_raw_os_error(number)),
        }
    }

    fn into_found(self) -> Option<Vec<Vec<u8>>> {
        self.into_system().ok()
    }

    /// Returns the only word.
    fn word(self) -> io::Result<Vec<u8>> {
        Ok(self.into_system()?.pop().unwrap_or_default())
    }

    /// Returns the only word as text.
    fn text(self) -> io::Result<String> {
        self.word().map(|word| String::from_utf8_lossy(&word).into_owned())
    }
}

/// Reads the files that the command line names.
///
/// # Errors
/// A message for every path that cannot be read.
pub fn inputs(paths: &[PathBuf]) -> Result<Vec<InputFile>, Vec<Unreadable>> {
    let answer = ask(Kind::Inputs, &[], || match files::read(paths) {
        Ok(files) => Answer::Found(files.into_iter().flat_map(|file| [file.name.into_bytes(), file.bytes]).collect()),
        Err(errors) => Answer::Failed(0, errors.into_iter().map(|error| error.0).collect::<Vec<_>>().join("\n")),
    });
    match answer {
        Answer::Failed(_, why) => Err(why.lines().map(|line| Unreadable(line.to_owned())).collect()),
        Answer::Found(words) => Ok(words
            .chunks_exact(2)
            .map(|pair| InputFile { name: String::from_utf8_lossy(&pair[0]).into_owned(), bytes: pair[1].clone() })
            .collect()),
    }
}

/// Reads a whole file.
///
/// # Errors
/// The system's error.
pub fn file(path: &str) -> io::Result<Vec<u8>> {
    ask(Kind::File, &[path.as_bytes()], || {
        Answer::of_system(std::fs::read(text::to_os_string(path)), |bytes| vec![bytes])
    })
    .word()
}

/// Reads at most `limit` bytes of a file.
///
/// # Errors
/// The system's error.
pub fn start_of_file(path: &str, limit: u64) -> io::Result<Vec<u8>> {
    ask(Kind::File, &[path.as_bytes(), limit.to_string().as_bytes()], || {
        let mut content = Vec::new();
        let read = std::fs::File::open(text::to_os_string(path))
            .and_then(|file| file.take(limit).read_to_end(&mut content).map(|_| content));
        Answer::of_system(read, |bytes| vec![bytes])
    })
    .word()
}

/// Returns the names in a folder; `None`: it is not a folder.
pub fn folder(path: &str) -> Option<Vec<String>> {
    let answer = ask(Kind::Folder, &[path.as_bytes()], || {
        Answer::of_system(std::fs::read_dir(text::to_os_string(path)), |names| {
            names.filter_map(|entry| Some(entry.ok()?.file_name().into_string().ok()?.into_bytes())).collect()
        })
    });
    Some(answer.into_found()?.into_iter().map(|name| String::from_utf8_lossy(&name).into_owned()).collect())
}

/// Resolves a host to its first address of any family.
pub fn host(host: &str) -> Option<IpAddr> {
    let answer = ask(Kind::Host, &[host.as_bytes()], || {
        let found = (host, 0).to_socket_addrs().ok().and_then(|mut found| found.next());
        Answer::Found(found.map(|address| address.ip().to_string().into_bytes()).into_iter().collect())
    });
    answer.text().ok()?.parse().ok()
}

/// Resolves a host to its first address of a family.
///
/// # Errors
/// The reason, for the log.
pub fn address(host: &str, family: Family) -> Result<IpAddr, String> {
    let family_word: &[u8] = match family {
        Family::Unspecified => b"",
        Family::V4 => b"4",
        Family::V6 => b"6",
    };
    let answer = ask(Kind::FirstAddress, &[host.as_bytes(), family_word], || {
        let fits = |ip: &IpAddr| match family {
            Family::Unspecified => true,
            Family::V4 => ip.is_ipv4(),
            Family::V6 => ip.is_ipv6(),
        };
        match (host, 0).to_socket_addrs() {
            Err(error) => Answer::Failed(0, reason(&error)),
            Ok(found) => match found.map(|address| address.ip()).find(fits) {
                Some(ip) => Answer::Found(vec![ip.to_string().into_bytes()]),
                None => Answer::Failed(0, "no address of that family".to_owned()),
            },
        }
    });
    let text = answer.text().map_err(|error| reason(&error))?;
    text.parse().map_err(|_| "no address of that family".to_owned())
}

/// Returns the id of a user; `None`: unknown.
///
/// # Errors
/// The error of the user database.
pub fn user(name: &str) -> io::Result<Option<u32>> {
    account(Kind::User, name, |name| rt::process::user_by_name(name).map(|found| found.map(|(user, _)| user)))
}

/// Returns the id of a group; `None`: unknown.
///
/// # Errors
/// The error of the group database.
pub fn group(name: &str) -> io::Result<Option<u32>> {
    account(Kind::Group, name, rt::process::group_by_name)
}

fn account(kind: Kind, name: &str, find: impl FnOnce(&str) -> io::Result<Option<u32>>) -> io::Result<Option<u32>> {
    let answer = ask(kind, &[name.as_bytes()], || {
        Answer::of_system(find(name), |number| {
            number.map(|number| number.to_string().into_bytes()).into_iter().collect()
        })
    });
    answer.text().map(|text| text.parse().ok())
}

/// Whether a network namespace of this name can be opened.
pub fn has_namespace(name: &str) -> bool {
    let answer =
        ask(Kind::Namespace, &[name.as_bytes()], || Answer::of_system(rt::net::Namespace::open(name), |_| Vec::new()));
    answer.into_found().is_some()
}

/// Runs the program that prints the passphrase of a private key, and returns its output.
///
/// # Errors
/// The reason why it failed.
pub fn passphrase(command: &[String]) -> Result<Vec<u8>, String> {
    let words: Vec<&[u8]> = command.iter().map(String::as_bytes).collect();
    let answer = ask(Kind::Passphrase, &words, || match run(command) {
        Ok(text) => Answer::Found(vec![text]),
        Err(why) => Answer::Failed(0, why),
    });
    answer.word().map_err(|error| reason(&error))
}

fn run(command: &[String]) -> Result<Vec<u8>, String> {
    let (program, arguments) = command.split_first().ok_or("no program")?;
    let words = arguments.iter().map(|word| text::to_os_string(word));
    let done = std::process::Command::new(text::to_os_string(program))
        .args(words)
        .stdin(std::process::Stdio::null())
        .stderr(std::process::Stdio::inherit())
        .output()
        .map_err(|error| format!("'{program}' cannot be run: {error}"))?;
    if done.status.success() { Ok(done.stdout) } else { Err(format!("'{program}' failed: {}", done.status)) }
}

/// Returns the host name from the kernel.
pub fn host_name() -> String {
    let answer = ask(Kind::HostName, &[], || {
        Answer::of_system(std::fs::read(Path::new("/proc/sys/kernel/hostname")), |name| vec![name])
    });
    answer.text().map_or_else(|_| "localhost".to_owned(), |name| name.trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_recorded_is_answered_again_and_nothing_else() {
        let asked = || {
            let read = file("/nowhere/file").map_err(|error| error.kind());
            (read, folder("/"), user("root").ok(), address("127.0.0.1", Family::V6), host("127.0.0.1"), host_name())
        };
        let (first, record) = recording(asked);
        assert_eq!(first.0, Err(io::ErrorKind::NotFound));
        assert_eq!((first.2, first.4.map(|ip| ip.to_string())), (Some(Some(0)), Some("127.0.0.1".to_owned())));
        let (second, missing) = given(record, asked);
        assert_eq!((first, None), (second, missing));
        let (found, missing) = given(Record::default(), || file("/proc/self/status"));
        assert_eq!(missing.as_deref(), Some("/proc/self/status"));
        assert!(found.is_err());
        assert!(file("/proc/self/status").is_ok());
    }
}
