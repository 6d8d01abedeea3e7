//! `help`, and the commands that an unknown one may have meant. Must never show a command that cannot be called.

use super::call::{Call, Conversation};
use super::command::{Command, Desk, Mode, Served};

/// Commands that are named to whoever typed an unknown one, those of the protocol aside.
const SUGGESTIONS: usize = 5;

/// What ends each list.
const ALWAYS: [&str; 3] = ["help", "prompt", "quit"];

/// Width of the column of usages.
const WIDTH: usize = 40;

/// Called by the connection, which knows the desk; the row is there so that help shows it.
pub(super) fn help<S>(_: &mut Call<'_, S>) {}

/// The answer to `help <words>`.
pub(super) fn matching<S: Served>(desk: &Desk<S>, words: &[String], conversation: &Conversation) -> String {
    let mut text = "The following commands are valid at this level:\n".to_owned();
    list(desk, words, conversation, &mut text);
    text
}

/// The answer to an unknown command.
pub(super) fn unknown<S: Served>(desk: &Desk<S>, words: &[String], conversation: &Conversation) -> String {
    let first = words.first().map_or("", String::as_str);
    let mut text = format!("Unknown command: '{first}', but maybe one of the following ones is a better match:\n");
    list(desk, words, conversation, &mut text);
    text
}

fn list<S: Served>(desk: &Desk<S>, words: &[String], conversation: &Conversation, text: &mut String) {
    let mut rows: Vec<&Command<S>> = desk.commands().filter(|row| is_shown(row, conversation)).collect();
    rows.sort_by_key(|row| row.name);
    let (last, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| ALWAYS.contains(&row.name));
    for row in nearest(rows, words).into_iter().chain(last) {
        let gap = if row.usage.len() > WIDTH { " " } else { "" };
        text.push_str(&format!("  {:<WIDTH$}{gap}: {}\n", row.usage, row.doc));
    }
}

fn is_shown<S>(row: &Command<S>, conversation: &Conversation) -> bool {
    let allowed = match row.mode {
        Mode::Normal => true,
        Mode::Expert => conversation.expert,
        Mode::Experimental => conversation.experimental,
    };
    allowed && !row.usage.is_empty()
}

/// The rows whose first words are those that were typed, as far as any row agrees with them; of these the ones whose
/// next word is most like the typed one.
fn nearest<'a, S>(mut rows: Vec<&'a Command<S>>, words: &[String]) -> Vec<&'a Command<S>> {
    for (at, word) in words.iter().enumerate() {
        let agrees = |row: &&Command<S>| row.words().nth(at) == Some(word.as_str());
        if rows.iter().any(agrees) {
            rows.retain(agrees);
            continue;
        }
        let candidates = rows.iter().filter_map(|row| row.words().nth(at));
        let mut distances: Vec<usize> = candidates.map(|name| distance(word, name)).collect();
        distances.sort_unstable();
        let Some(&limit) = distances.get(SUGGESTIONS.min(distances.len()).wrapping_sub(1)) else { break };
        let mut left = SUGGESTIONS;
        rows.retain(|row| {
            let near = row.words().nth(at).is_some_and(|name| distance(word, name) <= limit) && left > 0;
            left -= usize::from(near);
            near
        });
        break;
    }
    rows
}

/// Letters to insert, to remove or to change. Words are cut where no command's name goes on.
fn distance(typed: &str, name: &str) -> usize {
    const MOST: usize = 24;
    let name: Vec<char> = name.chars().take(MOST).collect();
    let mut above: Vec<usize> = (0..=name.len()).collect();
    for (row, typed) in typed.chars().take(MOST).enumerate() {
        let mut corner = above[0];
        above[0] = row + 1;
        for (column, name) in name.iter().enumerate() {
            let change = corner + usize::from(!typed.eq_ignore_ascii_case(name));
            corner = above[column + 1];
            above[column + 1] = change.min(corner + 1).min(above[column] + 1);
        }
    }
    above.last().copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::distance;

    #[test]
    fn distances_count_letters() {
        for (typed, name, expected) in [("sho", "show", 1), ("show", "show", 0), ("", "ab", 2), ("xy", "ab", 2)] {
            assert_eq!(distance(typed, name), expected, "{typed} {name}");
        }
    }
}
