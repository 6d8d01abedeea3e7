//! Answers as JSON (`-j`). The form that the API has itself is used where there is one; tables become arrays of objects.
//! Must never guess a column.

use super::answer::Verdict;
use serde_json::{Map, Value};

/// Returns the command that answers with JSON, for commands that have such a form. `None`: it has none, or the command
/// asks for another one.
pub fn machine_form(words: &[String], text: &[u8]) -> Option<Vec<u8>> {
    let word = |at: usize| words.get(at).map_or("", String::as_str);
    let has_form = word(0) == "show" && ["stat", "info", "schema"].contains(&word(1));
    let is_chosen = words.iter().skip(2).any(|word| ["json", "typed", "desc"].contains(&word.as_str()));
    (has_form && !is_chosen).then(|| [text, b" json"].concat())
}

/// Returns the answer to a command as a JSON document on one line.
pub fn document(words: &[String], verdict: Verdict, answer: &[u8]) -> String {
    let text = String::from_utf8_lossy(answer);
    let named = |name: &str| Value::Object(Map::from_iter([(name.to_owned(), text.trim_end().into())])).to_string();
    if verdict == Verdict::Refused {
        return named("error");
    }
    let trimmed = text.trim();
    let is_document = trimmed.starts_with(['{', '[']) && serde_json::from_str::<serde::de::IgnoredAny>(trimmed).is_ok();
    if is_document {
        // Inside a document, the end of a line is only a blank.
        return trimmed.replace(['\n', '\r'], " ");
    }
    let is_of_table = matches!(words, [show, table, _, ..] if show == "show" && table == "table");
    let entries = (is_of_table && trimmed.starts_with("# table:")).then(|| entries(trimmed));
    match entries.or_else(|| rows(trimmed)) {
        Some(rows) => Value::Array(rows.into_iter().map(Value::Object).collect()).to_string(),
        None => named("answer"),
    }
}

/// Returns the answer of one of several workers.
pub fn of_worker(process: &str, document: &str) -> String {
    let name = process.trim_start_matches('!');
    format!("{{\"process\":{},\"answer\":{document}}}", value("process", name))
}

/// Parses a table. `None`: the text is none.
pub fn rows(text: &str) -> Option<Vec<Map<String, Value>>> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty()).peekable();
    // `show servers state` begins with the version of its format.
    let is_version = |line: &&str| !line.is_empty() && line.bytes().all(|byte| byte.is_ascii_digit());
    lines.next_if(is_version);
    let lines: Vec<&str> = lines.collect();
    let (head, rest) = lines.split_first()?;
    if head.starts_with("# table:") {
        return Some(stick_tables(&lines));
    }
    if head.starts_with("#<PID>") {
        return Some(processes(head, rest));
    }
    let titles = head.strip_prefix("# ")?;
    if titles.contains(',') {
        let titles = fields(titles);
        return Some(rest.iter().map(|line| row(&titles, fields(line))).collect());
    }
    let written: Vec<&str> = titles.split_whitespace().collect();
    let titles: Vec<String> = written.iter().map(|title| bare(title)).collect();
    let split = |line: &&str| {
        let cells = line.split_whitespace().collect::<Vec<_>>();
        let (own, last) = cells.split_at(cells.len().min(titles.len() - 1));
        // The last column has the rest of the line.
        let last = (!last.is_empty()).then(|| last.join(" "));
        let own = own.iter().zip(&written);
        let own = own.map(|(cell, title)| if title.starts_with('(') { bare(cell) } else { (*cell).to_owned() });
        row(&titles, own.chain(last).collect())
    };
    (!titles.is_empty()).then(|| rest.iter().map(split).collect())
}

/// Returns a title or a cell without parentheses around it: `# id (file) description`.
fn bare(text: &str) -> String {
    text.trim_matches(['(', ')']).to_owned()
}

