//! Mutations of the corpus: every fuzz target gets 1,500 inputs that a seeded generator derives from its corpus.
//! Reproducible, without a fuzzer; `fuzz/run` explores further, guided by coverage.

use std::panic::catch_unwind;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use weir_fuzz::TARGETS;

use super::kept;

/// Number of inputs per target.
const INPUTS: usize = 1_500;

/// Maximum size of an input in bytes.
const LONGEST: usize = 2048;

/// Boundary values of lengths and counters.
const EDGES: [u8; 8] = [0, 1, 9, 0x7f, 0x80, 0xfe, 0xff, b'\n'];

/// xorshift64*.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let number = self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33;
        usize::try_from(number).expect("31 bits fit") % bound.max(1)
    }

    /// Returns a random part of some bytes.
    fn part<'a>(&mut self, bytes: &'a [u8]) -> &'a [u8] {
        let start = self.below(bytes.len());
        let length = self.below(bytes.len() - start + 1);
        bytes.get(start..start + length).unwrap_or_default()
    }
}

/// Changes an input in one place.
fn mutate(input: &mut Vec<u8>, other: &[u8], random: &mut Random) {
    let place = random.below(input.len() + 1);
    match random.below(7) {
        0 if place < input.len() => input[place] ^= 1 << random.below(8),
        1 if place < input.len() => input[place] = EDGES[random.below(EDGES.len())],
        2 => input.insert(place, EDGES[random.below(EDGES.len())]),
        3 => {
            let end = (place + 1 + random.below(16)).min(input.len());
            input.drain(place.min(end)..end);
        }
        4 => input.truncate(place),
        // Duplicates a part of it, or inserts one of another input.
        choice => {
            let part = random.part(if choice == 5 { input } else { other }).to_vec();
            input.splice(place..place, part);
        }
    }
    input.truncate(LONGEST);
}

/// Runs a target on mutations of its corpus. Returns an input that violates a property.
fn run_near(name: &str, run: fn(&[u8])) -> Option<Vec<u8>> {
    let kept: Vec<_> = kept(name).into_iter().map(|(_, input)| input).collect();
    let mut random = Random(
        name.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01B3)),
    );
    for turn in 0..INPUTS {
        let mut input = kept[turn % kept.len()].clone();
        for _ in 0..=random.below(4) {
            let other = random.below(kept.len());
            mutate(&mut input, &kept[other], &mut random);
        }
        if catch_unwind(|| run(&input)).is_err() {
            return Some(input);
        }
    }
    None
}

#[test]
fn inputs_near_the_kept_ones_pass_their_targets() {
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(|| {
                while let Some((name, run)) = TARGETS.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if let Some(input) = run_near(name, *run) {
                        let text = String::from_utf8_lossy(&input).into_owned();
                        failed.lock().expect("nothing panics here").push((*name, text, input));
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().expect("nothing panics here");
    assert!(failed.is_empty(), "{failed:#?}");
}
