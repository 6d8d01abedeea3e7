//! Tests of tools for developers: `show rules`, after measuring was enabled, and `debug counters`.

use testkit::Peer;

use crate::api::{self, ask};
use crate::messages::*;
use crate::world::*;

const RULES: &str = "
    tcp-request connection track-sc0 src table t
    tcp-request content accept if { src 10.9.9.9 }
    http-request deny deny_status 403 if { path /denied }
    http-request set-header x-a b if { path /edited }
    http-request set-var(txn.a) int(1)
    use_backend none if { path /none }
    use_backend other if { path /l }
    use-server s1 if { path /never }
    http-response set-header x-b c
    server s1 10.0.1.1:80
backend none
backend other
    server s1 10.0.1.1:80
backend t
    stick-table type ip size 10";

/// The lines of `show rules` about evaluated rules, without line numbers; times are 0 in a simulation.
fn measured(answer: &str) -> Vec<String> {
    let mut lines = answer.lines();
    assert_eq!(lines.next(), Some("# pxname,ruleset,place,hits,matched,total_ns,mean_ns,"));
    let rows = lines.filter(|line| !line.is_empty()).map(|line| {
        let fields: Vec<&str> = line.split(',').collect();
        assert!(fields[2].contains(':') && fields[5..] == ["0", "0", ""], "{line}");
        format!("{} {} {} {}", fields[0], fields[1], fields[3], fields[4])
    });
    rows.filter(|row| !row.ends_with(" 0 0")).collect()
}

async fn requests(paths: &[&str]) {
    for path in paths {
        let mut client = Peer::connect(WEIR).await;
        client.send(get(path)).await;
        assert!(client.receive_head().await.is_some());
    }
}

#[test]
fn rules_are_counted_where_that_is_asked_for() {
    listen(RULES).global(api::SOCKET).run(|world| async move {
        serve_ok(&world.scope, S1);
        requests(&["/edited"]).await;
        assert!(measured(&ask("show rules").await).is_empty());
        assert_eq!(ask("set profiling rules on").await, "\n");
        assert!(ask("show profiling status").await.contains("\nPer-rule profiling                  : on "));
        requests(&["/edited", "/denied", "/l", "/none"]).await;
        let rows = [
            "l tcp-request connection 4 4",
            "l tcp-request content 4 0",
            "l http-request 4 1",
            "l http-request 3 1",
            "l http-request 3 3",
            "l use_backend 3 1",
            "l use_backend 2 1",
            "l use-server 1 0",
            "l http-response 2 2",
        ];
        assert_eq!(measured(&ask("show rules").await), rows);
        assert_eq!(measured(&ask("show rules l").await), rows);
        assert!(measured(&ask("show rules bytime none").await).is_empty());
        assert_eq!(ask("show rules x").await, "No such proxy.\n\n");
        assert_eq!(ask("show rules l l").await, "Expects 'bytime', a proxy, or both.\n\n");
        assert_eq!(ask("set profiling rules off").await, "\n");
        requests(&["/denied"]).await;
        assert_eq!(measured(&ask("show rules").await), rows);
    });
}

#[test]
fn a_reload_in_place_begins_anew_with_what_the_configuration_says() {
    let with = |lines: &str| listen(&format!("{RULES}\n")).global(&format!("{}\n{lines}", api::SOCKET));
    with("profiling.rules on").run(move |world| {
        let off = with("profiling.rules off");
        let on = with("profiling.rules on\nnode x");
        async move {
            requests(&["/denied"]).await;
            assert_eq!(measured(&ask("show rules").await).len(), 3);
            assert_eq!(world.adopt(&on), Ok(()));
            requests(&["/denied", "/denied"]).await;
            assert_eq!(measured(&ask("show rules").await)[2], "l http-request 2 2");
            assert_eq!(world.adopt(&off), Ok(()));
            requests(&["/denied"]).await;
            assert!(measured(&ask("show rules").await).is_empty());
        }
    });
}

#[test]
fn rare_events_are_listed_reset_and_selected() {
    listen("server s1 10.0.1.1:80").global(api::SOCKET).seeds(0..1).run(|_| async move {
        let head = "Count     Type Location function(): \"condition\" [comment]\n";
        assert_eq!(ask("debug counters").await, "\n", "nothing has a head of nothing");
        let all = ask("debug counters show all").await;
        assert!(all.starts_with(&format!("{head}0          BUG executor.rs run(): \"a task panicked\"\n")), "{all}");
        let bugs = ask("debug counters all bug glt").await;
        let kinds: Vec<&str> = bugs.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
        assert_eq!(kinds, ["BUG", "GLT", "GLT", "GLT", "GLT", "GLT"]);
        for order in ["debug counters reset all", "debug counters on", "debug counters off"] {
            assert_eq!(ask(order).await, "\n");
        }
        let refused = "Expects an optional action ('reset','show','on','off'), optional types ('bug','chk','cnt','glt') and \
                       optionally 'all' to even dump null counters.\n\n";
        assert_eq!(ask("debug counters x").await, refused);
    });
}
