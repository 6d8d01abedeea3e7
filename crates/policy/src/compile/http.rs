//! Compiles a proxy's HTTP options. Must never look at a message.

use crate::program::{AddressField, GlobalHttp, Http, Http2Limits, StreamLimits};
use config::spec::{ForwardedPart, GlobalSpec, Http2TuneSpec, ProxySpec, RestrictNames, StatusCodes, StreamsLoadSpec};
use config::text;
use expression::Expression;
use std::sync::Arc;
use wire::h1::Spelling;

/// Compiles `h1-case-adjust`; `None` if there is none.
pub(super) fn spelling(global: &GlobalSpec) -> Option<Arc<Spelling>> {
    let pairs = global.http.case_adjust.iter().map(|(from, to)| (text::to_bytes(from), text::to_bytes(to)));
    let spelling: Spelling = pairs.collect();
    (!spelling.is_empty()).then(|| Arc::new(spelling))
}

/// Compiles the options of a proxy.
pub(super) fn http(
    written: &ProxySpec,
    spelling: Option<&Arc<Spelling>>,
    forwarded_expressions: Vec<(ForwardedPart, Expression)>,
) -> Http {
    let name = |written: Option<&String>, usual: &str| -> Box<str> {
        written.map_or(usual, |name| name).to_ascii_lowercase().into()
    };
    let http = &written.http;
    Http {
        forwardfor: written.forwardfor.as_ref().map(|field| AddressField {
            except: field.except,
            header: name(field.header.as_ref(), "x-forwarded-for"),
            if_none: field.if_none,
        }),
        originalto: http.originalto.as_ref().map(|field| AddressField {
            except: field.except,
            header: name(field.header.as_ref(), "x-original-to"),
            if_none: false,
        }),
        forwarded: http.forwarded,
        forwarded_expressions: forwarded_expressions.into(),
        send_name_header: http.send_name_header.as_ref().map(|name| name.to_ascii_lowercase().into_bytes().into()),
        // FastCGI parameters cannot distinguish such names.
        restrict_names: match http.restrict_names {
            None if written.fcgi_app.is_some() => RestrictNames::Delete,
            chosen => chosen.unwrap_or_default(),
        },
        // A FastCGI application needs the length of a body.
        buffer_request: http.buffer_request || written.fcgi_app.is_some(),
        drop_request_trailers: http.drop_request_trailers,
        drop_response_trailers: http.drop_response_trailers,
        ignore_probes: http.ignore_probes,
        accept_unsafe_request: http.accept_unsafe_request,
        accept_unsafe_response: http.accept_unsafe_response,
        use_proxy_header: http.use_proxy_header,
        pretend_keepalive: http.pretend_keepalive,
        check_cache: http.check_cache,
        disable_h2_upgrade: http.disable_h2_upgrade,
        client_spelling: spelling.filter(|_| http.adjust_case_client).cloned(),
        server_spelling: spelling.filter(|_| http.adjust_case_server).cloned(),
    }
}

/// Compiles the global options.
pub(super) fn global(written: &GlobalSpec) -> GlobalHttp {
    let http = &written.http;
    GlobalHttp {
        err_codes: http.err_codes.unwrap_or_else(StatusCodes::errors),
        fail_codes: http.fail_codes.unwrap_or_else(StatusCodes::failures),
        accept_payload_with_any_method: http.accept_payload_with_any_method,
        keep_insecure_transfer_encoding: http.keep_insecure_transfer_encoding,
    }
}

