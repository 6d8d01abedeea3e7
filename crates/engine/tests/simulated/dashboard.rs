//! Tests of the dashboard's API on the virtual clock: states of servers with their reasons, and the history.

use serde_json::Value;
use testkit::{Peer, Service, sleep};

use crate::api::{self, order};
use crate::messages::*;
use crate::world::*;

/// The page's address.
const PAGE: &str = "10.0.0.1:8404";
const PAGE_SECTION: &str = "listen stats\n bind 10.0.0.1:8404\n stats uri /\n stats dashboard\n stats admin if TRUE\n";

/// These sections, the page, and the socket of the runtime API.
fn sections(text: &str) -> Worlds {
    config(&format!("{text}{PAGE_SECTION}")).global(api::SOCKET)
}

/// Returns an answer of the API: its status and its body.
async fn asked(path: &str) -> (String, String) {
    let mut peer = Peer::connect(PAGE).await;
    peer.send(format!("GET /api/v1/{path} HTTP/1.0\r\n\r\n")).await;
    let answer = String::from_utf8(peer.receive_rest().await).expect("UTF-8");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    (head.split(' ').nth(1).unwrap_or_default().to_owned(), body.to_owned())
}

async fn json(path: &str) -> Value {
    let (status, body) = asked(path).await;
    assert_eq!(status, "200", "{path}: {body}");
    serde_json::from_str(&body).unwrap_or_else(|error| panic!("{error}: {body}"))
}

/// The numbers of a column of a series.
fn column(series: &Value, name: &str) -> Vec<f64> {
    let values = series["columns"][name].as_array().unwrap_or_else(|| panic!("no {name} in {series}"));
    values.iter().map(|value| value.as_f64().unwrap_or(-1.0)).collect()
}

/// A number without its decimals: timers of the simulator are late by up to a millisecond.
fn rounded(number: &Value) -> u64 {
    number.as_f64().expect("a number").round() as u64
}

/// Answers every request with a status.
fn serve(world: &World, address: &str, status: &'static str) {
    Service::at(address).serve(&world.scope, move |mut peer: Peer, _| async move {
        while peer.receive_head().await.is_some() {
            let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 2\r\n\r\nok");
            if !peer.try_send(answer).await {
                return;
            }
        }
    });
}

#[test]
fn servers_have_a_state_and_its_reason() {
    let servers = "backend app\n option httpchk\n server well 10.0.1.1:80 check inter 1s\n \
                   server ill 10.0.1.2:80 check inter 1s fall 1\n server dead 10.0.1.3:80 check inter 1s fall 1\n \
                   server plain 10.0.1.1:80\n server out 10.0.1.1:80 disabled\n server light 10.0.1.1:80 weight 0\n \
                   server other 10.0.1.1:80 track app/ill\nbackend none\n";
    sections(servers).run(|world| async move {
        serve(&world, S1, "200 OK");
        serve(&world, S2, "503 Away");
        sleep(10_000).await;
        order("set server app/plain state drain").await;
        let list = json("servers?fields=state").await;
        let shown: Vec<String> = list["servers"]
            .as_array()
            .expect("servers")
            .iter()
            .map(|server| format!("{} {} {} {}", server["name"], server["state"], server["reason"], server["detail"]))
            .collect();
        let wanted = [
            r#""well" "up" "L7OK/200" null"#,
            r#""ill" "down" "L7STS/503" "Away""#,
            r#""dead" "down" "L4CON" "ECONNREFUSED returned by OS (Connection refused)""#,
            r#""plain" "drain" "administrator" null"#,
            r#""out" "maint" "configuration" null"#,
            r#""light" "drain" "weight 0" null"#,
            r#""other" "down" "L7STS/503 via app/ill" "Away""#,
        ];
        assert_eq!(shown, wanted);
        // The server has been down since a check of the first seconds.
        let now = json("overview").await;
        let since = |server: &Value| now["time"].as_f64().unwrap() - server["since"].as_f64().expect("a time");
        assert!((7.0..10.0).contains(&since(&list["servers"][1])), "{list}");
        order("disable server app/ill").await;
        order("enable server app/out").await;
        order("set server app/well health down").await;
        let list = json("servers?backend=app").await;
        let shown = |at: usize| (list["servers"][at]["state"].as_str(), list["servers"][at]["reason"].as_str());
        assert_eq!(shown(0), (Some("down"), Some("command")));
        assert_eq!(shown(1), (Some("maint"), Some("administrator")));
        assert_eq!(shown(4), (Some("unchecked"), None));
        assert_eq!(shown(6), (Some("maint"), Some("via app/ill")));
        assert!(since(&list["servers"][0]) < 0.5, "{list}");
        let counts = serde_json::json!({"total": 7, "usable": 1, "down": 2, "maint": 2, "drain": 2});
        assert_eq!(json("overview").await["server_counts"], counts);
        let proxies = json("proxies?fields=servers").await;
        let proxies = proxies["proxies"].as_array().expect("proxies").clone();
        let of = |name: &str| proxies.iter().find(|one| one["proxy"] == name && one["kind"] == "backend");
        assert_eq!(of("app").map(|backend| &backend["servers"]), Some(&counts));
        assert_eq!(of("none").map(|backend| &backend["servers"]["total"]), Some(&0.into()));
        // Without the member's name it is left out.
        assert!(json("servers?fields=weight").await["servers"][0]["state"].is_null());
        assert!(json("proxies?fields=weight").await["proxies"][0]["servers"].is_null());
    });
}

