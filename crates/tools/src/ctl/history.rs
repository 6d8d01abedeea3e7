//! The history of the prompt: a file that only its owner can read. Must never contain a key, a password or a payload.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Maximum number of lines.
const MOST_LINES: usize = 1000;
/// Maximum length of a line, in bytes.
const LONGEST_LINE: usize = 512;
/// Maximum size of a file that is read, in bytes.
const MOST_READ: u64 = 4 << 20;

/// Commands without secrets, by their first words. `*`: any word. Unknown commands, such as those of scripts, and commands
/// with values of maps or variables are missing.
const HARMLESS: [&str; 40] = [
    "abort ssl",
    "acme renew",
    "acme status",
    "add backend",
    "clear acl",
    "clear counters",
    "clear map",
    "clear table",
    "commit acl",
    "commit map",
    "commit ssl",
    "del backend",
    "del server",
    "del ssl",
    "disable *",
    "dump stats-file",
    "enable *",
    "experimental-mode",
    "expert-mode",
    "get weight",
    "hard-reload",
    "help",
    "mcli-debug-mode",
    "operator",
    "prepare *",
    "publish backend",
    "reload",
    "set maxconn",
    "set profiling",
    "set rate-limit",
    "set server",
    "set timeout",
    "set weight",
    "show *",
    "shutdown *",
    "unpublish backend",
    "update ssl",
    "user",
    "wait",
    "trace",
];

/// Commands of [`HARMLESS`] that are not, because of their arguments.
const HARMFUL: [&str; 1] = ["show anon"];

/// Parts of words that may be secrets, or announce one.
const SUSPICIOUS: [&str; 7] = ["pass", "secret", "token", "authorization", "bearer", "-----begin", "apikey"];

/// Whether a line may be written to a file. A line that begins with a blank may not.
pub fn is_harmless(line: &str) -> bool {
    let is_plain = !line.starts_with([' ', '\t']) && line.len() <= LONGEST_LINE && !line.contains(['\n', '\r']);
    is_plain && super::line::commands(line.as_bytes()).iter().all(|command| is_harmless_command(&command.words()))
}

fn is_harmless_command(words: &[String]) -> bool {
    let begins = |pattern: &&str| {
        let mut parts = pattern.split(' ').enumerate();
        parts.all(|(at, part)| words.get(at).is_some_and(|word| part == "*" || part == word))
    };
    let is_suspicious = |word: &String| {
        let word = word.to_lowercase();
        SUSPICIOUS.iter().any(|part| word.contains(part))
    };
    // A prefix alone has no words.
    let is_known = words.is_empty() || HARMLESS.iter().any(begins);
    is_known && !HARMFUL.iter().any(begins) && !words.iter().any(is_suspicious) && has_harmless_key(words)
}

/// Whether the key of a table's entry, if there is one, is an address: others may be cookies and tokens.
fn has_harmless_key(words: &[String]) -> bool {
    let is_of_table = words.get(1).is_some_and(|word| word == "table");
    let key = words.iter().position(|word| word == "key").and_then(|at| words.get(at + 1));
    let is_address = |key: &String| key.split('/').next().is_some_and(|host| host.parse::<IpAddr>().is_ok());
    !is_of_table || key.is_none_or(is_address)
}

/// Returns the path of the file: in `$XDG_STATE_HOME`, else in `~/.local/state`.
pub fn path() -> Option<PathBuf> {
    let absolute = |name: &str| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    let folder = absolute("XDG_STATE_HOME").or_else(|| Some(absolute("HOME")?.join(".local/state")))?;
    Some(folder.join("weir/ctl_history"))
}

/// A file with lines, the oldest first.
#[derive(Debug)]
pub struct HistoryFile {
    path: PathBuf,
}

