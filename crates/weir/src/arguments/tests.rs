//! Command lines and their results.

use super::*;

fn words(line: &str) -> Vec<OsString> {
    line.split_whitespace().map(OsString::from).collect()
}

fn run(line: &str) -> Settings {
    match parse(&words(line)) {
        Ok(Command::Run(settings)) => *settings,
        other => panic!("{line}: {other:?}"),
    }
}

fn refused(line: &str) -> UsageError {
    parse(&words(line)).expect_err(line)
}

#[test]
fn no_word_at_all_is_the_demonstration() {
    assert_eq!(parse(&[]), Ok(Command::Demonstrate));
}

#[test]
fn files_keep_the_order_of_the_command_line() {
    let settings = run("-f a -c -f b -- c -f");
    assert_eq!(settings.files, ["a", "b", "c", "-f"].map(PathBuf::from));
    assert!(settings.check);
}

#[test]
fn every_switch_of_the_table_changes_something_or_says_that_it_does_not() {
    let plain = run("-f x");
    for flag in FLAGS.iter().filter(|flag| flag.value == Value::None) {
        let changed = run(&format!("-f x {}", flag.name)) != plain;
        assert_eq!(changed, flag.group != Group::Ignored, "{}", flag.name);
    }
}

#[test]
fn names_are_unique_and_documented() {
    for (index, flag) in FLAGS.iter().enumerate() {
        assert!(flag.name.starts_with('-') && !flag.doc.is_empty(), "{}", flag.name);
        assert!(FLAGS[..index].iter().all(|other| other.name != flag.name), "{} twice", flag.name);
    }
}

#[test]
fn a_value_is_the_next_word_whatever_it_looks_like() {
    assert_eq!(run("-f -c").files, ["-c"].map(PathBuf::from));
    let settings = run("-C dir -p pid -n 10 -N 20 -m 384 -L here -f x");
    assert_eq!(settings.directory, Some("dir".into()));
    assert_eq!(settings.pid_file, Some("pid".into()));
    assert_eq!((settings.maxconn, settings.default_maxconn), (Some(10), Some(20)));
    assert_eq!(settings.local_peer.as_deref(), Some("here"));
    assert_eq!((settings.memory, run("-m 0 -f x").memory), (Some(384), None));
}

#[test]
fn values_behind_the_letters_may_be_empty() {
    assert_eq!(run("-dKall -f x").dump_keywords.as_deref(), Some("all"));
    assert_eq!(run("-dK -f x").dump_keywords.as_deref(), Some(""));
    assert_eq!(["-dC -f x", "-dC42 -f x"].map(|line| run(line).dump_configuration), [Some(0), Some(42)]);
    assert_eq!(refused("-dCx -f x"), UsageError::NotANumber("-dC", "x".into()));
    for line in ["-dM -f x", "-dM0 -f x", "-dMno-merge,tag -f x"] {
        assert_eq!(run(line), run("-f x"), "{line}");
    }
}

#[test]
fn the_flags_of_a_regression_run_are_accepted() {
    assert!(run("-d -dM -dI -dW -f x").zero_warning);
    assert!(run("-d -f x").foreground);
    assert!(run("-dV -f x").trusts_servers && !run("-f x").trusts_servers);
    assert!(run("-dr -dV -dS -dF -dZ -de -dp -dG -dR -dL -dD -db -4 -f x").diagnostics);
    assert_eq!(run("-dt -c -f x"), run("-c -f x"));
    assert_eq!(run("-dt h2:developer -c -f x"), run("-c -f x"));
}

#[test]
fn verbose_undoes_quiet_in_either_order() {
    assert!(run("-q -f x").quiet);
    assert!(!run("-q -V -f x").quiet);
    assert!(!run("-V -q -f x").quiet);
}

#[test]
fn what_waits_for_a_later_version_is_named() {
    assert_eq!(run("-dA -f x").not_supported, ["-dA"]);
}

#[test]
fn masters_and_predecessors() {
    let settings = run("-W -f x");
    assert!(settings.master && !settings.notify);
    let settings = run("-Ws -S /run/m,level,admin -S fd@3 -f x");
    assert!(settings.master && settings.notify);
    assert_eq!(settings.master_sockets, ["/run/m,level,admin", "fd@3"]);
    let settings = run("-x /run/s -sf 1 2 0 -st 3 -f x");
    assert_eq!(settings.takeover.as_deref(), Some("/run/s"));
    let expected = [(1, StopMode::Finish), (2, StopMode::Finish), (3, StopMode::Terminate)];
    assert_eq!(settings.predecessors, expected);
    assert_eq!(refused("-sf 99999999999 -f x"), UsageError::NotANumber("-sf", "99999999999".into()));
}

#[test]
fn an_empty_list_of_old_processes_asks_for_nothing() {
    assert_eq!(run("-f x -sf"), run("-f x"));
    assert_eq!(run("-sf -f x"), run("-f x"));
}

#[test]
fn questions_are_answered_at_once() {
    assert_eq!(parse(&words("-dM -dI -dW -vv")), Ok(Command::Version(VersionForm::Full)));
    assert_eq!(parse(&words("-v -zz")), Ok(Command::Version(VersionForm::Short)));
    assert_eq!(parse(&words("-vq")), Ok(Command::Version(VersionForm::Level)));
    assert_eq!(parse(&words("-vqs")), Ok(Command::Version(VersionForm::LevelShort)));
    assert_eq!(parse(&words("-vqb")), Ok(Command::Version(VersionForm::Branch)));
    assert_eq!(parse(&words("-f x -h")), Ok(Command::Help));
    assert_eq!(parse(&words("--help")), Ok(Command::Help));
}

#[test]
fn a_condition_needs_no_file() {
    let expected = |quiet| Ok(Command::Evaluate { condition: "1".into(), quiet });
    assert_eq!(parse(&words("-cc 1")), expected(false));
    assert_eq!(parse(&words("-dM -cc 1 -f x -q")), expected(true));
}

#[test]
fn everything_else_is_refused() {
    assert_eq!(refused("-zz -v"), UsageError::Unknown("-zz".into()));
    assert_eq!(refused("ok.cfg"), UsageError::Unknown("ok.cfg".into()));
    assert_eq!(refused("-f x -"), UsageError::Unknown("-".into()));
    assert_eq!(refused("-fx"), UsageError::Unknown("-fx".into()));
    assert_eq!(refused("--foo"), UsageError::Unknown("--foo".into()));
    assert_eq!(refused("-f"), UsageError::MissingValue("-f"));
    assert_eq!(refused("-cc"), UsageError::MissingValue("-cc"));
    assert_eq!(refused("-cc 1 2"), UsageError::Unknown("2".into()));
    assert_eq!(refused("-n abc -f x"), UsageError::NotANumber("-n", "abc".into()));
    assert_eq!(refused("-sf abc -f x"), UsageError::Unknown("abc".into()));
    for line in ["-c", "-V", "-q", "-D", "--"] {
        assert_eq!(refused(line), UsageError::NothingToRun, "{line}");
    }
}
