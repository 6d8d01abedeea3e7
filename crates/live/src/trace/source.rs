//! The sources of traces and their events, with HAProxy's names (management manual, section 9.3, "trace"): those that
//! Weir reports. Must never hold state.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Source {
    H2,
    Fcgi,
    Spop,
    Acme,
    Ssl,
    H3,
    Quic,
    Qcm,
    H1,
    Stream,
    Peers,
    Check,
    Applet,
    Pt,
    Session,
    Haterm,
}

/// Number of sources.
pub const SOURCES: usize = 16;

/// An event of a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event {
    pub source: Source,
    /// Its bit in the sets of the source.
    pub bit: u8,
    pub name: &'static str,
    /// A description.
    pub doc: &'static str,
}

/// A row of the table of sources.
pub struct SourceRow {
    pub source: Source,
    pub name: &'static str,
    /// A description.
    pub doc: &'static str,
    /// Its events, by bit.
    pub events: &'static [Event],
}

const fn event(source: Source, bit: u8, name: &'static str, doc: &'static str) -> Event {
    Event { source, bit, name, doc }
}

/// The events, by source.
#[rustfmt::skip]
pub mod events {
    use super::{Event, Source, event};

    pub const H2C_ERR: Event = event(Source::H2, 0, "h2c_err", "error on H2 connection");
    pub const H2_RX_HEADERS: Event = event(Source::H2, 1, "rx_hdr", "receipt of H2 HEADERS frame");
    pub const H2_TX_HEADERS: Event = event(Source::H2, 2, "tx_hdr", "transmission of H2 HEADERS frame");
    pub const H2S_END: Event = event(Source::H2, 3, "h2s_end", "H2 stream terminated");

    pub const FCONN_NEW: Event = event(Source::Fcgi, 0, "fconn_new", "new FCGI connection");
    pub const FCGI_BEGIN_REQUEST: Event = event(Source::Fcgi, 1, "tx_begin_request", "transmission of FCGI BEGIN_REQUEST record");
    pub const FCGI_STDERR: Event = event(Source::Fcgi, 2, "rx_stderr", "receipt of FCGI STDERR record");
    pub const FCGI_RESPONSE_HEADERS: Event = event(Source::Fcgi, 3, "rsp_headers", "parse headers of H1 response");
    pub const FSTRM_ERR: Event = event(Source::Fcgi, 4, "fstrm_err", "error on FCGI stream");

    pub const SPOP_CONN_NEW: Event = event(Source::Spop, 0, "spop_conn_new", "new SPOP connection");
    pub const SPOP_CONN_END: Event = event(Source::Spop, 1, "spop_conn_end", "SPOP connection terminated");
    pub const SPOP_CONN_ERR: Event = event(Source::Spop, 2, "spop_conn_err", "error on SPOP connection");
    pub const SPOP_RX_ACK: Event = event(Source::Spop, 3, "rx_ack", "receipt of SPOP AGENT ACK frame");
    pub const SPOP_TX_NOTIFY: Event = event(Source::Spop, 4, "tx_notify", "transmission of SPOP HAPROXY NOTIFY frame");
    pub const SPOP_STRM_ERR: Event = event(Source::Spop, 5, "spop_strm_err", "error on SPOP stream");

    pub const ACME_NEW: Event = event(Source::Acme, 0, "acme_new", "New ACME task");
    pub const ACME_TASK: Event = event(Source::Acme, 1, "acme_task", "ACME task");

    pub const SSLC_NEW: Event = event(Source::Ssl, 0, "sslc_new", "new SSL connection");
    pub const SSLC_HANDSHAKE: Event = event(Source::Ssl, 1, "sslc_hndshk", "SSL handshake");
    pub const SSLC_ERR: Event = event(Source::Ssl, 2, "sslc_err", "SSL error");

    pub const H3_RX_HEADERS: Event = event(Source::H3, 0, "rx_hdr", "receipt of H3 HEADERS frame");
    pub const H3_TX_HEADERS: Event = event(Source::H3, 1, "tx_hdr", "transmission of H3 HEADERS frame");
    pub const H3S_NEW: Event = event(Source::H3, 2, "h3s_new", "new H3 stream");
    pub const H3S_END: Event = event(Source::H3, 3, "h3s_end", "H3 stream terminated");
    pub const H3C_NEW: Event = event(Source::H3, 4, "h3c_new", "new H3 connection");
    pub const H3C_END: Event = event(Source::H3, 5, "h3c_end", "H3 connection terminated");

    pub const QUIC_NEW: Event = event(Source::Quic, 0, "new_conn", "new QUIC connection");
    pub const QUIC_FREE: Event = event(Source::Quic, 1, "conn_freed", "releasing conn. memory");
    pub const QUIC_CLOSE: Event = event(Source::Quic, 2, "conn_close", "closing conn.");

    pub const QCC_NEW: Event = event(Source::Qcm, 0, "qcc_new", "new QUIC connection");
    pub const QCC_END: Event = event(Source::Qcm, 1, "qcc_end", "QUIC connection terminated");
    pub const QCM_PROTOCOL_ERR: Event = event(Source::Qcm, 2, "proto_err", "protocol error");

