//! Two processes that share a file, in one: each has its own open file.

use super::*;
use live::counters::shared::{RECORD, SEATS};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// A file that is removed with the test.
struct Shm(PathBuf);

impl Shm {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        Self(std::env::temp_dir().join(format!("weir-shared-counts-{}-{number}", std::process::id())))
    }

    fn file(&self) -> File {
        File::options().read(true).write(true).create(true).truncate(false).open(&self.0).expect("a file")
    }
}

impl Drop for Shm {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

fn name(guid: &str) -> Name {
    (SharedKind::Server, guid.into())
}

/// Takes records for these objects; returns their indices and first values, `None` for those without space.
fn take(file: &mut CountsFile, guids: &[&str]) -> Vec<Option<(Slot, u64)>> {
    let taken = file.hold(|records| {
        let take = |guid: &&str| records.take(&name(guid)).map(|(slot, record)| (slot, record.values[0]));
        guids.iter().map(take).collect()
    });
    taken.expect("held")
}

fn set(file: &mut CountsFile, slot: Slot, guid: &str, value: u64) {
    file.hold(|records| records.change(slot, &name(guid), |record| record.values[0] = value))
        .expect("held")
        .expect("its own");
}

#[test]
fn a_successor_finds_what_was_counted() {
    let shm = Shm::new();
    let mut one = CountsFile::open(shm.file(), 10).expect("new");
    assert_eq!(take(&mut one, &["a", "b"]), [Some((0, 0)), Some((1, 0))]);
    set(&mut one, 1, "b", 7);
    let mut two = CountsFile::open(shm.file(), 10).expect("there");
    assert_eq!(take(&mut two, &["b", "c"]), [Some((1, 7)), Some((2, 0))]);
    // One process leaves normally: the counts that it alone had are lost.
    one.hold(|records| [(0, "a"), (1, "b")].map(|(slot, guid)| records.give_back(slot, &name(guid)))).expect("held");
    drop(one);
    let mut three = CountsFile::open(shm.file(), 10).expect("there");
    assert_eq!(take(&mut three, &["b", "a"]), [Some((1, 7)), Some((0, 0))]);
}

#[test]
fn a_process_that_crashed_leaves_its_counts() {
    let shm = Shm::new();
    let mut one = CountsFile::open(shm.file(), 2).expect("new");
    take(&mut one, &["a", "b"]);
    set(&mut one, 0, "a", 5);
    drop(one);
    let mut two = CountsFile::open(shm.file(), 2).expect("there");
    assert_eq!(take(&mut two, &["a"]), [Some((0, 5))]);
    // An abandoned record is reused when there is no other space; the others are not.
    assert_eq!(take(&mut two, &["c", "d"]), [Some((1, 0)), None]);
}

#[test]
fn hostile_files_are_refused() {
    type Change<'a> = &'a dyn Fn(&File);
    let rows: [(Change<'_>, &str); 4] = [
        (&|file| file.write_all_at(b"hello", 0).expect("written"), "it is no stats file of Weir; remove it"),
        (&|file| file.write_all_at(&[9], 8).expect("written"), "version 9"),
        (&|file| file.write_all_at(&[7], RECORD as u64).expect("written"), "record 0 is damaged"),
        (&|file| file.write_all_at(&[200], RECORD as u64 + 1).expect("written"), "record 0 is damaged"),
    ];
    for (change, expected) in rows {
        let shm = Shm::new();
        let mut one = CountsFile::open(shm.file(), 4).expect("new");
        take(&mut one, &["a"]);
        drop(one);
        change(&shm.file());
        let fault = CountsFile::open(shm.file(), 4).map(drop).expect_err("refused");
        assert!(fault.contains(expected), "{fault}");
    }
    // An incomplete record at the end is ignored, and records beyond the limit are not read.
    let shm = Shm::new();
    let mut one = CountsFile::open(shm.file(), 1).expect("new");
    take(&mut one, &["a"]);
    shm.file().set_len(3 * RECORD as u64 / 2).expect("cut");
    assert_eq!(take(&mut one, &["b"]), [Some((0, 0))]);
    shm.file().set_len(1 << 40).expect("sparse");
    assert_eq!(take(&mut one, &["c"]), [None]);
    // A truncated file is initialised again.
    shm.file().set_len(0).expect("cut");
    assert_eq!(take(&mut one, &["c"]), [Some((0, 0))]);
    assert!(CountsFile::open(shm.file(), 1).is_ok());
}

#[test]
fn seats_are_bounded_and_given_back() {
    let shm = Shm::new();
    let mut files: Vec<_> = (0..SEATS).map(|_| CountsFile::open(shm.file(), 4).expect("a seat")).collect();
    let fault = CountsFile::open(shm.file(), 4).map(drop).expect_err("no seat");
    assert_eq!(fault, "64 processes share it");
    take(&mut files[3], &["a"]);
    files.remove(3);
    assert!(CountsFile::open(shm.file(), 4).is_ok());
}
