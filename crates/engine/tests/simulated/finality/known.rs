//! Where Weir differs from the table, and why.

/// What is found in one of them alone.
const FOUND: &[(&str, &str)] = &[
    // HAProxy has a version before there is a message, of whatever its memory holds, and none of HTTP/2.
    ("capture.req.ver", ""),
    ("capture.res.ver", ""),
    ("req.ver", ""),
    ("req_ver", ""),
    ("res.ver", ""),
    ("resp_ver", ""),
    // Rules on the bytes of a message that was taken apart may ask for its line.
    ("capture.req.method", "http/"),
    ("capture.req.uri", "http/"),
    // Of a simulated connection there is no packet; HAProxy has an empty one.
    ("fc_saved_syn", ""),
    // It is empty where no cache has answered, as the manual says.
    ("res.cache_name", ""),
    // The last moment of the test's certificate has no form in it.
    ("ssl_f_notafter", ""),
    // What the TLS library keeps inside.
    ("ssl_fc_session_key", ""),
    ("ssl_fc_unique_id", ""),
    // Internals, of which each program has its own.
    ("bs.debug_str", ""),
    ("fs.debug_str", ""),
    // Before the handshake HAProxy has a value for some of what will come of it, and none for what has not failed yet.
    ("fc_err", "connection/tls"),
    ("fc_err_name", "connection/tls"),
    ("fc_err_str", "connection/tls"),
    ("fc_rcvd_proxy", "connection/tls"),
    ("ssl_fc_cipher", "connection/tls"),
    ("ssl_fc_client_random", "connection/tls"),
    ("ssl_fc_curve", "connection/tls"),
    ("ssl_fc_early_rcvd", "connection/tls"),
    ("ssl_fc_err", "connection/tls"),
    ("ssl_fc_has_early", "connection/tls"),
    ("ssl_fc_protocol", "connection/tls"),
    ("ssl_fc_server_random", "connection/tls"),
    // The status is noted once rules on bytes have seen the answer.
    ("server_status", "answer/http/"),
    // HAProxy counts cookies where there is no message, and waits for one in an answer.
    ("rdp_cookie_cnt", ""),
    ("req.rdp_cookie_cnt", ""),
    // In TCP mode all bytes are taken for the body.
    ("req.body_param", "tcp/"),
    // The bytes of the test's hello are others.
    ("req.payload(0,0),fix_is_valid", "tcp/hello"),
    ("req.payload(0,0),fix_tag_value(35)", "tcp/hello"),
    // HAProxy cuts nothing off a buffer in which nothing is.
    ("req.payload(0,0),length", "tcp/none"),
];

/// Whether the difference between what is recorded of HAProxy and what Weir does for a fetch in a scene is known.
pub fn is_known(scene: &str, fetch: &str, recorded: char, found: char) -> bool {
    if FOUND.iter().any(|(name, scenes)| *name == fetch && scene.starts_with(scenes)) {
        return true;
    }
    // Whether the client has an entry in the table, and so counters that are not stored, depends on the rules before.
    if fetch.starts_with("src_") && fetch.ends_with("t)") {
        return true;
    }
    let (waits, waited) = (found.eq_ignore_ascii_case(&'w'), recorded.eq_ignore_ascii_case(&'w'));
    waited && !waits && knows_sooner(scene, fetch)
}

/// Where Weir knows sooner, and why.
fn knows_sooner(scene: &str, fetch: &str) -> bool {
    // A key that may change is tracked as it is.
    const CHANGING: [&str; 11] = [
        "accept_date",
        "date",
        "date_us",
        "fs.debug_str",
        "rand",
        "req.body",
        "req.len",
        "req_len",
        "request_date",
        "term_events",
        "uuid",
    ];
    let tracks = scene.contains("/track/") && (CHANGING.contains(&fetch) || fetch.starts_with("req.payload(0,0),"));
    // The first byte of RDP is another one.
    let is_other = fetch.ends_with("rdp_cookie") && !scene.contains("rdp");
    // No ClientHello comes from a server.
    let is_of_client = scene.starts_with("answer/") && ["req.ssl_ver", "req_ssl_ver"].contains(&fetch);
    // A reset is never seen by a rule that waits.
    tracks || is_other || is_of_client || fetch.ends_with("s.rst_code")
}
