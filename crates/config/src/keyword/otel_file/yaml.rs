//! Parser of the YAML subset used by pipeline files: maps by indentation, lists of items with a dash, plain and quoted
//! scalars, comments. Anything else is an error. Must never depend on a particular key.

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    /// Text, without its quotes.
    Scalar(String),
    /// Keys and values in file order, each with its line.
    Map(Vec<(String, usize, Node)>),
    /// Items, each with its line.
    List(Vec<(usize, Node)>),
}

/// Error message and line number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct YamlError {
    pub(super) line: usize,
    pub(super) message: String,
}

/// Maximum number of indentation levels.
const DEEPEST: usize = 16;

/// A line that is not empty.
struct Line<'a> {
    number: usize,
    indent: usize,
    text: &'a str,
}

fn error<T>(line: usize, message: &str) -> Result<T, YamlError> {
    Err(YamlError { line, message: format!("YAML : {message}.") })
}

/// Returns the line without its comment.
fn without_comment(line: &str) -> &str {
    let (mut quote, mut before) = (None, ' ');
    for (at, found) in line.char_indices() {
        match (quote, found) {
            (Some(open), _) if open == found => quote = None,
            (None, '"' | '\'') if before == ' ' => quote = Some(found),
            (None, '#') if before == ' ' || before == '\t' => return &line[..at],
            _ => {}
        }
        before = found;
    }
    line
}

/// Parses a file.
pub(super) fn parse(text: &str) -> Result<Node, YamlError> {
    let mut lines = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let line = without_comment(line).trim_end();
        let content = line.trim_start_matches(' ');
        if content.is_empty() || content == "---" {
            continue;
        }
        if content.starts_with('\t') {
            return error(index + 1, "a tab cannot indent a line");
        }
        lines.push(Line { number: index + 1, indent: line.len() - content.len(), text: content });
    }
    let mut at = 0;
    let node = block(&lines, &mut at, 0, 0)?;
    match lines.get(at) {
        Some(line) => error(line.number, "unexpected indentation"),
        None => Ok(node),
    }
}