/// Combines titles and cells; an empty title, such as that after a last comma, is no column.
fn row(titles: &[String], cells: Vec<String>) -> Map<String, Value> {
    let named = titles.iter().zip(cells).filter(|(title, _)| !title.is_empty());
    named.map(|(title, cell)| (title.clone(), value(title, &cell))).collect()
}

/// Returns a cell: null if empty, a number if it is a whole one, unless the column is one of names.
fn value(title: &str, cell: &str) -> Value {
    let is_of_names = ["name", "key", "file", "addr", "fqdn"].iter().any(|end| title.ends_with(end))
        || title.ends_with("description");
    match cell {
        "" => Value::Null,
        cell if is_of_names => cell.into(),
        cell => cell.parse::<i64>().ok().filter(|number| number.to_string() == cell).map_or(cell.into(), Value::from),
    }
}

/// Parses `show table`: a line with the properties of each table.
fn stick_tables(lines: &[&str]) -> Vec<Map<String, Value>> {
    let properties = |line: &&str| {
        let pairs = line.trim_start_matches("# ").split(',').filter_map(|pair| pair.split_once(':'));
        let named = |(name, cell): (&str, &str)| {
            let name = if name.trim() == "table" { "name" } else { name.trim() };
            (name.to_owned(), value(name, cell.trim()))
        };
        pairs.map(named).collect()
    };
    lines.iter().filter(|line| line.starts_with("# table:")).map(properties).collect()
}

/// Parses `show table <name>`: an entry in each line after the properties of the table.
fn entries(text: &str) -> Vec<Map<String, Value>> {
    text.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty()).map(entry).collect()
}

/// Parses an entry of a stick table: `0x55d: key=192.0.2.1 use=0 exp=3599 gpc0=1`.
fn entry(line: &str) -> Map<String, Value> {
    let (reference, pairs) = line.split_once(": ").unwrap_or(("", line));
    let mut found = Map::from_iter([("ref".to_owned(), reference.into())]);
    let mut pairs_of_words: Vec<(String, String)> = Vec::new();
    for word in pairs.split(' ').filter(|word| !word.is_empty()) {
        match (word.split_once('='), pairs_of_words.last_mut()) {
            (Some((name, cell)), _) => pairs_of_words.push((name.to_owned(), cell.to_owned())),
            // A key may contain blanks.
            (None, Some((_, cell))) => *cell = format!("{cell} {word}"),
            (None, None) => {}
        }
    }
    found.extend(pairs_of_words.into_iter().map(|(name, cell)| (name.clone(), value(&name, &cell))));
    found
}

/// Parses `show proc`: columns are separated by tabs or two blanks, and a line such as `# workers` begins a group.
fn processes(head: &str, rest: &[&str]) -> Vec<Map<String, Value>> {
    let cells = |line: &str| -> Vec<String> {
        let cells = line.split('\t').flat_map(|part| part.split("  ")).map(str::trim).filter(|cell| !cell.is_empty());
        cells.map(str::to_owned).collect()
    };
    let titles: Vec<String> =
        cells(head).iter().map(|title| title.trim_matches(['#', '<', '>']).to_lowercase()).collect();
    let (mut group, mut found) = ("master".to_owned(), Vec::new());
    for line in rest {
        match line.strip_prefix("# ") {
            Some(name) => name.clone_into(&mut group),
            None => {
                let mut row = row(&titles, cells(line));
                row.insert("group".to_owned(), group.clone().into());
                found.push(row);
            }
        }
    }
    found
}

/// Returns the process IDs of the workers in an answer to `show proc`, current ones first.
pub fn workers(answer: &str) -> Vec<String> {
    let rows = rows(answer.trim()).unwrap_or_default();
    let workers = rows.into_iter().filter(|row| row.get("type").and_then(Value::as_str) == Some("worker"));
    workers.filter_map(|row| row.get("pid").and_then(Value::as_i64)).map(|pid| pid.to_string()).collect()
}

