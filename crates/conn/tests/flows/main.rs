//! Bodies of every framing to sinks of either, with all kinds of filters and all ways to end, against a simple model:
//! the sink receives what the source sends, and its end is seen when it was received and never before. Owns the choice
//! of cases. Must never know how a flow moves bytes.

mod marks;
mod memory;
mod model;
mod network;

use std::sync::Arc;
use std::time::Duration;

use memory::Script;
use model::{Case, Coding, End, Filter};
use proptest::prelude::*;
use rt::sim::Link;

fn codings() -> impl Strategy<Value = Coding> {
    let sizes = prop::collection::vec(prop_oneof![1..20_usize, 1..2_000_usize, 14_000..90_000_usize], 1..5);
    prop_oneof![
        1 => Just(Coding::None),
        4 => Just(Coding::Length),
        5 => (sizes, 0..3_usize).prop_map(|(sizes, trailers)| Coding::Chunked(sizes, trailers)),
        3 => Just(Coding::UntilClose),
    ]
}

fn filters() -> impl Strategy<Value = Filter> {
    prop_oneof![
        6 => Just(Filter::Absent),
        1 => Just(Filter::Through),
        1 => (1..5_000_usize).prop_map(Filter::Splits),
        1 => Just(Filter::Doubles),
        1 => Just(Filter::Drops),
        1 => (1..4_usize).prop_map(Filter::Holds),
        1 => Just(Filter::Appends),
    ]
}

/// Lengths of payloads: within one buffer, of a few buffers, and of the bulk.
fn lengths(most: usize) -> impl Strategy<Value = usize> {
    prop_oneof![2 => 0..300_usize, 3 => 0..6_000_usize, 3 => 12_000..60_000_usize, 2 => 60_000..most]
}

/// Ends of transfers of about `length` bytes.
fn ends(length: usize) -> impl Strategy<Value = End> {
    let at = 0..length * 5 / 4 + 40;
    prop_oneof![
        6 => Just(End::Whole),
        2 => at.clone().prop_map(End::SourceCloses),
        2 => at.clone().prop_map(End::SourceFails),
        2 => at.prop_map(End::SinkFails),
        1 => Just(End::Malformed),
        1 => (0..20_usize).prop_map(End::Abandoned),
        2 => (0..20_usize, 1..20_usize).prop_map(|(one, other)| End::Rewound(one, other)),
    ]
}

fn cases(most: usize) -> impl Strategy<Value = Case> {
    let shape = (any::<u64>(), codings(), filters(), lengths(most), 0..300_usize);
    let early = prop_oneof![2 => Just(0), 2 => 0..400_usize, 1 => 0..16_000_usize];
    let rest = (early, prop_oneof![Just(0), 1..300_usize], any::<[bool; 4]>());
    (shape, rest).prop_flat_map(|((seed, coding, filter, payload, after), (early, head, flags))| {
        let [chunked, recorded, spliced, closes] = flags;
        let seed = seed % 1_000;
        ends(payload).prop_map(move |end| {
            let coding = coding.clone();
            let case =
                Case { seed, coding, payload, after, early, head, chunked, filter, recorded, spliced, closes, end };
            case.settled()
        })
    })
}

/// Cases most of which can be spliced: few are recorded or filtered, and chunks are long.
fn splices() -> impl Strategy<Value = Case> {
    let choice = (0..8_u8, 0..8_u8, any::<bool>(), 1..30_usize);
    (cases(400_000), choice).prop_map(|(mut case, (recorded, filtered, long, factor))| {
        case.recorded &= recorded == 0;
        case.spliced |= recorded > 1;
        if filtered > 1 {
            case.filter = Filter::Absent;
        }
        if let Coding::Chunked(sizes, _) = &mut case.coding
            && long
        {
            sizes.iter_mut().for_each(|size| *size = (*size).max(5_000) * factor);
        }
        // The other ends are those of the flow's owner.
        if matches!(case.end, End::Abandoned(_) | End::Rewound(..)) {
            case.end = End::Whole;
        }
        case.settled()
    })
}

