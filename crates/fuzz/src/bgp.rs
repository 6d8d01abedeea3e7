//! Any bytes as the output of a router: no panic, termination, bounded output, and OPEN messages round-trip.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use base::moment::Moment;
use live::bgp::{Announcement, OUTPUT, Output, Prefix, RoutePlan, Routes, Session, SessionPlan, State};
use wire::bgp::{Capabilities, Kind, LONGEST, Notification, Open, decode};

const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 254);
const WEIR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);

/// Runs on one input; panics if a property is violated.
pub fn run(data: &[u8]) {
    messages(data);
    // The bytes follow the connection, or an established session.
    for is_established in [false, true] {
        converse(data, is_established);
    }
}

fn messages(mut rest: &[u8]) {
    while let Ok(Some(frame)) = decode(rest) {
        assert!(frame.length <= rest.len() && frame.length <= LONGEST);
        rest = &rest[frame.length..];
        match frame.kind {
            Kind::Open => {
                let Ok(open) = Open::parse(frame.body) else { continue };
                let mut out = Vec::new();
                open.encode(&mut out);
                let Ok(Some(again)) = decode(&out) else { panic!("{open:?}") };
                let Ok(again) = Open::parse(again.body) else { panic!("{open:?}") };
                assert_eq!((again.hold_time, again.router_id), (open.hold_time, open.router_id));
            }
            Kind::Notification => {
                let message = Notification::parse(frame.body);
                let mut out = Vec::new();
                message.encode(&mut out);
                assert_eq!(&out[19..], frame.body);
                assert!(message.error.to_string().len() < 100);
            }
            _ => {}
        }
    }
}

fn route() -> RoutePlan {
    let announcement =
        Announcement { next_hop: None, med: Some(1), local_preference: None, communities: [1, 2].into() };
    let prefix = Prefix { address: IpAddr::V4([203, 0, 113, 10].into()), length: 32 };
    RoutePlan { prefix, announcements: [announcement].into() }
}

fn converse(data: &[u8], is_established: bool) {
    let now = Moment::ZERO + Duration::from_secs(100);
    let plan = SessionPlan { local_as: 65_001, router_id: WEIR, peer_as: 65_000, hold_time: 9 };
    let mut session = Session::new(plan, Arc::from([route()]), false, now);
    let mut routes = Routes::new(1);
    routes.want(0, Some(0));
    routes.settle(now);
    session.connect(now);
    session.connected(Some(IpAddr::V4(WEIR)), now);
    if is_established {
        let mut bytes = Vec::new();
        let capabilities = Some(Capabilities::own(65_000));
        Open { number: 65_000, hold_time: 9, router_id: ROUTER, capabilities }.encode(&mut bytes);
        wire::bgp::keepalive(&mut bytes);
        assert_eq!(session.receive(&bytes, now), Ok(bytes.len()));
        assert_eq!(session.state(), State::Established);
    }
    let (mut at, half) = (0, data.len() / 2);
    for end in [half, data.len()] {
        match session.receive(&data[at..end], now) {
            Ok(taken) => {
                assert!(taken <= end - at);
                at += taken;
            }
            Err(reason) => {
                assert!(!reason.to_string().contains(char::is_control));
                session.ended(&reason, now, 0);
                break;
            }
        }
        let mut bytes = Vec::new();
        session.send(&routes, &mut Output { bytes: &mut bytes, most: OUTPUT, now, random: 0 });
        assert!(bytes.len() < 1_000);
    }
}
