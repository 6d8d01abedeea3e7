//! Short form of a specification: only the differences from the defaults. A new field must be named here, or this
//! does not compile.

use std::fmt::{Debug, Write as _};
use weir_config::span::Spanned;
use weir_config::spec::{
    AccountSpec, AddressSpec, AgentSpec, BindSpec, CaptureSlotSpec, CapturesSpec, CheckMethod, CheckSpec,
    CompressionSpec, ConnectingDefaultsSpec, ConnectingSpec, EmailAlertSpec, ErrorAnswerSpec, ErrorFileSpec,
    GlobalCompressionSpec, GlobalHttpSpec, GlobalSpec, HashSpec, HealthcheckSpec, HostSpec, HttpErrorsSpec, HttpSpec,
    KeepAliveSpec, ListeningSpec, LogForwardSpec, LogLinesSpec, LogSpec, MailersSpec, OptionsSpec, PeerSpec,
    PeerTableSpec, PeersSpec, PersistenceSpec, PortSpec, ProxyHeaderSpec, ProxyLimitsSpec, ProxySpec, RatesSpec,
    ReceptionSpec, RingServerSpec, RingSpec, RuleLineSpec, RulesSpec, RuntimeAccess, RuntimeSpec, SectionsSpec,
    ServerBalanceSpec, ServerCheckSpec, ServerLogSpec, ServerSpec, SetVariableSpec, SocketKind, Spec, StateFileSpec,
    StatsPageSpec, TableSpec, TimeoutsSpec, UnixBindSpec, UserlistSpec,
};

/// Writes `name=value` for fields that differ from those of another value. The pattern names all fields.
macro_rules! changed {
    ($out:expr, $value:expr, $default:expr, $kind:ident { $($field:ident),* $(,)? } but { $($other:ident),* $(,)? }) => {{
        let $kind { $($field,)* $($other: _,)* } = $value;
        $( field($out, stringify!($field), $field, &$default.$field); )*
    }};
}

// These modules follow the macro that they use.
#[path = "show_fcgi.rs"]
mod fcgi;
#[path = "show_profiles.rs"]
mod profiles;
#[path = "show_resolvers.rs"]
mod resolvers;
#[path = "show_tls.rs"]
mod tls;
#[path = "show_tune.rs"]
mod tune;

fn field<T: Debug + PartialEq>(out: &mut String, name: &str, value: &T, default: &T) {
    if value != default {
        let _ = write!(out, " {name}={}", plain(&format!("{value:?}")));
    }
}

/// Returns the words of a rule; `^` in front of an inherited one.
fn words(line: &RuleLineSpec) -> String {
    let RuleLineSpec { words, span: _, folder, inherited } = line;
    let words: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
    let folder = folder.as_ref().map_or(String::new(), |folder| format!(" (from {folder})"));
    format!("{}{}{folder}", if *inherited { "^" } else { "" }, words.join(" "))
}

/// Removes `Some(…)` around a value; spans are left out.
fn plain(text: &str) -> String {
    let text = text.strip_prefix("Some(").and_then(|rest| rest.strip_suffix(')')).unwrap_or(text);
    text.to_owned()
}

