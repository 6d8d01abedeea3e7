//! `help`, and suggestions for an unknown command. Must never show a command that cannot be called.

use super::call::{Call, Conversation};
use super::command::{Command, CommandSet, CommandTarget, Mode};

/// Maximum number of suggestions after an unknown command, without those of the protocol.
const SUGGESTIONS: usize = 5;

/// Maximum edit distance of a typo.
const TYPO: usize = 2;

/// The last commands of each list.
const ALWAYS: [&str; 3] = ["help", "prompt", "quit"];

/// Width of the column of usages.
const WIDTH: usize = 40;

/// Never called: the connection answers `help` because it has the set. The row makes help show it.
pub(super) fn help<S: CommandTarget>(_: &mut Call<'_, S>) {}

/// Returns the answer to `help <words>`.
pub(super) fn matching<S: CommandTarget>(set: &CommandSet<S>, words: &[String], conversation: &Conversation) -> String {
    let mut text = "The following commands are valid at this level:\n".to_owned();
    list(set, words, conversation, &mut text);
    text
}

/// Returns the answer to an unknown command.
pub(super) fn unknown<S: CommandTarget>(set: &CommandSet<S>, words: &[String], conversation: &Conversation) -> String {
    let first = words.first().map_or("", String::as_str);
    let mut text = format!("Unknown command: '{first}', but maybe one of the following ones is a better match:\n");
    list(set, words, conversation, &mut text);
    text
}

/// A command in a list.
struct Row<'a> {
    name: &'a str,
    usage: &'a str,
    /// Description; commands of scripts have it in their usage.
    doc: Option<&'static str>,
}

impl Row<'_> {
    fn words(&self) -> impl Iterator<Item = &str> {
        self.name.split(' ')
    }
}

fn list<S: CommandTarget>(set: &CommandSet<S>, words: &[String], conversation: &Conversation, text: &mut String) {
    let scripted = set.state.scripted();
    let shown = set.commands().filter(|row| is_shown(row, conversation));
    let shown = shown.map(|row| Row { name: row.name, usage: row.usage, doc: Some(row.doc) });
    let mut rows: Vec<Row<'_>> =
        shown.chain(scripted.iter().map(|(name, usage)| Row { name, usage, doc: None })).collect();
    rows.sort_by_key(|row| row.name);
    let (last, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| ALWAYS.contains(&row.name));
    for row in nearest(rows, words).into_iter().chain(last) {
        let gap = if row.usage.len() > WIDTH { " " } else { "" };
        match row.doc {
            Some(doc) => text.push_str(&format!("  {:<WIDTH$}{gap}: {doc}\n", row.usage)),
            None => text.push_str(&format!("  {}\n", row.usage)),
        }
    }
}

fn is_shown<S: CommandTarget>(row: &Command<S>, conversation: &Conversation) -> bool {
    let allowed = match row.mode {
        Mode::Normal => true,
        Mode::Expert => conversation.expert,
        Mode::Experimental => conversation.experimental,
        Mode::Debug => conversation.debug,
    };
    allowed && !row.usage.is_empty()
}

/// Narrows the rows to those whose first words equal the typed ones, as far as any row matches; of these, to the rows
/// most similar to the rest of the words.
fn nearest<'a>(mut rows: Vec<Row<'a>>, words: &[String]) -> Vec<Row<'a>> {
    for (at, word) in words.iter().enumerate() {
        let agrees = |row: &Row<'_>| row.words().nth(at) == Some(word.as_str());
        if rows.iter().any(agrees) {
            rows.retain(agrees);
            continue;
        }
        let names: Vec<Vec<&str>> = rows.iter().map(|row| row.words().skip(at).collect()).collect();
        let chosen = choose(&names, &words[at..]);
        drop(names);
        let mut index = 0;
        rows.retain(|_| {
            index += 1;
            chosen.contains(&(index - 1))
        });
        break;
    }
    rows
}

/// Returns the indexes of the names, at most [`SUGGESTIONS`] of them in their order, that contain the typed words,
/// possibly with typos; otherwise of the nearest ones. Shorter names win ties.
fn choose(names: &[Vec<&str>], typed: &[String]) -> Vec<usize> {
    let mut found: Vec<(usize, usize, usize)> = names
        .iter()
        .enumerate()
        .filter(|(_, words)| !words.is_empty())
        .map(|(index, words)| (strangeness(typed, words), words.iter().map(|word| word.len() + 1).sum(), index))
        .collect();
    found.sort_unstable();
    let best = found.first().map_or(0, |(strangeness, _, _)| *strangeness);
    found.retain(|(strangeness, _, _)| best > TYPO || *strangeness == best);
    found.truncate(SUGGESTIONS);
    let mut chosen: Vec<usize> = found.into_iter().map(|(_, _, index)| index).collect();
    chosen.sort_unstable();
    chosen
}

/// Returns the distance between the typed words and a name, wherever in the name each word belongs, or with the spaces
/// removed.
fn strangeness(typed: &[String], name: &[&str]) -> usize {
    let nearest = |word: &String| name.iter().map(|known| distance(word, known)).min().unwrap_or(0);
    let words = typed.iter().map(nearest).sum();
    distance(&typed.concat(), &name.concat()).min(words)
}

/// Returns the edit distance. Longer words are truncated to a length that no command exceeds.
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
    use super::{choose, distance};

    #[test]
    fn commands_are_found_by_any_of_their_words() {
        let names = [
            "add map",
            "clear map",
            "commit map",
            "del map",
            "get map",
            "get weight",
            "set map",
            "set weight",
            "show map",
            "show servers state",
            "show stat",
            "show table",
        ];
        let names: Vec<Vec<&str>> = names.iter().map(|name| name.split(' ').collect()).collect();
        for (typed, expected) in [
            ("map", "add map,del map,get map,set map,show map"),
            ("shwo stat", "show stat"),
            ("showstat", "show stat"),
            ("weigth", "get weight,set weight"),
            ("servers state", "show servers state"),
        ] {
            let typed: Vec<String> = typed.split(' ').map(str::to_owned).collect();
            let found: Vec<String> = choose(&names, &typed).into_iter().map(|index| names[index].join(" ")).collect();
            assert_eq!(found.join(","), expected, "{typed:?}");
        }
    }

    #[test]
    fn distances_count_letters() {
        for (typed, name, expected) in [("sho", "show", 1), ("show", "show", 0), ("", "ab", 2), ("xy", "ab", 2)] {
            assert_eq!(distance(typed, name), expected, "{typed} {name}");
        }
    }
}
