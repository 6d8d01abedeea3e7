//! Tasks: panics, fairness, wakes from other threads, timers on the real clock.

use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Poll, Waker};
use std::time::Duration;

use crate::rt;
use crate::support::*;
use rt::{Class, Config};

/// Panics when it is dropped.
struct Bomb;

impl Drop for Bomb {
    fn drop(&mut self) {
        panic!("a bomb went off");
    }
}

/// Panics when it is polled, and once more when it is dropped after that.
struct Twice(#[allow(dead_code, reason = "it is there to be dropped")] Bomb);

impl Future for Twice {
    type Output = ();

    fn poll(self: std::pin::Pin<&mut Self>, _: &mut std::task::Context<'_>) -> Poll<()> {
        panic!("in a poll")
    }
}

#[test]
fn a_panic_ends_its_task_alone() {
    on_one_worker(|| async {
        let tags = Rc::new(RefCell::new(Vec::new()));
        let noted = Rc::clone(&tags);
        rt::set_panic_hook(Rc::new(move |tag| noted.borrow_mut().push(tag)));
        let neighbours = rt::tasks();
        rt::spawn(Class::Normal, 11, async { panic!("on its first poll") });
        rt::spawn(Class::Normal, 12, async {
            rt::yield_now().await;
            panic!("on a later poll");
        });
        rt::spawn(Class::Heavy, 13, Twice(Bomb));
        rt::spawn(Class::Normal, 14, async {
            let _bomb = Bomb;
        });
        rt::spawn(Class::Normal, 15, async { std::panic::panic_any(Bomb) });
        rt::spawn_with(Class::Normal, 16, "where it was made", |text| async move { panic!("{text}") });
        rt::contain(17, || panic!("in a part of this task"));
        rt::post(0, Box::new(|| panic!("in a job")));
        until(|| tags.borrow().len() == 8).await;
        let mut tags = tags.borrow().clone();
        tags.sort_unstable();
        assert_eq!(tags, [11, 12, 13, 14, 15, 16, 17, rt::NO_TAG]);
        assert_eq!(rt::tasks(), neighbours);
    });
}

#[test]
fn a_panic_in_the_hook_is_contained_too() {
    on_one_worker(|| async {
        let calls = Rc::new(Cell::new(0));
        let counted = Rc::clone(&calls);
        rt::set_panic_hook(Rc::new(move |_| {
            counted.set(counted.get() + 1);
            panic!("in the hook");
        }));
        rt::spawn(Class::Normal, 1, async { panic!("in a task") });
        until(|| calls.get() == 1).await;
        turns(2).await;
    });
}

#[test]
fn what_a_task_starts_runs_in_the_same_turn_and_what_it_wakes_in_the_next() {
    on_one_worker(|| async {
        let order = Rc::new(RefCell::new(Vec::new()));
        let note = |name: &'static str| {
            let order = Rc::clone(&order);
            move || order.borrow_mut().push((name, rt::now()))
        };
        let (started, woken) = (note("started"), note("woken"));
        rt::spawn(Class::Normal, 1, async move {
            started();
            rt::yield_now().await;
            woken();
        });
        let began = rt::now();
        // This task runs next in the following iteration: before the task that it started runs once more.
        rt::yield_now().await;
        assert_eq!(*order.borrow(), [("started", began)]);
        turns(2).await;
        let order = order.borrow();
        assert!(order.len() == 2 && order[1].0 == "woken" && order[1].1 > began, "{order:?}");
    });
}

#[test]
fn tasks_that_start_one_another_without_end_let_others_run() {
    fn start_next(started: Rc<Cell<u32>>) {
        started.set(started.get() + 1);
        rt::spawn(Class::Normal, 1, async move { start_next(started) });
    }
    on_one_worker(|| async {
        let started = Rc::new(Cell::new(0));
        start_next(Rc::clone(&started));
        turns(3).await;
        let most = Config::default().run_queue_depth as u32;
        assert!((3..=4 * most).contains(&started.get()), "{}", started.get());
    });
}

#[test]
fn a_task_that_is_always_ready_lets_others_run() {
    on_one_worker(|| async {
        let greedy_turns = Rc::new(Cell::new(0));
        let counted = Rc::clone(&greedy_turns);
        rt::spawn(Class::Normal, 0, async move {
            loop {
                counted.set(counted.get() + 1);
                rt::yield_now().await;
            }
        });
        turns(100).await;
        assert!((98..=102).contains(&greedy_turns.get()), "one poll a turn, not {}", greedy_turns.get());
    });
}

