//! The SMTP dialogue with a mail server (RFC 5321): one mail, one connection. Must never continue after a negative reply.

use conn::transport::{self, Transport};
use std::future::{Future as _, poll_fn};
use std::io::IoSlice;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use base::buffer::Buffer;
use rt::net::{Address, ConnectOptions};

use super::Mail;

/// Maximum bytes of a reply that are read.
const LONGEST: usize = 8_192;
/// Characters of a reply that are shown in messages.
const SHOWN: usize = 120;

/// A connection to a mail server.
struct Dialogue {
    stream: Transport,
    input: Buffer,
    timer: rt::Timer,
}

/// Sends a mail within its timeout.
///
/// # Errors
/// The reason, for log messages.
pub(super) async fn send(to: SocketAddr, mail: &Mail) -> Result<(), String> {
    let mut timer = rt::Timer::new();
    timer.arm(Some(rt::now() + mail.timeout));
    let mut connecting =
        transport::connect(&Address::Inet(to), &ConnectOptions::default()).map_err(|e| e.to_string())?;
    let stream = within(&mut timer, |cx| Pin::new(&mut connecting).poll(cx)).await?.map_err(|e| e.to_string())?;
    let mut dialogue = Dialogue { stream, input: Buffer::with_capacity(LONGEST), timer };
    dialogue.hear(220).await?;
    dialogue.say(format!("HELO {}\r\n", mail.hostname).as_bytes(), 250).await?;
    dialogue.say(format!("MAIL FROM:<{}>\r\n", mail.from).as_bytes(), 250).await?;
    dialogue.say(format!("RCPT TO:<{}>\r\n", mail.to).as_bytes(), 250).await?;
    dialogue.say(b"DATA\r\n", 354).await?;
    dialogue.say(&mail.content, 250).await?;
    // The server has accepted the mail, regardless of its reply to this.
    let _ = dialogue.say(b"QUIT\r\n", 221).await;
    Ok(())
}

async fn within<T>(timer: &mut rt::Timer, mut attempt: impl FnMut(&mut Context<'_>) -> Poll<T>) -> Result<T, String> {
    poll_fn(|cx| match attempt(cx) {
        Poll::Ready(done) => Poll::Ready(Ok(done)),
        Poll::Pending => timer.poll_expired(cx).map(|()| Err("it took too long".to_owned())),
    })
    .await
}

impl Dialogue {
    /// Sends a command and checks the code of the reply.
    async fn say(&mut self, bytes: &[u8], wanted: u16) -> Result<(), String> {
        let mut sent = 0;
        while sent < bytes.len() {
            let rest = [IoSlice::new(&bytes[sent..])];
            let stream = &mut self.stream;
            sent += within(&mut self.timer, |cx| stream.poll_write_slices(cx, &rest, false))
                .await?
                .map_err(|error| error.to_string())?;
        }
        self.hear(wanted).await
    }

    /// Reads a reply of one or several lines, and checks its code.
    async fn hear(&mut self, wanted: u16) -> Result<(), String> {
        loop {
            if let Some((code, length)) = reply(self.input.data()) {
                let shown = self.input.data().iter().take(length.min(SHOWN));
                let text: String =
                    shown.map(|byte| if byte.is_ascii_graphic() { char::from(*byte) } else { ' ' }).collect();
                self.input.consume(length);
                return if code == Some(wanted) { Ok(()) } else { Err(format!("the server says: {}", text.trim())) };
            }
            if self.input.room() == 0 {
                return Err("the server says too much".to_owned());
            }
            let (stream, input) = (&mut self.stream, &mut self.input);
            let read = within(&mut self.timer, |cx| stream.poll_read(cx, input)).await?;
            if read.map_err(|error| error.to_string())? == 0 {
                return Err("the server closed the connection".to_owned());
            }
        }
    }
}

/// Parses a complete reply: its code and its length in bytes; inner `None`: it has no code.
fn reply(input: &[u8]) -> Option<(Option<u16>, usize)> {
    let mut length = 0;
    for line in input.split_inclusive(|byte| *byte == b'\n') {
        if !line.ends_with(b"\n") {
            return None;
        }
        length += line.len();
        if line.get(3) != Some(&b'-') {
            let code = line.get(..3).and_then(|code| std::str::from_utf8(code).ok()?.parse().ok());
            return Some((code, length));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::reply;

    #[test]
    fn replies_end_with_a_line_without_a_dash() {
        type Row<'a> = (&'a str, Option<(Option<u16>, usize)>);
        let rows: &[Row<'_>] = &[
            ("220 hi\r\n", Some((Some(220), 8))),
            ("250-a\r\n250 b\r\nrest", Some((Some(250), 14))),
            ("250-a\r\n", None),
            ("25", None),
            ("hello\r\n", Some((None, 7))),
            ("250\r\n", Some((Some(250), 5))),
        ];
        for (input, expected) in rows {
            assert_eq!(reply(input.as_bytes()), *expected, "{input:?}");
        }
    }
}
