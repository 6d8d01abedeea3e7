//! Test cases: lines of rules, guarded for requests that name the case; the last one answers.

/// Lines; `GUARD` is replaced by the condition that a request is for this case, `FOLDER` by the folder of the files.
#[derive(Debug, Clone)]
pub struct Case {
    pub lines: Vec<String>,
}

/// Files that cases use.
pub const FILES: &[(&str, &str)] = &[
    ("words.lst", "a\n/a/b\nwww.example.com\nhost.name\n# none\nAgent\n"),
    ("words.map", "a one\n/a two words\n/a/b/c.gif 3\nhost.name x\nB big\n1\n"),
];

/// The state of a request that is reported after the rules.
const REST: &str = "%[method]|%[url]|%[req.hdr(x-a)]|%[req.hdr(x-b)]|%[req.hdr(x-list)]|%[req.hdr(user-agent)]|%[req.hdr(cookie)]|\
                    %[var(txn.a)]|%[var(txn.b)]|%[var(req.a)]|%[var(txn.c)]";

impl Case {
    pub fn of_expression(expression: &str, flags: &str) -> Self {
        let quoted = expression.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$");
        Self { lines: vec![format!("http-request return status 200 hdr x \"<%{flags}[{quoted}]>\" if GUARD")] }
    }

    pub fn of_condition(alternatives: &[String], word: &str) -> Self {
        // Stores the result in a variable, since the guard cannot be combined with "unless".
        let condition = alternatives.join(" || ");
        Self {
            lines: vec![
                format!("http-request set-var(txn.yes) int(1) {word} {condition}"),
                "http-request return status 200 hdr x \"<%[var(txn.yes)]>\" if GUARD".to_owned(),
                "http-request unset-var(txn.yes)".to_owned(),
            ],
        }
    }

    pub fn of_rules(rules: &[String]) -> Self {
        let mut lines: Vec<String> = rules.iter().map(|rule| format!("http-request {rule} if GUARD")).collect();
        lines.push(format!("http-request return status 200 hdr x \"<{REST}>\" if GUARD"));
        Self { lines }
    }

    /// Returns the text of the case for messages.
    pub fn text(&self) -> String {
        self.lines.join("\n    ")
    }
}
