//! "Did you mean …?": the known name that is nearest to an unknown word. Must never take longer than the list is long:
//! words and distances are bounded.

/// Words longer than this are no typing mistake worth a search.
const MAX_WORD: usize = 64;

/// The name that is nearest to the word, if one is near enough: up to one edit in three characters, three at most. An
/// edit is a character too much, one missing, a wrong one, or two neighbours swapped. The first of equally near ones.
pub fn nearest<'a>(word: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.chars().take(MAX_WORD + 1).collect();
    if word.len() > MAX_WORD {
        return None;
    }
    let mut limit = (word.len() / 3).clamp(1, 3);
    let mut best = None;
    for name in names {
        match distance(&word, name, limit) {
            Some(0) => return Some(name),
            Some(found) => {
                best = Some(name);
                limit = found - 1;
            }
            None => {}
        }
    }
    best
}

/// The number of edits between both, if it is no more than `limit`. Upper and lower case count as the same.
fn distance(word: &[char], name: &str, limit: usize) -> Option<usize> {
    let name: Vec<char> = name.chars().take(MAX_WORD + 4).collect();
    if word.len().abs_diff(name.len()) > limit {
        return None;
    }
    let mut before: Vec<usize> = Vec::new();
    let mut above: Vec<usize> = (0..=name.len()).collect();
    for (row, &left) in word.iter().enumerate() {
        let mut current = vec![row + 1];
        for (column, &right) in name.iter().enumerate() {
            let same = left.eq_ignore_ascii_case(&right);
            let mut cost = (above[column] + usize::from(!same)).min(above[column + 1] + 1).min(current[column] + 1);
            if row > 0 && column > 0 && left == name[column - 1] && word[row - 1] == right {
                cost = cost.min(before[column - 1] + 1);
            }
            current.push(cost);
        }
        before = std::mem::replace(&mut above, current);
    }
    above.last().copied().filter(|&found| found <= limit)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[&str] =
        &["bind", "balance", "backlog", "timeout client", "timeout connect", "server", "option httplog"];

    #[test]
    fn the_nearest_name_is_found() {
        let rows: &[(&str, Option<&str>)] = &[
            ("bnid", Some("bind")),
            ("bin", Some("bind")),
            ("bindd", Some("bind")),
            ("BIND", Some("bind")),
            ("ballance", Some("balance")),
            ("timeout cleint", Some("timeout client")),
            ("timeout conect", Some("timeout connect")),
            ("option htplog", Some("option httplog")),
            ("sever", Some("server")),
            ("xyz", None),
            ("b", None),
            ("", None),
            ("something else", None),
        ];
        for &(word, expected) in rows {
            assert_eq!(nearest(word, NAMES.iter().copied()), expected, "{word}");
        }
    }

    #[test]
    fn long_words_cost_nothing() {
        assert_eq!(nearest(&"bind".repeat(1000), NAMES.iter().copied()), None);
    }

    #[test]
    fn the_first_of_equals_wins() {
        assert_eq!(nearest("cat", ["bat", "hat", "rat"]), Some("bat"));
        assert_eq!(nearest("catch", ["batch", "catch"]), Some("catch"));
    }
}
