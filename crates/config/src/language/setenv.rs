//! Keywords of `global` that change the environment: they take effect while lines are read, since later lines use it
//! (configuration manual, section 3.1). Must never change anything but the copy of the environment.

use crate::diagnostic::Diagnostic;
use crate::document::Line;
use crate::environment::Environment;
use crate::options::LanguageOptions;

/// Applies a line of a `global` section. Returns `None` for any other keyword, and for `localpeer`, which has further
/// effects.
pub(super) fn apply(
    line: &Line,
    environment: &mut Environment,
    options: &LanguageOptions,
) -> Option<Result<(), Diagnostic>> {
    match line.keyword() {
        "setenv" => Some(set(line, |name, value| environment.set(name, value))),
        "presetenv" => Some(set(line, |name, value| environment.set_if_absent(name, value))),
        "unsetenv" => Some(unset(line, environment)),
        "resetenv" => {
            environment.retain(|name| line.arguments().iter().any(|word| word.text == name));
            Some(Ok(()))
        }
        "localpeer" => {
            if !options.local_peer_is_fixed && line.words.len() > 1 {
                let _ = environment.set("HAPROXY_LOCALPEER", line.text(1));
            }
            None
        }
        _ => None,
    }
}

fn set<E: std::fmt::Display>(line: &Line, mut set: impl FnMut(&str, &str) -> Result<(), E>) -> Result<(), Diagnostic> {
    let keyword = line.keyword();
    let usage = format!("{keyword} <name> <value>");
    let wrong = |word, message: String| Diagnostic::alert(line.span(word), message).with_hint(usage.clone());
    match line.words.as_slice() {
        [_] => Err(wrong(1, format!("'{keyword}' expects environment variable name."))),
        [_, name] => Err(wrong(2, format!("'{keyword}' expects environment variable value for '{}'.", name.text))),
        [_, name, value] => set(&name.text, &value.text)
            .map_err(|error| wrong(1, format!("'{keyword}' failed on variable '{}' : {error}.", name.text))),
        [_, _, _, extra, ..] => {
            Err(wrong(3, format!("'{keyword}' cannot handle unexpected argument '{}'.", extra.text))
                .with_hint("put quotes around a value with blanks"))
        }
        [] => Ok(()),
    }
}

fn unset(line: &Line, environment: &mut Environment) -> Result<(), Diagnostic> {
    if line.arguments().is_empty() {
        let message = "'unsetenv' expects at least one variable name.";
        return Err(Diagnostic::alert(line.span(1), message).with_hint("unsetenv <name> ..."));
    }
    for word in line.arguments() {
        environment.remove(&word.text).map_err(|error| {
            let message = format!("'unsetenv' failed on variable '{}' : {error}.", word.text);
            Diagnostic::alert(word.span, message).with_hint("a name has no '=' in it")
        })?;
    }
    Ok(())
}
