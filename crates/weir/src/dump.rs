//! `-dC` and `-dK`: the parsed configuration, and the keywords of the language.
//!
//! `-dC` prints the words without comments and with variables expanded; blocks whose condition is false are omitted,
//! and so are the lines that set variables. The output is a valid configuration. Must never validate it.

use config::document::{Document, Line};
use config::keyword::anonymous;
use config::keyword::catalogue::{self, DUMP_CLASSES};
use config::text;
use control::runtime::{Mode, process};
use std::collections::BTreeMap;

/// Returns the keywords of a list of classes such as `cfg,smp`; the list of classes for `help` or an empty list.
#[must_use]
pub fn keywords(classes: &str) -> String {
    let mut out = String::new();
    for class in classes.split(',') {
        match class {
            "" | "help" => {
                out.push_str("# List of supported keyword classes:\n");
                DUMP_CLASSES.iter().for_each(|(name, doc)| out.push_str(&format!("{name}: {doc}\n")));
            }
            "all" => {
                policy::catalogue::dump_acls(&mut out);
                catalogue::dump(&mut out);
                dump_commands(&mut out);
                policy::catalogue::dump_converters(&mut out);
                catalogue::dump_filters(&mut out);
                policy::catalogue::dump_fetches(&mut out);
                dump_services(&mut out);
            }
            "acl" => policy::catalogue::dump_acls(&mut out),
            "cfg" => catalogue::dump(&mut out),
            "cli" => dump_commands(&mut out),
            "cnv" => policy::catalogue::dump_converters(&mut out),
            "flt" => catalogue::dump_filters(&mut out),
            "smp" => policy::catalogue::dump_fetches(&mut out),
            "svc" => dump_services(&mut out),
            _ => {}
        }
    }
    out
}

/// Lists the commands of the runtime API and of the master CLI, with the process that has them and the required mode.
fn dump_commands(out: &mut String) {
    let of_worker = process::commands().map(|(name, mode)| (name, (false, Some(mode))));
    let of_master = crate::master::commands().map(|name| (name, (true, None)));
    let mut all: BTreeMap<&str, (bool, Option<Mode>)> = BTreeMap::new();
    for (name, (master, mode)) in of_worker.chain(of_master) {
        let known = all.entry(name).or_default();
        *known = (known.0 || master, known.1.or(mode));
    }
    out.push_str("# List of registered CLI keywords:\n");
    for (name, (master, mode)) in all {
        let master = if master { "[MASTER] " } else { "" };
        let worker = if mode.is_some() { "[WORKER] " } else { "" };
        let mode = match mode {
            Some(Mode::Expert) => "[EXPERT] ",
            Some(Mode::Experimental) => "[EXPERIM] ",
            Some(Mode::Normal | Mode::Debug) | None => "",
        };
        out.push_str(&format!("{name} {master}{worker}{mode}\n"));
    }
}

/// Lists the built-in services for `use-service`.
fn dump_services(out: &mut String) {
    out.push_str("# List of registered service names:\n");
    let services = control::services::built_in();
    services.names().iter().for_each(|row| out.push_str(&format!("{}\n", row.name)));
}

/// Returns the text of every section. A key other than 0 anonymizes names, addresses and possible secrets.
#[must_use]
pub fn configuration(document: &Document, key: u32) -> Vec<u8> {
    if key != 0 {
        let mut out = String::new();
        anonymous::dump(document, key, &mut out);
        return out.into_bytes();
    }
    let mut out = Vec::new();
    for section in &document.sections {
        push(&section.line, &mut out);
        for line in &section.body {
            out.push(b'\t');
            push(line, &mut out);
        }
    }
    out
}

fn push(line: &Line, out: &mut Vec<u8>) {
    for (index, word) in line.words.iter().enumerate() {
        if index > 0 {
            out.push(b' ');
        }
        let bytes = text::to_bytes(&word.text);
        if bytes.is_empty() {
            out.extend_from_slice(b"''");
        }
        bytes.iter().for_each(|&byte| escape(byte, out));
    }
    out.push(b'\n');
}

/// Writes a byte of a word, escaped for use outside of quotes (configuration manual, section 2.2).
fn escape(byte: u8, out: &mut Vec<u8>) {
    match byte {
        b'\n' => out.extend_from_slice(b"\\n"),
        b'\r' => out.extend_from_slice(b"\\r"),
        b'\t' => out.extend_from_slice(b"\\t"),
        b' ' | b'#' | b'"' | b'\'' | b'\\' => out.extend_from_slice(&[b'\\', byte]),
        _ => out.push(byte),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use config::environment::Environment;
    use config::{InputFile, LanguageOptions, language};

    fn dumped(text: &str) -> String {
        under(text, 0)
    }

    fn under(text: &str, key: u32) -> String {
        let files = [InputFile { name: "x.cfg".into(), bytes: text.as_bytes().to_vec() }];
        let mut environment = Environment::new();
        let (_, document) = language::read(&files, &mut environment, &LanguageOptions::default(), &mut Vec::new());
        String::from_utf8(configuration(&document, key)).unwrap()
    }

    #[test]
    fn what_is_printed_reads_the_same_again() {
        let text = "global # comment\n  setenv A \"b c\"\n  description \"$A\"   'x\\y' # z\n\ndefaults\n mode\thttp\n";
        let first = dumped(text);
        assert_eq!(first, "global\n\tdescription b\\ c x\\\\y\ndefaults\n\tmode http\n");
        assert_eq!(dumped(&first), first);
    }

    #[test]
    fn a_key_hides_names() {
        let text = "frontend secret\n  bind 192.0.2.1:80\n";
        assert!(dumped(text).contains("secret"));
        assert!(!under(text, 7).contains("secret") && under(text, 7) != under(text, 8));
    }

    #[test]
    fn keywords_are_listed_by_class() {
        assert!(keywords("help").contains("\ncfg: ") && keywords("") == keywords("help"));
        assert!(keywords("cfg").contains("\n\tmaxconn\n"));
        assert_eq!(keywords("all"), keywords("acl,cfg,cli,cnv,flt,smp,svc,nonsense"));
        assert_eq!(keywords("svc"), "# List of registered service names:\nprometheus-exporter\nhaterm\n");
        let commands = keywords("cli");
        for line in
            ["show info [WORKER] ", "help [MASTER] [WORKER] ", "reload [MASTER] ", "httpclient [WORKER] [EXPERT] "]
        {
            assert!(commands.lines().any(|own| own == line), "{line}");
        }
    }

    #[test]
    fn what_a_condition_leaves_out_is_left_out() {
        let text = "global\n.if 0\n  maxconn 1\n.else\n  maxconn 2\n.endif\n";
        assert_eq!(dumped(text), "global\n\tmaxconn 2\n");
    }
}
