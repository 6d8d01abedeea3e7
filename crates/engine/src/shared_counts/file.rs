//! The file of shared counts: its seats, its lock, its records. Must never know whose counts they are, nor wait for another
//! process for long.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use live::counters::shared::{Place, RECORD, Record, SEATS, SharedKind, VALUES, header, header_fault};

/// Bytes whose lock gives the right to read and write records.
const ACCESS: Range<u64> = 0..RECORD as u64;
/// The byte behind all records whose lock is the first seat.
const FIRST_SEAT: u64 = 1 << 40;
/// How often, and in what time, a lock is tried that another process has for microseconds.
const ATTEMPTS: u32 = 500;
const PAUSE: Duration = Duration::from_millis(1);

/// What an object is found by.
pub(super) type Name = (SharedKind, Box<str>);

/// The place of a record.
pub(super) type Slot = u32;

/// An open file of counts, with a seat of its own.
#[derive(Debug)]
pub(super) struct CountsFile {
    file: File,
    /// The bit of its seat.
    seat: u64,
    /// Records at most.
    most: u32,
    /// The records as they were read last: memory that is used again.
    bytes: Vec<u8>,
}

fn seat_of(number: u32) -> Range<u64> {
    let start = FIRST_SEAT + u64::from(number);
    start..start + 1
}

impl CountsFile {
    /// Takes a seat in a file, which is begun where it is empty.
    ///
    /// # Errors
    /// In words.
    pub(super) fn open(file: File, most: u32) -> Result<Self, String> {
        let of_system = |error: io::Error| match error.kind() {
            io::ErrorKind::WouldBlock => "another process keeps it locked".to_owned(),
            _ => error.to_string(),
        };
        let mut own = Self { file, seat: 0, most, bytes: Vec::new() };
        own.lock().map_err(of_system)?;
        let opened = own.sit_down().map_err(of_system).and_then(|fault| fault.map_or(Ok(()), Err));
        let unlocked = rt::unlock_bytes(&own.file, ACCESS).map_err(of_system);
        opened.and(unlocked)?;
        Ok(own)
    }

    /// Takes a seat, and strikes off those whose processes have ended. `Some`: why not.
    fn sit_down(&mut self) -> io::Result<Option<String>> {
        let size = self.file.metadata()?.len();
        if size == 0 {
            self.file.write_all_at(&header(), 0)?;
        } else {
            let mut bytes = [0; RECORD];
            let known = self.file.read_exact_at(&mut bytes, 0).is_ok();
            if let Some(fault) = header_fault(if known { &bytes } else { &[] }) {
                return Ok(Some(format!("{fault}; remove it to begin anew")));
            }
        }
        let mut living = 0;
        for number in 0..SEATS {
            if self.seat == 0 && rt::lock_bytes(&self.file, seat_of(number))? {
                self.seat = 1 << number;
            } else if rt::has_lock(&self.file, seat_of(number))? {
                living |= 1 << number;
            }
        }
        if self.seat == 0 {
            return Ok(Some(format!("{SEATS} processes share it")));
        }
        self.read()?;
        let mut records = self.records();
        for slot in 0..records.places() {
            match records.at(slot) {
                Place::Damaged => return Ok(Some(format!("its record {slot} is damaged; remove it to begin anew"))),
                Place::Taken(mut record) if record.seats & !living != 0 => {
                    record.seats &= living;
                    records.put(slot, &record);
                }
                _ => {}
            }
        }
        let changed = records.changed;
        self.write(changed)?;
        Ok(None)
    }

    /// Works on the records while no other process does.
    ///
    /// # Errors
    /// The system's; `WouldBlock`: another process has them.
    pub(super) fn hold<T>(&mut self, work: impl FnOnce(&mut Records<'_>) -> T) -> io::Result<T> {
        self.lock()?;
        let worked = self.read().and_then(|()| {
            let mut records = self.records();
            let result = work(&mut records);
            let changed = records.changed;
            self.write(changed).map(|()| result)
        });
        rt::unlock_bytes(&self.file, ACCESS)?;
        worked
    }

    fn lock(&self) -> io::Result<()> {
        for _ in 0..ATTEMPTS {
            if rt::lock_bytes(&self.file, ACCESS)? {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
        Err(io::ErrorKind::WouldBlock.into())
    }

    fn records(&mut self) -> Records<'_> {
        Records { bytes: &mut self.bytes, seat: self.seat, most: self.most, changed: Vec::new(), index: None }
    }

    /// Reads all records that there may be.
    fn read(&mut self) -> io::Result<()> {
        let size = self.file.metadata()?.len();
        if size < RECORD as u64 {
            // Somebody has emptied it: it begins anew.
            self.file.write_all_at(&header(), 0)?;
        }
        let size = size.saturating_sub(RECORD as u64) / RECORD as u64;
        let places = size.min(u64::from(self.most)) as usize;
        self.bytes.clear();
        self.bytes.resize(places * RECORD, 0);
        self.file.read_exact_at(&mut self.bytes, RECORD as u64)
    }

    fn write(&self, changed: Vec<Slot>) -> io::Result<()> {
        for slot in changed {
            let at = slot as usize * RECORD;
            self.file.write_all_at(&self.bytes[at..at + RECORD], (at + RECORD) as u64)?;
        }
        Ok(())
    }
}

/// The records of a file while no other process has them.
pub(super) struct Records<'f> {
    bytes: &'f mut Vec<u8>,
    seat: u64,
    most: u32,
    changed: Vec<Slot>,
    /// Made when a record is looked for.
    index: Option<Index>,
}

/// Where records are, and where there is room.
#[derive(Default)]
struct Index {
    taken: BTreeMap<Name, Slot>,
    /// In the order in which they are used: the last one first.
    free: Vec<Slot>,
    /// Records that no process counts any more.
    abandoned: Vec<(Slot, Name)>,
}

impl Records<'_> {
    fn places(&self) -> Slot {
        (self.bytes.len() / RECORD) as Slot
    }