pub fn spec(spec: &Spec) -> String {
    let mut out = String::new();
    let mut line = String::new();
    global(&spec.global, &mut line);
    let sockets = &spec.global.runtime.sockets;
    if !line.is_empty() || !spec.global.logs.is_empty() || !sockets.is_empty() {
        let _ = writeln!(out, "global{line}");
        spec.global.logs.iter().for_each(|one| log(one, &mut out));
        sockets.iter().for_each(|one| bind(one, &mut out));
    }
    let SectionsSpec {
        rings,
        log_forwards,
        http_errors,
        userlists,
        namespaces,
        log_profiles,
        healthchecks,
        mailers,
        traces,
        resolvers: asked,
        peers: shared,
        caches,
        crt_stores,
        acme,
        fcgi_apps,
        spoe_engines: _,
        otel_filters: _,
        stores,
        bgp: speakers,
    } = &spec.sections;
    stores.iter().for_each(|one| out.push_str(&format!("{one:?}\n")));
    speakers.iter().for_each(|one| crate::show_bgp::show(one, &mut out));
    fcgi_apps.iter().for_each(|one| fcgi::show(one, &mut out));
    acme.iter().for_each(|one| out.push_str(&format!("acme {one:?}\n")));
    caches.iter().for_each(|cache| _ = writeln!(out, "{cache:?}"));
    crt_stores.iter().for_each(|one| tls::store(one, &mut out));
    traces.iter().for_each(|one| _ = writeln!(out, "trace @{} {:?}", one.span.line, one.words));
    for MailersSpec { span, name, servers, timeout } in mailers {
        let servers: Vec<_> = servers.iter().map(|one| format!("{} {}", one.0, address(&one.1.value))).collect();
        let _ = writeln!(out, "mailers {name} @{} timeout={timeout} {servers:?}", span.line);
    }
    shared.iter().for_each(|one| peers(one, &mut out));
    for HealthcheckSpec { name, check: rules, typed } in healthchecks {
        let _ = write!(out, "healthcheck {} typed={typed}", name.value);
        check(rules, &mut out);
        out.push('\n');
    }
    for UserlistSpec { name, users, groups } in userlists {
        let users: Vec<_> = users.iter().map(|user| (&user.name, &user.password, &user.groups)).collect();
        let groups: Vec<_> = groups.iter().map(|group| (&group.0, &group.1)).collect();
        out.push_str(&format!("userlist {name} users={users:?} groups={groups:?}\n"));
    }
    for namespace in namespaces {
        let _ = writeln!(out, "namespace {}", namespace.value);
    }
    for HttpErrorsSpec { span, name, files } in http_errors {
        let _ = writeln!(out, "http-errors {name} @{}", span.line);
        for ErrorFileSpec { status, path, content } in files {
            let _ = writeln!(out, "  errorfile {status} {path} {} bytes", content.len());
        }
    }
    asked.iter().for_each(|one| resolvers::show(one, &mut out));
    rings.iter().for_each(|one| ring(one, &mut out));
    log_forwards.iter().for_each(|one| log_forward(one, &mut out));
    log_profiles.iter().for_each(|one| profiles::show(one, &mut out));
    spec.proxies.iter().for_each(|one| proxy(one, &mut out));
    out
}

fn peers(section: &PeersSpec, out: &mut String) {
    let PeersSpec {
        span,
        name,
        disabled,
        shards,
        local_name,
        local,
        bind: own,
        local_tls,
        peers,
        tables,
        logs_globally,
        logs,
    } = section;
    let _ = write!(out, "peers {} @{} {local_name:?}", name.value, span.line);
    field(out, "disabled", disabled, &false);
    field(out, "shards", shards, &0);
    field(out, "local", &local.map(|span| span.line), &None);
    field(out, "logs_globally", logs_globally, &false);
    field(out, "local_tls", &local_tls.is_some(), &false);
    out.push('\n');
    own.iter().for_each(|one| bind(one, out));
    logs.iter().for_each(|one| log(one, out));
    for PeerSpec { span, name, address: at, shard, connecting, tls } in peers {
        let _ = write!(out, "  peer@{} {} {} shard={shard}", span.line, name.value, address(&at.value));
        field(out, "source", &connecting.source, &None);
        field(out, "tcp-ut", &connecting.user_timeout, &None);
        field(out, "cc", &connecting.congestion_control, &None);
        field(out, "md5", &connecting.md5_password, &None);
        field(out, "ssl", &tls.is_some(), &false);
        out.push('\n');
    }
    for PeerTableSpec { name, table } in tables {
        let _ = write!(out, "  {}", name.value);
        show_table(out, table);
        out.push('\n');
    }
}

