//! Tests of stick tables that are added, removed and changed by a new configuration: the others keep their entries, and
//! established connections keep their table.

use testkit::{Peer, Service, sleep};

use crate::api;
use crate::messages::*;
use crate::world::*;

/// A frontend that counts requests in the table of `counts`, and denies a client's after the third.
fn counted(table: &str, more: &str) -> Worlds {
    let text = format!(
        "frontend web\n bind 10.0.0.1:80\n http-request track-sc0 int(7) table counts\n \
         http-request deny if {{ sc_http_req_cnt(0) gt 3 }}\n default_backend app\n\
         {more}backend app\n server s1 10.0.1.1:80\nbackend counts\n stick-table {table}\n"
    );
    config(&text).global(api::SOCKET)
}

fn serve(world: &World) {
    Service::at(S1).serve(&world.scope, |mut peer: Peer, _| async move {
        while peer.receive_head().await.is_some() && peer.try_send(answer("s1")).await {}
    });
}

async fn is_answered(client: &mut Peer) {
    client.send(GET).await;
    client.expect(answer_at_client("s1")).await;
}

async fn is_denied(client: &mut Peer) {
    client.send(GET).await;
    client.expect(page(403)).await;
}

async fn adopt(world: &World, next: &Worlds) {
    assert_eq!(world.adopt(next), Ok(()));
    sleep(5).await;
}

const SMALL: &str = "type integer size 10 expire 1h store http_req_cnt";

/// A changed table is empty for new connections; established ones continue with the old one.
#[test]
fn a_table_that_changes_is_another_one_of_the_same_name() {
    counted(SMALL, "").workers(&[1, 2]).run(|world| async move {
        serve(&world);
        let mut old = Peer::connect(WEIR).await;
        for _ in 0..2 {
            is_answered(&mut old).await;
        }
        adopt(&world, &counted("type integer size 20 expire 1h store http_req_cnt,gpc0", "")).await;
        let mut new = Peer::connect(WEIR).await;
        for _ in 0..3 {
            is_answered(&mut new).await;
        }
        is_answered(&mut old).await;
        is_denied(&mut old).await;
        is_denied(&mut new).await;
        let shown = api::ask("show table counts").await;
        assert!(shown.contains("size:20, used:1") && shown.contains("http_req_cnt=4"), "{shown}");
        // An unchanged table keeps its entries.
        adopt(&world, &counted("type integer size 20 expire 1h store http_req_cnt,gpc0", "backend unused\n")).await;
        is_denied(&mut Peer::connect(WEIR).await).await;
        let shown = api::ask("show table").await;
        assert_eq!(shown.matches("table: ").count(), 1, "{shown}");
        // The first table's entry is freed with its last connection.
        let first = world.shared().live.tables.get(0).cloned().expect("the first table");
        assert_eq!(first.used(), 1);
        drop(old);
        sleep(3_000).await;
        assert_eq!((first.used(), world.shared().generations()), (0, 2));
    });
}

/// Tables are added and removed while one stays, anywhere in the file; backends added by commands find theirs.
#[test]
fn tables_come_and_go_and_the_others_stay_as_they_are() {
    let more = |number: usize| {
        format!(
            "backend t{number}\n stick-table type ip size 5 store gpc0\n\
             frontend f{number}\n bind 10.0.0.1:9{number}\n http-request track-sc1 src table t{number}\n default_backend app\n"
        )
    };
    counted(SMALL, &more(0)).workers(&[1, 2]).run(move |world| async move {
        serve(&world);
        let mut client = Peer::connect(WEIR).await;
        let mut old = Peer::connect("10.0.0.1:90").await;
        is_answered(&mut client).await;
        is_answered(&mut old).await;
        for number in 1..6 {
            adopt(&world, &counted(SMALL, &more(number))).await;
            is_answered(&mut Peer::connect(&format!("10.0.0.1:9{number}")).await).await;
            is_answered(&mut old).await;
            let shown = api::ask("show table").await;
            let sizes =
                [format!("table: t{number}, type: ip, size:5, used:1"), "table: counts, type: integer".to_owned()];
            assert!(sizes.iter().all(|size| shown.contains(size)), "{shown}");
            assert_eq!(shown.matches("table: ").count(), 2, "{shown}");
        }
        is_answered(&mut client).await;
        adopt(&world, &counted(SMALL, "")).await;
        is_answered(&mut Peer::connect(WEIR).await).await;
        is_denied(&mut client).await;
        let shown = api::ask("show table counts").await;
        assert!(shown.contains("http_req_cnt=4"), "{shown}");
    });
}
