//! How long a function may be.

use crate::product;

/// Lines of code that a function may have, its signature included; comments and empty lines do not count.
const LONGEST: usize = 70;

#[test]
fn functions_stay_short() {
    let mut longer = Vec::new();
    for (file, code) in product::files() {
        let long = functions(code).into_iter().filter(|(_, lines)| *lines > LONGEST);
        longer.extend(long.map(|(name, lines)| format!("{}: {name} has {lines} lines", file.display())));
    }
    assert!(longer.is_empty(), "{LONGEST} lines are allowed: {longer:#?}");
}

/// The functions of a file that have a body, each with its lines of code.
fn functions(code: &str) -> Vec<(String, usize)> {
    let named = product::after_words(code, "fn").filter(|after| after.starts_with(char::is_whitespace));
    let found = named.filter_map(|after| {
        let name =
            after.trim_start().split(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_')).next()?;
        let whole = &after[..=product::body(after)?.end];
        Some((name.to_owned(), whole.lines().filter(|line| !line.trim().is_empty()).count()))
    });
    found.collect()
}

#[test]
fn a_function_is_as_long_as_its_code() {
    let code = "trait A { fn none(&self); }\nfn one() { 1 }\nimpl B {\n fn two(f: fn(u8) -> [u8; 2]) {\n a;\n\n if b {\n }\n }\n}";
    let expected = [("one".to_owned(), 1), ("two".to_owned(), 5)];
    assert_eq!(functions(code), expected);
}