fn ring(ring: &RingSpec, out: &mut String) {
    let RingSpec {
        span,
        name,
        description,
        format,
        maxlen,
        size,
        backing_file,
        timeout_connect,
        timeout_server,
        servers,
    } = ring;
    let _ = write!(out, "ring {name} @{} maxlen={maxlen} {timeout_connect}+{timeout_server}", span.line);
    field(out, "description", description, &None);
    field(out, "format", format, &None);
    field(out, "size", size, &None);
    field(out, "backing_file", backing_file, &None);
    out.push('\n');
    for RingServerSpec { span: _, name, address: at, protocol, tls } in servers {
        let ssl = if tls.is_some() { " ssl" } else { "" };
        let at = (at.span.line, address(&at.value));
        let _ = writeln!(out, "  server@{} {} {} {protocol:?}{ssl}", at.0, name.value, at.1);
    }
}

fn global(global: &GlobalSpec, out: &mut String) {
    let default = GlobalSpec::default();
    changed!(out, global, default, GlobalSpec {
        maxconn, nbthread, daemon, pidfile, kept, quiet, zero_warning, ulimit_n, fd_hard_limit, strict_limits,
        hard_stop_after, grace, lifetime, log_tag, log_send_hostname, localpeer, description, node, cluster_secret, anonymous_key, nosplice, expose_deprecated,
        expose_experimental, http_client, otel_exporter, otel_metrics, lua, maxpipes, processors, rights, machine, tokens, checks, dns_families,
    } but { logs, http, tune, rates, runtime, unix_bind, variables, tls, compression });
    changed!(out, &global.compression, default.compression, GlobalCompressionSpec {
        rate, usage, memory, level, window,
    } but {});
    let tls = &global.tls;
    tls::global(tls, out);
    tls::bind(&tls.binds, out);
    tls::common(&tls.servers, out);
    for SetVariableSpec { name, is_format, value } in &global.variables {
        let value: Vec<&str> = value.iter().map(|word| word.text.as_str()).collect();
        let _ = write!(out, " {}{}={}", name.text, if *is_format { "%" } else { "" }, value.join(" "));
    }
    changed!(out, &global.unix_bind, default.unix_bind, UnixBindSpec { prefix, mode } but { user, group });
    owner(&global.unix_bind.user, &global.unix_bind.group, out);
    changed!(out, &global.rates, default.rates, RatesSpec { connections, sessions, tls_sessions } but {});
    changed!(out, &global.runtime, default.runtime, RuntimeSpec { timeout, maxconn, max_payload, without_maxima } but { sockets });
    changed!(out, &global.http, default.http, GlobalHttpSpec {
        err_codes, fail_codes, case_adjust, accept_payload_with_any_method, keep_insecure_transfer_encoding,
    } but { case_adjust_file });
    tune::all(&global.tune, out);
}

fn log_forward(forward: &LogForwardSpec, out: &mut String) {
    let LogForwardSpec {
        span,
        name,
        binds,
        datagrams,
        maxconn,
        backlog,
        timeout_client,
        lines_only,
        unparsed,
        host,
        logs_globally,
        logs,
    } = forward;
    let _ = write!(out, "log-forward {} @{}", name.value, span.line);
    field(out, "maxconn", maxconn, &None);
    field(out, "backlog", backlog, &None);
    field(out, "timeout_client", timeout_client, &None);
    field(out, "lines_only", lines_only, &false);
    field(out, "unparsed", unparsed, &false);
    field(out, "host", host, &Default::default());
    field(out, "logs_globally", logs_globally, &false);
    out.push('\n');
    logs.iter().for_each(|one| log(one, out));
    binds.iter().for_each(|one| bind(one, out));
    datagrams.iter().for_each(|one| bind(one, out));
}

fn log(log: &LogSpec, out: &mut String) {
    let LogSpec { span, target, length, format, sample, profile, facility, max_level, min_level } = log;
    let _ = write!(out, "  log@{} {target:?} facility={facility} max={max_level:?}", span.line);
    field(out, "length", length, &1024);
    field(out, "format", format, &None);
    field(out, "sample", sample, &None);
    field(out, "profile", profile, &None);
    field(out, "min", min_level, &None);
    out.push('\n');
}