#[test]
fn an_hour_is_kept_by_intervals() {
    let site = "frontend site\n bind 10.0.0.1:80\n default_backend app\n";
    let app = "backend app\n server s1 10.0.1.1:80\n server s2 10.0.1.2:80 disabled\n";
    let worlds = sections(&format!("{site}{app}")).workers(&[1, 2]).seeds(0..2);
    worlds.run(|world| async move {
        serve(&world, S1, "503 Away");
        let empty = json("history?kind=frontend").await;
        assert_eq!((&empty["times"], &empty["time"]), (&serde_json::json!([]), &0.0.into()));
        let mut client = Peer::connect(WEIR).await;
        for _ in 0..3 {
            client.send(GET).await;
            client.receive_until("ok").await;
        }
        sleep(10_500).await;
        client.send(GET).await;
        client.receive_until("ok").await;
        sleep(10_000).await;
        let history = json("history?kind=frontend&proxy=site").await;
        let seconds: Vec<u64> = history["seconds"].as_array().expect("numbers").iter().map(rounded).collect();
        assert_eq!((&history["interval_s"], seconds), (&10.into(), vec![10, 10]));
        let [series] = &history["series"].as_array().expect("series")[..] else { panic!("{history}") };
        assert_eq!(
            (&series["kind"], &series["proxy"], &series["first"]),
            (&"frontend".into(), &"site".into(), &0.into())
        );
        assert_eq!((column(series, "requests"), column(series, "errors_5xx")), (vec![3.0, 1.0], vec![3.0, 1.0]));
        let length = GET.len() as f64;
        assert_eq!(
            (column(series, "bytes_in"), column(series, "sessions")),
            (vec![3.0 * length, length], vec![1.0; 2])
        );
        assert_eq!((column(series, "connections"), column(series, "errors_4xx")), (vec![1.0, 0.0], vec![0.0; 2]));
        assert!(
            column(series, "p99").iter().all(|time| *time > 0.0) && series["columns"]["queue"].is_null(),
            "{series}"
        );
        let history = json("history?kind=backend&proxy=app&fields=requests,servers_usable,servers_down,queue").await;
        let series = &history["series"][0];
        assert_eq!((column(series, "servers_usable"), column(series, "servers_down")), (vec![1.0; 2], vec![0.0; 2]));
        assert_eq!((column(series, "requests"), column(series, "queue")), (vec![3.0, 1.0], vec![0.0; 2]));
        assert!(series["columns"]["p50"].is_null());
        // Requests of the page are those of another frontend.
        let process = json("history").await;
        assert!(column(&process["series"][0], "requests").iter().sum::<f64>() > 4.0, "{process}");
        assert_eq!(column(&process["series"][0], "servers_usable"), [1.0; 2]);
        // Only what is new.
        let since = history["times"][0].to_string();
        let rest = json(&format!("history?kind=frontend&proxy=site&since={since}&fields=requests")).await;
        assert_eq!(column(&rest["series"][0], "requests"), [1.0]);
        let rest = json(&format!("history?since={}", history["time"])).await;
        assert_eq!((&rest["times"], &rest["series"][0]["first"]), (&serde_json::json!([]), &0.into()));
        for bad in ["history?kind=server", "history?since=x"] {
            assert_eq!(asked(bad).await.0, "400", "{bad}");
        }
        // Two hours later, an hour is there.
        sleep(7_200_000).await;
        let history = json("history?kind=frontend&proxy=site").await;
        assert_eq!(column(&history["series"][0], "requests"), vec![0.0; 360]);
        assert_eq!(history["times"].as_array().map(Vec::len), Some(360));
    });
}

