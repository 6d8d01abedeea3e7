//! Suggestions for an unknown argument. Must never access files: only the name is considered.

use super::FLAGS;

/// Arguments of other programs, and the corresponding ones here.
const ELSEWHERE: &[(&str, &str)] = &[
    ("--version", "-v"),
    ("version", "-v"),
    ("help", "--help"),
    ("-?", "--help"),
    ("--check", "-c"),
    ("check", "-c"),
    ("--config", "-f"),
    ("--daemon", "-D"),
];

/// Flags that are not in the table.
const QUESTIONS: &[&str] = &["-v", "-vv", "-vq", "-vqs", "-vqb", "-h", "--help", "-cc"];

/// Returns a hint for the error message; `None`: nothing is similar.
pub fn of(word: &str) -> Option<String> {
    if let Some((_, meant)) = ELSEWHERE.iter().find(|(other, _)| *other == word) {
        return Some(format!("did you mean '{meant}'?"));
    }
    if !word.starts_with('-') && word.contains(['.', '/']) {
        return Some(format!("a configuration file is named by '-f {word}'"));
    }
    let known: Vec<&str> = if word.starts_with('-') {
        FLAGS.iter().map(|flag| flag.name).chain(QUESTIONS.iter().copied()).filter(|name| name.len() > 2).collect()
    } else {
        crate::tool::NAMES.into_iter().chain(["help", "reload", "diff"]).collect()
    };
    let nearest = config::suggest::nearest(word, known)?;
    let nearest = ELSEWHERE.iter().find(|(other, _)| *other == nearest).map_or(nearest, |(_, meant)| meant);
    Some(format!("did you mean '{nearest}'?"))
}

#[cfg(test)]
mod tests {
    use super::of;

    #[test]
    fn what_was_meant_is_named() {
        let rows = [
            ("--version", Some("did you mean '-v'?")),
            ("help", Some("did you mean '--help'?")),
            ("hlep", Some("did you mean '--help'?")),
            ("laod", Some("did you mean 'load'?")),
            ("bnech", Some("did you mean 'bench'?")),
            ("haproxy.cfg", Some("a configuration file is named by '-f haproxy.cfg'")),
            ("/etc/haproxy/haproxy.cfg", Some("a configuration file is named by '-f /etc/haproxy/haproxy.cfg'")),
            ("--hlep", Some("did you mean '--help'?")),
            ("-zzz", None),
            ("something", None),
        ];
        for (word, expected) in rows {
            assert_eq!(of(word).as_deref(), expected, "{word}");
        }
    }
}