    pub const H1C_ERR: Event = event(Source::H1, 0, "h1c_err", "error on H1 connection");
    pub const H1_RX_HEADERS: Event = event(Source::H1, 1, "rx_headers", "receipt of H1 headers");
    pub const H1_TX_HEADERS: Event = event(Source::H1, 2, "tx_headers", "transmission of all headers");
    pub const H1S_ERR: Event = event(Source::H1, 3, "h1s_err", "error on H1 stream");
    pub const H1S_END: Event = event(Source::H1, 4, "h1s_end", "H1 stream terminated");

    pub const STREAM_NEW: Event = event(Source::Stream, 0, "strm_new", "new stream");
    pub const STREAM_FREE: Event = event(Source::Stream, 1, "strm_free", "release stream");
    pub const STREAM_ERR: Event = event(Source::Stream, 2, "strm_err", "error during stream processing");
    pub const SERVER_STATE: Event = event(Source::Stream, 3, "sc_state", "processing connector states");

    pub const PEER_NEW: Event = event(Source::Peers, 0, "sess_new", "create new peer session");
    pub const PEER_END: Event = event(Source::Peers, 1, "sess_end", "peer session terminated");

    pub const CHECK_START: Event = event(Source::Check, 0, "hchck_start", "Health-check started");
    pub const CHECK_END: Event = event(Source::Check, 1, "hchck_end", "Health-check terminated");
    pub const CHECK_SUCCESS: Event = event(Source::Check, 2, "hchck_succ", "Health-check success");
    pub const CHECK_FAILURE: Event = event(Source::Check, 3, "hchck_err", "Health-check failure");

    pub const APPLET_NEW: Event = event(Source::Applet, 0, "app_new", "new appctx");
    pub const APPLET_FREE: Event = event(Source::Applet, 1, "app_free", "free appctx");

    pub const PT_NEW: Event = event(Source::Pt, 0, "pt_conn_new", "new PT connection");
    pub const PT_END: Event = event(Source::Pt, 1, "pt_conn_end", "PT connection terminated");

    pub const SESSION_NEW: Event = event(Source::Session, 0, "sess_new", "new session creation");
    pub const SESSION_END: Event = event(Source::Session, 1, "sess_end", "session termination");
    pub const SESSION_ERR: Event = event(Source::Session, 2, "sess_err", "session error");

    pub const HSTRM_NEW: Event = event(Source::Haterm, 0, "hstrm_new", "new haterm stream");
    pub const HSTRM_RESPONSE: Event = event(Source::Haterm, 1, "hstrm_resp", "build a HTTP response");
}

const fn row(source: Source, name: &'static str, doc: &'static str, events: &'static [Event]) -> SourceRow {
    SourceRow { source, name, doc, events }
}

/// All sources, by number.
#[rustfmt::skip]
pub static TABLE: [SourceRow; SOURCES] = {
    use events::*;
    [
        row(Source::H2, "h2", "HTTP/2 multiplexer", &[H2C_ERR, H2_RX_HEADERS, H2_TX_HEADERS, H2S_END]),
        row(Source::Fcgi, "fcgi", "FastCGI multiplexer", &[FCONN_NEW, FCGI_BEGIN_REQUEST, FCGI_STDERR, FCGI_RESPONSE_HEADERS, FSTRM_ERR]),
        row(Source::Spop, "spop", "SPOP multiplexer", &[SPOP_CONN_NEW, SPOP_CONN_END, SPOP_CONN_ERR, SPOP_RX_ACK, SPOP_TX_NOTIFY, SPOP_STRM_ERR]),
        row(Source::Acme, "acme", "ACME", &[ACME_NEW, ACME_TASK]),
        row(Source::Ssl, "ssl", "SSL xprt", &[SSLC_NEW, SSLC_HANDSHAKE, SSLC_ERR]),
        row(Source::H3, "h3", "HTTP/3 transcoder", &[H3_RX_HEADERS, H3_TX_HEADERS, H3S_NEW, H3S_END, H3C_NEW, H3C_END]),
        row(Source::Quic, "quic", "QUIC xprt", &[QUIC_NEW, QUIC_FREE, QUIC_CLOSE]),
        row(Source::Qcm, "qcm", "QUIC multiplexer", &[QCC_NEW, QCC_END, QCM_PROTOCOL_ERR]),
        row(Source::H1, "h1", "HTTP/1 multiplexer", &[H1C_ERR, H1_RX_HEADERS, H1_TX_HEADERS, H1S_ERR, H1S_END]),
        row(Source::Stream, "stream", "Applicative stream", &[STREAM_NEW, STREAM_FREE, STREAM_ERR, SERVER_STATE]),
        row(Source::Peers, "peers", "Peers protocol", &[PEER_NEW, PEER_END]),
        row(Source::Check, "check", "Health-check", &[CHECK_START, CHECK_END, CHECK_SUCCESS, CHECK_FAILURE]),
        row(Source::Applet, "applet", "Applet endpoint", &[APPLET_NEW, APPLET_FREE]),
        row(Source::Pt, "pt", "Passthrough multiplexer", &[PT_NEW, PT_END]),
        row(Source::Session, "session", "client session management", &[SESSION_NEW, SESSION_END, SESSION_ERR]),
        row(Source::Haterm, "haterm", "haterm", &[HSTRM_NEW, HSTRM_RESPONSE]),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_and_events_are_found_by_their_numbers() {
        for (number, row) in TABLE.iter().enumerate() {
            assert_eq!(row.source as usize, number);
            for (bit, event) in row.events.iter().enumerate() {
                assert_eq!((event.source, usize::from(event.bit)), (row.source, bit), "{}", event.name);
            }
        }
    }
}
