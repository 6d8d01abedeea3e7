//! The files of caches (`disk`): responses evicted from memory are written to them, and read back on a cache miss. One thread per
//! file reads and writes; workers never wait for it. Must never turn a disk error into a failed request: a response that cannot
//! be read counts as a miss.

use std::fs::File;
use std::os::unix::fs::FileExt as _;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, OnceLock};

use base::Moment;
use live::cache::{Cache, PendingWrites, Place};

/// Maximum number of queued jobs for a file.
const WAITING: usize = 64;

/// Storage of a cache file.
pub trait Store: Send + Sync {
    /// Fills `room` from an offset.
    ///
    /// # Errors
    /// The file is shorter, or from the system.
    fn read(&self, room: &mut [u8], offset: u64) -> std::io::Result<()>;
    /// Writes all of `data` at an offset.
    ///
    /// # Errors
    /// From the system.
    fn write(&self, data: &[u8], offset: u64) -> std::io::Result<()>;
}

impl Store for File {
    fn read(&self, room: &mut [u8], offset: u64) -> std::io::Result<()> {
        self.read_exact_at(room, offset)
    }

    fn write(&self, data: &[u8], offset: u64) -> std::io::Result<()> {
        self.write_all_at(data, offset)
    }
}

/// The files, by the index of the cache.
pub struct Disks(Box<[OnceLock<Arc<Disk>>]>);

/// A cache file, with its thread.
pub(crate) struct Disk {
    store: Box<dyn Store>,
    thread: rt::Helpers,
    /// Number of jobs started, and of jobs completed or rejected.
    begun: AtomicU64,
    ended: AtomicU64,
    /// Number of completed jobs required before the file is used again, after one took too long.
    hangs: AtomicU64,
}

impl Disks {
    /// Creates entries for `caches` caches.
    pub(crate) fn new(caches: usize) -> Self {
        Self((0..caches).map(|_| OnceLock::new()).collect())
    }

    /// Sets the file of a cache.
    pub fn set(&self, cache: usize, store: Box<dyn Store>) {
        if let Some(place) = self.0.get(cache) {
            let _ = place.set(Arc::new(Disk {
                store,
                thread: rt::Helpers::new(1, WAITING),
                begun: AtomicU64::new(0),
                ended: AtomicU64::new(0),
                hangs: AtomicU64::new(0),
            }));
        }
    }

    pub(crate) fn get(&self, cache: usize) -> Option<&Arc<Disk>> {
        self.0.get(cache)?.get()
    }
}

/// Guard of a running job.
struct Job(Arc<Disk>);

impl Job {
    fn begin(disk: &Arc<Disk>) -> Self {
        disk.begun.fetch_add(1, Relaxed);
        Self(Arc::clone(disk))
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.0.ended.fetch_add(1, Relaxed);
    }
}

impl Disk {
    /// Whether the file can be used.
    pub(crate) fn is_ready(&self) -> bool {
        self.ended.load(Relaxed) >= self.hangs.load(Relaxed)
    }

    /// Marks the file as hanging: it is not used until all jobs started so far have ended.
    pub(crate) fn note_hang(&self) {
        self.hangs.store(self.begun.load(Relaxed), Relaxed);
    }

    /// Writes the objects evicted from memory. They are lost if the file hangs or its queue is full.
    pub(crate) fn write(self: &Arc<Self>, cache: &Arc<Cache>, now: Moment) {
        let Some(leaving) = cache.take_leaving() else { return };
        if self.is_ready() {
            let (disk, job, cache) = (Arc::clone(self), Job::begin(self), Arc::clone(cache));
            rt::spawn(rt::Class::Normal, rt::NO_TAG, async move {
                disk.thread.run(move || job.0.write_all(&cache, leaving, now)).await;
            });
        }
    }

    fn write_all(&self, cache: &Cache, leaving: PendingWrites, now: Moment) {
        for (number, key, object) in &leaving.list {
            let Some((record, place)) = cache.record(*number, key, object, now) else { continue };
            if self.store.write(&record, place.offset).is_ok() {
                cache.written(key, place);
            }
        }
    }

