//! Files that `filter spoe` names, and their messages, in the words of HAProxy 3.5.

#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::io;

use weir_config::diagnostic::Severity;
use weir_config::environment::Environment;
use weir_config::keyword::SpecOptions;
use weir_config::spec::{FilterSpec, Mode, SpoeEvent};
use weir_config::{InputFile, LoadOptions, LoadedConfiguration, load};

thread_local! {
    /// Content of every file.
    static CONTENT: RefCell<String> = RefCell::default();
}

fn read_file(path: &str, _: u64) -> io::Result<Vec<u8>> {
    if path == "missing" {
        return Err(io::Error::from_raw_os_error(2));
    }
    Ok(CONTENT.with_borrow(|content| content.clone().into_bytes()))
}

/// Loads a frontend with this filter, whose file has the given content.
fn loaded(filter: &str, content: &str) -> LoadedConfiguration {
    CONTENT.set(content.to_owned());
    let text =
        format!("frontend f\n bind :1\n filter spoe {filter}\nbackend agents\n mode tcp\n server a 127.0.0.1:2\n");
    let file = InputFile { name: "a.cfg".into(), bytes: text.into_bytes() };
    let spec = SpecOptions { read_file, ..SpecOptions::default() };
    load(&[file], Environment::new(), &LoadOptions { spec, ..LoadOptions::default() })
}

/// Returns the alerts and notices about them.
fn said(filter: &str, content: &str) -> Vec<String> {
    let found = loaded(filter, content).diagnostics;
    let about = |text: &str| !text.contains("missing timeouts");
    found.into_iter().map(|found| found.message).filter(|message| about(message)).collect()
}

const AGENT: &str = "spoe-agent a\n use-backend agents\n messages m\n";

#[test]
fn a_file_becomes_an_engine() {
    let text = "
[other]
spoe-agent x
    nonsense
[e]
spoe-agent a
    groups g h
    messages m n
    messages o
    log global
    log 127.0.0.1:514 local0
    max-frame-size 1000
    maxconnrate 5
    maxerrrate 6
    max-waiting-frames 7
    option async
    no option async
    option send-frag-payload
    option continue-on-error
    option dontlog-normal
    option force-set-var
    no option pipelining
    option set-on-error err
    option set-process-time pt
    option set-total-time tt
    option var-prefix p.q
    register-var-names a b
    register-var-names c
    timeout hello 1s
    timeout idle x
    timeout processing 2s
    use-backend agents
spoe-message m
    acl local src 127.0.0.1
    args ip=src path
    args x
    event on-client-session
    event on-http-response if local
spoe-group g
    messages m n
";
    let loaded = loaded("engine e config file.conf", text);
    let alerts: Vec<_> = loaded.diagnostics.iter().filter(|found| found.is_alert()).collect();
    assert!(alerts.is_empty(), "{alerts:?}");
    assert_eq!(loaded.sources.0.last().map(|source| source.name.as_str()), Some("file.conf"));
    let FilterSpec::Spoe(filter) = &loaded.spec.proxies[0].filters.list[0] else { panic!("no filter") };
    let engine = &loaded.spec.sections.spoe_engines[filter.content.unwrap()];
    assert_eq!(engine.name, "e");
    let agent = engine.agent.as_ref().unwrap();
    let names = |names: &[weir_config::span::Spanned<String>]| -> Vec<String> {
        names.iter().map(|name| name.value.clone()).collect()
    };
    assert_eq!(names(&agent.groups), ["g", "h"]);
    assert_eq!(names(&agent.messages), ["m", "n", "o"]);
    assert_eq!(names(&agent.variables), ["a", "b", "c"]);
    let options =
        [&agent.set_on_error, &agent.set_process_time, &agent.set_total_time, &agent.var_prefix, &agent.backend];
    let options = options.map(|option| option.as_ref().unwrap().value.as_str());
    assert_eq!(options, ["err", "pt", "tt", "p.q", "agents"]);
    assert_eq!((agent.max_frame_size, agent.processing), (Some(1000), Some(2000)));
    assert!(agent.continues_on_error && agent.dontlog_normal && agent.sets_any_variable && agent.no_pipelining);
    assert_eq!((agent.logs_globally, agent.logs.len()), (true, 1));
    let message = &engine.messages[0];
    let (event, condition) = message.event.as_ref().unwrap();
    assert_eq!((*event, condition.words.len()), (SpoeEvent::HttpResponse, 2));
    assert_eq!((message.acls.len(), message.arguments.len()), (1, 2));
    assert_eq!(names(&engine.groups[0].messages), ["m", "n"]);
    // A backend in TCP mode that an agent uses is switched to SPOP mode.
    assert_eq!(loaded.spec.proxies[1].mode, Mode::Spop);
}

#[test]
fn the_agent_names_an_engine_without_a_name() {
    let loaded = loaded("config f", AGENT);
    assert_eq!(loaded.spec.sections.spoe_engines[0].name, "a");
}

#[test]
fn filters_are_refused_in_haproxys_words() {
    let rows = [
        ("engine e", "'filter' : 'spoe' : missing config file"),
        ("", "'filter' : 'spoe' : missing config file"),
        ("engine e foo", "'filter' : unknown keyword 'foo'"),
        ("engine", "'filter' : 'spoe' : 'engine' option without value"),
        ("engine e config", "'filter' : 'spoe' : 'config' option without value"),
        (
            "engine e config missing",
            "'filter' : stat() failed for configuration file missing : No such file or directory",
        ),
        ("engine e config f", "'filter' : No SPOE agent found in file f"),
    ];
    for (filter, expected) in rows {
        assert_eq!(said(filter, AGENT), [expected], "{filter}");
    }
    assert_eq!(said("config f", "[e]\nspoe-agent a\n"), ["'filter' : No SPOE agent found in file f"]);
}