fn proxy(proxy: &ProxySpec, out: &mut String) {
    let ProxySpec {
        span,
        kind,
        name,
        id,
        mode,
        upgrades,
        disabled,
        description,
        binds,
        used_certificates,
        servers,
        maxconn,
        backlog,
        fullconn,
        limits,
        balance,
        hash,
        allbackups,
        unpublished,
        default_servers,
        added_defaults,
        added: _,
        guid,
        default_backend,
        rules,
        filters,
        compression,
        captures,
        timeouts,
        retries,
        http_reuse,
        close_mode,
        forwardfor,
        http,
        monitor_uri,
        stats,
        error_files,
        error_answers,
        options,
        reception,
        logs,
        log_format,
        log_lines,
        log_tag,
        otel,
        connecting,
        check,
        email_alert,
        stick_table,
        udp,
        persistence: kept,
        state,
        id_is_written: _,
        fcgi_app: used_app,
    } = proxy;
    let _ = write!(out, "{kind:?} {} @{} id={id} {mode:?}", name.value, span.line);
    field(out, "disabled", disabled, &false);
    field(out, "description", description, &None);
    field(out, "maxconn", maxconn, &None);
    field(out, "backlog", backlog, &None);
    field(out, "fullconn", fullconn, &None);
    changed!(out, &**limits, ProxyLimitsSpec::default(), ProxyLimitsSpec {
        rate_limit_sessions, max_session_srv_conns, prefer_last_server, max_keep_alive_queue, retry_on, outliers,
        retry_budget, hedge,
    } but {});
    field(out, "balance", balance, &Default::default());
    changed!(out, &**hash, HashSpec::default(), HashSpec { method, function, avalanche, balance_factor, affinity } but {});
    field(out, "allbackups", allbackups, &false);
    field(out, "unpublished", unpublished, &false);
    // Their settings are visible in the servers that inherit them.
    tune::default_servers(default_servers, *added_defaults, out);
    changed!(out, &**state, StateFileSpec::default(), StateFileSpec { source, file } but {});
    field(out, "guid", &guid.as_ref().map(|guid| &guid.value), &None);
    field(out, "default_backend", &default_backend.as_ref().map(|name| &name.value), &None);
    field(out, "fcgi_app", &used_app.as_ref().map(|name| &name.value), &None);
    changed!(out, &**compression, CompressionSpec::default(), CompressionSpec {
        written, algorithms, request_algorithm, types, request_types, least, request_least, offload, direction,
    } but {});
    filters.list.iter().for_each(|filter| write!(out, " {filter:?}").unwrap());
    stick_table.iter().for_each(|table| show_table(out, table));
    field(out, "udp", udp, &None);
    field(out, "filters_of_requests", &filters.request.as_ref().map(|names| &names.value), &None);
    field(out, "filters_of_answers", &filters.response.as_ref().map(|names| &names.value), &None);
    if **captures != CapturesSpec::default() {
        let slot = |slot: &CaptureSlotSpec| format!("{}:{}", slot.name.as_deref().unwrap_or("-"), slot.length);
        let slots = |slots: &[CaptureSlotSpec]| slots.iter().map(slot).collect::<Vec<_>>();
        field(out, "capture_request", &slots(&captures.request), &Vec::new());
        field(out, "capture_response", &slots(&captures.response), &Vec::new());
        field(out, "capture_cookie", &captures.cookie, &None);
    }
    let RulesSpec {
        acls,
        rules,
        redirects,
        monitor_fail,
        switching,
        request_inspect_delay,
        response_inspect_delay,
        force_switching,
        use_server,
        persistence,
        stick,
    } = &**rules;
    field(out, "request_inspect_delay", request_inspect_delay, &None);
    field(out, "response_inspect_delay", response_inspect_delay, &None);
    let shown = |lines: &mut dyn Iterator<Item = &RuleLineSpec>| lines.map(words).collect::<Vec<_>>();
    field(out, "acls", &shown(&mut acls.iter()), &Vec::new());
    field(out, "rules", &shown(&mut rules.iter().map(|rule| &rule.line)), &Vec::new());
    field(out, "redirects", &shown(&mut redirects.iter()), &Vec::new());
    field(out, "monitor_fail", &shown(&mut monitor_fail.iter()), &Vec::new());
    field(out, "use_backend", &shown(&mut switching.iter()), &Vec::new());
    field(out, "force_be_switch", &shown(&mut force_switching.iter()), &Vec::new());
    field(out, "use_server", &shown(&mut use_server.iter()), &Vec::new());
    let persistence: Vec<_> = persistence.iter().map(|rule| (rule.forces, words(&rule.line))).collect();
    field(out, "persistence", &persistence, &Vec::new());
    field(out, "stick", &shown(&mut stick.iter()), &Vec::new());
    field(out, "retries", retries, &3);
    field(out, "http_reuse", http_reuse, &Default::default());
    field(out, "upgrades", upgrades, &false);
    field(out, "close_mode", close_mode, &Default::default());
    field(out, "forwardfor", forwardfor, &None);
    changed!(out, &**http, HttpSpec::default(), HttpSpec {
        originalto, forwarded, forwarded_expressions, send_name_header, restrict_names, buffer_request, drop_request_trailers,
        drop_response_trailers, ignore_probes, no_delay, accept_unsafe_request, accept_unsafe_response, use_proxy_header,
        check_cache, pretend_keepalive, disable_h2_upgrade, adjust_case_client, adjust_case_server,
    } but {});
    field(out, "monitor_uri", monitor_uri, &None);
    stats.iter().for_each(|page| field(out, "stats", &page.as_ref(), &&StatsPageSpec::default()));
    field(out, "log_format", log_format, &Default::default());
    changed!(out, &**log_lines, LogLinesSpec::default(), LogLinesSpec {
        structured_data, error, steps, unique_id, unique_id_header, dontlog_normal, separate_errors, as_soon_as_possible,
    } but {});
    field(out, "log_tag", log_tag, &None);
    field(out, "otel", otel, &None);
    self::check(check, out);
    let PersistenceSpec { cookie, dynamic_key, rdp_cookie } = &**kept;
    field(out, "cookie", &cookie.as_ref().map(|cookie| &cookie.value), &None);
    field(out, "dynamic_key", dynamic_key, &None);
    field(out, "rdp_cookie", rdp_cookie, &None);
    let EmailAlertSpec { mailers, from, to, level, hostname } = &**email_alert;
    let texts = [("mailers", mailers), ("from", from), ("to", to), ("myhostname", hostname)];
    texts.iter().for_each(|(name, text)| field(out, name, &text.as_ref().map(|text| text.value.as_str()), &None));
    field(out, "mail_level", &level.as_ref().map(|level| level.value), &None);
    changed!(out, &**connecting, ConnectingDefaultsSpec::default(), ConnectingDefaultsSpec {
        source, keepalive, smart_connect,
    } but {});
    changed!(out, &**timeouts, TimeoutsSpec::default(), TimeoutsSpec {
        client, client_fin, client_hs, connect, http_request, http_keep_alive, queue, server, server_fin, stream, tarpit,
        tunnel, check,
    } but {});
    changed!(out, options, OptionsSpec::default(), OptionsSpec {
        abortonclose, dontlognull, redispatch, splice, clitcpka, srvtcpka, nolinger, independent_streams, persist,
        idle_close_on_response,
    } but {});
    changed!(out, &**reception, ReceptionSpec::default(), ReceptionSpec { smart_accept, socket_stats } but { keep_alive });
    changed!(out, &reception.keep_alive, KeepAliveSpec::default(), KeepAliveSpec { count, idle, interval } but {});
    out.push('\n');
    for ErrorFileSpec { status, path, content } in error_files {
        let _ = writeln!(out, "  errorfile {status} {path} {} bytes", content.len());
    }
    for ErrorAnswerSpec { status, line, counts } in error_answers {
        let texts: Vec<&str> = line.words.iter().map(|word| word.text.as_str()).collect();
        let _ = writeln!(out, "  http-error@{} {status} counts={counts} {texts:?}", line.span.line);
    }
    logs.iter().for_each(|one| log(one, out));
    tls::used(used_certificates, out);
    binds.iter().for_each(|one| bind(one, out));
    servers.iter().for_each(|one| server(one, out));
}

