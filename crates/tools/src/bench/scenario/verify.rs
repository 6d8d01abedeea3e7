//! Rules of a scenario beyond its syntax. Must never look at the machine.

use super::template::{self, Values};
use super::{Load, Scenario};
use std::collections::BTreeMap;
use std::ops::{Range, RangeInclusive};
use toml::Spanned;

/// Maximum number of combinations of a sweep.
const MOST_POINTS: usize = 1000;

/// Maximum length of a title or a similar line, in bytes.
const LONGEST_LINE: usize = 300;

/// An error and its place.
pub struct Wrong {
    /// Byte range in the text.
    pub span: Range<usize>,
    /// The expected value.
    pub what: String,
}

fn wrong<T>(at: &Spanned<T>, what: impl Into<String>) -> Wrong {
    Wrong { span: at.span(), what: what.into() }
}

/// Checks everything that the syntax alone does not ensure.
pub fn verify(scenario: &Scenario) -> Result<(), Wrong> {
    let name = &scenario.name;
    let plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '-';
    if name.get_ref().is_empty() || !name.get_ref().chars().all(plain) || name.get_ref().len() > 60 {
        return Err(wrong(name, "a name is made of small letters, digits and '-', at most 60"));
    }
    for (key, line) in [("title", &scenario.title), ("repeats", &scenario.repeats)] {
        if line.len() > LONGEST_LINE || line.contains('\n') {
            return Err(wrong(name, format!("{key} is one line of at most {LONGEST_LINE} bytes")));
        }
    }
    within(&scenario.rounds, 1..=1000, "rounds")?;
    load(&scenario.load)?;
    sweep(scenario)?;
    for key in scenario.values.keys() {
        if !template::is_name(key.get_ref()) || standard(scenario).contains_key(key.get_ref()) {
            return Err(wrong(
                key,
                "a placeholder of one's own has a name of small letters, digits and '_' that is not taken",
            ));
        }
    }
    lists(scenario)?;
    proxies(scenario)?;
    templates(scenario)
}

fn within(number: &Spanned<u32>, range: RangeInclusive<u32>, key: &str) -> Result<(), Wrong> {
    if range.contains(number.get_ref()) {
        return Ok(());
    }
    Err(wrong(number, format!("{key} is a number from {} to {}", range.start(), range.end())))
}

fn load(load: &Load) -> Result<(), Wrong> {
    within(&load.connections, 1..=10_000_000, "connections")?;
    within(&load.threads, 1..=1024, "threads")?;
    if load.duration.get_ref().0 < 0.05 {
        return Err(wrong(&load.duration, "a round lasts at least 0.05 seconds"));
    }
    if !load.path.get_ref().starts_with('/') {
        return Err(wrong(&load.path, "a path begins with '/'"));
    }
    if let Some(scheme) = load.scheme.as_ref().filter(|scheme| !matches!(scheme.get_ref().as_str(), "http" | "https")) {
        return Err(wrong(scheme, "a scheme is \"http\" or \"https\""));
    }
    let token =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte));
    if let Some(method) = load.method.as_ref().filter(|method| !token(method.get_ref())) {
        return Err(wrong(method, "a method is a word"));
    }
    if let Some(number) = load.requests_per_connection.as_ref().filter(|number| *number.get_ref() == 0) {
        return Err(wrong(number, "requests_per_connection is at least 1"));
    }
    for (name, value) in &load.headers {
        if !token(name) || value.get_ref().contains(['\r', '\n', '\0']) {
            return Err(wrong(value, "a header has a name of letters, digits, '-' and '_', and a value of one line"));
        }
    }
    Ok(())
}

fn sweep(scenario: &Scenario) -> Result<(), Wrong> {
    let sweep = &scenario.sweep;
    sweep.workers.iter().try_for_each(|number| within(number, 1..=1024, "workers"))?;
    sweep.connections.iter().try_for_each(|number| within(number, 1..=10_000_000, "connections"))?;
    let lengths = [sweep.sizes.len(), sweep.rates.len(), sweep.workers.len(), sweep.connections.len()];
    let points = lengths.iter().fold(1_usize, |points, length| points.saturating_mul((*length).max(1)));
    if points > MOST_POINTS {
        return Err(wrong(&scenario.name, format!("the sweep has {points} combinations, {MOST_POINTS} are the most")));
    }
    Ok(())
}

