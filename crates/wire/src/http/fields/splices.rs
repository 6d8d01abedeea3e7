//! Tests of partially replaced values.

use super::*;

#[test]
fn values_are_changed_in_part() {
    let rows: &[(std::ops::Range<usize>, &[u8], &[u8])] = &[
        (0..3, b"", b"defghi"),
        (3..6, b"", b"abcghi"),
        (6..9, b"", b"abcdef"),
        (0..9, b"", b""),
        (3..6, b"x", b"abcxghi"),
        (3..6, b"xyz", b"abcxyzghi"),
        (3..6, b"longer", b"abclongerghi"),
        (9..9, b"!", b"abcdefghi!"),
        (0..0, b"!", b"!abcdefghi"),
        (0..10, b"!", b"abcdefghi"),
    ];
    for (range, with, expected) in rows {
        let mut fields = Fields::new();
        for (name, value) in [(b"a", b"1"), (b"c", b"2")] {
            fields.append(name, value);
            fields.append(b"b", b"abcdefghi");
        }
        fields.splice_value(1, range.clone(), with);
        let found: Vec<_> = fields.iter().map(|(name, value)| (name.to_vec(), value.to_vec())).collect();
        let row = |name: &[u8], value: &[u8]| (name.to_vec(), value.to_vec());
        let wanted = [row(b"a", b"1"), row(b"b", expected), row(b"c", b"2"), row(b"b", b"abcdefghi")];
        assert_eq!(found, wanted, "{range:?}");
        let line = &fields.list[1];
        let whole = [b"b: ", *expected, b"\r\n"].concat();
        assert_eq!(fields.slice(line.start, line.line_end()), whole);
        fields.remove(1);
        assert_eq!(fields.first(b"b"), Some(&b"abcdefghi"[..]));
    }
}
