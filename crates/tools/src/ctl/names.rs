//! Names of a running process for completion: servers, backends, tables, certificates. Must never ask twice for the
//! same list while a line is edited.

use super::answer::Verdict;
use super::client::Client;
use super::json;
use serde_json::Value;
use std::collections::HashMap;

/// Maximum number of names of one kind.
const MOST_NAMES: usize = 20_000;

/// The command that lists the names of a kind, and the form of its answer.
struct Source {
    /// Names of placeholders of usages.
    placeholders: &'static [&'static str],
    command: &'static str,
    form: Form,
}

#[derive(Clone, Copy)]
enum Form {
    /// A column of a table.
    Column(&'static str),
    /// Two columns, joined by a slash.
    Pair(&'static str, &'static str),
    /// The proxies of `show stat` whose `type` is that.
    Proxies(Option<&'static str>),
    /// The first word of each line.
    FirstWord,
}

const SOURCES: &[Source] = &[
    Source { placeholders: &["bk/srv"], command: "show servers state", form: Form::Pair("be_name", "srv_name") },
    Source { placeholders: &["bk", "backend"], command: "show backend", form: Form::Column("name") },
    Source { placeholders: &["frontend"], command: "show stat", form: Form::Proxies(Some("0")) },
    Source { placeholders: &["px", "proxy"], command: "show stat", form: Form::Proxies(None) },
    Source { placeholders: &["table"], command: "show table", form: Form::Column("name") },
    Source { placeholders: &["map"], command: "show map", form: Form::Column("file") },
    Source { placeholders: &["acl"], command: "show acl", form: Form::Column("file") },
    Source { placeholders: &["certfile"], command: "show ssl cert", form: Form::Column("filename") },
    Source { placeholders: &["cafile"], command: "show ssl ca-file", form: Form::Column("filename") },
    Source { placeholders: &["crlfile"], command: "show ssl crl-file", form: Form::Column("filename") },
    Source { placeholders: &["list"], command: "show ssl crt-list", form: Form::FirstWord },
    Source { placeholders: &["sink"], command: "show events", form: Form::FirstWord },
];

/// Names by the command that lists them.
#[derive(Debug, Default)]
pub struct Names(HashMap<&'static str, String>);

impl Names {
    /// Returns the names of the kind that a placeholder means, such as `bk/srv`; none of an unknown kind.
    pub fn of(&mut self, placeholder: &str, client: &mut Client) -> Vec<String> {
        let kind = placeholder.split(':').next().unwrap_or_default();
        let Some(source) = SOURCES.iter().find(|source| source.placeholders.contains(&kind)) else { return Vec::new() };
        let answer = self.0.entry(source.command).or_insert_with(|| match client.query(source.command) {
            Ok((Verdict::Accepted, text)) => text,
            Ok((Verdict::Refused, _)) | Err(_) => String::new(),
        });
        let mut names = names(answer, source.form);
        // A name that a word cannot be, or that could control the terminal, is left out.
        names.retain(|name| {
            !name.is_empty() && !name.contains(|letter: char| letter.is_control() || " ;\\".contains(letter))
        });
        names.sort();
        names.dedup();
        names.truncate(MOST_NAMES);
        names
    }

    /// Forgets all names.
    pub fn forget(&mut self) {
        self.0.clear();
    }
}

fn names(answer: &str, form: Form) -> Vec<String> {
    let cell = |row: &serde_json::Map<String, Value>, title: &str| match row.get(title) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let rows = || json::rows(answer.trim()).unwrap_or_default().into_iter();
    match form {
        // An asterisk marks a certificate with a transaction.
        Form::Column(title) => rows().map(|row| cell(&row, title).trim_start_matches('*').to_owned()).collect(),
        Form::Pair(first, second) => {
            rows().map(|row| format!("{}/{}", cell(&row, first), cell(&row, second))).collect()
        }
        Form::Proxies(kind) => {
            let rows = rows().filter(|row| kind.is_none_or(|kind| cell(row, "type") == kind));
            rows.map(|row| cell(&row, "pxname")).collect()
        }
        Form::FirstWord => {
            let lines = answer.lines().filter(|line| !line.starts_with('#'));
            lines.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_answers() {
        let rows: [(&str, Form, &[&str]); 6] = [
            (
                "1\n# be_id be_name srv_id srv_name\n3 app 1 s1\n3 app 2 s2\n",
                Form::Pair("be_name", "srv_name"),
                &["app/s1", "app/s2"],
            ),
            ("# pxname,svname,type,\nwww,FRONTEND,0,\napp,BACKEND,1,\n", Form::Proxies(Some("0")), &["www"]),
            ("# table: abuse, type: ip, size:10, used:1\n", Form::Column("name"), &["abuse"]),
            ("# id (file) description\n0 (/a.map) pattern\n", Form::Column("file"), &["/a.map"]),
            ("# transaction\n*a.pem\n# filename\nb.pem\n", Form::FirstWord, &["*a.pem", "b.pem"]),
            ("# filename\n*a.pem\nb.pem\n", Form::Column("filename"), &["a.pem", "b.pem"]),
        ];
        for (answer, form, wanted) in rows {
            assert_eq!(names(answer, form), wanted, "{answer}");
        }
    }

    #[test]
    fn placeholders_are_known_once() {
        let mut all: Vec<&str> = SOURCES.iter().flat_map(|source| source.placeholders).copied().collect();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
