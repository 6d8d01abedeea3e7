//! Differences between Weir and the table, with reasons. Must never list one without its reason.

/// Fetches that are found in one of the two only.
const FOUND: &[(&str, &str)] = &[
    // HAProxy returns a version before there is a message, from uninitialised memory, and none for HTTP/2.
    ("capture.req.ver", ""),
    ("capture.res.ver", ""),
    ("req.ver", ""),
    ("req_ver", ""),
    ("res.ver", ""),
    ("resp_ver", ""),
    // Rules on the bytes of a parsed message may fetch its start line.
    ("capture.req.method", "http/"),
    ("capture.req.uri", "http/"),
    // A simulated connection has no packet; HAProxy returns an empty one.
    ("fc_saved_syn", ""),
    // It is empty if no cache has answered, as documented.
    ("res.cache_name", ""),
    // The notAfter date of the test's certificate cannot be represented in it.
    ("ssl_f_notafter", ""),
    // Internal to the TLS library.
    ("ssl_fc_session_key", ""),
    ("ssl_fc_unique_id", ""),
    // Internals, which differ between programs.
    ("bs.debug_str", ""),
    ("fs.debug_str", ""),
    // Before the handshake HAProxy returns values for some of its later results, and none for errors that have not
    // occurred.
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
    // The status is recorded after rules on bytes have seen the answer.
    ("server_status", "answer/http/"),
    // HAProxy counts cookies without a message, and waits for one in an answer.
    ("rdp_cookie_cnt", ""),
    ("req.rdp_cookie_cnt", ""),
    // In TCP mode all bytes are taken for the body.
    ("req.body_param", "tcp/"),
    // The bytes of the test's ClientHello are different.
    ("req.payload(0,0),fix_is_valid", "tcp/hello"),
    ("req.payload(0,0),fix_tag_value(35)", "tcp/hello"),
    // HAProxy returns no part of an empty buffer.
    ("req.payload(0,0),length", "tcp/none"),
];

/// Whether the difference between HAProxy's recorded behaviour and Weir's for a fetch in a scene is known.
pub fn is_known(scene: &str, fetch: &str, recorded: char, found: char) -> bool {
    if FOUND.iter().any(|(name, scenes)| *name == fetch && scene.starts_with(scenes)) {
        return true;
    }
    // Whether the client has an entry in the table, and thereby counters that are not stored, depends on the rules
    // before.
    if fetch.starts_with("src_") && fetch.ends_with("t)") {
        return true;
    }
    let (waits, waited) = (found.eq_ignore_ascii_case(&'w'), recorded.eq_ignore_ascii_case(&'w'));
    waited && !waits && knows_sooner(scene, fetch)
}

/// Whether Weir knows the result earlier, for one of these reasons.
fn knows_sooner(scene: &str, fetch: &str) -> bool {
    // A key that may change is tracked with its current value.
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
    // The first byte of RDP is different.
    let is_other = fetch.ends_with("rdp_cookie") && !scene.contains("rdp");
    // A server does not send a ClientHello.
    let is_of_client = scene.starts_with("answer/") && ["req.ssl_ver", "req_ssl_ver"].contains(&fetch);
    // A rule that waits never sees a reset.
    tracks || is_other || is_of_client || fetch.ends_with("s.rst_code")
}
