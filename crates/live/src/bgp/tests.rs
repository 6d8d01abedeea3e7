//! Sessions with a scripted router on a simulated clock.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use base::moment::Moment;
use wire::bgp::{self, Capabilities, ErrorCode, Kind, Notification, Open};

use super::*;

const WEIR: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const ROUTER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 254);

/// A session, its routes, and the time.
struct Scene {
    session: Session,
    routes: Routes,
    now: Moment,
}

fn plan(peer_as: u32) -> SessionPlan {
    SessionPlan { local_as: 65_001, router_id: WEIR, peer_as, hold_time: 9 }
}

fn announcement(next_hop: Option<&str>, med: Option<u32>) -> Announcement {
    let next_hop = next_hop.map(|hop| hop.parse().unwrap());
    Announcement { next_hop, med, local_preference: None, communities: Box::default() }
}

fn route(prefix: &str, announcements: Vec<Announcement>) -> RoutePlan {
    let (address, length) = prefix.split_once('/').unwrap();
    let prefix = Prefix { address: address.parse().unwrap(), length: length.parse().unwrap() };
    RoutePlan { prefix, announcements: announcements.into() }
}

/// A message of the router.
fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0xff; 16];
    bytes.extend((19 + body.len() as u16).to_be_bytes());
    bytes.push(kind);
    bytes.extend(body);
    bytes
}

fn keepalive() -> Vec<u8> {
    message(4, &[])
}

fn open(number: u32, hold_time: u16) -> Vec<u8> {
    let mut out = Vec::new();
    Open { number, hold_time, router_id: ROUTER, capabilities: Some(Capabilities::own(number)) }.encode(&mut out);
    out
}

impl Scene {
    /// Three routes: one with two announcements, one that is never wanted, one of IPv6.
    fn new(peer_as: u32) -> Self {
        let routes = [
            route("203.0.113.10/32", vec![announcement(None, Some(10)), announcement(None, Some(100))]),
            route("203.0.113.11/32", vec![announcement(None, None)]),
            route("2001:db8::10/128", vec![announcement(Some("2001:db8::1"), None)]),
        ];
        let now = Moment::ZERO + Duration::from_secs(1_000);
        let session = Session::new(plan(peer_as), Arc::from(routes), false, now);
        Self { session, routes: Routes::new(3), now }
    }

    /// Connects; the session has sent its OPEN message.
    fn connected(mut self) -> Self {
        assert!(self.session.connect_at().is_some_and(|at| at <= self.now));
        self.session.connect(self.now);
        assert_eq!(self.session.state(), State::Connect);
        self.session.connected(Some(IpAddr::V4(WEIR)), self.now);
        assert_eq!(self.say(), ["Open"]);
        self
    }

    fn established(self, peer_as: u32) -> Self {
        let mut scene = self.connected();
        scene.hear(&open(peer_as, 90)).unwrap();
        assert_eq!((scene.session.state(), scene.say()), (State::OpenConfirm, vec!["Keepalive".to_owned()]));
        scene.hear(&keepalive()).unwrap();
        assert_eq!(scene.session.state(), State::Established);
        scene
    }

    fn hear(&mut self, bytes: &[u8]) -> Result<(), End> {
        assert_eq!(self.session.receive(bytes, self.now)?, bytes.len());
        Ok(())
    }

    /// Returns the messages that are sent now: the type, and of an UPDATE its body in hexadecimal.
    fn say(&mut self) -> Vec<String> {
        let mut bytes = Vec::new();
        let mut output = Output { bytes: &mut bytes, most: OUTPUT, now: self.now, random: 0 };
        assert!(!self.session.send(&self.routes, &mut output));
        let (mut rest, mut found) = (&bytes[..], Vec::new());
        while let Some(frame) = bgp::decode(rest).unwrap() {
            found.push(match frame.kind {
                Kind::Update => frame.body.iter().map(|octet| format!("{octet:02x}")).collect(),
                Kind::Notification => format!("{}", Notification::parse(frame.body).error),
                kind => format!("{kind:?}"),
            });
            rest = &rest[frame.length..];
        }
        assert!(rest.is_empty());
        found
    }

    /// Changes which announcements are wanted.
    fn want(&mut self, wanted: [Option<usize>; 3]) {
        wanted.into_iter().enumerate().for_each(|(route, wanted)| self.routes.want(route, wanted));
        self.routes.settle(self.now);
    }

