//! Servers whose state is restored from another process.

use super::*;
use crate::health::{CheckStatus, Operation};
use crate::saved_state::entries;
use config::spec::InitialState;
use std::time::Duration;

/// A backend with one server created by `change`, restored from a line with those fields.
fn resumed(change: impl FnOnce(&mut ServerPlan), fields: &str) -> (ServerStatus, Option<u32>) {
    let mut proxy = plan(BalanceSpec::RoundRobin, &[Plan(11, 0, 0), Plan(1, 0, 0)]);
    change(&mut proxy.servers[0]);
    let server = proxy.servers[0];
    let state = state_of(proxy);
    let text = format!("1\n2 be 1 s1 127.0.0.1 {fields} 0 0 0 0 - 80 - 0\n");
    let saved = entries(text.as_bytes(), |_, _| true).unwrap()[0].state().unwrap();
    let now = Moment::ZERO + Duration::from_secs(100);
    state.resume(&server, &saved, now).unwrap();
    (state.status(0).unwrap(), state.health(0, Checker::Health).map(|health| health.level()))
}

#[test]
fn what_a_server_did_it_does() {
    // Operation, level; rise 3 and fall 4 of a checked server.
    let rows = [
        ("0 0 11 11 4 17 2 0", Operation::Down, 0),
        ("0 0 11 11 4 15 3 6", Operation::Down, 0),
        ("1 0 11 11 4 15 3 0", Operation::Up, 2),
        ("1 0 11 11 4 15 3 1", Operation::Up, 1),
        ("1 0 11 11 4 15 3 9", Operation::Up, 2),
        ("2 0 11 11 4 15 3 0", Operation::Up, 6),
        ("3 0 11 11 4 16 4 0", Operation::Stopping, 3),
        ("3 0 11 11 4 16 4 5", Operation::Stopping, 5),
        ("3 0 11 11 4 16 4 6", Operation::Stopping, 3),
    ];
    for (fields, operation, level) in rows {
        let checked = |server: &mut ServerPlan| {
            server.check = Some(CheckPlan { rise: 3, fall: 4, initial: InitialState::None });
        };
        let (status, found) = resumed(checked, fields);
        assert_eq!((status.operation(), found), (operation, Some(level)), "{fields}");
        assert_eq!(status.changed.at, Some(Moment::ZERO + Duration::from_secs(96)), "{fields}");
        assert_eq!(resumed(|_| {}, fields).0.operation(), operation, "unchecked: {fields}");
    }
    let (status, _) = resumed(|_| {}, "2 0 11 11 999 15 3 0");
    assert_eq!(status.changed.at, Some(Moment::ZERO), "no clock reaches further back");
}

#[test]
fn orders_hold_on_and_the_configuration_has_the_last_word_on_its_own() {
    let rows = [
        (false, "2 0", Admin::Ready, true),
        (false, "0 1", Admin::Maintenance, false),
        (false, "2 1", Admin::Maintenance, true),
        (false, "2 8", Admin::Drain, true),
        (false, "2 16", Admin::Ready, true),
        // It was in maintenance only by the configuration of that time.
        (false, "0 5", Admin::Ready, true),
        // It had no address then, or the tracked server was in maintenance.
        (false, "0 32", Admin::Ready, true),
        (true, "0 5", Admin::Maintenance, false),
        (true, "2 0", Admin::Maintenance, true),
        (true, "0 1", Admin::Maintenance, false),
        // A command had ended the maintenance by the configuration.
        (true, "2 4", Admin::Ready, true),
        (true, "0 4", Admin::Ready, true),
        (true, "2 12", Admin::Drain, true),
    ];
    for (disabled, fields, admin, up) in rows {
        let (status, _) = resumed(|server| server.disabled = disabled, &format!("{fields} 11 11 4 1 0 0"));
        assert_eq!((status.admin, status.up), (admin, up), "{disabled} {fields}");
    }
}

#[test]
fn weights_hold_on_unless_the_configuration_has_another_one() {
    for (fields, weight) in [("5 11", 5), ("0 11", 0), ("5 7", 11), ("256 11", 256)] {
        assert_eq!(resumed(|_| {}, &format!("2 0 {fields} 4 1 0 0")).0.weight, weight, "{fields}");
    }
}

#[test]
fn a_server_that_was_warming_up_begins_anew() {
    let slow = |server: &mut ServerPlan| server.slowstart = Some(Duration::from_millis(50_000));
    let (status, _) = resumed(slow, "1 0 11 11 30 1 0 0");
    assert_eq!((status.throttle, status.changed.at), (6, Some(Moment::ZERO + Duration::from_secs(100))));
    for fields in ["1 0 11 11 50 1 0 0", "2 0 11 11 30 1 0 0"] {
        assert_eq!(resumed(slow, fields).0.throttle, 100, "{fields}");
    }
}

#[test]
fn the_last_check_is_remembered() {
    let mut proxy = plan(BalanceSpec::RoundRobin, &[Plan(1, 0, 0)]);
    proxy.servers[0].check = Some(CheckPlan { rise: 2, fall: 3, initial: InitialState::None });
    let server = proxy.servers[0];
    let state = state_of(proxy);
    let text = "1\n2 be 1 s1 - 0 0 1 1 4 12 2 0 2 0 0 0 - 80 -\n";
    let saved = entries(text.as_bytes(), |_, _| true).unwrap()[0].state().unwrap();
    state.resume(&server, &saved, Moment::ZERO);
    let health = state.health(0, Checker::Health).unwrap();
    assert_eq!((health.last().status, health.is_enabled()), (CheckStatus::L7Timeout, false));
}
