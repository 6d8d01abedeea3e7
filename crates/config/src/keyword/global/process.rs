//! Process management, rights and limits (section 3.1).

use super::{GlobalContext, GlobalKeyword, lifetime, removed, supported, tuning};
use crate::document::Line;
use crate::keyword::argument::{milliseconds, only};
use crate::keyword::paths::default_path;
use crate::spec::{DnsFamilies, SetVariableSpec};

/// Every keyword of the family.
pub(super) const TABLE: &[GlobalKeyword] = &[
    supported("daemon", "", "Runs in the background.", daemon),
    supported("pidfile", "<file>", "File to which the process IDs of a daemon are written.", pidfile),
    supported("localpeer", "<name>", "Name of this instance among its peers, instead of the host name.", localpeer),
    supported("description", "<text>", "Text shown on the statistics page.", description),
    supported("node", "<name>", "Name of this node in a cluster of instances that share an address.", node),
    supported(
        "hard-stop-after",
        "<time>",
        "Maximum duration of a soft stop; remaining connections are then closed.",
        hard_stop_after,
    ),
    supported(
        "grace",
        "<time>",
        "Delay between the stop signal and the soft stop, during which monitors can detect it.",
        grace,
    ),
    supported("quiet", "", "Prints no message at start-up, as with -q.", quiet),
    supported("zero-warning", "", "Refuses to start if there is any warning, as with -dW.", zero_warning),
    supported(
        "strict-limits",
        "[no]",
        "Refuses to start if a system limit cannot be raised as required (default).",
        strict_limits,
    ),
    supported("expose-deprecated-directives", "", "Accepts deprecated keywords.", expose_deprecated),
    supported("expose-experimental-directives", "", "Accepts experimental keywords.", expose_experimental),
    supported(
        "default-path",
        "{ current | config | parent | origin <path> }",
        "Base directory of relative file names in the configuration.",
        default_path,
    ),
    supported(
        "master-worker",
        "no-exit-on-failure",
        "Keeps the other processes when a worker fails instead of stopping all of them.",
        lifetime::master_worker,
    ),
    supported(
        "mworker-max-reloads",
        "<number>",
        "Number of reloads after which an older worker is terminated.",
        lifetime::max_reloads,
    ),
    supported(
        "reload",
        "{ in-place | new-worker }",
        "Weir's own: whether a reload changes the serving worker in place if possible, or starts a new worker (default).",
        lifetime::reload,
    ),
    supported(
        "dns-accept-family",
        "{ auto | <family>[,<family>] }",
        "Address families accepted in DNS responses.",
        dns_accept_family,
    ),
    supported(
        "anonkey",
        "<key>",
        "Key that anonymises names and addresses in output of the runtime API; 0: none.",
        anonkey,
    ),
    supported(
        "cluster-secret",
        "<secret>",
        "Secret of a cluster, from which the keys of QUIC's tokens are derived; random by default.",
        cluster_secret,
    ),
    supported("presetenv", "<name> <value>", "Sets an environment variable unless it is set already.", environment),
    supported("setenv", "<name> <value>", "Sets an environment variable.", environment),
    supported("unsetenv", "<name>...", "Removes environment variables.", environment),
    supported("resetenv", "[<name>...]", "Removes all environment variables except the named ones.", environment),
    supported("set-var", "<variable> <expression>", "Sets a process-wide variable at start-up.", set_variable),
    supported(
        "set-var-fmt",
        "<variable> <format>",
        "Sets a process-wide variable at start-up from a log format.",
        set_variable,
    ),
    supported("external-check", "[preserve-env]", "Allows health checks by external programs.", external_check),
    supported(
        "close-spread-time",
        "{ <time> | infinite }",
        "Time over which a soft stop spreads the closing of connections.",
        lifetime::close_spread_time,
    ),
    supported(
        "h2-workaround-bogus-websocket-clients",
        "",
        "Does not announce websockets over HTTP/2.",
        bogus_websocket_clients,
    ),
    supported(
        "pp2-never-send-local",
        "",
        "Sends the check's own addresses in PROXY v2 headers of health checks, instead of the LOCAL command.",
        pp2_never_send_local,
    ),
    tuning("quick-exit", "", "Exits without freeing memory first; Weir always does."),
    tuning("no-memory-trimming", "", "Disables memory trimming on reload; Weir leaves that to the system's allocator."),
    tuning("stress-level", "<level>", "Stress level for developers; Weir has none."),
    tuning("force-cfg-parser-pause", "<time>", "Pause during parsing for developers; Weir does not pause."),
    removed(
        "nbproc",
        "",
        "Number of processes; replaced by threads.",
        "nbproc is not supported any more since HAProxy 2.5. Threads will automatically be used on multi-processor machines if available.",
    ),
];

fn external_check(context: &mut GlobalContext<'_>, line: &Line) {
    match line.text(1) {
        _ if context.report.too_many(line, 2, "external-check") => return,
        "" => {}
        "preserve-env" => context.spec.checks.preserve_environment = true,
        other => {
            let message = format!("'external-check' only supports 'preserve-env' as an argument, found '{other}'.");
            return context.report.alert(line.span(1), message);
        }
    }
    context.spec.checks.programs = true;
}

fn flag(context: &mut GlobalContext<'_>, line: &Line) -> bool {
    !context.report.too_many(line, 1, line.keyword())
}

fn bogus_websocket_clients(context: &mut GlobalContext<'_>, line: &Line) {
    if flag(context, line) {
        context.spec.tune.http2.conceals_websockets = true;
    }
}

