//! Completion scripts for bash, zsh and fish. Owns their text. Must never know an option by name.

use super::{Page, options::ShellOption};
use std::fmt::Write;

/// Returns the script for a shell; `None`: unknown shell.
pub(super) fn of_shell(shell: &str, pages: &[Page]) -> Option<String> {
    match shell {
        "bash" => Some(bash(pages)),
        "zsh" => Some(zsh(pages)),
        "fish" => Some(fish(pages)),
        _ => None,
    }
}

fn commands(pages: &[Page]) -> impl Iterator<Item = (&'static str, &Page)> {
    pages.iter().filter_map(|page| page.command.map(|command| (command, page)))
}

fn names<'a>(page: &'a Page, chosen: impl Fn(&ShellOption) -> bool + 'a) -> Vec<&'a str> {
    page.options
        .0
        .iter()
        .filter(move |option| chosen(option))
        .flat_map(|o| o.names.iter().map(String::as_str))
        .collect()
}

fn bash(pages: &[Page]) -> String {
    let mut out = String::from("# Completion of weir for bash, written by 'weir completions bash'.\n\n_weir() {\n");
    out.push_str(
        "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} words= files= values=\n",
    );
    out.push_str("    case ${COMP_WORDS[1]} in\n");
    let mut arm = |pattern: &str, page: &Page, more: &str| {
        let all = names(page, |_| true).join(" ");
        let files = names(page, |option| option.takes_word() && option.takes_file()).join(" ");
        let values = names(page, |option| option.takes_word() && !option.takes_file()).join(" ");
        let _ =
            writeln!(out, "    {pattern})\n        words='{all}'\n        files='{files}'\n        values='{values}'");
        let _ = writeln!(out, "{more}        ;;");
    };
    for (command, page) in commands(pages) {
        arm(command, page, "");
    }
    let list = commands(pages).map(|(command, _)| command).collect::<Vec<_>>().join(" ");
    let first = format!("        [ \"$COMP_CWORD\" -eq 1 ] && words=\"{list} completions manual $words\"\n");
    if let Some(page) = pages.first() {
        arm("*", page, &first);
    }
    out.push_str(
        "    esac
    COMPREPLY=()
    # The value of an option that takes none of the words below.
    case \" $values \" in *\" $previous \"*) return ;; esac
    case \" $files \" in
    *\" $previous \"*) ;;
    *) mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$current\") ;;
    esac
    case $current in
    -*) ;;
    *)
        local file
        while IFS= read -r file; do COMPREPLY+=(\"$file\"); done < <(compgen -f -- \"$current\")
        ;;
    esac
}
complete -o filenames -F _weir weir
",
    );
    out
}

/// Escapes a text for single quotes of any of the shells: an apostrophe becomes a typographic one.
fn quoted(text: &str) -> String {
    text.replace('\'', "\u{2019}").replace('\\', "")
}

fn zsh(pages: &[Page]) -> String {
    let mut out = String::from("#compdef weir\n# Completion of weir for zsh, written by 'weir completions zsh'.\n\n");
    let list = |page: &Page| {
        let mut text = String::new();
        for option in &page.options.0 {
            let doc = quoted(&option.doc).replace(['[', ']'], "").replace(':', "\\:");
            for name in &option.names {
                let value = match (option.value.is_empty(), option.takes_file()) {
                    (true, _) => String::new(),
                    (false, true) => ":file:_files".to_owned(),
                    (false, false) => ":value: ".to_owned(),
                };
                let join = if option.attached && !option.value.is_empty() { "-" } else { "" };
                let _ = writeln!(text, "        '*{name}{join}[{doc}]{value}' \\");
            }
        }
        text
    };
    out.push_str("_weir() {\n    case $words[2] in\n");
    for (command, page) in commands(pages) {
        let _ = write!(
            out,
            "    {command})\n        shift words\n        (( CURRENT -= 1 ))\n        _arguments \\\n{}        '*:file:_files'\n        ;;\n",
            list(page)
        );
    }
    out.push_str("    *)\n");
    out.push_str("        local -a commands=(\n");
    for (command, page) in commands(pages) {
        let _ = writeln!(out, "            '{command}:{}'", quoted(page.doc));
    }
    out.push_str("            'completions:prints a completion script'\n            'manual:prints the manual page'\n        )\n");
    out.push_str("        (( CURRENT == 2 )) && _describe command commands\n");
    if let Some(page) = pages.first() {
        let _ = write!(out, "        _arguments \\\n{}        '*:file:_files'\n        ;;\n", list(page));
    }
    out.push_str("    esac\n}\n\n_weir \"$@\"\n");
    out
}

fn fish(pages: &[Page]) -> String {
    let mut out = String::from("# Completion of weir for fish, written by 'weir completions fish'.\n\n");
    for (command, page) in commands(pages) {
        let _ = writeln!(out, "complete -c weir -n __fish_use_subcommand -a {command} -d '{}'", quoted(page.doc));
    }
    out.push_str("complete -c weir -n __fish_use_subcommand -a completions -d 'prints a completion script'\n");
    out.push_str("complete -c weir -n __fish_use_subcommand -a manual -d 'prints the manual page'\n");
    out.push_str("complete -c weir -n '__fish_seen_subcommand_from completions' -f -a 'bash zsh fish'\n");
    let all = commands(pages).map(|(command, _)| command).collect::<Vec<_>>().join(" ");
    for page in pages {
        let condition = match page.command {
            Some(command) => format!("__fish_seen_subcommand_from {command}"),
            None => format!("not __fish_seen_subcommand_from {all} completions manual"),
        };
        for option in &page.options.0 {
            let mut spellings = String::new();
            for name in &option.names {
                let kind = match name.strip_prefix("--") {
                    Some(long) => format!(" -l {long}"),
                    None if name.len() == 2 => format!(" -s {}", &name[1..]),
                    None => format!(" -o {}", &name[1..]),
                };
                spellings.push_str(&kind);
            }
            let value = match (option.takes_word(), option.takes_file()) {
                (false, _) => "",
                (true, true) => " -r -F",
                (true, false) => " -x",
            };
            let _ = writeln!(out, "complete -c weir -n '{condition}'{spellings}{value} -d '{}'", quoted(&option.doc));
        }
    }
    out
}