#[test]
fn the_history_outlives_a_reload_in_place_and_ends_with_the_last_page() {
    let site = "frontend site\n bind 10.0.0.1:80\n default_backend app\n";
    let app = "backend app\n server s1 10.0.1.1:80\n";
    sections(&format!("{site}{app}")).run(|world| async move {
        serve(&world, S1, "200 OK");
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        client.receive_until("ok").await;
        sleep(10_500).await;
        let more = "backend more\n server s2 10.0.1.2:80\n";
        assert_eq!(world.adopt(&sections(&format!("{more}{site}{app}"))), Ok(()));
        sleep(20_000).await;
        let names = |list: &Value| -> Vec<String> {
            list["series"].as_array().into_iter().flatten().map(|one| one["proxy"].to_string()).collect()
        };
        let history = json("history?kind=backend&fields=requests").await;
        assert_eq!(names(&history), ["\"app\"", "\"stats\"", "\"more\""]);
        assert_eq!(column(&history["series"][0], "requests"), [1.0, 0.0, 0.0]);
        let added = &history["series"][2];
        assert_eq!((&added["first"], column(added, "requests")), (&2.into(), vec![0.0]));
        assert_eq!(world.adopt(&sections(&format!("{site}{app}"))), Ok(()));
        sleep(10_000).await;
        assert_eq!(names(&json("history?kind=backend").await), ["\"app\"", "\"stats\""]);
        // Without a dashboard nothing is recorded.
        let plain =
            config(&format!("{site}{app}{}", PAGE_SECTION.replace(" stats dashboard\n", ""))).global(api::SOCKET);
        let history = world.shared().service::<live::history::History>();
        assert!(history.bytes() > 50_000);
        assert_eq!(world.adopt(&plain), Ok(()));
        sleep(10_000).await;
        assert!(history.bytes() < 1000, "{}", history.bytes());
        // It begins anew.
        assert_eq!(world.adopt(&sections(&format!("{site}{app}"))), Ok(()));
        sleep(10_500).await;
        assert_eq!(json("history").await["times"].as_array().map(Vec::len), Some(1));
    });
}

/// The entries of the timeline in short.
async fn timeline(query: &str) -> Vec<String> {
    let list = json(&format!("timeline?{query}")).await;
    let text = |entry: &Value, name: &str| entry[name].as_str().unwrap_or("-").to_owned();
    let line =
        |entry: &Value| ["kind", "proxy", "server", "reason", "detail", "who"].map(|name| text(entry, name)).join(" ");
    list["entries"].as_array().expect("entries").iter().map(line).collect()
}