    fn wait(&mut self, millis: u64) {
        self.now = self.now + Duration::from_millis(millis);
    }

    /// Ends the session for that reason; returns the pause until the next attempt, in milliseconds.
    fn end(&mut self, end: &End) -> u128 {
        self.session.ended(end, self.now, u64::MAX);
        let next = self.session.connect_at().unwrap().saturating_since(self.now).as_millis();
        assert_eq!(self.session.state(), State::Idle);
        next
    }
}

const MED_10: &str = "0000001b4001010040020602010000fde94003040a0000018004040000000a20cb00710a";
const MED_100: &str = "0000001b4001010040020602010000fde94003040a0000018004040000006420cb00710a";
const IPV6: &str = "00000036800e26000201102001\
                    0db8000000000000000000000001008020010db80000000000000000000000104001010040020602010000fde9";
const WITHDRAWN: &str = "000520cb00710a0000";
const WITHDRAWN_IPV6: &str = "00000017800f140002018020010db8000000000000000000000010";

#[test]
fn routes_are_announced_changed_and_withdrawn() {
    let mut scene = Scene::new(65_000).established(65_000);
    assert!(scene.say().is_empty());
    scene.want([Some(0), None, Some(0)]);
    assert_eq!(scene.say(), [MED_10, IPV6]);
    assert!(scene.say().is_empty());
    assert_eq!(scene.session.status().announced, 2);
    scene.wait(100);
    scene.want([Some(1), None, Some(0)]);
    assert_eq!(scene.say(), [MED_100]);
    scene.wait(100);
    scene.want([None; 3]);
    assert_eq!(scene.say(), [WITHDRAWN, WITHDRAWN_IPV6]);
    assert_eq!(scene.session.status().announced, 0);
}

#[test]
fn what_is_announced_is_sent_to_a_router_that_connects_later_or_asks() {
    let mut scene = Scene::new(65_000);
    scene.want([Some(0), None, Some(0)]);
    let mut scene = scene.established(65_000);
    assert_eq!(scene.say(), [MED_10, IPV6]);
    scene.hear(&message(5, &[0, 2, 0, 1])).unwrap();
    assert_eq!(scene.say(), [IPV6]);
    scene.hear(&message(5, &[0, 1, 0, 1])).unwrap();
    assert_eq!(scene.say(), [MED_10]);
    // A family that is not exchanged.
    scene.hear(&message(5, &[0, 25, 0, 1])).unwrap();
    assert!(scene.say().is_empty());
    // A route that was withdrawn is not sent again.
    scene.wait(100);
    scene.want([None, None, Some(0)]);
    scene.hear(&message(5, &[0, 1, 0, 1])).unwrap();
    assert_eq!(scene.say(), [WITHDRAWN]);
}

#[test]
fn only_families_of_the_router_are_sent() {
    let mut scene = Scene::new(65_000).connected();
    scene.want([Some(0), None, Some(0)]);
    let mut plain = Vec::new();
    Open { number: 65_000, hold_time: 9, router_id: ROUTER, capabilities: None }.encode(&mut plain);
    scene.hear(&plain).unwrap();
    scene.say();
    scene.hear(&keepalive()).unwrap();
    // The path has two octets for each AS.
    let two_octets = MED_10.replace("0000001b", "00000019").replace("40020602010000fde9", "4002040201fde9");
    assert_eq!(scene.say(), [two_octets]);
}

#[test]
fn routers_of_the_same_as_get_a_preference() {
    let mut scene = Scene::new(65_001);
    scene.want([Some(0), None, None]);
    let mut scene = scene.established(65_001);
    let expected = "0000001c400101004002004003040a0000018004040000000a40050400000064\
                    20cb00710a";
    assert_eq!(scene.say(), [expected]);
}

#[test]
fn an_open_message_is_checked() {
    let with = |number, hold_time, router_id| {
        let mut out = Vec::new();
        let capabilities = Some(Capabilities::own(number));
        Open { number, hold_time, router_id, capabilities }.encode(&mut out);
        out
    };
    let refused = |error: ErrorCode| Err(End::from(error));
    let rows = [
        (65_000, with(65_000, 3, ROUTER), Ok(())),
        (65_000, with(65_000, 0, ROUTER), Ok(())),
        (65_000, with(65_000, 90, WEIR), Ok(())),
        (65_000, with(65_002, 90, ROUTER), refused(ErrorCode::BAD_PEER_AS)),
        (65_000, with(0, 90, ROUTER), refused(ErrorCode::BAD_PEER_AS)),
        (65_000, with(65_000, 1, ROUTER), refused(ErrorCode::UNACCEPTABLE_HOLD_TIME)),
        (65_000, with(65_000, 2, ROUTER), refused(ErrorCode::UNACCEPTABLE_HOLD_TIME)),
        (65_001, with(65_001, 90, WEIR), refused(ErrorCode::BAD_IDENTIFIER)),
        (65_001, with(65_001, 90, ROUTER), Ok(())),
    ];
    for (peer_as, bytes, expected) in rows {
        let mut scene = Scene::new(peer_as).connected();
        assert_eq!(scene.hear(&bytes), expected, "{peer_as} {bytes:?}");
    }
}