#[test]
fn a_stream_that_is_always_readable_lets_others_run() {
    on_one_worker(|| async {
        let socket = listen();
        let feeder = feed(socket.local_address().inet().unwrap());
        let mut listener = rt::net::Listener::new(socket).unwrap();
        let mut receiver = rt::net::Stream::adopt(listener.accept().await.unwrap().0);
        let received = Rc::new(Cell::new(0usize));
        let counted = Rc::clone(&received);
        rt::spawn(Class::Normal, 0, async move {
            let mut buffer = rt::buffer();
            loop {
                buffer.clear();
                let Ok(count @ 1..) = read(&mut receiver, &mut buffer).await else { return };
                counted.set(counted.get() + count);
            }
        });
        let mut most_in_a_turn = 0;
        while received.get() < 30_000_000 {
            let before = received.get();
            rt::yield_now().await;
            most_in_a_turn = most_in_a_turn.max(received.get() - before);
        }
        assert!(most_in_a_turn <= 64 * 16 * 1024, "{most_in_a_turn} bytes in one turn");
        drop(feeder);
    });
}

/// Connects and feeds the connection from a thread, so that there is always something to receive.
fn feed(to: std::net::SocketAddr) -> std::thread::JoinHandle<()> {
    std::thread::spawn(move || {
        let mut socket = std::net::TcpStream::connect(to).unwrap();
        while std::io::Write::write_all(&mut socket, &[7; 64 * 1024]).is_ok() {}
    })
}

#[test]
fn heavy_tasks_do_not_hold_normal_ones_up() {
    on_one_worker(|| async {
        let heavy = Rc::new(Cell::new(0));
        for _ in 0..100 {
            let heavy = Rc::clone(&heavy);
            rt::spawn(Class::Heavy, 0, async move { heavy.set(heavy.get() + 1) });
        }
        turns(10).await;
        assert!(heavy.get() <= 12, "{} heavy tasks in ten turns", heavy.get());
        until(|| heavy.get() == 100).await;
    });
}

#[test]
fn parts_of_tasks_may_be_heavy() {
    on_one_worker(|| async {
        let (heavy, normal) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
        for _ in 0..100 {
            let (heavy, normal) = (Rc::clone(&heavy), Rc::clone(&normal));
            rt::spawn(Class::Normal, 0, async move {
                rt::in_class(Class::Heavy, async { heavy.set(heavy.get() + 1) }).await;
                // It has its previous class again.
                rt::yield_now().await;
                normal.set(normal.get() + 1);
            });
        }
        turns(10).await;
        assert!(heavy.get() <= 12, "{} heavy parts in ten turns", heavy.get());
        assert!(normal.get() + 2 >= heavy.get(), "{} of {} went on", normal.get(), heavy.get());
        until(|| normal.get() == 100).await;
    });
}

#[test]
fn background_tasks_get_a_share_of_each_turn() {
    on_one_worker(|| async {
        let ran = Rc::new(Cell::new(0));
        for _ in 0..200 {
            let ran = Rc::clone(&ran);
            rt::spawn(Class::Background, 0, async move { ran.set(ran.get() + 1) });
        }
        turns(10).await;
        assert!((64..=96).contains(&ran.get()), "{} background tasks in ten turns", ran.get());
        until(|| ran.get() == 200).await;
    });
}

#[test]
fn a_waker_wakes_from_any_thread_and_after_its_worker_ended() {
    let kept: Arc<Mutex<Vec<Waker>>> = Arc::default();
    let wakers = Arc::clone(&kept);
    on_one_worker(move || {
        let wakers = Arc::clone(&wakers);
        async move {
            for _ in 0..200 {
                let flag = Arc::new(AtomicUsize::new(0));
                let mut started = false;
                poll_fn(|context| {
                    if flag.load(Ordering::SeqCst) == 1 {
                        return Poll::Ready(());
                    }
                    if !started {
                        started = true;
                        let (waker, flag) = (context.waker().clone(), Arc::clone(&flag));
                        wakers.lock().unwrap().push(waker.clone());
                        std::thread::spawn(move || {
                            flag.store(1, Ordering::SeqCst);
                            waker.wake();
                        });
                    }
                    Poll::Pending
                })
                .await;
            }
        }
    });
    kept.lock().unwrap().drain(..).for_each(Waker::wake);
    // A later runtime reuses the same indices of the registry; wakers of the old one must not affect it.
    on_one_worker(|| turns(3));
}