/// Splits a line of CSV; quoted fields may contain commas, and two quotes are one.
fn fields(line: &str) -> Vec<String> {
    let (mut found, mut field, mut quoted) = (Vec::new(), String::new(), false);
    let mut letters = line.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => found.push(std::mem::take(&mut field)),
            other => field.push(other),
        }
    }
    found.push(field);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_with_a_form_of_their_own_use_it() {
        for (text, wanted) in [
            ("show stat", Some("show stat json")),
            ("show info float", Some("show info float json")),
            ("show schema", Some("show schema json")),
            ("show info json", None),
            ("show stat typed", None),
            ("show backend", None),
        ] {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            assert_eq!(machine_form(&words, text.as_bytes()).as_deref(), wanted.map(str::as_bytes), "{text}");
        }
    }

    #[test]
    fn answers_become_documents() {
        let rows = [
            ("", r#"{"answer":""}"#),
            ("3 (initial 3)\n", r#"{"answer":"3 (initial 3)"}"#),
            ("[{\"a\":\n1}]\n", r#"[{"a": 1}]"#),
            ("[3] is no document\n", r#"{"answer":"[3] is no document"}"#),
            ("# name\napp\n7\n", r#"[{"name":"app"},{"name":"7"}]"#),
            (
                "# pxname,place,hits,\nweb,\"a,\"\"b\",12,\nweb,,007,\n",
                r#"[{"pxname":"web","place":"a,\"b","hits":12},{"pxname":"web","place":null,"hits":"007"}]"#,
            ),
            ("1\n# be_id be_name srv_id\n3 app 1\n", r#"[{"be_id":3,"be_name":"app","srv_id":1}]"#),
            (
                "# id (file) description\n0 (a.map) pattern loaded from file\n",
                r#"[{"id":0,"file":"a.map","description":"pattern loaded from file"}]"#,
            ),
            (
                "# table: app, type: ip, size:10, used:1\n# table: b, type: string, size:5, used:0\n",
                r#"[{"name":"app","type":"ip","size":10,"used":1},{"name":"b","type":"string","size":5,"used":0}]"#,
            ),
            (
                "#<PID>          <type>          <reloads>       <version>\n7\tmaster\t1 [failed: 0]\t3\n# workers\n8  worker  0  3\n# programs\n",
                r#"[{"pid":7,"type":"master","reloads":"1 [failed: 0]","version":3,"group":"master"},{"pid":8,"type":"worker","reloads":0,"version":3,"group":"workers"}]"#,
            ),
        ];
        for (answer, wanted) in rows {
            let found: Value =
                serde_json::from_str(&document(&[], Verdict::Accepted, answer.as_bytes())).expect("JSON");
            let wanted: Value = serde_json::from_str(wanted).expect("JSON");
            assert_eq!(found, wanted, "{answer:?}");
        }
        assert_eq!(document(&[], Verdict::Refused, b"No such server.\n\n"), r#"{"error":"No such server."}"#);
        assert_eq!(of_worker("!7", "[1]"), r#"{"process":7,"answer":[1]}"#);
    }

    #[test]
    fn a_table_that_is_named_has_entries() {
        let words: Vec<String> = ["show", "table", "app"].map(str::to_owned).into();
        let head = "# table: app, type: ip, size:10, used:1\n";
        let of = |rest: &str| document(&words, Verdict::Accepted, format!("{head}{rest}").as_bytes());
        assert_eq!(of(""), "[]");
        assert_eq!(
            of("0x5: key=a b use=0 exp=3 http_req_rate(1000)=2\n"),
            r#"[{"exp":3,"http_req_rate(1000)":2,"key":"a b","ref":"0x5","use":0}]"#
        );
    }

    #[test]
    fn workers_are_found_by_their_type() {
        let text = "#<PID>          <type>          <reloads>       <uptime>        <version>      \n\
                    1162            master          5 [failed: 0]   0d00h02m07s     3.5\n# workers\n\
                    1271            worker          1               0d00h00m00s     3.5\n# old workers\n\
                    1233            worker          3               0d00h00m43s     2.0\n# programs\n\n";
        assert_eq!(workers(text), ["1271", "1233"]);
    }
}