#[test]
fn messages_in_the_wrong_state_end_the_session() {
    let unexpected = |error, kind| Err(End::Sent(Notification::new(error, &[kind])));
    let update = message(2, &[0, 0, 0, 0]);
    let mut scene = Scene::new(65_000).connected();
    assert_eq!(scene.hear(&keepalive()), unexpected(ErrorCode::UNEXPECTED_IN_OPEN_SENT, 4));
    let mut scene = Scene::new(65_000).connected();
    scene.hear(&open(65_000, 9)).unwrap();
    assert_eq!(scene.hear(&update), unexpected(ErrorCode::UNEXPECTED_IN_OPEN_CONFIRM, 2));
    let mut scene = Scene::new(65_000).established(65_000);
    assert_eq!(scene.hear(&open(65_000, 9)), unexpected(ErrorCode::UNEXPECTED_IN_ESTABLISHED, 1));
    let mut scene = Scene::new(65_000).established(65_000);
    assert_eq!(scene.hear(b"GET / HTTP/1.1\r\n\r\n"), Err(ErrorCode::NOT_SYNCHRONIZED.into()));
}

#[test]
fn updates_are_counted_and_dropped() {
    let mut scene = Scene::new(65_000).established(65_000);
    let routes = [0, 0, 0, 4, 0x40, 1, 1, 0, 8, 10, 16, 172, 16];
    let bytes = message(2, &routes).repeat(500);
    scene.hear(&bytes).unwrap();
    scene.hear(&message(2, &[0, 0, 0, 3, 0x40, 1, 9])).unwrap();
    let status = scene.session.status();
    assert_eq!((status.dropped, status.faulty, status.received.updates), (1_000, 1, 501));
    let malformed = message(2, &[0, 0, 0, 0, 33, 1, 2, 3, 4, 5]);
    let end = scene.hear(&malformed).unwrap_err();
    assert_eq!(end, ErrorCode::INVALID_NETWORK.into());
    // The NOTIFICATION message counts as sent, that of the router as received.
    let counts = |scene: &Scene| (scene.session.status().sent.all, scene.session.status().received.all);
    let (sent, received) = counts(&scene);
    scene.end(&end);
    assert_eq!(counts(&scene), (sent + 1, received));
    let mut scene = Scene::new(65_000).connected();
    let (sent, received) = counts(&scene);
    let end = scene.hear(&message(3, &[6, 2])).unwrap_err();
    scene.end(&end);
    assert_eq!(counts(&scene), (sent, received + 1));
}

#[test]
fn a_part_of_a_message_waits_for_the_rest() {
    let mut scene = Scene::new(65_000).established(65_000);
    let bytes = [keepalive(), keepalive()].concat();
    assert_eq!(scene.session.receive(&bytes[..30], scene.now), Ok(19));
    assert_eq!(scene.session.receive(&bytes[19..], scene.now), Ok(19));
}

#[test]
fn keepalives_are_sent_and_silence_ends_the_session() {
    let mut scene = Scene::new(65_000).established(65_000);
    // A third of the lower hold time, with the largest jitter.
    assert_eq!(scene.session.status().hold_time, Some(Duration::from_secs(9)));
    let start = scene.now;
    assert_eq!(scene.session.deadline(None), Some(start + Duration::from_millis(2_250)));
    scene.wait(2_250);
    assert_eq!(scene.say(), ["Keepalive"]);
    scene.hear(&keepalive()).unwrap();
    scene.wait(8_999);
    assert_eq!((scene.session.expire(None, scene.now), scene.say().len()), (None, 1));
    assert_eq!(scene.session.deadline(None), Some(scene.now + Duration::from_millis(1)));
    scene.wait(1);
    assert_eq!(scene.session.expire(None, scene.now), Some(ErrorCode::HOLD_TIMER.into()));
    // Route refreshes do not keep a session open.
    let mut scene = Scene::new(65_000).established(65_000);
    scene.wait(8_000);
    scene.hear(&message(5, &[0, 1, 0, 1])).unwrap();
    scene.wait(1_000);
    assert!(scene.session.expire(None, scene.now).is_some());
}