#[test]
fn workers_wake_each_other() {
    const ROUNDS: usize = 2_000;
    let rounds = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&rounds);
    fn bounce(left: usize, counted: Arc<AtomicUsize>) {
        if left == 0 {
            return rt::stop();
        }
        counted.fetch_add(1, Ordering::SeqCst);
        let to = (rt::worker() + 1) % rt::workers() as u16;
        rt::post(to, Box::new(move || bounce(left - 1, counted)));
    }
    start(3, move |worker| {
        let counted = Arc::clone(&counted);
        Box::pin(async move {
            if worker == 0 {
                bounce(ROUNDS, counted);
            }
        })
    });
    assert_eq!(rounds.load(Ordering::SeqCst), ROUNDS);
}

#[test]
fn other_threads_reach_workers_by_a_handle() {
    let (sender, receiver) = std::sync::mpsc::channel();
    start(2, move |worker| {
        let sender = sender.clone();
        Box::pin(async move {
            if worker == 0 {
                sender.send(rt::handle()).unwrap();
                let handle = rt::handle();
                std::thread::spawn(move || {
                    let inner = handle.clone();
                    handle.post(1, Box::new(move || inner.stop()));
                });
            }
        })
    });
    let handle = receiver.recv().unwrap();
    assert_eq!(handle.workers(), 2);
    assert!(handle.stopping());
    let dropped = Arc::new(());
    let inside = Arc::clone(&dropped);
    handle.post(0, Box::new(move || drop(inside)));
    assert_eq!(Arc::strong_count(&dropped), 1, "a job for a worker that ended is dropped at once");
}

#[test]
fn load_is_counted_on_the_worker_that_was_named() {
    start(2, |worker| {
        Box::pin(async move {
            if worker == 0 {
                let (here, there) = (rt::LoadGuard::on(0), rt::LoadGuard::on(1));
                assert_eq!((rt::load(), rt::load_of(1), rt::load_of(9)), (1, 1, 0));
                rt::post(1, Box::new(move || drop(there)));
                until(|| rt::load_of(1) == 0).await;
                drop(here);
                assert_eq!(rt::load(), 0);
                rt::stop();
            }
        })
    });
}

#[test]
fn what_tasks_hold_is_dropped_when_the_worker_ends() {
    let held = Arc::new(());
    let inside = Arc::clone(&held);
    start(2, move |_| {
        let inside = Arc::clone(&inside);
        Box::pin(async move {
            let hold = Arc::clone(&inside);
            rt::spawn(Class::Normal, 0, async move {
                let _hold = hold;
                std::future::pending::<()>().await;
            });
            turns(2).await;
            rt::stop();
        })
    });
    // The closure itself was moved into `start` and dropped; only this one is left.
    assert_eq!(Arc::strong_count(&held), 1);
}

#[test]
fn sleeping_ends_after_its_time_and_in_order() {
    on_one_worker(|| async {
        let order = Rc::new(RefCell::new(Vec::new()));
        let begun = rt::now();
        for millis in [30u64, 10, 20] {
            let order = Rc::clone(&order);
            rt::spawn(Class::Normal, 0, async move {
                rt::sleep(Duration::from_millis(millis)).await;
                assert!(rt::now() >= begun + Duration::from_millis(millis));
                order.borrow_mut().push(millis);
            });
        }
        until(|| order.borrow().len() == 3).await;
        assert_eq!(*order.borrow(), [10, 20, 30]);
    });
}

#[test]
fn futures_use_the_memory_of_those_before() {
    on_one_worker(|| async {
        async fn place(salt: u8) -> usize {
            let bytes = [salt; 700];
            rt::yield_now().await;
            bytes.as_ptr() as usize
        }
        let first = rt::boxed(place(1)).await;
        for salt in 2..20 {
            assert_eq!(rt::boxed_dyn(place(salt)).await, first);
        }
    });
}

#[test]
fn an_alarm_comes_and_is_set_anew() {
    on_one_worker(|| async {
        let mut alarm = rt::Alarm::new().unwrap();
        for _ in 0..3 {
            let moment = rt::read_clock() + Duration::from_micros(300);
            poll_fn(|context| alarm.poll_at(context, moment)).await.unwrap();
            assert!(rt::now() >= moment);
        }
    });
}
