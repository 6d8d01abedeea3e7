//! Tests of signed tokens: whether the token may select that it needs no signature (`tune.jwt-none`).

use testkit::Peer;

use crate::world::*;

/// A header that selects HS256, one that selects `none`, and the payload `{}`.
const SIGNED: &str = "eyJhbGciOiJIUzI1NiJ9.e30.XmNK3GpH3Ys_7wsYBfq4C3M6goz71I7dTgUkuIa5lyQ";
const UNSIGNED: &str = "eyJhbGciOiJub25lIn0.e30.";

/// Answers with the results of verifications: the algorithm from the token, and written.
const RULES: &str = "http-request set-var(txn.t) req.hdr(t)\n\
     http-request set-var(txn.alg) var(txn.t),jwt_header_query('$.alg')\n\
     http-request return status 200 content-type text/plain lf-string \
     \"%[var(txn.t),jwt_verify(txn.alg,secret)] %[var(txn.t),jwt_verify_cert(none,x)] %[var(txn.t),jwt_verify_cert(txn.alg,x)]\"";

async fn verified(token: &str) -> String {
    let mut client = Peer::connect(WEIR).await;
    client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nT: {token}\r\nConnection: close\r\n\r\n")).await;
    let answer = String::from_utf8(client.receive_rest().await).unwrap();
    answer.rsplit("\r\n").next().unwrap_or_default().to_owned()
}

#[test]
fn a_token_selects_no_missing_signature_where_that_is_excluded() {
    let rows = [("", "1 1 1"), ("tune.jwt-none accept", "1 1 1"), ("tune.jwt-none reject", "-2 1 -2")];
    for (line, unsigned) in rows {
        listen(RULES).global(line).run(move |_| async move {
            assert_eq!(verified(UNSIGNED).await, unsigned, "{line}");
            assert_eq!(verified(SIGNED).await, "1 0 -2", "{line}");
            // With something in the place of the signature it was never valid.
            let forged = if line.ends_with("reject") { "-2 0 -2" } else { "0 0 0" };
            assert_eq!(verified(&format!("{UNSIGNED}YQ")).await, forged, "{line}");
        });
    }
}
