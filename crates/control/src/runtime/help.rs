//! `help`, and the commands that an unknown one may have meant. Must never show a command that cannot be called.

use super::call::{Call, Conversation};
use super::command::{Command, CommandSet, Mode, Served};

/// Commands that are suggested after an unknown one, those of the protocol aside.
const SUGGESTIONS: usize = 5;

/// Letters that a word may be off to be taken for a mistake in typing.
const TYPO: usize = 2;

/// What ends each list.
const ALWAYS: [&str; 3] = ["help", "prompt", "quit"];

/// Width of the column of usages.
const WIDTH: usize = 40;

/// Called by the connection, which knows the set; the row is there so that help shows it.
pub(super) fn help<S: Served>(_: &mut Call<'_, S>) {}

/// The answer to `help <words>`.
pub(super) fn matching<S: Served>(set: &CommandSet<S>, words: &[String], conversation: &Conversation) -> String {
    let mut text = "The following commands are valid at this level:\n".to_owned();
    list(set, words, conversation, &mut text);
    text
}

/// The answer to an unknown command.
pub(super) fn unknown<S: Served>(set: &CommandSet<S>, words: &[String], conversation: &Conversation) -> String {
    let first = words.first().map_or("", String::as_str);
    let mut text = format!("Unknown command: '{first}', but maybe one of the following ones is a better match:\n");
    list(set, words, conversation, &mut text);
    text
}

/// A command in a list.
struct Row<'a> {
    name: &'a str,
    usage: &'a str,
    /// What it does; scripts say that in its usage.
    doc: Option<&'static str>,
}

impl Row<'_> {
    fn words(&self) -> impl Iterator<Item = &str> {
        self.name.split(' ')
    }
}

fn list<S: Served>(set: &CommandSet<S>, words: &[String], conversation: &Conversation, text: &mut String) {
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

fn is_shown<S: Served>(row: &Command<S>, conversation: &Conversation) -> bool {
    let allowed = match row.mode {
        Mode::Normal => true,
        Mode::Expert => conversation.expert,
        Mode::Experimental => conversation.experimental,
        Mode::Debug => conversation.debug,
    };
    allowed && !row.usage.is_empty()
}

/// The rows whose first words are those that were typed, as far as any row agrees with them; of these the ones that are
/// most like the rest of what was typed.
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

/// Which of the names, at most [`SUGGESTIONS`] of them and in their order: those that hold what was typed, or nearly so;
/// else whatever is nearest. Of several that are as near the shorter ones win.
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

/// How far what was typed is from a name, wherever in it each word belongs, or with the spaces left out.
fn strangeness(typed: &[String], name: &[&str]) -> usize {
    let nearest = |word: &String| name.iter().map(|known| distance(word, known)).min().unwrap_or(0);
    let words = typed.iter().map(nearest).sum();
    distance(&typed.concat(), &name.concat()).min(words)
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
