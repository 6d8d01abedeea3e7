//! MPTCP (RFC 8684) on both sides, if the kernel supports it.

use crate::support::{DEFAULTS, Folder, Running, connect, exchange, free_port, get};

/// Returns the number of MPTCP sockets on this machine (proc(5), `/proc/net/protocols`); `None`: not supported.
fn sockets() -> Option<u64> {
    let enabled = std::fs::read_to_string("/proc/sys/net/mptcp/enabled").ok()?;
    let protocols = std::fs::read_to_string("/proc/net/protocols").ok()?;
    let line = protocols.lines().find(|line| line.starts_with("MPTCP "))?;
    let count = line.split_whitespace().nth(2)?.parse().ok();
    count.filter(|_| enabled.trim() == "1")
}

#[test]
fn addresses_listen_and_servers_are_reached_by_mptcp() {
    let Some(before) = sockets() else {
        eprintln!("SKIPPED: the kernel has no MPTCP, addresses fall back to TCP");
        return;
    };
    let (folder, front, back) = (Folder::new(), free_port(), free_port());
    let text = format!(
        "{DEFAULTS}frontend fe\n bind mptcp4@127.0.0.1:{front}\n default_backend be\n\
         backend be\n server s1 mptcp@127.0.0.1:{back}\n\
         listen origin\n bind mptcp@127.0.0.1:{back}\n http-request return status 200 content-type text/plain string ok\n"
    );
    let file = folder.write("mptcp.cfg", &text);
    let _weir = Running::weir(&["-f", &file]);
    let mut client = connect(front);
    assert_eq!(exchange(&mut client, &get("/")), (200, "ok".to_owned()));
    // Two listening sockets, and two ends of the connection between both.
    let now = sockets().unwrap_or(0);
    assert!(now >= before + 4, "{now} after {before}");
}
