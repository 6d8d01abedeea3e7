//! Tests of log lines and metrics exported to a collector (`log otel@`, `otel-metrics`): their contents, and their
//! destination after a reload in place.

use super::collector::{Field, Got, collect, collect_at, fields, messages, take_all, text_of};
use super::*;
use engine::telemetry;

const OTHER: &str = "10.0.9.2:4318";

/// The items of all requests with that path: records, or metrics.
fn items(got: &Got, path: &str) -> Vec<Vec<u8>> {
    let others = got.others.borrow();
    let bodies = others.iter().filter(|(found, _)| found == path);
    let scopes = bodies.flat_map(|(_, body)| messages(body, 1)).flat_map(|resource| messages(&resource, 2));
    scopes.flat_map(|scope| messages(&scope, 2)).collect()
}

async fn wait_for_items(got: &Got, path: &str, count: usize) -> Vec<Vec<u8>> {
    for _ in 0..100_000 {
        if items(got, path).len() >= count {
            break;
        }
        sleep(1).await;
    }
    let found = items(got, path);
    assert!(found.len() >= count, "{} items", found.len());
    found
}

/// The body, severity and facility of a record.
fn record(bytes: &[u8]) -> (String, u64, String) {
    let body = messages(bytes, 5).remove(0);
    let severity = fields(bytes).into_iter().find_map(|(at, field)| match field {
        Field::Number(number) if at == 2 => Some(number),
        _ => None,
    });
    let facility = collector::attributes(bytes, 6)["syslog.facility.code"].clone();
    (text_of(&body, 1), severity.expect("a severity"), facility)
}

/// The points of a metric: their attributes and their values; and whether it is a monotonic sum.
fn points(metric: &[u8]) -> (Vec<(String, u64)>, bool) {
    let (gauges, sums) = (messages(metric, 5), messages(metric, 7));
    let is_sum = !sums.is_empty();
    let data = gauges.into_iter().chain(sums).next().expect("data");
    let told = messages(&data, 1).into_iter().map(|point| {
        let of: Vec<String> = collector::attributes(&point, 7).into_values().collect();
        let value = fields(&point).into_iter().find_map(|(at, field)| match field {
            Field::Number(number) if at == 6 => Some(number),
            _ => None,
        });
        (of.join("/"), value.unwrap_or(u64::MAX))
    });
    (told.collect(), is_sum)
}

fn named(items: &[Vec<u8>], name: &str) -> Vec<Vec<u8>> {
    items.iter().filter(|metric| text_of(metric, 1) == name).cloned().collect()
}

async fn exchange(path: &str) {
    let (mut client, mut s1) = (Peer::connect(WEIR).await, Service::at(S1));
    client.send(&format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n")).await;
    let mut server = s1.accept().await;
    server.receive_head().await;
    server.send(OK).await;
    client.expect(OK_AT_CLIENT).await;
}

#[test]
fn lines_of_the_log_become_records_beside_their_spans() {
    let lines = "otel-trace\nlog otel@ len 80 local3\nlog otel@ local4 err\nlog-format \"%HM %HP %ST %[str(x),length]\"\n\
                 server s1 10.0.1.1:80";
    traced(lines).run(|world| async move {
        let got = collect(&world, take_all);
        exchange("/a").await;
        exchange(&format!("/{}", "b".repeat(100))).await;
        let mut records = wait_for_items(&got, "/v1/logs", 2).await;
        // The order between workers is not fixed.
        records.sort_by_key(|bytes| record(bytes).0.len());
        let told: Vec<_> = records.iter().map(|bytes| record(bytes)).collect();
        // Only errors are sent to the second target.
        assert_eq!(told.len(), 2, "{told:?}");
        assert_eq!(told[0], ("GET /a 200 1".to_owned(), 9, "19".to_owned()));
        assert_eq!((told[1].0.len(), &told[1].0[..7]), (80, "GET /bb"));
        let spans = got.spans(4).await;
        for (bytes, path) in records.iter().zip(["/a", "/b"]) {
            let own = spans.iter().find(|span| span.kind == 2 && span.get("url.path").starts_with(path));
            let own = own.expect("a span");
            let hex = |at| messages(bytes, at)[0].iter().map(|byte| format!("{byte:02x}")).collect::<String>();
            assert_eq!((hex(9), hex(10)), (own.trace.clone(), own.id.clone()));
        }
    });
}

#[test]
fn metrics_are_those_of_the_exporter() {
    let lines = "server s1 10.0.1.1:80";
    listen(lines)
        .global(&format!("otel-exporter http://{COLLECTOR} interval 10ms"))
        .global("otel-metrics interval 2s scope frontend scope server")
        .run(|world| async move {
            let got = collect(&world, take_all);
            exchange("/").await;
            sleep(2_100).await;
            let first = wait_for_items(&got, "/v1/metrics", 1).await;
            let requests = named(&first, "haproxy_frontend_http_requests_total");
            assert_eq!(requests.len(), 1);
            assert_eq!(points(&requests[0]), (vec![("l".to_owned(), 1)], true));
            let sessions = named(&first, "haproxy_server_max_sessions");
            assert_eq!(points(&sessions[0]), (vec![("l/s1".to_owned(), 1)], false));
            assert_eq!(named(&first, "haproxy_backend_http_requests_total").len(), 0);
            assert_eq!(named(&first, "haproxy_process_uptime_seconds").len(), 0);
            assert_eq!(
                text_of(&requests[0], 2),
                "Total number of HTTP requests processed by this object since the worker process started"
            );
            // Each round contains the sum since the start.
            exchange("/").await;
            sleep(2_000).await;
            let later = wait_for_items(&got, "/v1/metrics", first.len() * 2).await;
            let requests = named(&later, "haproxy_frontend_http_requests_total");
            assert_eq!(requests.iter().map(|metric| points(metric).0[0].1).collect::<Vec<_>>(), [1, 2]);
        });
}

#[test]
fn a_reload_sends_them_elsewhere_begins_and_ends_with_them() {
    let to = |collector: &str, metrics: &str| {
        listen("log otel@ local0\nlog-format %HP\nserver s1 10.0.1.1:80")
            .global(&format!("otel-exporter http://{collector} interval 10ms"))
            .global(metrics)
    };
    let first = to(COLLECTOR, "");
    first.run(move |world| async move {
        let (one, two) = (collect(&world, take_all), collect_at(&world, OTHER, take_all));
        exchange("/one").await;
        assert_eq!(record(&wait_for_items(&one, "/v1/logs", 1).await[0]).0, "/one");
        assert_eq!(world.adopt(&to(OTHER, "otel-metrics interval 1s scope global")), Ok(()));
        exchange("/two").await;
        assert_eq!(record(&wait_for_items(&two, "/v1/logs", 1).await[0]).0, "/two");
        wait_for_items(&two, "/v1/metrics", 1).await;
        assert_eq!(items(&one, "/v1/logs").len(), 1);
        assert_eq!(world.adopt(&to(OTHER, "")), Ok(()));
        // A round that had begun may still be received.
        sleep(1_500).await;
        let count = items(&two, "/v1/metrics").len();
        sleep(5_000).await;
        assert_eq!(items(&two, "/v1/metrics").len(), count);
        assert_eq!(items(&one, "/v1/metrics").len(), 0);
        // Unused channels have ended.
        assert_eq!(world.shared().service::<telemetry::Registry>().channels().len(), 2);
    });
}
