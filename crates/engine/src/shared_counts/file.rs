//! The file of shared counters: its process slots ("seats"), its lock, its records. Must never know the owners of counters, nor
//! wait long for another process.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use live::counters::shared::{Place, RECORD, Record, SEATS, SharedKind, VALUES, header, header_fault};

/// Byte range whose lock is required to read and write records.
const ACCESS: Range<u64> = 0..RECORD as u64;
/// Byte, beyond all records, whose lock is the first seat.
const FIRST_SEAT: u64 = 1 << 40;
/// Attempts to take the lock, and the pause between them; another process holds it for microseconds.
const ATTEMPTS: u32 = 500;
const PAUSE: Duration = Duration::from_millis(1);

/// Key of a record: kind and GUID of the object.
pub(super) type Name = (SharedKind, Box<str>);

/// Index of a record.
pub(super) type Slot = u32;

/// An open file of counters, with this process's seat.
#[derive(Debug)]
pub(super) struct CountsFile {
    file: File,
    /// Bit mask of this process's seat.
    seat: u64,
    /// Maximum number of records.
    most: u32,
    /// The records as last read; a reused buffer.
    bytes: Vec<u8>,
}

fn seat_of(number: u32) -> Range<u64> {
    let start = FIRST_SEAT + u64::from(number);
    start..start + 1
}

impl CountsFile {
    /// Opens a file, takes a seat in it, and initialises it if it is empty.
    ///
    /// # Errors
    /// A message.
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

    /// Takes a seat, and clears those of processes that have ended. `Some`: the reason of a failure.
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

    /// Calls `work` with the records, locked against other processes, and writes the changed ones.
    ///
    /// # Errors
    /// From the system; `WouldBlock`: another process holds the lock.
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

    /// Reads all existing records.
    fn read(&mut self) -> io::Result<()> {
        let size = self.file.metadata()?.len();
        if size < RECORD as u64 {
            // The file was truncated: it is initialised again.
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

/// The records of a file while it is locked.
pub(super) struct Records<'f> {
    bytes: &'f mut Vec<u8>,
    seat: u64,
    most: u32,
    changed: Vec<Slot>,
    /// Built by the first lookup.
    index: Option<Index>,
}

/// Lookup tables of used, free and abandoned records.
#[derive(Default)]
struct Index {
    taken: BTreeMap<Name, Slot>,
    /// Free records, the next to use at the end.
    free: Vec<Slot>,
    /// Records that no process uses.
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

    /// Writes the bytes of a record, appending it if it is the next one.
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

    /// Returns the record of an object, and marks it as used by this process: the existing one, a free one, or an abandoned one.
    /// `None`: the file is full.
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

    /// Takes an abandoned record that this process has not used since.
    fn reclaim(&self, index: &mut Index) -> Option<Slot> {
        while let Some((slot, name)) = index.abandoned.pop() {
            if matches!(self.at(slot), Place::Taken(record) if record.seats == 0) {
                index.taken.remove(&name);
                return Some(slot);
            }
        }
        None
    }

    /// Changes the record of an object. `None`: the record is no longer at this index, because the file was changed otherwise;
    /// nothing is counted there then.
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

    /// Releases the record of an object: it is freed unless another process uses it.
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
