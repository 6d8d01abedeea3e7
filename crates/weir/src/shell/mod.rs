//! `weir completions SHELL` and `weir manual`: files that a package installs for the shell and for `man`. Owns the list
//! of options that both need, parsed from the help pages of the program and of its tools, so that options are defined
//! once. Must never open a file.

mod completions;
mod manual;
mod options;

use crate::help;
use options::Options;
use std::ffi::OsString;
use std::process::ExitCode;

/// The first words of these commands.
const NAMES: [&str; 2] = ["completions", "manual"];

/// A command with its options: the program itself, one of its tools, or `lint`.
struct Page {
    /// The first word; `None`: the program itself.
    command: Option<&'static str>,
    doc: &'static str,
    /// The help page.
    text: String,
    options: Options,
}

/// Returns every help page of this build, the program's first.
fn pages() -> Vec<Page> {
    let page = |command, doc, text: String| Page { command, doc, options: Options::of_help(&text), text };
    let mut pages = vec![page(None, "a TCP and HTTP load balancer that runs HAProxy configurations", help::page())];
    pages.extend(crate::tool::helps().into_iter().map(|(name, doc, text)| page(Some(name), doc, text)));
    pages.push(page(Some("lint"), crate::lint::DOC, crate::lint::USAGE.to_owned()));
    pages
}

/// Runs the command that the first word names. `None`: it is not a command of this module.
pub fn run(words: &[OsString]) -> Option<ExitCode> {
    let words: Vec<&str> = words.iter().filter_map(|word| word.to_str()).collect();
    let (first, rest) = words.split_first()?;
    let text = match (NAMES.contains(first), *first, rest) {
        (false, ..) => return None,
        (_, "manual", []) => Some(manual::roff(&pages())),
        (_, "completions", [shell]) => completions::of_shell(shell, &pages()),
        _ => None,
    };
    Some(match text {
        Some(text) => crate::answer(&text),
        None => {
            let usage = "expected 'weir manual' or 'weir completions bash|zsh|fish'.";
            crate::messages::Messages::new(false, false).alert(usage);
            ExitCode::FAILURE
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The files that packages install, and the output of this build. `BLESS=1` rewrites them.
    #[test]
    #[cfg(feature = "tools")]
    fn the_files_for_packages_are_those_of_this_build() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../contrib");
        let of_shell = |shell| completions::of_shell(shell, &pages()).expect("a known shell");
        let files = [
            ("completions/weir.bash", of_shell("bash")),
            ("completions/_weir", of_shell("zsh")),
            ("completions/weir.fish", of_shell("fish")),
            ("man/weir.8", manual::roff(&pages())),
        ];
        for (name, text) in files {
            let path = root.join(name);
            if std::env::var_os("BLESS").is_some() {
                std::fs::write(&path, &text).expect("a file of the project");
            }
            let kept = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(kept == text, "contrib/{name} is not what this build prints; BLESS=1 writes it");
        }
    }

    #[test]
    fn every_flag_of_the_table_is_an_option_of_the_first_page() {
        let pages = pages();
        for flag in crate::arguments::FLAGS {
            let found = pages[0].options.find(flag.name);
            assert_eq!(found.map(|option| option.doc.as_str()), Some(flag.doc), "{}", flag.name);
        }
    }

    /// Returns bash's completions for the last of these words.
    #[cfg(feature = "tools")]
    fn offered(words: &[&str]) -> Option<Vec<String>> {
        let script = completions::of_shell("bash", &pages()).expect("a known shell");
        let last = words.len() - 1;
        let ask =
            format!("COMP_WORDS=({}); COMP_CWORD={last}; _weir; printf '%s\\n' \"${{COMPREPLY[@]}}\"", words.join(" "));
        let Ok(done) = std::process::Command::new("bash").args(["--norc", "-c", &format!("{script}\n{ask}")]).output()
        else {
            println!("skipped: bash is not installed");
            return None;
        };
        assert!(done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
        Some(String::from_utf8_lossy(&done.stdout).lines().map(str::to_owned).collect())
    }

    #[test]
    #[cfg(feature = "tools")]
    fn bash_offers_the_commands_and_the_options_of_each() {
        let rows: [(&[&str], &[&str]); 5] = [
            (&["weir", "lo"], &["load"]),
            (&["weir", "-sf", "7", "-d"], &["-d", "-db"]),
            (&["weir", "bench", "--r"], &["--rounds", "--report"]),
            (&["weir", "-f", "Cargo.to"], &["Cargo.toml"]),
            (&["weir", "load", "--manual"], &[""]),
        ];
        for (words, wanted) in rows {
            let Some(found) = offered(words) else { return };
            assert_eq!(
                found.iter().take(wanted.len()).collect::<Vec<_>>(),
                wanted.iter().collect::<Vec<_>>(),
                "{words:?}"
            );
        }
    }
}
