//! Every answer that ends a request early, with a configuration that causes it. A new answer gets a row here.

use policy::rule::Final;

/// The state of the connection after a complete request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum After {
    /// There is an answer, and the connection is kept.
    KeptAlive,
    /// There is an answer, and the connection is closed.
    Closed,
    /// There is an answer; the row does not determine whether the connection is kept.
    Either,
    /// There is no answer, and the connection is closed.
    Cut,
}

/// The behaviour of a server for each request.
#[derive(Clone, Copy, Debug)]
pub enum Origin {
    /// There is no listener.
    Dead,
    /// It never answers.
    Silent,
    /// It answers the head with these bytes, and reads the rest.
    Answers(&'static str),
    /// It answers the head with these bytes, and closes.
    AnswersAndCloses(&'static str),
}

/// One early answer.
#[derive(Clone, Copy)]
pub struct Row {
    pub name: &'static str,
    /// The section with the `bind` line: `listen` or `frontend`.
    pub kind: &'static str,
    /// Lines of that section, and sections that follow it.
    pub config: &'static str,
    /// The status of the answer; 0: not determined by the row.
    pub status: u16,
    pub after: After,
    pub origin: Origin,
    /// Whether the client gets a `100 Continue` before, or has the time to send its body without one; or the answer is
    /// the server's own.
    pub asks: bool,
    /// Whether another client's request takes the server's only slot.
    pub occupied: bool,
    /// The request line.
    pub line: &'static str,
    /// Fields in addition to the framing; [`BIG`] represents a long value, [`MANY`] more fields than are accepted.
    pub fields: &'static str,
}

/// A text that needs too many steps with some patterns.
const COSTLY: &str = "v: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac\r\n";

/// The request line of most requests.
pub const POST: &str = "POST /first HTTP/1.1";

const fn row(name: &'static str, status: u16, config: &'static str) -> Row {
    Row {
        name,
        kind: "listen",
        config,
        status,
        after: After::KeptAlive,
        origin: Origin::Dead,
        asks: false,
        occupied: false,
        line: POST,
        fields: "",
    }
}

impl Row {
    const fn frontend(self) -> Row {
        Row { kind: "frontend", ..self }
    }

    const fn closed(self) -> Row {
        Row { after: After::Closed, ..self }
    }

    const fn either(self) -> Row {
        Row { after: After::Either, ..self }
    }

    const fn cut(self) -> Row {
        Row { after: After::Cut, ..self }
    }

    const fn origin(self, origin: Origin) -> Row {
        Row { origin, ..self }
    }

    const fn asks(self) -> Row {
        Row { asks: true, ..self }
    }

    const fn occupied(self) -> Row {
        Row { occupied: true, ..self }
    }

    const fn line(self, line: &'static str) -> Row {
        Row { line, ..self }
    }

    const fn fields(self, fields: &'static str) -> Row {
        Row { fields, ..self }
    }
}

/// The row for an action that ends an evaluation of rules: the compiler reports a new action here. `None`: it neither
/// answers nor closes a connection.
#[allow(dead_code, reason = "the compiler reads it")]
fn of_rule(ending: &Final) -> Option<&'static str> {
    match ending {
        Final::Allow | Final::SwitchMode(_) | Final::SendRetry => None,
        Final::Reject => Some("reject"),
        Final::Close => Some("tcp-response content close"),
        Final::SilentDrop(_) => Some("silent-drop"),
        Final::Deny(_) => Some("deny"),
        Final::Return(_) => Some("return"),
        Final::Redirect(_) => Some("redirect location"),
        Final::Tarpit(_) => Some("tarpit"),
        Final::Challenge(_) => Some("auth"),
        Final::Service(_) => Some("a service that fails"),
        Final::Fault(_) => Some("a target that makes no sense"),
        Final::Exhausted => Some("a condition that costs too much"),
    }
}

const SERVER: &str = "server s1 10.0.1.1:80";
const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const EARLY: &str = "HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno";

/// Two of these do not fit in a buffer.
pub const BIG: &str = "{big}";
/// See [`Row::fields`].
pub const MANY: &str = "{many}";

/// Answers of a frontend's rules and options.
pub const RULES: &[Row] = &[
    row("deny", 403, "http-request deny"),
    row("deny with a text", 429, "http-request deny status 429 content-type text/plain string slower"),
    row("deny with 400 and a text", 400, "http-request deny status 400 content-type text/plain string bad"),
    row("deny with 400", 400, "http-request deny status 400"),
    row("deny behind a hint", 403, "http-request early-hint link </a>\n http-request deny"),
    row("deny behind a pause", 403, "http-request pause 30ms\n http-request deny"),
    row("deny of another method", 403, "http-request set-method GET\n http-request deny"),
    row("deny and a filter", 403, "filter bwlim-in slow default-limit 10 default-period 1s\n http-request deny"),
    row("return", 200, "http-request return status 200"),
    row("return with a text", 200, "http-request return status 200 content-type text/plain lf-string %[path]"),
    row("return with a page", 503, "http-request return status 503 default-errorfiles"),
    row("return to CONNECT", 200, "http-request return status 200").line("CONNECT a:80 HTTP/1.1").closed(),
    row("deny of CONNECT", 403, "http-request deny").line("CONNECT a:80 HTTP/1.1"),
    row("deny of an upgrade", 403, "http-request deny").fields("Connection: upgrade\r\nUpgrade: echo\r\n"),
    row("return to a changed CONNECT", 200, "http-request set-method GET\n http-request return status 200")
        .line("CONNECT a:80 HTTP/1.1")
        .closed(),
    row("deny of CONNECT that becomes 200", 200, "http-request deny\n http-after-response set-status 200")
        .line("CONNECT a:80 HTTP/1.1")
        .closed(),
    row("redirect location", 302, "http-request redirect location /x"),
    row("redirect prefix", 301, "http-request redirect prefix /x code 301"),
    row("redirect scheme", 302, "redirect scheme https"),
    row("auth", 401, "http-request auth realm r"),
    row("the statistics page", 303, "stats uri /first").asks(),
    row("the statistics page behind credentials", 401, "stats uri /first\n stats auth a:b"),
    row("the statistics page behind a rule", 403, "stats uri /first\n stats http-request deny"),
    row("a service that fails", 500, "http-request set-path /fail\n http-request use-service streamer"),
    row("a service", 200, "http-request set-path /2/length\n http-request use-service streamer"),
    row("a filter in front of a server", 418, "filter lua.request\n server s1 10.0.1.1:80").origin(Origin::Silent),
    row("tarpit", 500, "timeout tarpit 40ms\n http-request tarpit"),
    row(
        "tarpit with a text",
        429,
        "timeout tarpit 40ms\n http-request tarpit status 429 content-type text/plain string x",
    ),
    row("reject", 0, "http-request reject").cut(),
    row("silent-drop", 0, "http-request silent-drop").cut(),
    row("tcp-request content reject", 0, "tcp-request content reject").cut(),
    row(
        "a target that makes no sense",
        400,
        "http-request normalize-uri percent-to-uppercase strict\n http-request deny",
    )
    .line("POST /first?%zz HTTP/1.1")
    .closed(),
    row("a head that does not fit", 500, "http-request set-header x \"%[req.hdr(y)]%[req.hdr(y)]\"")
        .fields("y: {big}\r\n"),
    row("field names", 403, "option http-restrict-req-hdr-names reject").fields("x_y: 1\r\n"),
    row("field names of the backend", 403, "default_backend b\nbackend b\n option http-restrict-req-hdr-names reject")
        .frontend()
        .fields("x_y: 1\r\n"),
    row("a condition that costs too much", 500, "http-request deny if { req.hdr(v) -m reg ^(a+)+\\\\1$ }")
        .fields(COSTLY),
    row("switching that costs too much", 500, "use_backend b if { req.hdr(v) -m reg ^(a+)+\\\\1$ }\nbackend b")
        .frontend()
        .fields(COSTLY),
    row(
        "a balance that costs too much",
        500,
        "balance hash \"req.hdr(v),regsub('^(a+)+\\\\1(?!.)',X)\"\n server s1 10.0.1.1:80",
    )
    .fields(COSTLY),
    row("no request", 400, "http-request return status 200").fields("a b: 1\r\n").closed(),
    row("too many fields", 400, "http-request return status 200").fields(MANY).closed(),
    row("wait-for-body", 200, "http-request wait-for-body time 100ms\n http-request return status 200").asks(),
    row(
        "wait-for-body at least",
        200,
        "http-request wait-for-body time 100ms at-least 3\n http-request return status 200",
    )
    .asks(),
    row(
        "http-buffer-request",
        200,
        "timeout http-request 100ms\n option http-buffer-request\n http-request return status 200",
    )
    .asks(),
    row("monitor-uri", 200, "monitor-uri /first"),
    row("monitor fail", 503, "monitor-uri /first\n monitor fail if TRUE"),
    row("httpclose", 403, "option httpclose\n http-request deny").closed(),
    row("deny in a backend", 403, "default_backend b\nbackend b\n http-request deny").frontend(),
    row("reject in a backend", 0, "default_backend b\nbackend b\n http-request reject").frontend().cut(),
    row("tcp-request content reject in a backend", 0, "default_backend b\nbackend b\n tcp-request content reject")
        .frontend()
        .cut(),
];

/// Answers without an available server.
pub const SERVERS: &[Row] = &[
    row("no backend", 503, "use_backend b if { path /no }\nbackend b\n server s1 10.0.1.1:80").frontend(),
    row("no backend, a page of its own", 503, "http-error status 503 content-type text/plain string sorry").frontend(),
    row("an unknown dynamic backend", 503, "use_backend %[path]").frontend(),
    row("a disabled backend", 503, "default_backend b\nbackend b\n disabled\n server s1 10.0.1.1:80").frontend(),
    row("a backend without servers", 503, "default_backend b\nbackend b\n balance roundrobin").frontend(),
    row("a disabled server", 503, "server s1 10.0.1.1:80 disabled"),
    row("redir", 302, "server s1 10.0.1.1:80 redir http://r").line("GET /first HTTP/1.1"),
    row("a dead server", 503, "retries 0\n server s1 10.0.1.1:80"),
    row("retries exhausted", 503, "retries 1\n option redispatch\n server s1 10.0.1.1:80\n server s2 10.0.1.2:80"),
    row("queue timeout", 503, "timeout queue 50ms\n timeout server 1h\n server s1 10.0.1.1:80 maxconn 1")
        .origin(Origin::Silent)
        .occupied(),
    row("full queue", 503, "timeout queue 50ms\n timeout server 1h\n server s1 10.0.1.1:80 maxconn 1 maxqueue 1")
        .origin(Origin::Silent)
        .occupied(),
];

/// Answers that replace a server's.
pub const ANSWERS: &[Row] = &[
    row("timeout server", 504, SERVER).asks().origin(Origin::Silent),
    row("a server that closes", 502, SERVER).origin(Origin::AnswersAndCloses("")),
    row("a server that speaks no HTTP", 502, SERVER).origin(Origin::Answers("junk\r\n\r\n")),
    row("retry-on without success", 502, "retries 1\n retry-on all-retryable-errors\n server s1 10.0.1.1:80")
        .origin(Origin::AnswersAndCloses("")),
    row("retry-on a status", 503, "retries 1\n retry-on 503\n server s1 10.0.1.1:80").asks()
        .origin(Origin::Answers("HTTP/1.1 503 No\r\nContent-Length: 0\r\n\r\n")),
    row("a filter of answers", 418, "filter lua.answer\n server s1 10.0.1.1:80").origin(Origin::Answers(OK)),
    row("http-response deny", 502, "http-response deny\n server s1 10.0.1.1:80").origin(Origin::Answers(OK)),
    row("http-response return", 200, "http-response return status 200\n server s1 10.0.1.1:80").origin(Origin::Answers(OK)),
    row("http-response redirect", 302, "http-response redirect location /x\n server s1 10.0.1.1:80")
        .origin(Origin::Answers(OK)),
    row("http-response silent-drop", 0, "http-response silent-drop\n server s1 10.0.1.1:80")
        .origin(Origin::Answers(OK))
        .cut(),
    row("http-response wait-for-body", 504, "http-response wait-for-body time 50ms\n server s1 10.0.1.1:80").asks()
        .origin(Origin::Answers("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nok")),
    row("http-response that does not fit", 500, "http-request set-var(txn.y) req.hdr(y)\n http-request del-header y\n http-response set-header x \"%[var(txn.y)]%[var(txn.y)]%[var(txn.y)]\"\n server s1 10.0.1.1:80")
        .fields("y: {big}\r\n")
        .origin(Origin::Answers(OK)),
    row("http-after-response that does not fit", 500, "http-request set-var(txn.y) req.hdr(y)\n http-request del-header y\n http-after-response set-header x \"%[var(txn.y)]%[var(txn.y)]%[var(txn.y)]\"\n server s1 10.0.1.1:80")
        .fields("y: {big}\r\n")
        .origin(Origin::Answers(OK)),
    row("checkcache", 502, "option checkcache\n server s1 10.0.1.1:80")
        .origin(Origin::Answers("HTTP/1.1 200 OK\r\nSet-Cookie: a=b\r\nCache-Control: public\r\nContent-Length: 0\r\n\r\n"))
        .line("GET /first HTTP/1.1"),
    row("tcp-response content close", 502, "tcp-response content close\n server s1 10.0.1.1:80")
        .origin(Origin::Answers(OK)),
    row("tcp-response content reject", 0, "tcp-response content reject\n server s1 10.0.1.1:80")
        .origin(Origin::Answers(OK))
        .cut(),
    row("switching without being asked", 502, SERVER)
        .origin(Origin::Answers("HTTP/1.1 101 Switch\r\nConnection: upgrade\r\nUpgrade: echo\r\n\r\n")),
    row("a server's early answer", 413, SERVER).asks().origin(Origin::Answers(EARLY)),
    row("a server's early answer behind a hint", 413, SERVER).asks()
        .origin(Origin::Answers("HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\nHTTP/1.1 413 No\r\nContent-Length: 0\r\n\r\n")),
    row("a server's early answer, then its end", 413, SERVER).asks().origin(Origin::AnswersAndCloses(EARLY)).either(),
    row("a server's early answer in chunks", 200, SERVER).asks()
        .origin(Origin::Answers("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n"))
        .either(),
    row("a server's early answer until its end", 200, SERVER).asks()
        .origin(Origin::AnswersAndCloses("HTTP/1.1 200 OK\r\n\r\nok"))
        .closed(),
    row("a server's early answer that says close", 200, SERVER).asks()
        .origin(Origin::AnswersAndCloses("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok"))
        .either(),
    row("hedged, and both are silent", 504, "balance roundrobin\n hedge-requests after 20ms budget 100 min 0\n server s1 10.0.1.1:80\n server s2 10.0.1.2:80").asks()
        .origin(Origin::Silent)
        .line("GET /first HTTP/1.1"),
    row("hedged, and both close", 502, "balance roundrobin\n hedge-requests after 20ms budget 100 min 0\n server s1 10.0.1.1:80\n server s2 10.0.1.2:80")
        .origin(Origin::AnswersAndCloses(""))
        .line("GET /first HTTP/1.1"),
];
