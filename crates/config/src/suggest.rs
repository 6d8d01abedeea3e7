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

/// Names longer than this cannot be near to any word that is looked for.
const MAX_NAME: usize = MAX_WORD + 3;

/// The number of edits between both, if it is no more than `limit`. Upper and lower case count as the same.
///
/// The usual table, three rows of it, of which only a band around the diagonal can stay within the limit.
fn distance(word: &[char], name: &str, limit: usize) -> Option<usize> {
    let mut buffer = ['\0'; MAX_NAME];
    let mut length = 0;
    for found in name.chars() {
        *buffer.get_mut(length)? = found;
        length += 1;
    }
    let name = &buffer[..length];
    if word.len().abs_diff(length) > limit {
        return None;
    }
    let beyond = limit + 1;
    let mut before = [beyond; MAX_NAME + 1];
    let mut above = [beyond; MAX_NAME + 1];
    above.iter_mut().take(beyond.min(length + 1)).enumerate().for_each(|(column, cost)| *cost = column);
    for (row, &left) in word.iter().enumerate() {
        let mut current = [beyond; MAX_NAME + 1];
        current[0] = (row + 1).min(beyond);
        let mut least = current[0];
        for column in row.saturating_sub(limit)..length.min(row + limit + 1) {
            let right = name[column];
            let same = left.eq_ignore_ascii_case(&right);
            let mut cost = (above[column] + usize::from(!same)).min(above[column + 1] + 1).min(current[column] + 1);
            if row > 0 && column > 0 && left == name[column - 1] && word[row - 1] == right {
                cost = cost.min(before[column - 1] + 1);
            }
            current[column + 1] = cost.min(beyond);
            least = least.min(cost);
        }
        if least > limit {
            return None;
        }
        before = std::mem::replace(&mut above, current);
    }
    Some(above[length]).filter(|&found| found <= limit)
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

    /// The table without any shortcuts.
    fn plain_distance(word: &[char], name: &[char]) -> usize {
        let mut table = vec![vec![0; name.len() + 1]; word.len() + 1];
        for row in 0..=word.len() {
            for column in 0..=name.len() {
                table[row][column] = match (row, column) {
                    (0, cost) | (cost, 0) => cost,
                    _ => {
                        let same = word[row - 1].eq_ignore_ascii_case(&name[column - 1]);
                        let cost = (table[row - 1][column - 1] + usize::from(!same))
                            .min(table[row - 1][column] + 1)
                            .min(table[row][column - 1] + 1);
                        let swapped = row > 1
                            && column > 1
                            && word[row - 1] == name[column - 2]
                            && word[row - 2] == name[column - 1];
                        if swapped { cost.min(table[row - 2][column - 2] + 1) } else { cost }
                    }
                };
            }
        }
        table[word.len()][name.len()]
    }

    proptest::proptest! {
        #[test]
        fn shortcuts_change_nothing(word in "[abcA]{0,8}", name in "[abcA]{0,8}", limit in 0_usize..4) {
            let (word, letters): (Vec<char>, Vec<char>) = (word.chars().collect(), name.chars().collect());
            let plain = plain_distance(&word, &letters);
            proptest::prop_assert_eq!(distance(&word, &name, limit), (plain <= limit).then_some(plain));
        }
    }

    #[test]
    fn long_names_are_passed_over() {
        assert_eq!(nearest("abcdef", [&*"abcdef".repeat(50), "abcdeg"]), Some("abcdeg"));
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
