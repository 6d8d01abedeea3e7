//! How many methods a trait has that extensions implement: its methods are events, and none is for one implementation alone.

use crate::product;

/// Traits, each with the methods that it may have.
const MOST: &[(&str, usize)] = &[("engine/src/filter.rs: Filter", 7), ("engine/src/filter.rs: ScriptFilter", 1)];

#[test]
fn traits_of_extensions_stay_small() {
    let mut found = Vec::new();
    for (file, code) in product::files() {
        let file = file.strip_prefix("crates").unwrap_or(file).display();
        found.extend(traits(code).into_iter().map(|(name, methods)| (format!("{file}: {name}"), methods)));
    }
    for (name, most) in MOST {
        let own: Vec<_> = found.iter().filter(|(known, _)| known == name).collect();
        assert_eq!(own.len(), 1, "{name} is no trait");
        assert!(own[0].1.len() <= *most, "{name} has more than {most} methods: {:?}", own[0].1);
    }
}

/// Returns the traits of a file, each with the names of its methods.
fn traits(code: &str) -> Vec<(String, Vec<String>)> {
    let word = |text: &str| -> String {
        text.trim_start().chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect()
    };
    let found = product::after_words(code, "trait").filter_map(|after| {
        let methods = product::after_words(&after[product::body(after)?], "fn").map(word);
        Some((word(after), methods.filter(|name| !name.is_empty()).collect()))
    });
    found.collect()
}

#[test]
fn methods_are_counted_with_and_without_a_body() {
    let code = "pub trait A: B { fn one(&self) { f() } fn two<T>(&self, f: fn(u8) -> u8) -> T; }\nimpl A for C { fn one() {} }";
    let expected = [("A".to_owned(), ["one", "two"].map(str::to_owned).to_vec())];
    assert_eq!(traits(code), expected);
}
