//! "Did you mean …?": finds the known name most similar to an unknown word. Must never run longer than linear in the
//! list: words and distances are bounded.

/// Maximum length of a word, in characters; longer ones are most likely not a typing mistake.
const MAX_WORD: usize = 64;

/// Returns the name most similar to the word, if it is within one edit per three characters, three at most. An edit is
/// an additional, a missing or a wrong character, or two swapped neighbours. The first of equally similar names.
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

/// Maximum length of a name, in characters; longer ones are not similar to any word.
const MAX_NAME: usize = MAX_WORD + 3;

/// Returns the number of edits between both, if it is at most `limit`. Case is ignored.
///
/// Uses three rows of the usual table, and only the band around the diagonal that can be within the limit.
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

    /// The table without optimizations.
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
