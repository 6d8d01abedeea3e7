//! How many fields a struct of the crates on the path of a request may have.

use crate::{product, shrinking};
use std::collections::BTreeMap;

/// Fields that a struct may have.
const MOST: usize = 20;

/// Structs with more, each with its number of fields.
const LARGER: &[(&str, usize)] = &[];

#[test]
fn structs_stay_small() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, code) in product::files() {
        let name = shrinking::crate_of(file);
        if name != "engine" && name != "conn" {
            continue;
        }
        for (own, fields) in structs(code).into_iter().filter(|(_, fields)| fields.len() > MOST) {
            found.entry(format!("{name}::{own}")).or_default().extend(fields);
        }
    }
    shrinking::check("fields", LARGER, &found);
}

/// The structs of a file that have named fields, each with these.
fn structs(code: &str) -> Vec<(String, Vec<String>)> {
    let found = product::after_words(code, "struct").filter_map(|after| {
        let word = |letter: &char| letter.is_ascii_alphanumeric() || *letter == '_';
        let name: String = after.trim_start().chars().take_while(word).collect();
        let body = &after[product::body(after)?];
        Some((name, fields(body)))
    });
    found.filter(|(name, _)| !name.is_empty()).collect()
}

/// The names of the fields between a struct's braces.
fn fields(body: &str) -> Vec<String> {
    let mut depth = 0_usize;
    let mut before = ' ';
    let mut parts = vec![String::new()];
    for letter in body.chars() {
        match letter {
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            '>' if before != '-' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => parts.push(String::new()),
            _ => {}
        }
        if let Some(part) = parts.last_mut().filter(|_| depth == 0 && letter != ',') {
            part.push(letter);
        }
        before = letter;
    }
    let names = parts.iter().filter_map(|part| part.split_once(':')).map(|(name, _)| name);
    names.filter_map(|name| Some(name.split_whitespace().last()?.trim_start_matches(']').to_owned())).collect()
}

#[test]
fn fields_are_counted_by_name() {
    let code = "pub struct A<T> {\n #[cfg(x)]\n pub one: Vec<(u8, u8)>,\n pub(crate) two: fn(u8, u8) -> u8,\n three: [u8; 3],\n}\nstruct B(u8, u8);\nstruct C;";
    let expected = [("A".to_owned(), ["one", "two", "three"].map(str::to_owned).to_vec())];
    assert_eq!(structs(code), expected);
}