#[test]
fn messages_of_the_router_restart_the_hold_timer() {
    let lasts = |scene: &mut Scene| {
        scene.wait(8_999);
        assert_eq!(scene.session.expire(None, scene.now), None);
        scene.wait(1);
        assert_eq!(scene.session.expire(None, scene.now), Some(ErrorCode::HOLD_TIMER.into()));
    };
    for bytes in [keepalive(), message(2, &[0, 0, 0, 0])] {
        let mut scene = Scene::new(65_000).established(65_000);
        scene.wait(8_000);
        scene.hear(&bytes).unwrap();
        lasts(&mut scene);
    }
    // The one that establishes the session.
    let mut scene = Scene::new(65_000).connected();
    scene.hear(&open(65_000, 9)).unwrap();
    scene.wait(8_000);
    scene.hear(&keepalive()).unwrap();
    lasts(&mut scene);
}

#[test]
fn no_next_hop_of_the_other_family_is_sent() {
    let mut scene = Scene::new(65_000);
    scene.want([Some(0), None, Some(0)]);
    scene.session.connect(scene.now);
    scene.session.connected(Some("2001:db8::2".parse().unwrap()), scene.now);
    scene.hear(&open(65_000, 9)).unwrap();
    scene.say();
    scene.hear(&keepalive()).unwrap();
    // The one of IPv6 has an address of its own.
    assert_eq!(scene.say(), [IPV6]);
    assert_eq!(scene.session.status().announced, 1);
}

#[test]
fn a_hold_time_of_zero_needs_no_keepalives() {
    let mut scene = Scene::new(65_000).connected();
    scene.hear(&open(65_000, 0)).unwrap();
    assert_eq!(scene.say(), ["Keepalive"]);
    scene.hear(&keepalive()).unwrap();
    assert_eq!((scene.session.deadline(None), scene.session.status().hold_time), (None, Some(Duration::ZERO)));
    scene.wait(1_000_000);
    assert_eq!((scene.session.expire(None, scene.now), scene.say().len()), (None, 0));
}

#[test]
fn handshakes_time_out() {
    let mut scene = Scene::new(65_000);
    scene.session.connect(scene.now);
    assert_eq!(scene.session.deadline(None), Some(scene.now + Duration::from_secs(5)));
    scene.wait(5_000);
    assert_eq!(scene.session.expire(None, scene.now), Some(End::Unreachable));
    let mut scene = Scene::new(65_000).connected();
    scene.wait(30_000);
    assert_eq!(scene.session.expire(None, scene.now), Some(ErrorCode::HOLD_TIMER.into()));
}

#[test]
fn a_router_that_accepts_nothing_is_left() {
    let mut scene = Scene::new(65_000).established(65_000);
    let since = scene.now;
    for _ in 0..60 {
        scene.wait(8_000);
        if scene.now == since + Duration::from_secs(480) {
            break;
        }
        scene.hear(&keepalive()).unwrap();
        // The keepalive that is due cannot be sent, and does not wake the task.
        assert!(scene.session.deadline(Some(since)).is_some_and(|at| at > scene.now));
        assert_eq!(scene.session.expire(Some(since), scene.now), None);
    }
    scene.hear(&keepalive()).unwrap();
    assert_eq!(scene.session.expire(Some(since), scene.now), Some(End::Blocked));
    // With a long hold time, twice as long as that.
    let mut scene = Scene::new(65_000);
    let plan = SessionPlan { hold_time: 300, ..plan(65_000) };
    scene.session = Session::new(plan, Arc::from([]), false, scene.now);
    let mut scene = scene.connected();
    let since = scene.now;
    scene.hear(&open(65_000, 400)).unwrap();
    for millis in [200_000, 200_000, 199_999] {
        scene.wait(millis);
        scene.hear(&keepalive()).unwrap();
        assert_eq!(scene.session.expire(Some(since), scene.now), None);
    }
    scene.wait(1);
    assert_eq!(scene.session.expire(Some(since), scene.now), Some(End::Blocked));
}

