//! Table of predicates, which is also their documentation.

use super::input::ConditionContext;
use super::version::{OpenSslVersion, Version};
use crate::suggest;

#[derive(Debug)]
pub struct Predicate {
    pub name: &'static str,
    /// Number of arguments, each a string.
    pub arguments: usize,
    /// Description, in one line.
    pub usage: &'static str,
    /// Evaluates the predicate with its arguments.
    pub eval: fn(&[String], &ConditionContext<'_>) -> Result<bool, Invalid>,
}

/// An argument that cannot be interpreted.
#[derive(Debug)]
pub struct Invalid(pub String);

/// All predicates, sorted by name.
pub const PREDICATES: &[Predicate] = &[
    Predicate {
        name: "awslc_api_atleast",
        arguments: 1,
        usage: "awslc_api_atleast(<number>): the AWS-LC API has at least this number",
        eval: |arguments, context| awslc(arguments, context, |api, asked| api >= asked),
    },
    Predicate {
        name: "awslc_api_before",
        arguments: 1,
        usage: "awslc_api_before(<number>): the AWS-LC API has a lower number",
        eval: |arguments, context| awslc(arguments, context, |api, asked| api < asked),
    },
    Predicate {
        name: "defined",
        arguments: 1,
        usage: "defined(<name>): an environment variable of this name exists",
        eval: |arguments, context| Ok(context.environment.contains(first(arguments))),
    },
    Predicate {
        name: "enabled",
        arguments: 1,
        usage: "enabled(<option>): the run-time option is on, like enabled(SPLICE)",
        eval: |arguments, context| Ok(is_on(&context.options.run_time_options, first(arguments))),
    },
    Predicate {
        name: "feature",
        arguments: 1,
        usage: "feature(<name>): the feature is there, like feature(THREAD)",
        eval: |arguments, context| Ok(is_on(&context.options.features, first(arguments))),
    },
    Predicate {
        name: "fips_mode",
        arguments: 0,
        usage: "fips_mode(): the TLS library runs in FIPS mode",
        eval: |_, context| Ok(context.options.ssl.as_ref().is_some_and(|ssl| ssl.fips_mode)),
    },
    Predicate {
        name: "openssl_version_atleast",
        arguments: 1,
        usage: "openssl_version_atleast(<version>): with all three numbers, like openssl_version_atleast(1.1.1)",
        eval: |arguments, context| openssl(arguments, context, |own, asked| own >= asked),
    },
    Predicate {
        name: "openssl_version_before",
        arguments: 1,
        usage: "openssl_version_before(<version>): with all three numbers, like openssl_version_before(3.5.0)",
        eval: |arguments, context| openssl(arguments, context, |own, asked| own < asked),
    },
    Predicate {
        name: "ssllib_name_startswith",
        arguments: 1,
        usage: "ssllib_name_startswith(<name>): the TLS library's name starts so",
        eval: |arguments, context| {
            Ok(context.options.ssl.as_ref().is_some_and(|ssl| ssl.name.starts_with(first(arguments))))
        },
    },
    Predicate {
        name: "streq",
        arguments: 2,
        usage: "streq(<string>,<string>): both are the same; blanks beside the comma count",
        eval: |arguments, _| Ok(first(arguments) == second(arguments)),
    },
    Predicate {
        name: "strneq",
        arguments: 2,
        usage: "strneq(<string>,<string>): both differ; blanks beside the comma count",
        eval: |arguments, _| Ok(first(arguments) != second(arguments)),
    },
    Predicate {
        name: "strstr",
        arguments: 2,
        usage: "strstr(<string>,<string>): the second one is found in the first one",
        eval: |arguments, _| Ok(first(arguments).contains(second(arguments))),
    },
    Predicate {
        name: "version_atleast",
        arguments: 1,
        usage: "version_atleast(<version>): the language is at least at this level, like version_atleast(2.4-dev19)",
        eval: |arguments, context| Ok(Version::parse(context.options.version) >= Version::parse(first(arguments))),
    },
    Predicate {
        name: "version_before",
        arguments: 1,
        usage: "version_before(<version>): the language is at an earlier level, like version_before(3.5)",
        eval: |arguments, context| Ok(Version::parse(context.options.version) < Version::parse(first(arguments))),
    },
];

/// Returns a hint for an unknown predicate `name`, which is followed by the character `behind`.
pub fn hint(name: &str, behind: Option<char>) -> Option<String> {
    if name.is_empty() {
        let help = "a condition is a number, a predicate like feature(THREAD), '!' or '(' and ')' around a condition";
        return Some(help.to_owned());
    }
    if let Some(predicate) = PREDICATES.iter().find(|predicate| predicate.name == name) {
        let wrong = behind.map_or(String::new(), |behind| format!(", not '{behind}'"));
        return Some(format!("'(' must follow the name{wrong}: {}", predicate.usage));
    }
    let names = PREDICATES.iter().map(|predicate| predicate.name);
    match suggest::nearest(name, names) {
        Some(meant) => Some(format!("did you mean '{meant}'?")),
        None => Some(format!(
            "the predicates are {}",
            PREDICATES.iter().map(|predicate| predicate.name).collect::<Vec<_>>().join(", ")
        )),
    }
}

fn first(arguments: &[String]) -> &str {
    arguments.first().map_or("", String::as_str)
}

fn second(arguments: &[String]) -> &str {
    arguments.get(1).map_or("", String::as_str)
}

fn is_on(table: &[(&str, bool)], name: &str) -> bool {
    table.iter().any(|&(known, on)| on && known == name)
}

fn openssl(
    arguments: &[String],
    context: &ConditionContext<'_>,
    compare: fn(OpenSslVersion, OpenSslVersion) -> bool,
) -> Result<bool, Invalid> {
    let asked = OpenSslVersion::parse(first(arguments)).ok_or_else(|| Invalid(first(arguments).to_owned()))?;
    let own = context.options.ssl.as_ref().and_then(|ssl| OpenSslVersion::parse(&ssl.openssl_version));
    Ok(own.is_some_and(|own| compare(own, asked)))
}

/// Compares AWS-LC's API version; false with any other library, whatever the argument. (HAProxy rejects the argument
/// there.)
fn awslc(arguments: &[String], context: &ConditionContext<'_>, compare: fn(u32, u32) -> bool) -> Result<bool, Invalid> {
    let Some(own) = context.options.ssl.as_ref().and_then(|ssl| ssl.awslc_api) else { return Ok(false) };
    let asked = first(arguments).parse().map_err(|_| Invalid(first(arguments).to_owned()))?;
    Ok(compare(own, asked))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted_and_explains_itself() {
        assert!(PREDICATES.windows(2).all(|pair| pair[0].name < pair[1].name));
        for predicate in PREDICATES {
            assert!(predicate.usage.starts_with(&format!("{}(", predicate.name)), "{}", predicate.name);
        }
    }
}