fn lists(scenario: &Scenario) -> Result<(), Wrong> {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    for (name, list) in &scenario.lists {
        if name.get_ref().is_empty() || name.get_ref().starts_with('.') || !name.get_ref().chars().all(plain) {
            return Err(wrong(name, "a list's name is made of letters, digits, '.', '_' and '-'"));
        }
        list.verify().map_err(|(of_line, what)| match of_line {
            true => wrong(&list.line, what),
            false => wrong(&list.entries, what),
        })?;
    }
    Ok(())
}

fn proxies(scenario: &Scenario) -> Result<(), Wrong> {
    if scenario.proxy.is_empty() || scenario.proxy.len() > 100 {
        return Err(wrong(&scenario.name, "a scenario has 1 to 100 [[proxy]]"));
    }
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    for (number, proxy) in scenario.proxy.iter().enumerate() {
        let name = proxy.name.get_ref();
        if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) || name.len() > 60 {
            return Err(wrong(&proxy.name, "a proxy's name is made of letters, digits, '.', '_' and '-', at most 60"));
        }
        if name == "direct" || scenario.proxy[..number].iter().any(|other| other.name.get_ref() == name) {
            return Err(wrong(&proxy.name, format!("the name '{name}' is taken")));
        }
        if proxy.command.is_empty() {
            return Err(wrong(&proxy.name, format!("the command of '{name}' is empty")));
        }
        if let Some(required) = &proxy.requires
            && (required.command.is_empty() || required.text.get_ref().is_empty())
        {
            return Err(wrong(&required.text, "a required feature has a command, and a text that this prints"));
        }
    }
    if scenario.origin.len() > 100 || scenario.origin.iter().any(|origin| origin.command.is_empty()) {
        return Err(wrong(&scenario.name, "a scenario has at most 100 [[origin]], each with a command"));
    }
    Ok(())
}

/// Checks that every placeholder has a value, and every file stays in its folder.
fn templates(scenario: &Scenario) -> Result<(), Wrong> {
    let mut values = standard(scenario);
    for key in scenario.values.keys() {
        values.insert(key.get_ref().clone(), String::new());
    }
    let check = |text: &Spanned<String>, values: &Values| match template::fill(text.get_ref(), values) {
        Ok(_) => Ok(()),
        Err(what) => Err(wrong(text, what)),
    };
    let files = |files: &BTreeMap<Spanned<String>, Spanned<String>>, values: &Values| {
        for (name, text) in files {
            let inside = |piece: &str| !piece.is_empty() && piece != "." && piece != "..";
            if !name.get_ref().split('/').all(inside) || name.get_ref().contains('\0') {
                return Err(wrong(name, "a file's name is a path below the folder"));
            }
            check(text, values)?;
        }
        Ok(())
    };
    for text in [&scenario.load.path].into_iter().chain(scenario.load.headers.values()) {
        check(text, &values)?;
    }
    files(&scenario.files, &values)?;
    for proxy in &scenario.proxy {
        let requires = proxy.requires.iter().flat_map(|required| &required.command);
        let words = proxy.command.iter().chain(&proxy.version).chain(&proxy.needs).chain(requires);
        words.into_iter().try_for_each(|word| check(word, &values))?;
        files(&proxy.files, &values)?;
    }
    // An origin is started before there is a proxy, and serves every step of the sweep.
    for name in ["size", "rate", "workers", "connections"] {
        values.remove(name);
    }
    for origin in &scenario.origin {
        origin.command.iter().try_for_each(|word| check(word, &values))?;
        files(&origin.files, &values)?;
    }
    Ok(())
}

/// Returns the placeholders of every scenario.
fn standard(scenario: &Scenario) -> Values {
    let mut names: Vec<String> = [
        "weir",
        "folder",
        "scratch",
        "lists",
        "port",
        "origin",
        "origin_port",
        "size",
        "rate",
        "workers",
        "connections",
    ]
    .map(str::to_owned)
    .into();
    for number in 1..=scenario.origin.len().max(1) {
        names.extend([format!("origin_{number}"), format!("origin_{number}_port")]);
    }
    names.into_iter().map(|name| (name, String::new())).collect()
}
