//! Selects the certificate for a name (configuration manual, "crt", "crt-list", "strict-sni"): an exact name takes
//! precedence over a wildcard, with one candidate per key type. Must never match a name partially.

use std::collections::HashMap;

use crate::certificate::Kind;

/// A row of a list: its key type and its names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    pub kind: Kind,
    /// Names and wildcards (`*.example.com`) in lower case. `*` matches everything.
    pub names: Vec<Box<str>>,
    /// Names excluded from its wildcards.
    pub excluded: Vec<Box<str>>,
    /// Whether it is a default for clients without SNI, or with an unknown name.
    pub is_default: bool,
}

/// Rows indexed by name. Results are indices in the list that it was built from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Names {
    exact: HashMap<Box<str>, Vec<usize>>,
    /// By the part after the asterisk, which begins with a dot.
    wildcards: HashMap<Box<str>, Vec<usize>>,
    excluded: HashMap<Box<str>, Vec<usize>>,
    defaults: Vec<usize>,
    kinds: Vec<Kind>,
}

impl Names {
    /// Indexes the names of a list.
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

    /// Returns the index of the certificate for a name, of the key types in `wanted`, in order of preference. There is
    /// one candidate per key type, by its exact name before a wildcard; `fits` returns whether the client supports it.
    /// If none fits, returns the first one with this name; if none has the name, selects from the defaults, unless
    /// `strict`.
    pub fn find(
        &self,
        name: Option<&str>,
        wanted: &[Kind],
        strict: bool,
        fits: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let named = name.map(str::to_ascii_lowercase).and_then(|name| {
            let exact = self.exact.get(&*name).map_or(&[][..], Vec::as_slice);
            let suffix = name.find('.').map_or("", |dot| &name[dot..]);
            let wild = self.wildcards.get(suffix).map_or(&[][..], Vec::as_slice);
            let excluded = self.excluded.get(&*name).map_or(&[][..], Vec::as_slice);
            let all = exact.iter().chain(wild.iter().filter(|place| !excluded.contains(place))).copied();
            // A known name never gets a certificate of another name: a failed handshake reports the reason.
            self.of_kinds(all.clone(), wanted, &fits).or_else(|| all.clone().next())
        });
        if named.is_some() || strict {
            return named;
        }
        let defaults = self.defaults.iter().copied();
        self.of_kinds(defaults, wanted, &fits).or_else(|| self.defaults.first().copied())
    }

    /// Returns the first index of each key type, and of those the first that fits.
    fn of_kinds(
        &self,
        places: impl Iterator<Item = usize> + Clone,
        wanted: &[Kind],
        fits: impl Fn(usize) -> bool,
    ) -> Option<usize> {
        let first = |kind: &Kind| places.clone().find(|place| self.kinds[*place] == *kind);
        wanted.iter().filter_map(first).find(|place| fits(*place))
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
            ((Some("x.b.example"), &[Rsa, Ecdsa], false), Some(2)),
            ((Some("x.b.example"), &[Ecdsa, Rsa], false), Some(1)),
            ((Some("no.b.example"), &[Ecdsa, Rsa], false), Some(1)),
            // Known, with no certificate of that type.
            ((Some("no.b.example"), &[Rsa], false), Some(1)),
            ((Some("no.b.example"), &[Rsa], true), Some(1)),
            ((Some("b.example"), &[Rsa], false), Some(0)),
            ((Some("p.q.b.example"), &[Rsa], false), Some(0)),
            ((Some("unknown"), &[Rsa], true), None),
            ((None, &[Rsa], false), Some(0)),
            ((None, &[Rsa], true), None),
            ((Some(""), &[Rsa], true), None),
        ];
        for ((name, wanted, strict), found) in rows {
            assert_eq!(names.find(*name, wanted, *strict, |_| true), *found, "{name:?} {wanted:?} {strict}");
        }
    }

    #[test]
    fn what_a_client_cannot_use_is_passed_over() {
        use Kind::{Ecdsa, Rsa};
        let names = Names::new(&[
            row(Ecdsa, &["a.example"], &[], true),
            row(Rsa, &["*.example"], &[], false),
            row(Rsa, &["*.example"], &[], true),
        ]);
        let find = |name, strict, fitting: &'static [usize]| {
            names.find(Some(name), &[Ecdsa, Rsa], strict, |place| fitting.contains(&place))
        };
        assert_eq!(find("a.example", true, &[0, 1]), Some(0));
        assert_eq!(find("a.example", true, &[1]), Some(1));
        // The first one of each type is the candidate.
        assert_eq!(find("a.example", true, &[2]), Some(0));
        assert_eq!(find("a.example", false, &[2]), Some(0));
        assert_eq!(find("b.example", false, &[2]), Some(1));
        // The failed handshake reports the reason.
        assert_eq!(find("a.example", false, &[]), Some(0));
        assert_eq!(find("other", false, &[]), Some(0));
    }
}
