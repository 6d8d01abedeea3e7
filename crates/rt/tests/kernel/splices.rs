//! Splicing between two streams.

use std::future::poll_fn;

use crate::rt;
use crate::support::*;
use rt::net::{Pipe, Stream};

async fn splice_all(from: &mut Stream, to: &mut Stream) -> usize {
    let mut pipe = Pipe::new().unwrap();
    let mut total = 0;
    loop {
        let count = poll_fn(|context| pipe.poll_splice_in(context, from, usize::MAX)).await.unwrap();
        if count == 0 {
            return total;
        }
        total += count;
        while !pipe.is_empty() {
            poll_fn(|context| pipe.poll_splice_out(context, to, false)).await.unwrap();
        }
    }
}

#[test]
fn spliced_bytes_arrive_whole_and_in_order() {
    on_one_worker(|| async {
        let ((mut sender, mut inward), (mut outward, mut receiver)) = (pair().await, pair().await);
        let text: Vec<u8> = (0..5_000_000u32).map(|n| (n / 3) as u8).collect();
        let sent = text.clone();
        rt::spawn(rt::Class::Normal, 0, async move {
            write_all(&mut sender, &sent).await.unwrap();
        });
        rt::spawn(rt::Class::Normal, 0, async move {
            assert_eq!(splice_all(&mut inward, &mut outward).await, 5_000_000);
        });
        assert!(read_to_end(&mut receiver).await.unwrap() == text);
    });
}

#[test]
fn a_pipe_with_bytes_takes_no_others_and_is_not_used_again() {
    on_one_worker(|| async {
        let (mut sender, mut receiver) = pair().await;
        write_all(&mut sender, b"left over").await.unwrap();
        let mut pipe = Pipe::new().unwrap();
        poll_fn(|context| pipe.poll_splice_in(context, &mut receiver, 4)).await.unwrap();
        assert_eq!(pipe.len(), 4);
        let second = poll_fn(|context| pipe.poll_splice_in(context, &mut receiver, 4)).await;
        assert_eq!(second.unwrap_err().kind(), std::io::ErrorKind::InvalidInput);
        drop(pipe);
        let mut fresh = Pipe::new().unwrap();
        assert_eq!(poll_fn(|context| fresh.poll_splice_in(context, &mut receiver, 100)).await.unwrap(), 5);
        poll_fn(|context| fresh.poll_splice_out(context, &mut receiver, false)).await.unwrap();
        let mut buffer = rt::buffer();
        read_exactly(&mut sender, &mut buffer, 5).await;
        assert_eq!(buffer.data(), b" over");
    });
}
