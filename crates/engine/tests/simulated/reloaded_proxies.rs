//! Tests of proxies that are added, removed and reordered by a new configuration: unchanged ones keep their state, and
//! sessions that have begun are served to their ends with their own configuration.

use testkit::{Peer, PeerOptions, Service, sleep};

use crate::api;
use crate::messages::*;
use crate::world::*;

const OTHER: &str = "10.0.0.1:81";

/// The configuration with these sections, and the socket of the runtime API.
pub(crate) fn sections(text: &str) -> Worlds {
    config(text).global(api::SOCKET)
}

/// Starts a server whose answers contain its name.
fn serve(world: &World, address: &str, name: &'static str) {
    Service::at(address).serve(&world.scope, move |mut peer: Peer, _| async move {
        while peer.receive_head().await.is_some() {
            if !peer.try_send(answer(name)).await {
                return;
            }
        }
    });
}

async fn is_answered(client: &mut Peer, path: &str, name: &str) {
    client.send(get(path)).await;
    client.expect(answer_at_client(name)).await;
}

/// The rows of `show stat`: proxy, service, number of the proxy, sessions so far.
async fn rows() -> Vec<String> {
    let shown = api::ask("show stat").await;
    let mut lines = shown.lines();
    let columns: Vec<&str> = lines.next().unwrap_or_default().trim_start_matches("# ").split(',').collect();
    let at = |name| columns.iter().position(|column| *column == name).expect("a column");
    let places = [0, 1, at("iid"), at("stot")];
    let row = |line: &str| {
        let cells: Vec<&str> = line.split(',').collect();
        places.map(|place| cells[place]).join(" ")
    };
    lines.filter(|line| !line.is_empty()).map(row).collect()
}

const WEB: &str = "frontend web\n bind 10.0.0.1:80\n use_backend static if { path_beg /s }\n default_backend app\n";
const APP: &str = "backend app\n server s1 10.0.1.1:80\n";
const STATIC: &str = "backend static\n server s2 10.0.1.2:80 weight 100\n";

#[test]
fn what_stays_keeps_its_state_wherever_it_is_written() {
    let first = || format!("{WEB}{APP}{STATIC}");
    sections(&first()).run(|world| async move {
        serve(&world, S1, "s1");
        serve(&world, S2, "s2");
        let mut old = Peer::connect(WEIR).await;
        is_answered(&mut old, "/", "s1").await;
        is_answered(&mut old, "/s", "s2").await;
        api::order("set server static/s2 weight 50%").await;
        let api = "frontend api\n bind 10.0.0.1:81\n default_backend static\n";
        let more = "backend more\n server s1 10.0.1.1:80 check inter 100ms\n";
        let web = WEB.replace("default_backend", "use_backend more if { path /m }\n default_backend");
        assert_eq!(world.adopt(&sections(&format!("{api}{more}{STATIC}{APP}{web}"))), Ok(()));
        sleep(300).await;
        let mut new = Peer::connect(WEIR).await;
        for (path, name) in [("/", "s1"), ("/s", "s2"), ("/m", "s1")] {
            is_answered(&mut new, path, name).await;
        }
        is_answered(&mut old, "/m", "s1").await;
        is_answered(&mut Peer::connect(OTHER).await, "/m", "s2").await;
        sleep(5).await;
        let expected = [
            "web FRONTEND 2 2",
            "app s1 3 3",
            "app BACKEND 3 3",
            "static s2 4 3",
            "static BACKEND 4 3",
            "api FRONTEND 5 1",
            "more s1 6 1",
            "more BACKEND 6 1",
        ];
        assert_eq!(rows().await, expected);
        assert!(api::ask("get weight static/s2").await.starts_with("50 (initial 100)"));
        assert!(api::ask("show servers state more").await.contains(" more 1 s1 "));
        api::order("disable server more/s1").await;
        new.send(get("/m")).await;
        new.expect(page(503)).await;
        api::order("enable server more/s1").await;
        is_answered(&mut new, "/m", "s1").await;
        // The added ones are removed.
        drop((old, new));
        assert_eq!(world.adopt(&sections(&first())), Ok(()));
        sleep(5_000).await;
        assert_eq!(
            rows().await,
            ["web FRONTEND 2 2", "app s1 3 3", "app BACKEND 3 3", "static s2 4 3", "static BACKEND 4 3"]
        );
        world.forget_log();
    });
}

#[test]
fn a_backend_that_goes_serves_the_sessions_that_have_it() {
    sections(&format!("{WEB}{APP}{STATIC}")).run(|world| async move {
        serve(&world, S1, "s1");
        serve(&world, S2, "s2");
        let mut old = Peer::connect(WEIR).await;
        is_answered(&mut old, "/s", "s2").await;
        let web = WEB.replace(" use_backend static if { path_beg /s }\n", "");
        assert_eq!(world.adopt(&sections(&format!("{web}{APP}"))), Ok(()));
        sleep(5).await;
        is_answered(&mut Peer::connect(WEIR).await, "/s", "s1").await;
        is_answered(&mut old, "/s", "s2").await;
        assert!(!api::ask("show stat").await.contains("static"));
        assert!(api::ask("set server static/s2 state maint").await.contains("No such"));
        assert!(world.shared().live.proxies[2].removed(0).is_none());
        drop(old);
        sleep(5_000).await;
        assert!(world.shared().live.proxies[2].removed(0).is_some());
        // It returns, in a new slot, and once more as the first of all.
        assert_eq!(world.adopt(&sections(&format!("{WEB}{APP}{STATIC}"))), Ok(()));
        sleep(5).await;
        is_answered(&mut Peer::connect(WEIR).await, "/s", "s2").await;
        assert_eq!(world.adopt(&sections(&format!("{STATIC}{WEB}{APP}"))), Ok(()));
        sleep(5).await;
        is_answered(&mut Peer::connect(WEIR).await, "/s", "s2").await;
        assert!(rows().await.contains(&"static BACKEND 5 2".to_owned()), "{:?}", rows().await);
    });
}