    fn at(&self, slot: Slot) -> Place {
        let at = slot as usize * RECORD;
        self.bytes.get(at..at + RECORD).map_or(Place::Free, Record::decode)
    }

    /// Puts the bytes of a record in its place, behind the last one at most.
    fn put_bytes(&mut self, slot: Slot, bytes: &[u8; RECORD]) {
        let at = slot as usize * RECORD;
        if self.bytes.len() < at + RECORD {
            self.bytes.resize(at + RECORD, 0);
        }
        if self.bytes[at..at + RECORD] != *bytes {
            self.bytes[at..at + RECORD].copy_from_slice(bytes);
            self.changed.push(slot);
        }
    }

    fn put(&mut self, slot: Slot, record: &Record) {
        self.put_bytes(slot, &record.encode());
    }

    fn index(&self) -> Index {
        let mut index = Index::default();
        for slot in (0..self.places()).rev() {
            match self.at(slot) {
                Place::Taken(record) => {
                    let name = (record.kind, record.guid);
                    if record.seats == 0 {
                        index.abandoned.push((slot, name.clone()));
                    }
                    index.taken.insert(name, slot);
                }
                Place::Free | Place::Damaged => index.free.push(slot),
            }
        }
        index
    }

    /// The record of an object, from now on this process's as well: the one that there is, a free one, or one that no process
    /// counts any more. `None`: there is no room.
    pub(super) fn take(&mut self, name: &Name) -> Option<(Slot, Record)> {
        let mut index = self.index.take().unwrap_or_else(|| self.index());
        let taken = self.take_from(&mut index, name);
        self.index = Some(index);
        taken
    }

    fn take_from(&mut self, index: &mut Index, name: &Name) -> Option<(Slot, Record)> {
        if let Some(slot) = index.taken.get(name).copied()
            && let Place::Taken(mut record) = self.at(slot)
        {
            record.seats |= self.seat;
            self.put(slot, &record);
            return Some((slot, *record));
        }
        let next = Some(self.places()).filter(|next| *next < self.most);
        let slot = index.free.pop().or(next).or_else(|| self.reclaim(index))?;
        let record = Record { kind: name.0, guid: name.1.clone(), seats: self.seat, values: [0; VALUES] };
        self.put(slot, &record);
        index.taken.insert(name.clone(), slot);
        Some((slot, record))
    }

    /// The place of a record that no process counts any more, nor this one by now.
    fn reclaim(&self, index: &mut Index) -> Option<Slot> {
        while let Some((slot, name)) = index.abandoned.pop() {
            if matches!(self.at(slot), Place::Taken(record) if record.seats == 0) {
                index.taken.remove(&name);
                return Some(slot);
            }
        }
        None
    }

    /// Changes the record of an object. `None`: it is in another place, because someone else has changed the file; nothing is
    /// counted there then.
    pub(super) fn change<T>(&mut self, slot: Slot, name: &Name, change: impl FnOnce(&mut Record) -> T) -> Option<T> {
        let Place::Taken(mut record) = self.at(slot) else { return None };
        if (record.kind, &record.guid) != (name.0, &name.1) {
            return None;
        }
        let result = change(&mut record);
        record.seats |= self.seat;
        self.put(slot, &record);
        Some(result)
    }

    /// This process does not count the object any more: its record is free unless another one does.
    pub(super) fn give_back(&mut self, slot: Slot, name: &Name) {
        let seat = self.seat;
        let left = self.change(slot, name, |record| record.seats & !seat);
        match (left, self.at(slot)) {
            (Some(0), _) => self.put_bytes(slot, &[0; RECORD]),
            (Some(seats), Place::Taken(mut record)) => {
                record.seats = seats;
                self.put(slot, &record);
            }
            _ => {}
        }
    }
}
