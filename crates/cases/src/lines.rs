//! Text as a tree of lines by indentation. It must never know the meaning of a line.

use crate::failure::{Failure, Result};

/// A line with the deeper lines that follow it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Node {
    /// Line number in the file, from 1.
    pub(crate) number: usize,
    /// The line without indentation and without its condition.
    pub(crate) text: String,
    /// `@weir`, `@haproxy-2.6`, `@!weir` …: the subjects that this line applies to. Empty: all.
    pub(crate) only: Vec<String>,
    /// The deeper lines.
    pub(crate) children: Vec<Node>,
}

impl Node {
    /// Whether this line applies to a subject with these tags.
    pub(crate) fn applies_to(&self, tags: &[String]) -> bool {
        self.only.iter().all(|only| match only.strip_prefix('!') {
            Some(not) => !tags.iter().any(|tag| tag == not),
            None => tags.iter().any(|tag| tag == only),
        })
    }

    /// Returns the tree without the lines for other subjects.
    pub(crate) fn select(nodes: &[Node], tags: &[String]) -> Vec<Node> {
        let select = |node: &Node| Node { children: Node::select(&node.children, tags), ..node.clone() };
        nodes.iter().filter(|node| node.applies_to(tags)).map(select).collect()
    }
}

/// Parses the text into a tree. Blank lines and lines that begin with `#` are skipped.
pub(crate) fn read(text: &str) -> Result<Vec<Node>> {
    let mut flat = Vec::new();
    for (index, line) in text.lines().enumerate() {
        let content = line.trim_start_matches(' ');
        if content.trim().is_empty() || content.starts_with('#') {
            continue;
        }
        if content.starts_with('\t') {
            return Err(Failure::new(format!("line {}: indent with spaces", index + 1)));
        }
        let (only, rest) = conditions(content);
        let text = if rest.starts_with('|') { rest } else { rest.trim_end() };
        let node = Node { number: index + 1, text: text.to_owned(), only, children: Vec::new() };
        flat.push((line.len() - content.len(), node));
    }
    let mut rest = flat.into_iter().peekable();
    let nodes = block(&mut rest, 0);
    match rest.next() {
        Some((_, node)) => Err(Failure::new(format!("line {}: indentation does not fit", node.number))),
        None => Ok(nodes),
    }
}

/// Splits off the conditions before a line.
fn conditions(content: &str) -> (Vec<String>, &str) {
    let mut only = Vec::new();
    let mut rest = content;
    while let Some(after) = rest.strip_prefix('@') {
        let (word, tail) = after.split_once(' ').unwrap_or((after, ""));
        only.push(word.to_owned());
        rest = tail.trim_start_matches(' ');
    }
    (only, rest)
}

/// Returns the lines of one block: those at the first line's depth, each with the deeper ones below it.
fn block(rest: &mut std::iter::Peekable<std::vec::IntoIter<(usize, Node)>>, at_least: usize) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    let Some(depth) = rest.peek().map(|(depth, _)| *depth).filter(|depth| *depth >= at_least) else { return nodes };
    while let Some((next, _)) = rest.peek() {
        if *next == depth {
            nodes.extend(rest.next().map(|(_, node)| node));
        } else if *next > depth {
            let children = block(rest, depth + 1);
            if let Some(last) = nodes.last_mut() {
                last.children.extend(children);
            }
        } else {
            break;
        }
    }
    nodes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deeper_lines_belong_to_the_line_above() {
        let nodes = read("# why\na\n  b\n    c\n\n  d\ne\n").unwrap();
        let names = |nodes: &[Node]| nodes.iter().map(|node| node.text.clone()).collect::<Vec<_>>();
        assert_eq!(names(&nodes), ["a", "e"]);
        assert_eq!(names(&nodes[0].children), ["b", "d"]);
        assert_eq!(names(&nodes[0].children[0].children), ["c"]);
        assert_eq!(nodes[1].number, 7);
    }

    #[test]
    fn a_step_back_between_depths_is_refused() {
        assert!(read("    a\n  b\n").is_err());
    }

    #[test]
    fn conditions_select_by_tag() {
        let nodes = read("@haproxy-2.6 a\n@!weir b\n@haproxy @!haproxy-2.6 c\n").unwrap();
        let texts = |tags: &[&str]| {
            let tags: Vec<String> = tags.iter().map(|tag| (*tag).to_owned()).collect();
            Node::select(&nodes, &tags).into_iter().map(|node| node.text).collect::<Vec<_>>().join("")
        };
        assert_eq!(texts(&["haproxy", "haproxy-2.6"]), "ab");
        assert_eq!(texts(&["haproxy", "haproxy-3.5"]), "bc");
        assert_eq!(texts(&["weir"]), "");
    }
}
