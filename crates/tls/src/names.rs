//! Which certificate a name gets (configuration manual, "crt", "crt-list", "strict-sni"): an exact name before a wildcard,
//! for each kind of key one. Must never match a name in part.

use std::collections::HashMap;

use crate::certificate::Kind;

/// A row of a list: its kind of key, and what it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The kind of key.
    pub kind: Kind,
    /// Names and wildcards (`*.example.com`) in lower case. `*` is everything.
    pub names: Vec<Box<str>>,
    /// Names that its wildcards are not for.
    pub excluded: Vec<Box<str>>,
    /// Whether clients without a name, or with an unknown one, may get it.
    pub is_default: bool,
}

/// Rows by their names. What is found are places in the list that it was made of.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    exact: HashMap<Box<str>, Vec<usize>>,
    /// By what follows the asterisk, which begins with a dot.
    wildcards: HashMap<Box<str>, Vec<usize>>,
    excluded: HashMap<Box<str>, Vec<usize>>,
    defaults: Vec<usize>,
    kinds: Vec<Kind>,
}

impl Names {
    /// The names of a list.
    pub fn new(rows: &[Row]) -> Self {
        let mut names = Self { kinds: rows.iter().map(|row| row.kind).collect(), ..Self::default() };
        for (place, row) in rows.iter().enumerate() {
            for name in &row.names {
                if &**name == "*" {
                    names.defaults.push(place);
                } else if let Some(rest) = name.strip_prefix('*') {
                    names.wildcards.entry(rest.into()).or_default().push(place);
                } else {
                    names.exact.entry(name.clone()).or_default().push(place);
                }
            }
            for name in &row.excluded {
                names.excluded.entry(name.clone()).or_default().push(place);
            }
            if row.is_default {
                names.defaults.push(place);
            }
        }
        names
    }

    /// The place of what a name gets, of the kinds that are wanted, the first of them first. With `strict` nobody gets a
    /// default.
    pub fn find(&self, name: Option<&str>, wanted: &[Kind], strict: bool) -> Option<usize> {
        let name = name.map(str::to_ascii_lowercase);
        let named = name.as_deref().and_then(|name| {
            let exact = self.exact.get(name);
            exact.and_then(|places| self.of_kind(places.iter().copied(), wanted)).or_else(|| {
                let suffix = &name[name.find('.')?..];
                let excluded = self.excluded.get(name).map_or(&[][..], Vec::as_slice);
                let places = self.wildcards.get(suffix)?.iter().copied();
                self.of_kind(places.filter(|place| !excluded.contains(place)), wanted)
            })
        });
        named.or_else(|| if strict { None } else { self.of_kind(self.defaults.iter().copied(), wanted) })
    }

    /// The first place of the first kind that there is; of any kind where there is none of those.
    fn of_kind(&self, places: impl Iterator<Item = usize> + Clone, wanted: &[Kind]) -> Option<usize> {
        let of = |kind: &Kind| places.clone().find(|place| self.kinds[*place] == *kind);
        wanted.iter().find_map(of).or_else(|| places.clone().next())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(kind: Kind, names: &[&str], excluded: &[&str], is_default: bool) -> Row {
        let own = |names: &[&str]| names.iter().map(|name| (*name).into()).collect();
        Row { kind, names: own(names), excluded: own(excluded), is_default }
    }

    #[test]
    fn names_find_what_the_manual_says() {
        use Kind::{Ecdsa, Rsa};
        let names = Names::new(&[
            row(Rsa, &["a.example"], &[], true),
            row(Ecdsa, &["a.example", "*.b.example"], &[], false),
            row(Rsa, &["*.b.example", "x.b.example"], &["no.b.example"], false),
            row(Rsa, &["*"], &[], false),
        ]);
        type Asked = (Option<&'static str>, &'static [Kind], bool);
        let rows: &[(Asked, Option<usize>)] = &[
            ((Some("a.example"), &[Ecdsa, Rsa], false), Some(1)),
            ((Some("A.Example"), &[Rsa], false), Some(0)),
            ((Some("q.b.example"), &[Ecdsa, Rsa], false), Some(1)),
            ((Some("q.b.example"), &[Rsa], false), Some(2)),
            ((Some("x.b.example"), &[Ecdsa, Rsa], false), Some(2)),
            ((Some("no.b.example"), &[Rsa], false), Some(1)),
            ((Some("b.example"), &[Rsa], false), Some(0)),
            ((Some("p.q.b.example"), &[Rsa], false), Some(0)),
            ((Some("unknown"), &[Rsa], true), None),
            ((None, &[Rsa], false), Some(0)),
            ((None, &[Rsa], true), None),
            ((Some(""), &[Rsa], true), None),
        ];
        for ((name, wanted, strict), found) in rows {
            assert_eq!(names.find(*name, wanted, *strict), *found, "{name:?} {wanted:?} {strict}");
        }
    }
}