#[test]
fn events_are_in_the_timeline_with_their_causes() {
    let app = "backend app\n option httpchk\n server s1 10.0.1.1:80 check inter 1s fall 2 rise 1 init-state fully-up\n \
               server s2 10.0.1.2:80 weight 10\n server s3 10.0.1.1:80 track app/s1\n";
    sections(app).run(|world| async move {
        let well = rt::now() + std::time::Duration::from_secs(5);
        Service::at(S1).serve(&world.scope, move |mut peer: Peer, _| async move {
            while peer.receive_head().await.is_some() {
                let status = if rt::now() < well { "503 Away" } else { "200 OK" };
                if !peer.try_send(format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n")).await {
                    return;
                }
            }
        });
        sleep(9_000).await;
        let down = "server_down app s1 L7STS/503 Away check";
        let expected = [
            "start - - - - process",
            down,
            "server_down app s3 via app/s1 - leader",
            "server_up app s1 L7OK/200 - check",
            "server_up app s3 via app/s1 - leader",
        ];
        assert_eq!(timeline("").await, expected);
        let begun = json("timeline?since=1&limit=1").await;
        assert_eq!(
            (&begun["last"], &begun["complete"], &begun["entries"][0]["id"]),
            (&5.into(), &false.into(), &5.into())
        );
        let text = json("timeline?kind=server_down&proxy=app").await["entries"][0]["text"].to_string();
        assert!(text.starts_with("\"Server app/s1 is DOWN, reason: Layer7 wrong status, code: 503"), "{text}");
        order("set server app/s2 state drain").await;
        order("set weight app/s2 50%").await;
        order("set server app/s2 state ready").await;
        order("disable server app/s1").await;
        let mut peer = Peer::connect(PAGE).await;
        peer.send("POST /api/v1/servers/app/s2 HTTP/1.0\r\nContent-Length: 11\r\n\r\nstate=maint").await;
        peer.receive_rest().await;
        assert_eq!(world.adopt(&sections(app)), Ok(()));
        sleep(5).await;
        let expected = [
            "server_drain app s2 - - cli",
            "server_weight app s2 - - cli",
            "server_ready app s2 - - cli",
            "server_maint app s1 - - cli",
            "server_maint app s3 via app/s1 - leader",
            "server_maint app s2 - - dashboard",
            "backend_down app - - - dashboard",
            "reload - - - - process",
        ];
        assert_eq!(timeline("since=5").await, expected);
        let text = json("timeline?kind=server_weight").await["entries"][0]["text"].clone();
        assert_eq!(text, "Server app/s2 has weight 5, it had 10.");
        for bad in ["timeline?since=x", "timeline?kind=server_down,other"] {
            assert_eq!(asked(bad).await.0, "400", "{bad}");
        }
        // Entries are pushed, those before the stream too.
        let mut peer = Peer::connect(PAGE).await;
        peer.send("GET /api/v1/events?samples=0&timeline=12 HTTP/1.0\r\n\r\n").await;
        let first = peer.receive_until("\n\nevent: timeline\ndata: ").await;
        assert!(!String::from_utf8_lossy(&first).contains("\"id\":12,"));
        peer.receive_until("\"id\":13,").await;
        order("enable server app/s2").await;
        peer.receive_until("\"kind\":\"server_ready\"").await;
        peer.receive_until("\"kind\":\"backend_up\"").await;
        // The stream detects within some seconds that its reader has disconnected.
        drop(peer);
        sleep(5_000).await;
        let known = world.shared().service::<live::timeline::Timeline>();
        assert!(known.is_on());
        let plain = config(&format!("{app}{}", PAGE_SECTION.replace(" stats dashboard\n", ""))).global(api::SOCKET);
        assert_eq!(world.adopt(&plain), Ok(()));
        sleep(5).await;
        order("disable server app/s2").await;
        assert!(!known.is_on() && known.since(0).is_empty());
    });
}