fn bind(bind: &BindSpec, out: &mut String) {
    let BindSpec { span, address: at, text, .. } = bind;
    let _ = write!(out, "  bind@{} {} {text:?}", span.line, address(at));
    let default = BindSpec {
        span: *span,
        address: at.clone(),
        text: String::new(),
        name: None,
        maxconn: None,
        backlog: None,
        defer_accept: false,
        v6only: false,
        v4v6: false,
        shards: None,
        id: None,
        unix_mode: None,
        access: RuntimeAccess::default(),
        listening: ListeningSpec::default(),
        tls: None,
    };
    changed!(out, bind, default, BindSpec {
        name, maxconn, backlog, defer_accept, v6only, v4v6, shards, id, unix_mode,
    } but { span, address, text, access, listening, tls });
    changed!(out, &bind.access, default.access, RuntimeAccess { level, expose_listeners, severity_output } but {});
    changed!(out, &bind.listening, default.listening, ListeningSpec {
        protocol, accept_proxy, netscaler_cip, interface, namespace, transparent, fast_open, mss, user_timeout, md5_password,
        save_syn, congestion_control, threads, label, guid_prefix, idle_ping, connections,
    } but { user, group, quic });
    tune::quic_bind(&bind.listening.quic, out);
    owner(&bind.listening.user, &bind.listening.group, out);
    tls::bind(&bind.tls.as_deref().cloned().unwrap_or_default(), out);
    out.push('\n');
}