#[test]
fn lines_are_refused_in_haproxys_words() {
    let rows = [
        ("[e x]\n", "character ' ' is not permitted in a scope name."),
        ("[e\n", "empty scope name is forbidden."),
        ("[]\n", "empty scope name is forbidden."),
        ("[a/b]\n", "character '/' is not permitted in a scope name."),
        ("spoe-agent b\n", "another spoe-agent section previously defined."),
        ("spoe-message\n", "missing name for spoe-message section."),
        ("spoe-group\n", "missing name for spoe-group section."),
        ("spoe-message q r\n", "'spoe-message' cannot handle unexpected argument 'r'."),
        ("spoe-message q/r\n", "character '/' is not permitted in 'spoe-message' name 'q/r'."),
        ("spoe-group g\n foo\n", "unknown keyword 'foo' in spoe-group section."),
        ("spoe-message q\n foo\n", "unknown keyword 'foo' in spoe-message section is ignored."),
        ("spoe-message q\n event\n", "missing event name."),
        ("spoe-message q\n event foo\n", "unknown event 'foo'."),
        (
            "spoe-message q\n event on-client-session foo\n",
            "'event on-client-session' expects either 'if' or 'unless' followed by a condition but found 'foo'.",
        ),
        ("spoe-message q\n acl x-! src 1\n", "character '!' is not permitted in acl name 'x-!'."),
        (
            "spoe-message q\nspoe-message q\n",
            "spoe-message section 'q' has the same name as another one declared at f:4.",
        ),
        ("spoe-group q\nspoe-group q\n", "spoe-group section 'q' has the same name as another one declared at f:4."),
        ("spoe-group q\n messages a a\n", "spoe-message 'a' already used."),
    ];
    for (lines, expected) in rows {
        assert_eq!(said("config f", &format!("{AGENT}{lines}")), [expected], "{lines}");
    }
    assert_eq!(said("config f", &format!("foo bar\n{AGENT}")), ["unknown keyword 'foo' out of section."]);
}

#[test]
fn options_of_agents_are_refused_in_haproxys_words() {
    let range = "'max-frame-size' expects a positive integer argument in the range [256, 16380].";
    let rows = [
        ("foo", "unknown keyword 'foo' in spoe-agent section."),
        ("acl a src 1.1.1.1", "unknown keyword 'acl' in spoe-agent section."),
        ("messages m", "spoe-message 'm' already used."),
        ("groups g g", "spoe-group 'g' already used."),
        ("option foo", "option 'foo' is not supported."),
        ("option", "'option' expects an option name."),
        ("no option continue-on-error", "negation is not supported for option 'continue-on-error'."),
        ("no option set-on-error e", "negation is not supported for option 'set-on-error'."),
        ("option set-on-error", "'option set-on-error' expects a value."),
        ("option set-on-error e-", "'option set-on-error' only supports [a-zA-Z0-9_.] chars."),
        ("option set-on-error e f", "'option' cannot handle unexpected argument 'f'."),
        ("option var-prefix", "'option var-prefix' expects a value."),
        ("option pipelining x", "'option' cannot handle unexpected argument 'x'."),
        ("timeout", "'timeout' expects 'hello', 'idle' and 'processing'."),
        ("timeout foo 1s", "'timeout' supports 'processing' (got foo)."),
        ("timeout idle 1s 2", "'timeout' cannot handle unexpected argument '2'."),
        ("timeout processing", "'timeout processing' expects an integer value (in milliseconds)."),
        ("timeout processing 1x", "unexpected character 'x' in 'timeout processing'."),
        ("maxconnrate", "'maxconnrate' expects an integer argument."),
        ("max-frame-size", "'max-frame-size' expects an integer argument."),
        ("max-frame-size 255", range),
        ("max-frame-size 16381", range),
        ("max-frame-size x", range),
        ("max-frame-size 300 2", "'max-frame-size' cannot handle unexpected argument '2'."),
        ("register-var-names", "'register-var-names' expects one or more variable names."),
        ("use-backend", "'use-backend' expects a backend name."),
        ("use-backend a b", "'use-backend' cannot handle unexpected argument 'b'."),
    ];
    for (line, expected) in rows {
        assert_eq!(said("config f", &format!("{AGENT} {line}\n")), [expected], "{line}");
    }
    for accepted in ["no log", "messages", "groups"] {
        assert_eq!(said("config f", &format!("{AGENT} {accepted}\n")), [""; 0], "{accepted}");
    }
    let ignored = [
        ("timeout hello x", "timeout hello"),
        ("timeout idle 1s", "timeout idle"),
        ("maxconnrate 1", "maxconnrate"),
        ("maxerrrate x", "maxerrrate"),
        ("max-waiting-frames 0", "max-waiting-frames"),
        ("option async", "option async"),
        ("no option async", "option async"),
        ("option send-frag-payload", "option send-frag-payload"),
    ];
    for (line, name) in ignored {
        let found = loaded("config f", &format!("{AGENT} {line}\n")).diagnostics;
        let told: Vec<_> = found.iter().filter(|found| found.severity == Severity::Diag).map(|d| &*d.message).collect();
        let expected = format!("'{name}' has no counterpart in Weir and is ignored (in section 'spoe-agent a').");
        assert_eq!(told, [expected], "{line}");
    }
}
