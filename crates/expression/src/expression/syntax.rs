//! Splits the text of an expression into names and arguments (configuration manual, sections 2.2 and 7.3):
//! `name(a,b),name2`. Must never depend on a particular name.

/// A name with its arguments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    pub name: String,
    /// The arguments; `None` without parentheses.
    pub arguments: Option<Vec<String>>,
    /// For each argument the text from its start to the end of the expression.
    pub tails: Vec<String>,
    /// Offset of the name in the text, in bytes.
    pub at: usize,
}

/// A syntax error, and the call in which it occurs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SyntaxError {
    /// The name of that call.
    pub name: String,
    /// The message.
    pub message: String,
    /// Offset in the text, in bytes.
    pub at: usize,
}

/// Maximum number of arguments of one call: no fetch takes more.
const MOST_ARGUMENTS: usize = 32;

/// Parses the call at offset `at` of `text`; returns the offset of its end as well.
pub fn call(text: &str, at: usize) -> Result<(Call, usize), SyntaxError> {
    let rest = &text[at..];
    let length = rest.find(['(', ',', ')', ']', ' ']).unwrap_or(rest.len());
    let name = rest[..length].to_owned();
    if !rest[length..].starts_with('(') {
        return Ok((Call { name, arguments: None, tails: Vec::new(), at }, at + length));
    }
    let mut begins = vec![at + length + 1];
    let (arguments, end) = arguments(text, at + length + 1, &mut begins).map_err(|(message, wrong)| SyntaxError {
        name: name.clone(),
        message,
        at: wrong,
    })?;
    let tails = begins.into_iter().filter_map(|begin| text.get(begin..)).map(str::to_owned).collect();
    Ok((Call { name, arguments: Some(arguments), tails, at }, end))
}

/// Splits the expression at the start of a text into its calls: the fetch, followed by the converters. `None`: it is
/// malformed.
pub fn calls(text: &str) -> Option<Vec<Call>> {
    let mut list = Vec::new();
    let mut at = 0;
    loop {
        let (found, end) = call(text, at).ok()?;
        // Empty items between commas are skipped.
        if !found.name.is_empty() || found.arguments.is_some() {
            list.push(found);
        }
        if !text[end..].starts_with(',') {
            return (!list.is_empty()).then_some(list);
        }
        at = end + 1;
    }
}

/// Parses arguments after an opening parenthesis, including the closing one. `begins` receives the offsets of further
/// arguments.
fn arguments(text: &str, start: usize, begins: &mut Vec<usize>) -> Result<(Vec<String>, usize), (String, usize)> {
    let mut found = vec![String::new()];
    let mut letters = text[start..].char_indices().peekable();
    let mut quote = None;
    while let Some((offset, letter)) = letters.next() {
        let last = found.len() - 1;
        match (letter, quote) {
            ('\'' | '"', None) => quote = Some(letter),
            (letter, Some(open)) if letter == open => quote = None,
            ('\\', None | Some('"')) => match letters.peek().and_then(|(_, next)| escaped(*next)) {
                Some(meant) => {
                    found[last].push(meant);
                    letters.next();
                }
                None => found[last].push('\\'),
            },
            (',', None) if found.len() == MOST_ARGUMENTS => {
                return Err(("too many arguments".to_owned(), start + offset));
            }
            (',', None) => {
                begins.push(start + offset);
                found.push(String::new());
            }
            (')', None) => {
                if found == [""] {
                    found.clear();
                }
                return Ok((found, start + offset + 1));
            }
            (other, _) => found[last].push(other),
        }
    }
    Err(("expected ')'".to_owned(), text.len()))
}

/// The meaning of an escaped letter. `None`: the backslash is literal (manual, section 2.2).
fn escaped(letter: char) -> Option<char> {
    match letter {
        '\\' | '\'' | '"' | ' ' => Some(letter),
        'n' => Some('\n'),
        'r' => Some('\r'),
        't' => Some('\t'),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_read() {
        let rows: &[(&str, &str, Option<&[&str]>, usize)] = &[
            ("src", "src", None, 3),
            ("src,lower", "src", None, 3),
            ("hdr()", "hdr", Some(&[]), 5),
            ("hdr(host),lower", "hdr", Some(&["host"]), 9),
            ("a(b,,c)", "a", Some(&["b", "", "c"]), 7),
            ("a('b,c)')", "a", Some(&["b,c)"]), 9),
            ("a(\"b\\\",\")", "a", Some(&["b\","]), 9),
            ("a(b\\,c\\d)", "a", Some(&["b\\", "c\\d"]), 9),
            ("a(\\(b\\))", "a", Some(&["\\(b\\"]), 7),
            ("a(b\\ \\'\\\"\\\\)", "a", Some(&["b '\"\\"]), 12),
            ("a(b\\n\\r\\t\\q\\$)", "a", Some(&["b\n\r\t\\q\\$"]), 14),
            ("a(\"b\\n\\ \\$\")", "a", Some(&["b\n \\$"]), 12),
            ("regsub(^/a/(.*),x)", "regsub", Some(&["^/a/(.*"]), 15),
        ];
        for (text, name, arguments, end) in rows {
            let (found, at) = call(text, 0).unwrap_or_else(|broken| panic!("{text}: {broken:?}"));
            let expected = arguments.map(|list| list.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>());
            assert_eq!((found.name.as_str(), found.arguments, at), (*name, expected, *end), "{text}");
        }
        let names = |text| calls(text).map(|list| list.into_iter().map(|call| call.name).collect::<Vec<_>>());
        assert_eq!(names("a(b),c,,d(e)]"), Some(vec!["a".to_owned(), "c".to_owned(), "d".to_owned()]));
        assert_eq!((names(""), names("a(b")), (None, None));
        assert!(call("a(b", 0).is_err() && call("a('b)", 0).is_err());
    }
}