/// Compiles the HTTP/2 limits of clients and of servers.
pub(super) fn http2(written: &Http2TuneSpec, bufsize: usize) -> (Http2Limits, Http2Limits) {
    /// The limit in place of "unlimited": one client could otherwise allocate all memory.
    const UNLIMITED: u32 = 10_000;
    let buffer = u32::try_from(bufsize).unwrap_or(u32::MAX).min(1 << 20);
    let limits = |window: Option<u32>, shared: Option<u32>, streams: Option<u32>, total: u32| {
        let streams = streams.or(written.streams).unwrap_or(100);
        Http2Limits {
            window: window.or(written.window).unwrap_or(buffer),
            shared_window: shared.unwrap_or(100 * buffer),
            streams: if streams == 0 { UNLIMITED } else { streams } as usize,
            total,
            extends: !written.conceals_websockets,
            table_size: written.table_size.unwrap_or(4096) as usize,
        }
    };
    let clients = limits(
        written.client_window,
        written.client_buffers,
        written.client_streams,
        written.total_streams.unwrap_or(0),
    );
    (clients, limits(written.server_window, written.server_buffers, written.server_streams, 0))
}

/// Compiles the other limits of client streams.
pub(super) fn streams(written: &GlobalSpec, maxconn: u32) -> StreamLimits {
    /// Default of `tune.runqueue-depth`: the number of tasks that a worker runs in a row.
    const RUN_QUEUE_DEPTH: u32 = 512;
    let http2 = &written.tune.http2;
    let elasticity = written.tune.streams_elasticity;
    let shared = (elasticity > 0).then(|| u64::from(maxconn) * u64::from(elasticity.saturating_sub(100)) / 100);
    StreamLimits {
        load: match http2.streams_load {
            StreamsLoadSpec::Ignore => None,
            StreamsLoadSpec::Auto => Some(written.machine.run_queue_depth.unwrap_or(RUN_QUEUE_DEPTH)),
            StreamsLoadSpec::Tasks(tasks) => Some(tasks),
        },
        least: http2.least_streams.unwrap_or(1) as usize,
        shared: shared.map(|streams| u32::try_from(streams).unwrap_or(u32::MAX)),
        logged_errors: http2.logged_errors,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::compile::tests::frontend;
    use config::spec::{ForwardForSpec, OriginalToSpec};

    #[test]
    fn names_are_lower_case_and_have_defaults() {
        let mut written = frontend("f");
        written.forwardfor = Some(ForwardForSpec { except: None, header: None, if_none: true });
        written.http.originalto = Some(OriginalToSpec { except: None, header: Some("X-To".to_owned()) });
        written.http.send_name_header = Some("X-Server".to_owned());
        let compiled = http(&written, None, Vec::new());
        assert_eq!(
            compiled.forwardfor.map(|field| (field.header, field.if_none)),
            Some(("x-forwarded-for".into(), true))
        );
        assert_eq!(compiled.originalto.map(|field| field.header), Some("x-to".into()));
        assert_eq!(compiled.send_name_header.as_deref(), Some(&b"x-server"[..]));
    }

    #[test]
    fn spellings_need_both_a_name_and_somebody_who_asks() {
        let mut global = GlobalSpec::default();
        assert!(spelling(&global).is_none());
        global.http.case_adjust = vec![("host".to_owned(), "Host".to_owned())];
        let names = spelling(&global);
        let mut written = frontend("f");
        assert!(http(&written, names.as_ref(), Vec::new()).client_spelling.is_none());
        written.http.adjust_case_client = true;
        let compiled = http(&written, names.as_ref(), Vec::new());
        assert!(compiled.client_spelling.is_some() && compiled.server_spelling.is_none());
    }

    #[test]
    fn statuses_count_as_the_manual_says_unless_told_otherwise() {
        let mut written = GlobalSpec::default();
        let compiled = global(&written);
        assert!(compiled.err_codes.contains(404) && !compiled.err_codes.contains(500));
        assert!(compiled.fail_codes.contains(503) && !compiled.fail_codes.contains(501));
        let mut codes = StatusCodes::default();
        codes.set(410, 410, true);
        written.http.err_codes = Some(codes);
        assert!(global(&written).err_codes.contains(410) && !global(&written).err_codes.contains(404));
    }
}
