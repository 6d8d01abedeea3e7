//! Tuples as parameters, which hide how many arguments a function has. Their number by crate only shrinks.

use crate::{product, shrinking};
use std::collections::BTreeMap;

/// Parameters with a tuple as their pattern or their type, by crate. Crates that are not listed have none.
const TUPLES: &[(&str, usize)] = &[];

#[test]
fn tuples_are_no_parameters() {
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for (file, code) in product::files() {
        let tuples = functions(code).filter(|(_, parameter)| is_tuple(parameter));
        let places = tuples.map(|(name, parameter)| format!("{}: {name}: {parameter}", file.display()));
        found.entry(shrinking::crate_of(file)).or_default().extend(places);
    }
    shrinking::check("tuple parameters", TUPLES, &found);
}

/// The parameters of each function, with the function's name.
fn functions(code: &str) -> impl Iterator<Item = (String, String)> {
    let named = product::after_words(code, "fn").filter(|after| after.starts_with(char::is_whitespace));
    named.flat_map(|after| {
        let name: String =
            after.trim_start().chars().take_while(|letter| letter.is_ascii_alphanumeric() || *letter == '_').collect();
        let list = parameters(&after[1 + name.len()..]);
        list.into_iter().map(move |parameter| (name.clone(), parameter)).collect::<Vec<_>>()
    })
}

/// Splits the list of parameters that follows a function's name, its generic parameters included.
fn parameters(signature: &str) -> Vec<String> {
    let (mut round, mut angle) = (0_usize, 0_usize);
    let mut found = vec![String::new()];
    let mut before = ' ';
    for letter in signature.chars() {
        let ends = match letter {
            '<' => {
                angle += 1;
                false
            }
            '>' if before != '-' && before != '=' => {
                angle = angle.saturating_sub(1);
                false
            }
            '(' | '[' | '{' if round > 0 || angle == 0 => {
                round += 1;
                if round == 1 {
                    before = letter;
                    continue;
                }
                false
            }
            ')' | ']' | '}' if round > 0 => {
                round -= 1;
                round == 0
            }
            ',' if round == 1 && angle == 0 => {
                found.push(String::new());
                before = letter;
                continue;
            }
            _ => false,
        };
        if ends {
            break;
        }
        if let Some(last) = found.last_mut().filter(|_| round > 0) {
            last.push(letter);
        }
        before = letter;
    }
    let whole = found.into_iter().map(|parameter| parameter.split_whitespace().collect::<Vec<_>>().join(" "));
    whole.filter(|parameter| !parameter.is_empty()).collect()
}

/// Whether the pattern or the type of a parameter is a tuple of two or more.
fn is_tuple(parameter: &str) -> bool {
    let of_two = |text: &str| text.trim_start().starts_with('(') && text.contains(',');
    let kind = parameter.split_once(": ").map_or("", |(_, kind)| kind);
    of_two(parameter) || of_two(kind)
}

#[test]
fn tuples_are_found_in_every_place() {
    let code = "fn a(x: u8) {}\nfn b<T: Into<(u8, u8)>>(&self, (x, y): (u8, u8), z: [(u8, u8); 2]) -> (u8, u8) {}\n\
                fn c(\n pair: (A, B),\n f: impl Fn(u8, u8) -> (u8, u8),\n) {}\nfn d(_: ()) where F: Fn((A, B)) {}";
    let found: Vec<_> = functions(code).filter(|(_, parameter)| is_tuple(parameter)).collect();
    let expected = [("b", "(x, y): (u8, u8)"), ("c", "pair: (A, B)")];
    assert_eq!(found, expected.map(|(name, parameter)| (name.to_owned(), parameter.to_owned())));
    let all: Vec<_> = functions(code).map(|(name, _)| name).collect();
    assert_eq!(all, ["a", "b", "b", "b", "c", "c", "d"]);
}
