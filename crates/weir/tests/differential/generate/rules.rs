//! Generates sequences of rules that change variables and heads; the answer contains the result.

use super::Generator;
use super::condition::quoted;
use crate::case::Case;

const NAMES: &[&str] = &["x-a", "x-b", "x-list", "user-agent", "cookie"];
const VARIABLES: &[&str] = &["txn.a", "txn.b", "req.a", "txn.c"];
const FORMATS: &[&str] = &[
    "a",
    "%[path]",
    "%[var(txn.a)]",
    "%[req.hdr(x-a)]-%[req.hdr(x-list)]",
    "%HM %HP %HQ",
    "%[var(txn.b),lower]",
    "%%%[int(5)]",
    "%[query]",
    "/n%[path]",
    "%{+Q}[path]",
    "%[url]",
    "%[path,map(FOLDER/words.map)]",
    "%[str(a),map_beg(FOLDER/words.map,none)]",
    "a=1&b=%[method]",
];
const REGEXES: &[&str] = &["a", "(.*)", "^/a/(.*)$", "([^,]*),(.*)", "[0-9]+", "x|b", "^$", "(a)(b)?", "A"];
const TARGETS: &[&str] = &["", "\\0", "<\\1>", "\\2\\1", "z%[method]", "\\\\z", "\\1%[path]"];
/// HAProxy's result for empty targets depends on uninitialized memory: none are generated.
const PATHS: &[&str] = &["/n%[path]", "/a/b?c", "/%[var(txn.a)]", "/x%[req.hdr(x-a)]y", "/%HM", "/%[query]"];
const NEW_PATHS: &[&str] = &["/n\\0", "/<\\1>", "/z%[method]\\0", "/\\\\z", "/\\1%[path]"];
const ACTIONS: usize = 16;

impl Generator {
    pub(super) fn rules(&mut self) -> Option<Case> {
        let mut rules = Vec::new();
        for _ in 0..=self.random.below(5) {
            rules.push(self.rule()?);
        }
        Some(Case::of_rules(&rules))
    }

    fn rule(&mut self) -> Option<String> {
        let name = *self.random.one(NAMES);
        let variable = *self.random.one(VARIABLES);
        let format = quoted(self.random.one::<&str>(FORMATS));
        let (regex, target) = (quoted(self.random.one::<&str>(REGEXES)), quoted(self.random.one::<&str>(TARGETS)));
        Some(match self.random.below(ACTIONS) {
            0..3 => format!("set-var({variable}) {}", quoted(&self.expression()?)),
            3 => format!("set-var-fmt({variable}) {format}"),
            4 => format!("unset-var({variable})"),
            5 => {
                let condition =
                    *self.random.one(&["ifexists", "ifnotexists", "ifempty", "ifnotempty", "ifset", "ifnotset"]);
                format!("set-var({variable},{condition}) {}", quoted(&self.expression()?))
            }
            6 => format!("set-header {name} {format}"),
            7 => format!("add-header {name} {format}"),
            8 => {
                let method = *self.random.one(&["", " -m beg", " -m end", " -m sub"]);
                let part = if method.is_empty() { name } else { self.random.one(&["x-", "user", "-b", "list", "X-A"]) };
                format!("del-header {part}{method}")
            }
            9 => format!("replace-header {name} {regex} {target}"),
            10 => format!("replace-value {name} {regex} {target}"),
            11..14 => {
                let what = *self.random.one(&["path", "pathq", "uri"]);
                format!("replace-{what} {regex} {}", quoted(self.random.one::<&str>(NEW_PATHS)))
            }
            14 => {
                format!(
                    "set-query {}",
                    quoted(self.random.one::<&str>(&["a=1&b=%[method]", "x%[path]", "q=%[var(txn.a)]"]))
                )
            }
            _ => {
                format!("set-{} {}", self.random.one(&["path", "pathq", "uri"]), quoted(self.random.one::<&str>(PATHS)))
            }
        })
    }
}