/// The sizes of single reads or writes: scripts without endless pauses, chosen by the length of the payload.
fn scripts(payload: usize) -> impl Strategy<Value = Script> {
    let small = if payload < 6_000 { 1..40_usize } else { 300..4_000_usize };
    let step = prop_oneof![1 => Just(0), 2 => small, 2 => 1_000..100_000_usize];
    prop::collection::vec(step, 1..6).prop_map(|mut steps| {
        steps.push(1_500);
        Script(steps)
    })
}

fn links() -> impl Strategy<Value = Link> {
    (prop_oneof![1_000..20_000_usize, 20_000..300_000_usize], any::<bool>(), 0..60_u64).prop_map(
        |(buffer, fragment, jitter)| {
            let (latency, jitter) = (Duration::from_micros(10), Duration::from_micros(jitter));
            Link { buffer, fragment, latency, jitter }
        },
    )
}

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { failure_persistence: None, max_shrink_iters: 500, ..ProptestConfig::with_cases(cases) }
}

proptest! {
    #![proptest_config(config(1_500))]

    #[test]
    fn a_body_between_ends_that_give_and_take_little_is_the_models(
        (case, reads, writes) in cases(700_000).prop_flat_map(|case| {
            let payload = case.payload;
            (Just(case), scripts(payload), scripts(payload))
        })
    ) {
        rt::sim::run(case.seed, 1, Arc::new(|_| Box::pin(async {})), async move {
            for at_hand in [false, true] {
                memory::run(&case, &reads, &writes, at_hand);
            }
        });
    }
}

proptest! {
    #![proptest_config(config(200))]

    #[test]
    fn a_body_between_two_connections_is_the_models(case in splices(), link in links()) {
        rt::sim::run(case.seed, 1, Arc::new(|_| Box::pin(async {})), async move {
            rt::sim::network().set_default_link(link);
            network::run(case).await;
        });
    }
}

/// A chunk that was spliced is closed when its source fails: with its CR LF, and without any bytes after it that were
/// not decoded.
#[test]
fn nothing_that_was_not_understood_follows_a_chunk_from_the_pipe() {
    let link = Link { buffer: 300_000, fragment: false, latency: Duration::from_micros(10), jitter: Duration::ZERO };
    let payload = 60_000;
    let end_of_data = "ea60\r\n".len() + payload;
    let ends = (0..8).map(|more| End::SourceFails(end_of_data + more)).chain([End::Malformed]);
    for (seed, end) in (0..).zip(ends) {
        let coding = Coding::Chunked(vec![payload], 1);
        let case = Case {
            seed,
            coding,
            payload,
            after: 100,
            early: 0,
            head: 100,
            chunked: true,
            filter: Filter::Absent,
            recorded: false,
            spliced: true,
            closes: false,
            end,
        };
        rt::sim::run(seed, 1, Arc::new(|_| Box::pin(async {})), async move {
            rt::sim::network().set_default_link(link);
            network::run(case).await;
        });
    }
}

#[test]
fn a_head_and_payload_at_hand_are_one_write() {
    rt::sim::run(1, 1, Arc::new(|_| Box::pin(async {})), async move {
        assert_eq!((memory::writes(true), memory::writes(false)), (1, 2));
    });
}

/// The kernel doubles a mark for its receive buffer and never takes that back: behind a client that reads slowly, it would fill up.
#[test]
fn a_server_whose_client_reads_slowly_keeps_its_receive_buffer() {
    rt::sim::run(1, 1, Arc::new(|_| Box::pin(async {})), async move {
        const LARGE: usize = 500_000;
        let (mark, read) = marks::largest(10 << 20, false);
        assert!(mark <= 1 && read <= 64 << 10, "{mark} {read}");
        let (mark, read) = marks::largest(10 << 20, true);
        assert!(mark > LARGE && read > LARGE, "{mark} {read}");
        // All of it goes to the kernel of the client at once.
        let (mark, read) = marks::largest(1 << 20, false);
        assert!(mark > LARGE && read > LARGE, "{mark} {read}");
    });
}