/// Parses a block that is indented by at least `least` columns.
fn block(lines: &[Line<'_>], at: &mut usize, least: usize, depth: usize) -> Result<Node, YamlError> {
    let Some(first) = lines.get(*at).filter(|line| line.indent >= least) else { return Ok(Node::Map(Vec::new())) };
    if depth == DEEPEST {
        return error(first.number, "too many levels");
    }
    let indent = first.indent;
    if first.text.starts_with("- ") || first.text == "-" {
        let mut items = Vec::new();
        while let Some(line) = lines.get(*at).filter(|line| line.indent == indent && line.text.starts_with('-')) {
            *at += 1;
            let text = line.text[1..].trim_start();
            let item = match pair(text, line.number)? {
                Some((key, value)) if !value.is_empty() => {
                    Node::Map(vec![(key, line.number, Node::Scalar(scalar(value, line.number)?))])
                }
                Some(_) => return error(line.number, "an item has to be a value, or a key and a value"),
                None => Node::Scalar(scalar(text, line.number)?),
            };
            items.push((line.number, item));
        }
        return Ok(Node::List(items));
    }
    let mut entries: Vec<(String, usize, Node)> = Vec::new();
    while let Some(line) = lines.get(*at).filter(|line| line.indent == indent) {
        let Some((key, value)) = pair(line.text, line.number)? else {
            return error(line.number, "a key and a colon are expected");
        };
        if entries.iter().any(|(known, ..)| *known == key) {
            return error(line.number, &format!("the key '{key}' is there twice"));
        }
        *at += 1;
        // A list may have the same indentation as its key.
        let follows = lines.get(*at).map_or(0, |next| next.indent);
        let is_list = lines.get(*at).is_some_and(|next| next.indent == indent && next.text.starts_with('-'));
        let node = match value {
            "" if is_list => block(lines, at, indent, depth + 1)?,
            "" if follows > indent => block(lines, at, indent + 1, depth + 1)?,
            value => Node::Scalar(scalar(value, line.number)?),
        };
        entries.push((key, line.number, node));
    }
    Ok(Node::Map(entries))
}

/// Splits a line into a key, and the text after its colon.
fn pair(text: &str, line: usize) -> Result<Option<(String, &str)>, YamlError> {
    let begins = text.starts_with(['"', '\'']);
    let end = if begins { text[1..].find(&text[..1]).map_or(text.len(), |at| at + 2) } else { 0 };
    let colon = text[end..].match_indices(':').map(|(at, _)| at + end);
    let mut colon = colon.filter(|at| matches!(text.as_bytes().get(at + 1), None | Some(b' ' | b'\t')));
    let Some(at) = colon.next() else { return Ok(None) };
    Ok(Some((scalar(text[..at].trim_end(), line)?, text[at + 1..].trim())))
}

/// Returns a scalar without its quotes.
fn scalar(text: &str, line: usize) -> Result<String, YamlError> {
    match text.chars().next() {
        Some(quote @ ('"' | '\'')) => {
            let inner = text[1..].strip_suffix(quote).filter(|inner| !inner.contains(quote) && !inner.contains('\\'));
            inner
                .map_or_else(|| error(line, "a quoted text has no end, or has an escape"), |inner| Ok(inner.to_owned()))
        }
        Some('[' | '{' | '&' | '*' | '!' | '|' | '>' | '%' | '@' | '`') => {
            error(line, "only plain and quoted values, maps and lists by indentation are read")
        }
        _ => Ok(text.to_owned()),
    }
}

impl Node {
    /// Returns the entries of a map; none for other nodes.
    pub(super) fn entries(&self) -> &[(String, usize, Node)] {
        if let Self::Map(entries) = self { entries } else { &[] }
    }

    /// Returns an entry of a map, with its line.
    pub(super) fn get(&self, key: &str) -> Option<(usize, &Node)> {
        self.entries().iter().find(|(known, ..)| known == key).map(|(_, line, node)| (*line, node))
    }

    /// Returns the text of a scalar.
    pub(super) fn text(&self) -> Option<&str> {
        if let Self::Scalar(text) = self { Some(text) } else { None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_subset_is_read_and_the_rest_is_refused() {
        let text = "---\n# c\na:\n  b: 1   # one\n  'c d': \"x # y\"\n  l:\n    - k: v:w\n    - z\n  m:\n  - q\ne:\nf: http://h:1/p\n";
        let tree = parse(text).unwrap();
        let a = tree.get("a").unwrap().1;
        assert_eq!(a.get("b").unwrap().1.text(), Some("1"));
        assert_eq!(a.get("c d").unwrap(), (5, &Node::Scalar("x # y".into())));
        let pair = Node::Map(vec![("k".into(), 7, Node::Scalar("v:w".into()))]);
        assert_eq!(a.get("l").unwrap().1, &Node::List(vec![(7, pair), (8, Node::Scalar("z".into()))]));
        assert_eq!(a.get("m").unwrap().1, &Node::List(vec![(10, Node::Scalar("q".into()))]));
        assert_eq!(tree.get("e").unwrap().1.text(), Some(""));
        assert_eq!(tree.get("f").unwrap().1.text(), Some("http://h:1/p"));
        let deep: String = (0..40).map(|level| format!("{}k:\n", " ".repeat(level))).collect();
        for (text, line) in [
            ("a: [1]", 1),
            ("a: b\n  c: d", 2),
            ("a:\n\tb: c", 2),
            ("a: \"x", 1),
            ("a: 1\na: 2", 2),
            ("plain", 1),
            ("a:\n   b: 1\n  c: 2", 3),
            ("- k:\n    x: y", 1),
            (&*deep, 17),
        ] {
            assert_eq!(parse(text).unwrap_err().line, line, "{text}");
        }
    }
}
