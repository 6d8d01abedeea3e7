//! Tests of the history.

use super::*;

fn at(seconds: i64) -> Option<Interval> {
    Some(Interval { end: WallTime { seconds, nanos: 0 }, length: INTERVAL })
}

fn reading(kind: HistoryKind, index: usize, name: &str, requests: u64) -> Reading {
    let totals = Totals { requests, bytes_in: requests * 10, ..Totals::default() };
    Reading { kind, index, name: name.into(), totals, levels: Levels::default() }
}

fn requests(history: &History, kind: HistoryKind, index: usize) -> Option<(usize, Vec<u32>)> {
    let found = history.samples(kind, index, &history.span(WallTime::default()))?;
    Some((found.first, found.samples.iter().map(|sample| sample.requests).collect()))
}

#[test]
fn samples_are_differences_and_the_oldest_ones_go() {
    let history = History::default();
    assert!(history.begin() && !history.begin());
    let mut total = 0;
    for number in 0..CAPACITY as u64 + 5 {
        total += number;
        let interval = at(100 + number as i64 * 10).filter(|_| number > 0);
        history.record(interval, vec![reading(HistoryKind::Frontend, 3, "f", total)], &Activities::default());
    }
    let span = history.span(WallTime::default());
    assert_eq!((span.intervals.len(), span.first, size_of::<Sample>()), (CAPACITY, 4, 48));
    assert_eq!((span.intervals[0].end.seconds, span.intervals[CAPACITY - 1].end.seconds), (150, 3740));
    let (first, samples) = requests(&history, HistoryKind::Frontend, 3).expect("samples");
    assert_eq!((first, samples.len(), samples[0], samples[CAPACITY - 1]), (0, CAPACITY, 5, 364));
    let later = history.span(WallTime { seconds: 3720, nanos: 0 });
    assert_eq!((later.first, later.intervals.len()), (362, 2));
    let found = history.samples(HistoryKind::Frontend, 3, &later).expect("samples");
    assert_eq!((found.first, found.samples.len(), found.samples[1].requests), (0, 2, 364));
    assert_eq!(found.samples[1].bytes_in, 3640.0);
    // A reader that is slow gets what is left of its span.
    history.record(at(3750), vec![reading(HistoryKind::Frontend, 3, "f", total)], &Activities::default());
    let found = history.samples(HistoryKind::Frontend, 3, &span).expect("samples");
    assert_eq!((found.first, found.samples.len(), found.samples[0].requests), (1, CAPACITY - 1, 6));
}

#[test]
fn objects_come_and_go() {
    let history = History::default();
    let record = |seconds, readings| history.record(at(seconds), readings, &Activities::default());
    record(10, vec![reading(HistoryKind::Backend, 0, "a", 5)]);
    record(20, vec![reading(HistoryKind::Backend, 0, "a", 7), reading(HistoryKind::Backend, 1, "b", 100)]);
    record(30, vec![reading(HistoryKind::Backend, 0, "a", 8), reading(HistoryKind::Backend, 1, "b", 101)]);
    assert_eq!(requests(&history, HistoryKind::Backend, 0), Some((1, vec![2, 1])));
    assert_eq!(requests(&history, HistoryKind::Backend, 1), Some((2, vec![1])));
    assert_eq!(requests(&history, HistoryKind::Frontend, 0), None);
    // The index of a removed backend has another one.
    record(40, vec![reading(HistoryKind::Backend, 0, "c", 3), reading(HistoryKind::Backend, 1, "b", 101)]);
    record(50, vec![reading(HistoryKind::Backend, 0, "c", 9)]);
    assert_eq!(requests(&history, HistoryKind::Backend, 0), Some((4, vec![6])));
    assert_eq!(requests(&history, HistoryKind::Backend, 1), None);
    // A counter was cleared: what was counted since then; of a sum nothing is known.
    for kind in [HistoryKind::Process, HistoryKind::Frontend] {
        record(60, vec![reading(kind, 0, "", 50)]);
        record(70, vec![reading(kind, 0, "", 4)]);
        record(80, vec![reading(kind, 0, "", 6)]);
        let first = if kind == HistoryKind::Process { 0 } else { 4 };
        assert_eq!(requests(&history, kind, 0).map(|(_, samples)| samples), Some(vec![first, 2]));
    }
}

#[test]
fn the_highest_latencies_of_an_interval_are_kept() {
    let history = History::default();
    let kind = HistoryKind::Backend;
    let with = |latencies| {
        let levels = Levels { latencies, ..Levels::default() };
        vec![Reading { levels, ..reading(kind, 1, "b", 0) }]
    };
    history.record(None, with([Some(90); 3]), &Activities::default());
    history.note(&[LatencyReading { kind, index: 1, latencies: [Some(30), Some(40), None] }]);
    history.note(&[LatencyReading { kind, index: 2, latencies: [Some(99); 3] }]);
    history.record(at(10), with([Some(35), None, None]), &Activities::default());
    history.record(at(20), with([None, None, Some(50)]), &Activities::default());
    let found = history.samples(kind, 1, &history.span(WallTime::default())).expect("samples");
    let shown: Vec<_> = found.samples.iter().map(|sample| [0, 1, 2].map(|which| sample.latency(which))).collect();
    let of = |bucket| Some(crate::counters::latency_of(bucket));
    assert_eq!(shown, [[of(35), of(40), None], [None, None, of(50)]]);
}

#[test]
fn latencies_are_those_of_their_buckets() {
    let levels = Levels { latencies: [Some(0), Some(20), None], ..Levels::default() };
    let sample = Sample::new(&Totals::default(), &Totals::default(), &levels, false);
    assert_eq!(sample.latency(0), Some(crate::counters::latency_of(0)));
    assert!(sample.latency(1) > sample.latency(0));
    assert_eq!((sample.latency(2), sample.latency(3)), (None, None));
}