#[test]
fn attempts_are_repeated_with_pauses() {
    let mut scene = Scene::new(65_000);
    let refused = End::Failed("connection refused".into());
    let pauses: Vec<_> = (0..3)
        .map(|_| {
            scene.session.connect(scene.now);
            scene.end(&refused)
        })
        .collect();
    assert_eq!(pauses, [1_000, 2_000, 4_000]);
    assert_eq!(scene.session.status().last_end.as_deref(), Some("connection refused"));
    scene.wait(4_000);
    // A session that lasts makes the next pause short again, one that does not doubles it.
    let mut scene = scene.established(65_000);
    scene.wait(9_999);
    assert_eq!(scene.end(&End::Closed), 8_000);
    scene.wait(8_000);
    let mut scene = scene.established(65_000);
    scene.wait(10_000);
    assert_eq!(scene.end(&End::Closed), 1_000);
    assert_eq!(scene.session.status().established, 2);
}

#[test]
fn an_old_router_gets_a_message_without_parameters() {
    let mut scene = Scene::new(65_000).connected();
    let unsupported = message(3, &[2, 4, 2]);
    let end = scene.hear(&unsupported).unwrap_err();
    assert_eq!(end, End::Received(Notification::new(ErrorCode::UNSUPPORTED_PARAMETER, &[2])));
    let pause = scene.end(&end);
    scene.wait(u64::try_from(pause).unwrap());
    let attempt = |scene: &mut Scene| {
        scene.session.connect(scene.now);
        scene.session.connected(Some(IpAddr::V4(WEIR)), scene.now);
        let mut bytes = Vec::new();
        scene.session.send(&scene.routes, &mut Output { bytes: &mut bytes, most: OUTPUT, now: scene.now, random: 0 });
        bytes.len()
    };
    assert_eq!(attempt(&mut scene), 29);
    // Nothing that the router supports is in use, since this speaker has not named it.
    scene.want([Some(0), None, Some(0)]);
    scene.hear(&open(65_000, 9)).unwrap();
    scene.say();
    scene.hear(&keepalive()).unwrap();
    assert_eq!(scene.say(), [MED_10.replace("0000001b", "00000019").replace("40020602010000fde9", "4002040201fde9")]);
    scene.end(&End::Closed);
    assert_eq!(attempt(&mut scene), 51);
}

#[test]
fn a_stop_withdraws_before_it_ends() {
    let mut scene = Scene::new(65_000);
    scene.want([Some(0), None, Some(0)]);
    let mut scene = scene.established(65_000);
    assert_eq!(scene.say().len(), 2);
    scene.session.stop();
    assert!(!scene.session.is_finished());
    assert_eq!(scene.say(), [WITHDRAWN, WITHDRAWN_IPV6, "Cease/Administrative Shutdown (6/2)"]);
    assert!(scene.session.is_finished());
    assert!(scene.say().is_empty());
    scene.session.ended(&End::Stopped, scene.now, 0);
    assert_eq!(scene.session.connect_at(), None);
    // During the handshake, and without a connection.
    let mut scene = Scene::new(65_000).connected();
    scene.session.stop();
    assert_eq!(scene.say(), ["Cease/Administrative Shutdown (6/2)"]);
    let mut scene = Scene::new(65_000);
    scene.session.stop();
    assert!(scene.session.is_finished() && scene.session.connect_at().is_none());
}

#[test]
fn many_routes_are_sent_in_pieces() {
    let plans: Vec<_> = (0..1_000)
        .map(|n| route(&format!("10.{}.{}.0/24", n / 256, n % 256), vec![announcement(None, None)]))
        .collect();
    let now = Moment::ZERO + Duration::from_secs(1);
    let mut scene =
        Scene { session: Session::new(plan(65_000), plans.into(), false, now), routes: Routes::new(1_000), now };
    (0..1_000).for_each(|route| scene.routes.want(route, Some(0)));
    scene.routes.settle(now);
    let mut scene = scene.established(65_000);
    let mut pieces = 0;
    loop {
        let mut bytes = Vec::new();
        let more = scene.session.send(&scene.routes, &mut Output { bytes: &mut bytes, most: OUTPUT, now, random: 0 });
        assert!(bytes.len() < OUTPUT + LONGEST);
        pieces += 1;
        if !more {
            break;
        }
    }
    assert!(pieces > 2, "{pieces}");
    assert_eq!((scene.session.status().announced, scene.session.status().sent.updates), (1_000, 1_000));
}