fn dns_accept_family(context: &mut GlobalContext<'_>, line: &Line) {
    const NAME: &str = "dns-accept-family";
    if context.report.too_many(line, 2, NAME) {
        return;
    }
    let (mut ipv4, mut ipv6, mut auto) = (false, false, false);
    for family in line.text(1).split(',') {
        match family {
            "ipv4" => ipv4 = true,
            "ipv6" => ipv6 = true,
            "auto" => auto = true,
            _ => {
                let message =
                    format!("'{NAME}' expects a comma-delimited list of 'ipv4' and 'ipv6' but got '{family}'.");
                return context.report.alert(line.span(1), message);
            }
        }
    }
    context.spec.dns_families = match (ipv4, ipv6) {
        (true, true) => DnsFamilies::Both,
        (true, false) if !auto => DnsFamilies::Ipv4,
        (false, true) if !auto => DnsFamilies::Ipv6,
        (_, true) => DnsFamilies::Both,
        (_, false) => DnsFamilies::Auto,
    };
}

fn daemon(context: &mut GlobalContext<'_>, line: &Line) {
    if flag(context, line) {
        context.spec.daemon = true;
    }
}

fn quiet(context: &mut GlobalContext<'_>, line: &Line) {
    if flag(context, line) {
        context.spec.quiet = true;
    }
}

fn pp2_never_send_local(context: &mut GlobalContext<'_>, line: &Line) {
    if flag(context, line) {
        context.spec.checks.proxied = true;
    }
}

fn zero_warning(context: &mut GlobalContext<'_>, line: &Line) {
    if flag(context, line) {
        context.spec.zero_warning = true;
    }
}

fn strict_limits(context: &mut GlobalContext<'_>, line: &Line) {
    if flag(context, line) {
        context.spec.strict_limits = Some(!context.negated);
    }
}

fn expose_deprecated(context: &mut GlobalContext<'_>, line: &Line) {
    if flag(context, line) {
        context.spec.expose_deprecated = true;
    }
}

fn expose_experimental(context: &mut GlobalContext<'_>, line: &Line) {
    if flag(context, line) {
        context.spec.expose_experimental = true;
        context.around.experimental.allow(line.span(0));
    }
}

fn pidfile(context: &mut GlobalContext<'_>, line: &Line) {
    if let Some(word) = only(line, "'pidfile' expects a file name as an argument.", &mut context.report) {
        context.spec.pidfile = Some(word.text.clone());
    }
}

fn localpeer(context: &mut GlobalContext<'_>, line: &Line) {
    if let Some(word) = only(line, "'localpeer' expects a name as an argument.", &mut context.report) {
        if context.around.options.local_peer_is_fixed {
            let message =
                "'localpeer' ignored since it is already set by using the '-L' command line argument.".to_owned();
            return context.report.warning(word.span, message);
        }
        context.spec.localpeer = Some(word.text.clone());
    }
}

fn cluster_secret(context: &mut GlobalContext<'_>, line: &Line) {
    if let Some(word) = only(line, "'cluster-secret' expects a string argument.", &mut context.report) {
        context.spec.cluster_secret = Some(word.text.clone());
    }
}

fn description(context: &mut GlobalContext<'_>, line: &Line) {
    if line.words.len() < 2 {
        context.report.tight(line.span(1), "'description' expects a string argument.");
        return;
    }
    let words: Vec<&str> = line.arguments().iter().map(|word| word.text.as_str()).collect();
    context.spec.description = Some(words.join(" "));
}

fn node(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "node") {
        return;
    }
    let name = line.text(1);
    if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
        context.report.alert(
            line.span(1),
            "'node' requires valid node name - non-empty string with digits(0-9), letters(A-Z, a-z), dot(.), \
             hyphen(-) or underscode(_).",
        );
        return;
    }
    context.spec.node = Some(name.to_owned());
}

fn anonkey(context: &mut GlobalContext<'_>, line: &Line) {
    if context.report.too_many(line, 2, "anonkey") {
        return;
    }
    match line.text(1).parse::<u32>() {
        Ok(key) => context.spec.anonymous_key = Some(key),
        Err(_) if line.text(1).is_empty() => {
            context.report.alert(line.span(0), "a key is expected after 'anonkey'.");
        }
        Err(_) => {
            context.report.alert(line.span(1), "'anonkey' expects a number between 0 and 4294967295.");
        }
    }
}

fn hard_stop_after(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.hard_stop_after = delay(context, line).or(context.spec.hard_stop_after);
}

fn grace(context: &mut GlobalContext<'_>, line: &Line) {
    context.spec.grace = delay(context, line).or(context.spec.grace);
}

fn delay(context: &mut GlobalContext<'_>, line: &Line) -> Option<u64> {
    let name = line.keyword();
    milliseconds(
        line.words.get(1),
        line,
        name,
        &format!("'{name}' expects <time> as argument."),
        &format!("unexpected character '%c' in argument to <{name}>."),
        &mut context.report,
    )
}

fn set_variable(context: &mut GlobalContext<'_>, line: &Line) {
    let (keyword, is_format) = (line.keyword(), line.keyword() == "set-var-fmt");
    match line.arguments() {
        [name, value @ ..] if !value.is_empty() => {
            context.spec.variables.push(SetVariableSpec { name: name.clone(), is_format, value: value.to_vec() });
        }
        _ => {
            let what = if is_format { "a format string" } else { "a sample expression" };
            let message = format!("'{keyword}' requires a process-wide variable name ('proc.<name>') and {what}.");
            context.report.alert(line.span(1), message);
        }
    }
}

/// The reader has already applied these, since later lines may use the variables.
fn environment(_: &mut GlobalContext<'_>, _: &Line) {}
