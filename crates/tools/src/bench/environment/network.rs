//! Checks of the network: ports, queues, the loopback interface, the balancer of device interrupts.

use super::{Finding, RunRequirements, judged, well};
use crate::bench::procfs::{self, read};

/// Default MTU of the loopback interface, in bytes.
const USUAL_MTU: u64 = 65_536;

pub fn check(needs: &RunRequirements<'_>) -> Vec<Finding> {
    let setting = |name: &str| read(&format!("/proc/sys/net/{name}"));
    vec![
        ports(&setting("ipv4/ip_local_port_range"), needs.connections()),
        time_wait(&setting("ipv4/tcp_tw_reuse"), needs.closes()),
        queue(&setting("core/somaxconn"), needs.connections()),
        congestion(setting("ipv4/tcp_congestion_control").trim()),
        loopback(&read("/sys/class/net/lo/mtu")),
        balancer(procfs::processes().values().any(|stat| stat.name == "irqbalance")),
    ]
}

fn ports(range: &str, connections: u64) -> Finding {
    let ends: Vec<u64> = range.split_whitespace().filter_map(|end| end.parse().ok()).collect();
    let [first, last] = ends[..] else { return well("ports", "not told") };
    let number = (last + 1).saturating_sub(first);
    judged(
        "ports",
        format!("{number} for connections to one address ({first} to {last}), {connections} connections"),
        // A connection may outlive its request for some time, on both sides.
        number < connections + connections / 4,
        "connections will fail: sysctl net.ipv4.ip_local_port_range='1024 65535'",
    )
}

fn time_wait(reuse: &str, closes: bool) -> Finding {
    let reuse = reuse.trim();
    let off = reuse == "0";
    let seen = match reuse {
        "0" => "are not used again for a minute",
        "1" => "are used again after a second",
        "2" => "are used again after a second on the loopback",
        _ => "not told",
    };
    let seen = if closes { format!("{seen}; this load closes its connections") } else { seen.to_owned() };
    judged(
        "closed ports",
        seen,
        off && closes,
        "a load of more than some 470 connections a second runs out of ports: sysctl net.ipv4.tcp_tw_reuse=2",
    )
}

fn queue(most: &str, connections: u64) -> Finding {
    let most = most.trim().parse::<u64>().unwrap_or(0);
    judged(
        "queue of listeners",
        format!("at most {most} connections"),
        // More do not arrive at the same time: the load opens them as fast as one thread can.
        most < connections.min(4096),
        "connections that come at once are dropped and tried again after a second: sysctl net.core.somaxconn=65535",
    )
}

fn congestion(control: &str) -> Finding {
    let seen = if control.is_empty() { "not told" } else { control };
    judged(
        "congestion control",
        seen,
        control == "bbr",
        "it paces what is sent with timers, which costs time that few machines spend: sysctl \
         net.ipv4.tcp_congestion_control=cubic",
    )
}

fn loopback(mtu: &str) -> Finding {
    let mtu = mtu.trim().parse::<u64>().unwrap_or(0);
    judged(
        "loopback",
        format!("packets of {mtu} bytes"),
        mtu != USUAL_MTU,
        "figures are not comparable with those of other machines: ip link set lo mtu 65536",
    )
}

fn balancer(runs: bool) -> Finding {
    let seen = if runs { "irqbalance runs" } else { "irqbalance does not run" };
    judged(
        "interrupt affinity",
        seen,
        runs,
        "interrupts wander while something is measured: stop irqbalance, and bind them to processors that the proxy does not use",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_judged_by_what_the_load_needs() {
        assert_eq!(ports("32768\t60999\n", 1000).warning, None);
        assert_eq!(ports("32768\t60999\n", 1000).seen.split(' ').next(), Some("28232"));
        assert!(ports("32768 60999", 28000).warning.is_some());
        assert_eq!(ports("", 28000).seen, "not told");
        assert!(time_wait("0\n", true).warning.is_some());
        assert!(time_wait("0\n", false).warning.is_none() && time_wait("2\n", true).warning.is_none());
        assert!(queue("128\n", 1000).warning.is_some());
        assert!(queue("128\n", 64).warning.is_none() && queue("4096", 100_000).warning.is_none());
        assert!(congestion("bbr").warning.is_some() && congestion("cubic").warning.is_none());
        assert!(loopback("1500\n").warning.is_some() && loopback("65536\n").warning.is_none());
        assert!(balancer(true).warning.is_some() && balancer(false).warning.is_none());
    }
}