impl HistoryFile {
    /// Opens the file, and creates its folder if there is none. Returns the lines too; of a file that is too long, the
    /// older ones are removed.
    ///
    /// # Errors
    /// Those of the system.
    pub fn open(path: &Path) -> io::Result<(Self, Vec<String>)> {
        if let Some(folder) = path.parent() {
            std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        }
        let own = Self { path: path.to_owned() };
        let mut text = Vec::new();
        let file = own.file()?;
        (&file).take(MOST_READ).read_to_end(&mut text)?;
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<String> = text.lines().filter(|line| line.len() <= LONGEST_LINE).map(str::to_owned).collect();
        let kept = lines[lines.len().saturating_sub(MOST_LINES)..].to_vec();
        if kept.len() < text.lines().count() {
            own.replace(&kept)?;
        }
        Ok((own, kept))
    }

    /// Opens the file to read and to append; other users cannot read it.
    fn file(&self) -> io::Result<File> {
        let file = OpenOptions::new().read(true).append(true).create(true).mode(0o600).open(&self.path)?;
        if file.metadata()?.permissions().mode() & 0o077 != 0 {
            file.set_permissions(std::fs::Permissions::from_mode(0o600))?;
        }
        Ok(file)
    }

    /// Appends a line, unless it may contain a secret.
    ///
    /// # Errors
    /// Those of the system.
    pub fn add(&self, line: &str) -> io::Result<()> {
        if !is_harmless(line) {
            return Ok(());
        }
        self.file()?.write_all(format!("{line}\n").as_bytes())
    }

    fn replace(&self, lines: &[String]) -> io::Result<()> {
        let next = self.path.with_extension(format!("{}.new", std::process::id()));
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&next)?;
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        let written = file.write_all(text.as_bytes()).and_then(|()| std::fs::rename(&next, &self.path));
        if written.is_err() {
            let _ = std::fs::remove_file(&next);
        }
        written
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commands_without_secrets_are_written() {
        for line in [
            "show info",
            "show servers state; show stat",
            "set server app/s1 state drain",
            "set ssl_is_unknown",
            "@1 show proc",
            "@!77",
            "clear table abuse key 192.0.2.7",
            "clear table abuse key 2001:db8::1",
            "show table abuse data.gpc0 gt 0",
            "commit ssl cert a.pem",
            "expert-mode on",
            "disable server app/s1",
        ] {
            assert_eq!(is_harmless(line), line != "set ssl_is_unknown", "{line}");
        }
        for line in [
            "set ssl tls-key 0 YWJj",
            "set ssl cert a.pem <<",
            "set dynamic-cookie-key backend app key",
            "set map users.map alice 1234",
            "add map tokens.map 1234 alice",
            "get map tokens.map 1234",
            "set var proc.key str(1234)",
            "set anon on 1234",
            "httpclient GET http://user:pw@host/",
            "show info; set ssl tls-key 0 YWJj",
            "show table sessions key 8f2c",
            "my-command-of-a-script 1234",
            "show stat password",
            "set server app/s1 agent-send Token=1",
            " show info",
            "show info\nset map a b c",
            "-----BEGIN PRIVATE KEY-----",
        ] {
            assert!(!is_harmless(line), "{line}");
        }
        assert!(!is_harmless(&format!("show {}", "x".repeat(LONGEST_LINE))));
    }

    #[test]
    fn the_file_is_private_and_bounded() {
        let folder = std::env::temp_dir().join(format!("weir-ctl-history-{}", std::process::id()));
        let path = folder.join("state/ctl_history");
        let (file, lines) = HistoryFile::open(&path).expect("a file");
        assert!(lines.is_empty());
        for number in 0..MOST_LINES + 5 {
            file.add(&format!("show info {number}")).expect("written");
        }
        file.add("set ssl tls-key 0 YWJj").expect("left out");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).expect("changed");
        let (_, lines) = HistoryFile::open(&path).expect("a file");
        assert_eq!((lines.len(), lines[0].as_str()), (MOST_LINES, "show info 5"));
        let mode = std::fs::metadata(&path).expect("a file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_eq!(std::fs::read_to_string(&path).expect("text").lines().count(), MOST_LINES);
        std::fs::remove_dir_all(&folder).expect("removed");
    }
}
