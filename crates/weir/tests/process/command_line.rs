//! Flags, queries and usage errors.

use crate::support::{Folder, WEIR, line, run};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

#[test]
fn a_wrong_command_line_is_refused_with_status_1() {
    let rows = [
        ("-zz", "'-zz'"),
        ("haproxy.cfg", "'haproxy.cfg'"),
        ("--foo -f x", "'--foo'"),
        ("-f", "-f expects"),
        ("-cc", "-cc expects"),
        ("-cc 1 2", "'2'"),
        ("-n many -f x", "'many'"),
        ("-c", "no configuration"),
        ("-V", "no configuration"),
        ("-d", "no configuration"),
        ("--", "no configuration"),
    ];
    for (arguments, expected) in rows {
        let found = line(arguments);
        assert_eq!(found.code(), Some(1), "{arguments}");
        assert_eq!(found.stdout, "", "{arguments}");
        assert!(found.stderr.contains(expected) && found.stderr.contains("--help"), "{arguments}: {}", found.stderr);
        assert!(found.stderr.contains("[ALERT]    ("), "{arguments}: {}", found.stderr);
    }
}

#[test]
fn help_is_printed_when_asked_for() {
    for arguments in ["-h", "--help", "-f x -h"] {
        let found = line(arguments);
        assert_eq!((found.code(), found.stderr.as_str()), (Some(0), ""), "{arguments}");
        assert!(found.stdout.contains("USAGE") && found.stdout.contains("-dKall") | found.stdout.contains("-dK["));
    }
}

#[test]
fn versions_are_told_apart() {
    let own = format!("Weir version {} ", env!("CARGO_PKG_VERSION"));
    assert!(line("-v").stdout.starts_with(&own));
    let long = line("-dM -dI -dW -vv");
    assert_eq!(long.code(), Some(0));
    assert!(long.stdout.starts_with(&own));
    let level = long.stdout.lines().find(|line| line.starts_with("HAProxy version ")).expect("the level");
    let level = level.split(' ').nth(2).expect("a third word");
    assert!(level.starts_with("3.5"), "{level}");
    assert!(long.stdout.lines().any(|line| line.trim_start().starts_with("TARGET") && line.contains("= linux-")));
    assert_eq!(line("-vq").stdout, format!("{level}\n"));
    assert_eq!((line("-vqs").stdout, line("-vqb").stdout), ("3.5\n".to_owned(), "3.5\n".to_owned()));
}

#[test]
fn features_are_what_conditions_say_they_are() {
    let long = line("-vv").stdout;
    let list = long.lines().find_map(|line| line.strip_prefix("Feature list :")).expect("the list");
    assert!(list.contains("+EPOLL"), "{list}");
    let detected = long.lines().find_map(|line| line.strip_prefix("Detected feature list :")).expect("the other list");
    for name in ["ACME", "H2", "LUA", "OPENSSL", "PCRE2", "SSL", "ZLIB"] {
        assert!(list.split_whitespace().any(|word| word.strip_prefix('+') == Some(name)), "{name} in {list}");
    }
    for word in list.split_whitespace().step_by(5).chain(detected.split_whitespace()) {
        let (sign, name) = word.split_at(1);
        let expected = if sign == "+" { 0 } else { 1 };
        assert_eq!(run(Command::new(WEIR).args(["-cc", &format!("feature({name})")])).code(), Some(expected), "{word}");
    }
}

/// Programs parse these lines to find out what they may configure.
#[test]
fn the_long_form_names_libraries_and_multiplexers() {
    let long = line("-vv").stdout;
    for expected in [
        "Built with SSL library version : AWS-LC",
        "Running on SSL library version : AWS-LC",
        "SSL library supports SNI : yes",
        "SSL library supports : TLSv1.2 TLSv1.3",
        "Built with Lua version : Lua 5.4",
        "Compression algorithms supported : identity(\"identity\"), deflate(\"deflate\"), raw-deflate(\"deflate\"), gzip(\"gzip\")",
        "Built with PCRE2 version : 10.",
        "Built with the Prometheus exporter as a service",
        "         h2 : mode=HTTP  side=FE|BE  mux=H2    flags=HTX|HOL_RISK|NO_UPG",
        "       fcgi : mode=HTTP  side=BE     mux=FCGI  flags=HTX|HOL_RISK|NO_UPG",
        "       spop : mode=SPOP  side=BE     mux=SPOP  flags=HOL_RISK|NO_UPG",
        "       qmux : mode=HTTP  side=FE|BE  mux=QMUX  flags=HTX|NO_UPG",
        "       quic : mode=HTTP  side=FE|BE  mux=QUIC  flags=HTX|NO_UPG|FRAMED",
        "  <default> : mode=TCP   side=FE|BE  mux=PASS  flags=",
    ] {
        assert!(long.lines().any(|line| line.starts_with(expected)), "{expected} in {long}");
    }
    // .../target/<profile>/weir
    let profile = Path::new(WEIR).parent().and_then(Path::file_name).expect("a folder").to_string_lossy();
    assert!(long.contains(&format!("  PROFILE = {profile}\n")), "{profile}");
}

#[test]
fn a_link_called_haproxy_answers_in_haproxys_form() {
    let folder = Folder::new();
    let linked = folder.path("haproxy");
    symlink(WEIR, &linked).expect("a link");
    let found = run(Command::new(&linked).arg("-v"));
    let first = found.stdout.lines().next().unwrap_or_default().to_owned();
    assert!(first.starts_with("HAProxy version 3.5") && first.contains("Weir"), "{first}");
    let empty = run(&mut Command::new(&linked));
    assert_eq!((empty.code(), empty.stdout.as_str()), (Some(1), ""));
    assert!(empty.stderr.contains("--help"), "{}", empty.stderr);
    assert!(!empty.stderr.contains("no argument at all"), "{}", empty.stderr);
    let flags = run(Command::new(&linked).arg("-V"));
    assert!(!flags.stderr.contains("no argument at all"), "{}", flags.stderr);
    assert!(line("-V").stderr.contains("no argument at all"));
}

#[test]
fn unknown_words_are_answered_with_what_was_meant() {
    let rows = [
        ("--version", "did you mean '-v'?"),
        ("help", "did you mean '--help'?"),
        ("laod", "did you mean 'load'?"),
        ("haproxy.cfg", "a configuration file is named by '-f haproxy.cfg'"),
    ];
    for (word, expected) in rows {
        let found = line(word);
        assert_eq!(found.code(), Some(1), "{word}");
        assert!(found.stderr.contains(expected), "{word}: {}", found.stderr);
    }
}

#[test]
fn what_waits_for_a_later_version_is_refused_when_it_would_matter() {
    let folder = Folder::new();
    let file = folder.write("empty.cfg", "");
    for flags in ["-dA", "-dA/tmp/archive"] {
        let started = line(&format!("{flags} -f {file}"));
        assert_eq!(started.code(), Some(1), "{flags}");
        assert!(started.stderr.contains("-dA is not supported yet"), "{flags}: {}", started.stderr);
        assert_eq!(line(&format!("{flags} -c -f {file}")).code(), Some(0), "{flags}");
    }
}

#[test]
fn the_libraries_in_use_are_listed() {
    let folder = Folder::new();
    let file = folder.write("empty.cfg", "");
    let found = line(&format!("-dL -q -c -f {file}"));
    assert_eq!(found.code(), Some(0));
    assert!(found.stdout.lines().any(|line| line.ends_with("/weir")), "{}", found.stdout);
    assert!(found.stdout.lines().all(|line| line.starts_with('/')), "{}", found.stdout);
}
