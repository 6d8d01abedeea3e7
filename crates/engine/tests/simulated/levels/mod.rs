//! Tests of the level of a stats socket that permits each command, compared with a table of HAProxy's
//! (`bench/levels.py`).

use testkit::Peer;

use crate::world::*;

const TABLE: &str = include_str!("haproxy.tsv");

/// Commands that need a higher level than in HAProxy, with the reason.
const STRICTER: [(&str, &str); 1] = [("clear table nope key a", "the level is compared before the arguments")];

async fn ask(port: u16, command: &str) -> String {
    let mut peer = Peer::connect(&format!("10.0.0.2:{port}")).await;
    peer.send(format!("{command}\n")).await;
    peer.half_close();
    String::from_utf8(peer.receive_rest().await).unwrap()
}

/// Every command is denied below the level at which HAProxy permits it, and those of the level `user` are permitted
/// there.
#[test]
fn commands_are_permitted_where_haproxy_permits_them() {
    let sections = "resolvers r\n nameserver n 10.0.3.1:53\ncache c\n total-max-size 1\nring rr\n size 1000\nfrontend f\n bind \
                    10.0.0.1:80\n default_backend b\nbackend b\n server s 10.0.1.1:80\nbackend t\n stick-table type string size \
                    10 store gpc0";
    let sockets = "stats socket 10.0.0.2:9001 level user\nstats socket 10.0.0.2:9002 level operator";
    config(sections).global(sockets).workers(&[1]).seeds(0..1).run(|world| async move {
        let mut wrong = Vec::new();
        for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
            let (command, level) = line.split_once('\t').unwrap();
            let is_stricter = STRICTER.iter().any(|(own, _)| *own == command);
            // A command that runs until its client disconnects shows its level as well.
            let answers = [ask(9001, command).await, ask(9002, command).await];
            if answers[0].contains("Unknown") || is_stricter {
                continue;
            }
            let denied = answers.map(|answer| answer.contains("Permission denied"));
            let expected = match level {
                "user" => [false, false],
                "operator" => [true, false],
                _ => [true, true],
            };
            if denied != expected {
                wrong.push(format!("{command}: {level}, denied {denied:?}"));
            }
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
        world.forget_log();
    });
}