    /// Reads a response. `None`: it no longer exists, or could not be read.
    pub(crate) async fn read(
        self: &Arc<Self>,
        cache: &Arc<Cache>,
        key: Box<[u8]>,
        place: Place,
    ) -> Option<Arc<live::cache::Object>> {
        let (job, cache) = (Job::begin(self), Arc::clone(cache));
        let work = move || {
            let mut record = vec![0; usize::try_from(place.length).ok()?];
            let read = job.0.store.read(&mut record, place.offset);
            // A failed read is treated as an empty record, which is not valid.
            let record = if read.is_ok() { &record[..] } else { &[] };
            cache.restore(&key, &place, record)
        };
        self.thread.run(work).await.flatten()
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::sync::{Condvar, Mutex};
    use std::task::{Context, Poll, Wake, Waker};

    use config::spec::EarlyHints;
    use live::cache::{CachePlan, Caches, Lifetime, Object, Signature};
    use std::time::Duration;
    use wire::http::Head;

    use super::*;

    /// Storage that blocks until it is released.
    struct Hung(Mutex<Receiver<()>>);

    impl Store for Hung {
        fn read(&self, _: &mut [u8], _: u64) -> io::Result<()> {
            let _ = self.0.lock().unwrap().recv();
            Err(io::ErrorKind::Other.into())
        }

        fn write(&self, _: &[u8], _: u64) -> io::Result<()> {
            Ok(())
        }
    }

    #[derive(Default)]
    struct Bell(Mutex<bool>, Condvar);

    impl Wake for Bell {
        fn wake(self: Arc<Self>) {
            *self.0.lock().unwrap() = true;
            self.1.notify_all();
        }
    }

    fn cache() -> Arc<Cache> {
        let plan = CachePlan {
            name: "c".into(),
            blocks: 64,
            largest: 32 << 10,
            age: 60,
            varies: false,
            variants: 1,
            hints: EarlyHints::Off,
            hint_blocks: 0,
            coalesce: None,
            stale: Duration::ZERO,
            stale_if_error: Duration::ZERO,
            ranges: false,
            standard: false,
            disk_path: None,
            disk: 1 << 20,
            tag_field: None,
        };
        Arc::clone(Caches::new(&[plan], 7).get(0).unwrap())
    }

    fn store(cache: &Arc<Cache>, key: &[u8]) {
        let mut head = Head::new();
        head.set_status(200, b"OK");
        let life = Lifetime { stored: Moment::ZERO, age: 0, left: Duration::from_secs(60) };
        let mut storing = cache.begin(key, &Signature::default(), Object::new(head, life), None).unwrap();
        assert!(storing.push(&[b'x'; 25_000]));
        storing.finish();
    }

    #[test]
    fn a_disk_that_hangs_is_left_alone_until_it_answers() {
        let (go, waits): (Sender<()>, _) = channel();
        let disks = Disks::new(1);
        disks.set(0, Box::new(Hung(Mutex::new(waits))));
        let (disk, cache) = (disks.get(0).unwrap(), cache());
        for key in [b"a", b"b", b"c"] {
            store(&cache, key);
        }
        let leaving = cache.take_leaving().unwrap();
        disk.write_all(&cache, leaving, Moment::ZERO);
        let place = cache.place(b"a", &Signature::default(), Moment::ZERO).expect("it was written");
        let bell = Arc::new(Bell::default());
        let waker = Waker::from(Arc::clone(&bell));
        let mut reading = Box::pin(disk.read(&cache, b"a"[..].into(), place));
        assert!(reading.as_mut().poll(&mut Context::from_waker(&waker)).is_pending());
        // What a request does after waiting too long.
        disk.note_hang();
        assert!(!disk.is_ready());
        go.send(()).unwrap();
        let mut rung = bell.0.lock().unwrap();
        while !*rung {
            rung = bell.1.wait(rung).unwrap();
        }
        drop(rung);
        let Poll::Ready(found) = reading.as_mut().poll(&mut Context::from_waker(&waker)) else {
            panic!("it has ended")
        };
        assert!(found.is_none() && disk.is_ready());
        assert_eq!(cache.on_disk(), 0, "what could not be read is forgotten");
    }
}