fn owner(user: &Option<Spanned<AccountSpec>>, group: &Option<Spanned<AccountSpec>>, out: &mut String) {
    field(out, "user", &user.as_ref().map(|user| &user.value), &None);
    field(out, "group", &group.as_ref().map(|group| &group.value), &None);
}

fn server(server: &ServerSpec, out: &mut String) {
    let ServerSpec {
        span,
        name,
        address: at,
        weight,
        maxconn,
        maxqueue,
        limits,
        balance,
        id,
        id_is_written: _,
        disabled,
        backup,
        pool_max_conn,
        pool_purge_delay,
        connecting,
        log,
        check,
        persistence,
        tls,
    } = server;
    let _ = write!(out, "  server@{} {} id={id} {}", span.line, name.value, address(&at.value));
    field(out, "weight", weight, &1);
    field(out, "maxconn", maxconn, &None);
    field(out, "maxqueue", maxqueue, &None);
    field(out, "limits", limits, &Default::default());
    changed!(out, &**balance, ServerBalanceSpec::default(), ServerBalanceSpec { hash_key, guid, slowstart } but {});
    field(out, "disabled", disabled, &false);
    field(out, "backup", backup, &false);
    field(out, "cookie", &persistence.cookie, &None);
    field(out, "non_stick", &persistence.non_stick, &false);
    field(out, "pool_max_conn", pool_max_conn, &None);
    field(out, "pool_purge_delay", pool_purge_delay, &5000);
    changed!(out, &**connecting, ConnectingSpec::default(), ConnectingSpec {
        source, socks4, namespace, user_timeout, md5_password, congestion_control, fast_open, pool_low_conn, max_reuse,
        pool_conn_name, protocol, websockets, idle_ping, redirect, initial_address, resolving,
    } but { proxy_header, quic });
    tune::quic_server(&connecting.quic, out);
    changed!(out, &connecting.proxy_header, ProxyHeaderSpec::default(), ProxyHeaderSpec {
        v1, v2, checksum, unique_id, authority, pass_tlvs, ssl, client_name, cipher, signature, key, fields,
    } but {});
    changed!(out, log, ServerLogSpec::default(), ServerLogSpec { protocol, bufsize } but {});
    changed!(out, &**check, ServerCheckSpec::default(), ServerCheckSpec {
        enabled, interval, fast_interval, down_interval, rise, fall, port, send_proxy, via_socks4, initial,
        down_shuts_sessions, up_shuts_backups, error_limit, on_error, observe, reuse_pool, pool_conn_name,
    } but { address, has_defaults, track, agent, healthcheck, protocol });
    let text = |text: &Option<Spanned<String>>| text.as_ref().map(|text| text.value.clone());
    field(out, "healthcheck", &text(&check.healthcheck), &None);
    field(out, "check_protocol", &text(&check.protocol), &None);
    field(out, "track", &check.track.as_ref().map(|track| track.value.as_str()), &None);
    field(out, "agent", &check.agent.enabled, &false);
    changed!(out, &check.agent, AgentSpec::default(), AgentSpec { interval, port, send, uri } but { enabled, address });
    field(out, "agent_address", &check.agent.address.as_ref().map(|at| address(&at.value)), &None);
    field(out, "check_address", &check.address.as_ref().map(|at| address(&at.value)), &None);
    tls::server(&tls.as_deref().cloned().unwrap_or_default(), out);
    out.push('\n');
}

