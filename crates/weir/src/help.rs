//! The help text. Owns its wording and layout; the flags come from the table of [`crate::arguments`].

use crate::arguments::{FLAGS, Flag, Group, Value};
use std::fmt::Write;

/// Follows a usage error.
pub const HINT: &str = "Run 'weir --help' for the list of arguments.";

const HEAD: &str = "\
NAME
    weir - a TCP and HTTP load balancer that runs HAProxy configurations

USAGE
    weir                                    starts a demonstration on a free local port
    weir [FLAGS] -f FILE [-f FILE]...       serves the configuration in the files
    weir [FLAGS] -- FILE...                 the same
    weir -c -f FILE                         checks the files and exits
    weir -cc CONDITION                      evaluates a condition and exits: status 0 true, 1 false, 2 invalid
    weir -v | -vv | -vq | -vqs | -vqb       prints the version; the version and the build options; the version of the
                                            configuration language; that without its suffix; its branch
    weir -h | --help                        prints this page
    weir load | origin | bench [OPTIONS]    a load generator, a test origin server, a benchmark that compares proxies;
                                            each has a --help
    weir reload [-S ADDRESS]                asks a master for a reload and prints what it answers
    weir diff OLD NEW                       names what differs between two configurations, and what a reload does
    weir lint [-j] -f FILE                  reports what the files contain that cannot work; see weir lint --help
    weir completions bash|zsh|fish          prints a completion script for that shell
    weir manual                             prints this page in the format of man(1)
    weir top [SOCKET]                       shows what a running process does, Weir or HAProxy; see weir top --help
    weir ctl [OPTIONS] [COMMAND...]         sends commands to a running process; see weir ctl --help

    Flags come in any order, each as a word of its own. The command line takes precedence over the configuration.
";

const TAIL: &str = "
SIGNALS
    SIGTERM, SIGINT     end the process at once
    SIGUSR1             stops listening, finishes open sessions, then exits with status 0 (see hard-stop-after)
    SIGHUP              reports the state of the servers; a master starts a new worker, as on SIGUSR2
    SIGTTOU, SIGTTIN    pause and resume listening

STATUS
    0 on success; 1 for a usage error, a configuration that cannot be loaded or an address that cannot be bound

EXAMPLES
    weir -c -V -f /etc/haproxy/haproxy.cfg
    weir -db -f /etc/haproxy/haproxy.cfg
    weir -D -p /run/weir.pid -f /etc/haproxy/haproxy.cfg
";

/// Returns the entire help text.
#[must_use]
pub fn page() -> String {
    let mut page = String::from(HEAD);
    for (group, heading) in Group::ALL {
        let _ = write!(page, "\n{}\n", heading.to_uppercase());
        for flag in FLAGS.iter().filter(|flag| flag.group == *group) {
            let _ = writeln!(page, "    {:<19} {}", synopsis(flag), flag.doc);
        }
    }
    page.push_str(TAIL);
    page
}

/// Returns a flag with its value as shown in the help.
fn synopsis(flag: &Flag) -> String {
    match flag.value {
        Value::None => flag.name.to_owned(),
        Value::Next(value) => format!("{} {value}", flag.name),
        Value::Attached(value) => format!("{}[{value}]", flag.name),
        Value::Optional(value) | Value::Numbers(value) => format!("{} [{value}]", flag.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_manual_page_of_the_project_names_every_flag() {
        let manual = include_str!("../../../docs/command-line.md");
        for flag in FLAGS {
            let written = [format!("`{}`", flag.name), format!("`{} ", flag.name)];
            assert!(written.iter().any(|text| manual.contains(text)), "{}", flag.name);
        }
    }

    #[test]
    fn the_page_names_every_flag_and_fits_a_terminal() {
        let page = page();
        for flag in FLAGS {
            assert!(page.contains(&format!("\n    {} ", synopsis(flag))), "{}", flag.name);
        }
        for line in page.lines() {
            assert!(line.len() <= 120, "{line}");
        }
    }
}
