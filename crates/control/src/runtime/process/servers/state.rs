//! A line of `show servers state` (management manual, section 9.3). Must never change a server.

use std::fmt::Write as _;

use live::health::{CheckStatus, Health, Verdict};
use live::{Admin, Checker};
use policy::program::{Proxy, Server};

use super::super::super::Answer;
use super::super::super::call::Anonymization;
use super::{live, place};
use engine::resolve::Resolving;
use engine::worker::Worker;

/// Bits of `srv_admin_state`: forced, and configured.
const MAINTENANCE: u32 = 0x01;
const CONFIGURED_MAINTENANCE: u32 = 0x04;
const DRAIN: u32 = 0x08;
/// Inherited from the tracked server.
const INHERITED_MAINTENANCE: u32 = 0x02;
const INHERITED_DRAIN: u32 = 0x10;
/// Its name is not resolved.
const UNRESOLVED: u32 = 0x20;
/// Its FQDN was set at run time.
const RENAMED: u32 = 0x40;

/// Values of `srv_op_state`.
const STOPPED: u32 = 0;
const STARTING: u32 = 1;
const RUNNING: u32 = 2;
const STOPPING: u32 = 3;

/// Bit of `srv_check_state` for a server that the configuration disables.
const CHECKS_PAUSED: u32 = 0x08;
/// Configured, and enabled.
const CHECKS_CONFIGURED: u32 = 0x02;
const CHECKS_ENABLED: u32 = 0x04;
/// Agent check.
const CHECKS_AGENT: u32 = 0x10;
/// Values of `srv_check_result`.
const UNKNOWN: u32 = 0;
const FAILED: u32 = 2;
const PASSED: u32 = 3;
const CONDITIONAL: u32 = 4;

pub(super) fn write_state(answer: &mut Answer, worker: &Worker, proxy: &Proxy, server: &Server, hiding: Anonymization) {
    let Some(status) = live(worker, proxy).status(server.index) else { return };
    let by_hand = match status.forced {
        Admin::Ready => 0,
        Admin::Drain => DRAIN,
        Admin::Maintenance => MAINTENANCE,
    };
    let inherited = u32::from(status.inherited.maintenance) * INHERITED_MAINTENANCE
        + u32::from(status.inherited.drain) * INHERITED_DRAIN;
    // The configured state is reported for the life of the process.
    let (configured, checks) = if server.disabled { (CONFIGURED_MAINTENANCE, CHECKS_PAUSED) } else { (0, 0) };
    let named = worker.process.service::<Resolving>().named(server.serial);
    let of_name = (u32::from(!status.resolved) * UNRESOLVED) | (u32::from(named.was_given) * RENAMED);
    let (admin, weight) = (by_hand | inherited | configured | of_name, status.weight);
    let health = live(worker, proxy).health(server.index, Checker::Health);
    let last = health.as_ref().map_or(CheckStatus::Initializing, |health| health.last().status);
    let untouched = status.former_level == 0
        && status.changed.at.is_none()
        && !server.disabled
        && status.admin != Admin::Maintenance;
    let unchecked = if untouched { server.unchecked_level } else { status.former_level };
    let level = health.as_ref().map_or(unchecked, Health::level);
    let result = match last.verdict() {
        None => UNKNOWN,
        Some(Verdict::Failed) => FAILED,
        Some(Verdict::Passed) => PASSED,
        Some(Verdict::Conditional) => CONDITIONAL,
    };
    let checks = match &health {
        None => checks,
        Some(health) => check_state(health) | (u32::from(health.is_paused()) * CHECKS_PAUSED),
    };
    let agent = live(worker, proxy).health(server.index, Checker::Agent);
    let agent = agent.map_or(0, |agent| CHECKS_AGENT | check_state(&agent));
    let targets = targets(worker, server);
    let (address, port) = place(worker, server);
    let address = hiding.address(&address);
    let since = status.changed.at.unwrap_or_else(|| worker.process.host.started().0);
    let since = rt::now().saturating_since(since).as_secs();
    let _ = writeln!(
        answer,
        "{} {} {} {} {address} {} {admin} {weight} {} {since} {} {result} {level} {checks} {agent} {} {} {} {port} {} {} \
         {targets}",
        proxy.id,
        hiding.name(&proxy.name),
        server.id,
        hiding.name(&server.name),
        match status.admin {
            Admin::Maintenance => STOPPED,
            _ if !status.up || status.ejected => STOPPED,
            _ if status.stopping => STOPPING,
            _ if status.throttle < 100 => STARTING,
            _ => RUNNING,
        },
        server.weight,
        last.number(),
        u8::from(proxy.id_is_written),
        u8::from(server.id_is_written),
        named.host.as_deref().map_or("-".into(), |host| hiding.name(host)),
        engine::resolve::service(server).map_or("-".into(), |name| hiding.name(name)),
        uses_tls(server),
    );
}

/// Whether traffic uses TLS; -1: the configuration disables it.
fn uses_tls(server: &Server) -> i8 {
    match &server.connecting.tls {
        Some(tls) if tls.carries_traffic() => 1,
        Some(tls) if tls.traffic.was_changed() => 0,
        _ => -i8::from(server.connecting.no_ssl),
    }
}

/// Returns the targets of the health check (port, address) and of the agent check (address, port).
fn targets(worker: &Worker, server: &Server) -> String {
    let orders =
        (worker.process.checks.targets.check(server.serial), worker.process.checks.targets.agent(server.serial));
    let shown = |ip: Option<std::net::IpAddr>| ip.map_or_else(|| "-".to_owned(), |ip| ip.to_string());
    let (check, agent) = policy::program::saved_state::configured_targets(server);
    let check_port = orders.0.port.or(check.port).unwrap_or(0);
    let check_address = shown(orders.0.address.or(check.address));
    let agent_address = shown(orders.1.address.or(agent.address));
    let agent_port = orders.1.port.or(agent.port).unwrap_or(0);
    format!("{check_port} {check_address} {agent_address} {agent_port}")
}

fn check_state(health: &Health) -> u32 {
    let enabled = if health.is_enabled() { CHECKS_ENABLED } else { 0 };
    CHECKS_CONFIGURED | enabled | u32::from(health.is_running())
}