/// Shows the health check method of servers.
fn check(check: &CheckSpec, out: &mut String) {
    let shown = |rules: &[RuleLineSpec]| rules.iter().map(words).collect::<Vec<_>>();
    let method = match &check.method {
        CheckMethod::Http(line) => format!("httpchk {}", words(line)),
        other => format!("{other:?}"),
    };
    field(out, "check", &method, &"Connect".to_owned());
    field(out, "http_check", &shown(&check.http), &Vec::new());
    field(out, "tcp_check", &shown(&check.tcp), &Vec::new());
    changed!(out, check, CheckSpec::default(), CheckSpec { disable_on_404, send_state, log, command, path, http_unjudged } but { method, http, tcp, own });
}

fn address(address: &AddressSpec) -> String {
    let kind_of = |kind: &SocketKind| match kind {
        SocketKind::Stream => "",
        SocketKind::Datagram => "dgram ",
        SocketKind::Quic => "quic ",
    };
    match address {
        AddressSpec::Inet { host, family, port, kind, multipath } => {
            let multipath = if *multipath { " mptcp" } else { "" };
            let host = match host {
                HostSpec::Any => "any".to_owned(),
                HostSpec::Ip(ip) => ip.to_string(),
                HostSpec::Name(name) => format!("name {name}"),
            };
            let port = match port {
                PortSpec::None => "none".to_owned(),
                PortSpec::Exact(port) => port.to_string(),
                PortSpec::Range(low, high) => format!("{low}-{high}"),
                PortSpec::Offset(offset) => format!("{offset:+}"),
            };
            format!("{}[{host} {family:?} {port}{multipath}]", kind_of(kind))
        }
        AddressSpec::Unix { path, kind } => format!("{}[unix {path}]", kind_of(kind)),
        AddressSpec::Abstract { name, unpadded, kind } => {
            format!("{}[abstract {name}{}]", kind_of(kind), if *unpadded { " unpadded" } else { "" })
        }
        AddressSpec::Reverse { server } => format!("[reverse {server}]"),
        AddressSpec::Descriptor { fd, kind, .. } => format!("{}[fd {fd}]", kind_of(kind)),
    }
}

fn show_table(out: &mut String, table: &TableSpec) {
    let TableSpec {
        span: _,
        key,
        size,
        expire,
        nopurge,
        recv_only,
        write_to,
        server_key,
        byte_rate_factor,
        store,
        peers,
    } = table;
    let _ = write!(out, " table={key:?}x{size}");
    field(out, "expire", expire, &None);
    field(out, "nopurge", nopurge, &false);
    field(out, "recv_only", recv_only, &false);
    field(out, "write_to", &write_to.as_ref().map(|name| &name.value), &None);
    field(out, "server_key", server_key, &Default::default());
    field(out, "byte_rate_factor", byte_rate_factor, &1);
    field(out, "peers", &peers.as_ref().map(|name| &name.value), &None);
    for store in store {
        let _ = write!(out, " {}[{}]/{}", store.kind.name(), store.elements, store.period);
    }
}
