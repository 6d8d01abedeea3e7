//! Every `timeout`, to the millisecond (configuration manual, section 4.2).

use testkit::{Peer, Service, Stopwatch, sleep};

use crate::messages::*;
use crate::world::*;

#[test]
fn server_before_the_answer() {
    listen("timeout server 200ms\n server s1 10.0.1.1:80").run(|world| async move {
        let mut s1 = Service::at(S1);
        let mut client = Peer::connect(WEIR).await;
        client.send(GET).await;
        let mut server = s1.accept().await;
        server.expect(GET_AT_SERVER).await;
        let watch = Stopwatch::start();
        client.expect(page(504)).await;
        watch.took(200);
        server.expect_end().await;
        world.expect_log(&[r#"l l/s1 0/0/0/-1/200 504 # - - sH-- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        client.send(GET).await;
        let mut server = s1.accept().await;
        server.expect(GET_AT_SERVER).await;
        server.send(OK).await;
        client.expect(OK_AT_CLIENT).await;
        world.expect_log(&[r#"l l/s1 0/0/0/0/0 200 # - - ---- 1/1/0/0/0 0/0 "GET / HTTP/1.1""#]).await;
        sleep(1).await;
    });
}