#[test]
fn lines_of_errors_are_found_by_their_proxies_and_their_ends() {
    let site = "frontend site\n bind 10.0.0.1:80\n log global\n option httplog\n http-request deny if { path /no }\n \
                use_backend gone if { path /gone }\n default_backend app\n";
    let backends = "backend app\n server s1 10.0.1.1:80\nbackend gone\n server s2 10.0.1.3:80\n retries 0\n";
    sections(&format!("{site}{backends}")).run(|world| async move {
        serve(&world, S1, "200 OK");
        for path in ["/a", "/no", "/gone", "/b"] {
            let mut client = Peer::connect(WEIR).await;
            client.send(format!("GET {path} HTTP/1.0\r\n\r\n")).await;
            client.receive_rest().await;
        }
        sleep(5).await;
        let all = json("errors").await;
        let lines = all["lines"].as_array().expect("lines");
        let short = |line: &Value| {
            let names = ["frontend", "backend", "server", "termination"].map(|name| line[name].as_str().unwrap_or("-"));
            format!("{} {} {}", line["id"], names.join(" "), line["status"])
        };
        let shown: Vec<String> = lines.iter().map(short).collect();
        assert_eq!(shown, ["1 site site - PR-- 403", "2 site gone s2 SC-- 503"]);
        assert!(lines[1]["line"].as_str().is_some_and(|line| line.contains("GET /gone HTTP/1.0")), "{all}");
        assert_eq!((&all["last"], &all["complete"]), (&2.into(), &true.into()));
        for (query, count) in [
            ("class=5", 1),
            ("status=403", 1),
            ("proxy=gone", 1),
            ("proxy=app", 0),
            ("termination=P", 1),
            ("since=2", 0),
        ] {
            let found = json(&format!("errors?{query}")).await;
            assert_eq!(found["lines"].as_array().map(Vec::len), Some(count), "{query}: {found}");
        }
        assert_eq!(asked("errors?class=9").await.0, "400");
        assert_eq!(asked("errors?since=-").await.0, "400");
        world.forget_log();
    });
}

#[test]
fn the_busiest_keys_of_a_table_come_first() {
    let site = "frontend site\n bind 10.0.0.1:80\n stick-table type string len 64 size 1k store http_req_cnt,server_id\n \
                http-request track-sc0 path\n http-request return status 200\n";
    let other = "backend other\n stick-table type string size 10 store server_key\n";
    sections(&format!("{site}{other}")).run(|world| async move {
        for (path, requests) in [("/a", 3), ("/b", 5), ("/c", 1), ("/d", 5)] {
            let mut client = Peer::connect(WEIR).await;
            for _ in 0..requests {
                client.send(get(path)).await;
                client.receive_until("\r\n\r\n").await;
            }
        }
        sleep(5).await;
        let top = json("tables/site/top?by=http_req_cnt&limit=3").await;
        let entries = top["entries"].as_array().expect("entries");
        let keys: Vec<(String, u64)> = entries
            .iter()
            .map(|entry| (entry["key"].to_string(), entry["data"]["http_req_cnt"].as_u64().unwrap_or(0)))
            .collect();
        assert_eq!(keys.iter().map(|(_, count)| *count).collect::<Vec<_>>(), [5, 5, 3], "{top}");
        assert_eq!(keys[2].0, "\"/a\"");
        assert_eq!((&top["scanned"], &top["complete"], &top["by"]), (&4.into(), &true.into(), &"http_req_cnt".into()));
        assert_eq!(json("tables/site/top").await["entries"].as_array().map(Vec::len), Some(4));
        for (path, status) in [
            ("tables/site/top?by=gpc0", "400"),
            ("tables/site/top?by=server_id", "200"),
            ("tables/other/top", "400"),
            ("tables/none/top", "404"),
        ] {
            assert_eq!(asked(path).await.0, status, "{path}");
        }
        drop(world);
    });
}
