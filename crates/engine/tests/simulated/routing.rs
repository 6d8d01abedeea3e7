//! Tests of tables of routes (`req.route`) over HTTP/1 and HTTP/2, and of changes by the runtime API and by reloads in
//! place while requests are served.

use std::cell::Cell;
use std::rc::Rc;

use testkit::{Peer, sleep};

use crate::api::*;
use crate::messages::*;
use crate::parts::End;
use crate::world::*;

/// The contents of `routes.map`.
pub const TABLE: &str = "*/a/* a\nb.test/* b\n";

/// A frontend with a table of routes, and backends that answer with their name.
fn routed(more: &str) -> Worlds {
    let mut text =
        format!("frontend f\n bind {WEIR}\n {more}\n use_backend %[req.route(routes.map)]\n default_backend none\n");
    for name in ["a", "b", "none"] {
        text += &format!("backend {name}\n http-request return status 200 hdr at {name}\n");
    }
    config(&text).global(SOCKET)
}

fn at(head: &str) -> String {
    head.lines().find_map(|line| line.strip_prefix("at: ")).unwrap_or("?").to_owned()
}

/// Returns the backends of a request over HTTP/1 and over HTTP/2.
async fn backends(host: &str, path: &str) -> [String; 2] {
    let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n");
    let mut one = Peer::connect(WEIR).await;
    one.send(&request).await;
    let first = at(&one.receive_head().await.unwrap());
    let mut two = End::connect().await;
    two.send(crate::parts::Part::HeadAlone, 1, &request).await;
    [first, at(&two.message(1).await.head)]
}

async fn leads(host: &str, path: &str, backend: &str) {
    assert_eq!(backends(host, path).await, [backend, backend], "{host}{path}");
}

#[test]
fn requests_follow_the_table_and_its_changes() {
    routed("").workers(&[1, 2]).seeds(0..2).run(|_| async move {
        leads("x.test", "/a", "a").await;
        leads("x.test", "/a/b?c", "a").await;
        leads("x.test", "/ab", "none").await;
        leads("B.test:80", "/a", "b").await;
        // A bad key is refused, and nothing is lost.
        let refused = ask("add map routes.map *.test/a\\;metod=GET b").await;
        let why = "'method=', 'header:<name>', 'query:<name>' or 'order=' is expected after ';'.";
        assert_eq!(refused, format!("{why}\n    *.test/a;metod=GET\n             ^\n\n"));
        leads("x.test", "/a", "a").await;
        order("add map routes.map *.test/a\\;method=GET b").await;
        leads("x.test", "/a", "b").await;
        order("set map routes.map *.test/a\\;method=GET none").await;
        leads("x.test", "/a", "none").await;
        order("del map routes.map *.test/a\\;method=GET").await;
        leads("x.test", "/a", "a").await;
        order("del map routes.map b.test/*").await;
        leads("b.test", "/b", "none").await;
        assert_eq!(ask("del map routes.map b.test/*").await, "Key not found.\n\n");
        let shown = ask("get map routes.map b.test/a/b").await;
        let expected = "type=route, case=sensitive, found=yes, idx=tree, key=\"*/a/*\", value=\"a\", type=\"str\"\n\n";
        assert_eq!(shown, expected);
        let listed = ask("show map routes.map").await;
        assert!(listed.lines().count() == 2 && listed.contains(" */a/* a\n"), "{listed}");
    });
}

/// Every request is answered by the old table or by the new one, and requests after a commit by the new one.
#[test]
fn a_version_is_committed_under_traffic() {
    routed("").workers(&[1, 2]).seeds(0..2).run(|world| async move {
        let (done, both) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        let (count, fast) = (Rc::clone(&done), Rc::clone(&both));
        world.scope.spawn(async move {
            let mut peer = Peer::connect(WEIR).await;
            loop {
                peer.send(get("/a/b")).await;
                let Some(head) = peer.receive_head().await else { return };
                assert!(["a", "b"].contains(&&*at(&head)), "{head}");
                count.set(count.get() + 1);
            }
        });
        world.scope.spawn(async move {
            let mut end = End::connect().await;
            for stream in (1..).step_by(2) {
                end.get(stream, "/a/b").await;
                let head = end.message(stream).await.head;
                assert!(["a", "b"].contains(&&*at(&head)), "{head}");
                fast.set(fast.get() + 1);
            }
        });
        let served = async |more: u32| {
            let (one, two) = (done.get() + more, both.get() + more);
            while done.get() < one || both.get() < two {
                sleep(1).await;
            }
        };
        served(5).await;
        for (version, backend) in [(1, "b"), (2, "a"), (3, "b")] {
            assert_eq!(ask("prepare map routes.map").await, format!("New version created: {version}\n\n"));
            order(&format!("add map @{version} routes.map */a/* {backend}")).await;
            served(2).await;
            order(&format!("commit map @{version} routes.map")).await;
            leads("x.test", "/a/b", backend).await;
            served(2).await;
        }
    });
}

#[test]
fn a_reload_in_place_keeps_the_changes() {
    routed("").workers(&[1, 2]).seeds(0..2).run(|world| async move {
        order("add map routes.map x.test/* b").await;
        leads("x.test", "/a", "b").await;
        assert_eq!(world.adopt(&routed("http-request set-header x y")), Ok(()));
        sleep(5).await;
        leads("x.test", "/a", "b").await;
        leads("y.test", "/a", "a").await;
    });
}
