//! Generates conditions: groups of ACLs, named and anonymous, negated or not, with flags and files.

use super::Generator;
use crate::case::Case;
use expression::condition::shorthands;

const WORDS: &[&str] =
    &["a", "/a", "/a/b", "gif", "host.name", "www.example.com", "Agent", "x", "1", "b", "c.gif", "Example", "", "8080"];
const REGEXES: &[&str] = &["^/a", "[0-9]+", "(a|b)$", "^$", "[.]gif", "A.*t", "^.{1,5}$"];
const NUMBERS: &[&[&str]] =
    &[&["0"], &["1:5"], &["gt", "3"], &["le", "10"], &["lt", "2", "5"], &["-1:1"], &["2:"], &[":3", "7"]];
const NETWORKS: &[&str] = &["127.0.0.0/8", "192.0.2.0/24", "2001:db8::/32", "10.1", "::ffff:192.0.2.77", "0.0.0.0/0"];
const PREDEFINED: &[&str] = &[
    "TRUE",
    "FALSE",
    "METH_GET",
    "METH_HEAD",
    "METH_POST",
    "HTTP_1.1",
    "HTTP_1.0",
    "HTTP_CONTENT",
    "HTTP_URL_ABS",
    "HTTP_URL_STAR",
    "HTTP_URL_SLASH",
    "LOCALHOST",
    "HTTP",
    "WAIT_END",
];
const METHODS: &[&str] =
    &["str", "str", "beg", "end", "sub", "dir", "dom", "reg", "int", "ip", "bin", "len", "bool", "found"];

impl Generator {
    pub(super) fn condition(&mut self) -> Option<Case> {
        let mut alternatives = Vec::new();
        for _ in 0..=self.random.below(2) {
            let mut group = Vec::new();
            for _ in 0..=self.random.below(2) {
                group.push(self.term()?);
            }
            alternatives.push(group.join(" "));
        }
        Some(Case::of_condition(&alternatives, self.random.one::<&str>(&["if", "if", "unless"])))
    }

    fn term(&mut self) -> Option<String> {
        let acl = if self.random.below(6) == 0 { (*self.random.one(PREDEFINED)).to_owned() } else { self.anonymous()? };
        Some(format!("{}{acl}", self.random.one(&["", "", "", "!", "! "])))
    }

    fn anonymous(&mut self) -> Option<String> {
        let (mut words, method) = if self.random.below(2) == 0 {
            let row = *self.random.one(shorthands());
            if row.fetch.starts_with("ssl") || row.fetch.starts_with("http_auth") || row.fetch.contains("payload") {
                return None;
            }
            let argument = match row.fetch {
                "req.hdr" | "res.hdr" => *self.random.one(&["(host)", "(user-agent)", "(x-list)", "(x-list,1)"]),
                "req.cook" | "res.cook" | "urlp" => *self.random.one(&["(a)", "(k)"]),
                _ => "",
            };
            (vec![quoted(&format!("{}{argument}", row.name))], row.method.name())
        } else {
            let method = *self.random.one(METHODS);
            (vec![quoted(&self.expression()?), "-m".to_owned(), method.to_owned()], method)
        };
        if self.random.below(3) == 0 {
            words.push("-i".to_owned());
        }
        if self.random.below(8) == 0 {
            words.push("-n".to_owned());
        }
        if matches!(method, "str" | "beg" | "end" | "sub" | "dir" | "dom") && self.random.below(4) == 0 {
            let file = *self.random.one(&["-f FOLDER/words.lst", "-M -f FOLDER/words.map", "-f FOLDER/words.lst -i"]);
            words.push(file.to_owned());
        }
        if self.random.below(4) == 0 {
            words.push("--".to_owned());
        }
        self.patterns(method, &mut words);
        Some(format!("{{ {} }}", words.join(" ")))
    }

    fn patterns(&mut self, method: &str, words: &mut Vec<String>) {
        for _ in 0..=self.random.below(2) {
            match method {
                "int" | "len" => {
                    // An operator applies to all numbers after it.
                    words.extend(self.random.one(NUMBERS).iter().map(|word| (*word).to_owned()));
                    return;
                }
                "ip" => words.push((*self.random.one(NETWORKS)).to_owned()),
                "bin" => words.push((*self.random.one(&["6162", "00", "61", "0001feff"])).to_owned()),
                "reg" => words.push(quoted(self.random.one::<&str>(REGEXES))),
                "bool" | "found" => return,
                _ => {
                    let word = *self.random.one(WORDS);
                    // An empty word would end the line.
                    words.extend((!word.is_empty()).then(|| quoted(word)));
                }
            }
        }
    }
}

pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$"))
}
