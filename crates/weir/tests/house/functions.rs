//! Maximum length of functions.

use crate::product;

/// Maximum number of lines of code between a function's braces; comments and empty lines do not count.
const LONGEST: usize = 70;

#[test]
fn functions_stay_short() {
    let mut wrong = Vec::new();
    for (file, code) in product::files() {
        let long = functions(code).into_iter().filter(|(_, lines)| *lines > LONGEST);
        wrong.extend(long.map(|(name, lines)| format!("{}: {name} has {lines} lines", file.display())));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Returns the functions of a file that have a body, each with its number of lines of code.
fn functions(code: &str) -> Vec<(String, usize)> {
    let named = product::after_words(code, "fn").filter(|after| after.starts_with(char::is_whitespace));
    let found = named.filter_map(|after| {
        let name =
            after.trim_start().split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_')).next()?;
        let body = &after[product::body(after)?];
        Some((name.to_owned(), body.lines().filter(|line| !line.trim().is_empty()).count()))
    });
    found.collect()
}

#[test]
fn a_function_is_as_long_as_its_code() {
    let code = "trait A { fn none(&self); }\nfn one() { 1 }\nimpl B {\n fn two(f: fn(u8) -> [u8; 2]) {\n a;\n\n if b {\n }\n }\n}";
    let expected = [("one".to_owned(), 1), ("two".to_owned(), 3)];
    assert_eq!(functions(code), expected);
}