#[test]
fn a_frontend_goes_with_its_address_and_its_connections_stay() {
    let both = format!("frontend api\n bind {OTHER}\n default_backend app\n{WEB}{APP}{STATIC}");
    sections(&both).run(|world| async move {
        serve(&world, S1, "s1");
        serve(&world, S2, "s2");
        let mut old = Peer::connect(OTHER).await;
        is_answered(&mut old, "/", "s1").await;
        assert_eq!(world.adopt(&sections(&format!("{WEB}{STATIC}{APP}"))), Ok(()));
        sleep(50).await;
        is_answered(&mut old, "/", "s1").await;
        is_answered(&mut Peer::connect(WEIR).await, "/s", "s2").await;
        assert!(Peer::try_connect(OTHER, PeerOptions::default()).await.is_err());
        assert_eq!(rows().await.len(), 5, "{:?}", rows().await);
    });
}

/// A stick table belongs to its proxy wherever that is in the file, and is removed with it.
#[test]
fn entries_of_stick_tables_stay_with_their_proxies() {
    let tracked = |number: u32| {
        format!(
            "frontend web{number}\n bind 10.0.0.1:8{number}\n http-request track-sc0 src table t{number}\n default_backend app\n"
        )
    };
    let table = |number: u32| format!("backend t{number}\n stick-table type ip size 10 expire 1h store http_req_cnt\n");
    let first = format!("{}{}{}{}{APP}", tracked(0), tracked(1), table(0), table(1));
    let first: &'static str = first.leak();
    sections(first).run(move |world| async move {
        serve(&world, S1, "s1");
        for address in [WEIR, OTHER, OTHER] {
            is_answered(&mut Peer::connect(address).await, "/", "s1").await;
        }
        let next = format!("{APP}{}{}backend new\n{}{}", table(0), tracked(1), tracked(0), table(1));
        assert_eq!(world.adopt(&sections(&next)), Ok(()));
        sleep(5).await;
        is_answered(&mut Peer::connect(OTHER).await, "/", "s1").await;
        for (table, count) in [("t0", 1), ("t1", 3)] {
            let shown = api::ask(&format!("show table {table}")).await;
            assert!(shown.contains(&format!("http_req_cnt={count}")), "{shown}");
        }
        assert_eq!(world.adopt(&sections(&format!("{}{APP}{}", tracked(1), table(1)))), Ok(()));
        sleep(5).await;
        is_answered(&mut Peer::connect(OTHER).await, "/", "s1").await;
        let shown = api::ask("show table").await;
        assert!(shown.contains("table: t1,") && !shown.contains("table: t0,"), "{shown}");
        let shown = api::ask("show table t1").await;
        assert!(shown.contains("http_req_cnt=4"), "{shown}");
    });
}

#[test]
fn backends_of_the_runtime_api_go_and_others_may_have_their_names() {
    let with = |lines: &str| {
        let web =
            WEB.replace("default_backend", "use_backend %[path,field(2,/)] if { path_beg /to/ }\n default_backend");
        let text = format!("{}{APP}{STATIC}{lines}", web.replace("field(2,/)", "field(3,/)"));
        sections(&format!(
            "defaults http\n mode http\n timeout server 3s\n timeout connect 3s\n timeout client 3s\n{text}"
        ))
    };
    with("").run(move |world| async move {
        serve(&world, S1, "s1");
        serve(&world, S2, "s2");
        assert!(api::ask("add backend fresh from http").await.contains("registered"));
        assert!(api::ask("experimental-mode on; add server fresh/s1 10.0.1.1:80").await.contains("registered"));
        api::ask("enable server fresh/s1; publish backend fresh").await;
        let mut old = Peer::connect(WEIR).await;
        is_answered(&mut old, "/to/fresh", "s1").await;
        assert_eq!(world.adopt(&with("")), Ok(()));
        sleep(5).await;
        // No rule leads there now.
        is_answered(&mut Peer::connect(WEIR).await, "/to/fresh", "s1").await;
        assert!(!api::ask("show stat").await.contains("fresh"));
        assert_eq!(world.adopt(&with("backend fresh\n server s2 10.0.1.2:80\n")), Ok(()));
        sleep(5).await;
        is_answered(&mut Peer::connect(WEIR).await, "/to/fresh", "s2").await;
        assert!(api::ask("show stat").await.contains("fresh,s2,"));
    });
}

/// Sessions of the previous configuration would search in their own lists, which differ.
#[test]
fn a_server_whose_name_is_in_a_list_that_changes_too_needs_a_new_process() {
    let with = |rules: &str, servers: &str| listen(&format!("{rules} server s1 10.0.1.1:80\n{servers}"));
    let list = " http-request deny if { path,map_str(opt@a.map) -m str x }\n";
    let asking = " server s2 10.0.1.2:80 send-proxy-v2 set-proxy-v2-tlv-fmt(0x20) %[src,map_ip(opt@b.map)]\n";
    with(list, "").workers(&[1]).seeds(0..1).run(move |world| async move {
        let refused = world.adopt(&with("", asking));
        let what = "lists of patterns that server s2 of proxy l asks".to_owned();
        assert_eq!(refused, Err(engine::Refusal::Differs(what)));
    });
}
