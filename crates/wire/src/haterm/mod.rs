//! Requests to HAProxy's test server haterm (haterm.txt, section 3) and the contents of its responses, for the test
//! origin and for frontends in haterm mode. Must never allocate, nor know how a response is sent.

mod parameters;

pub use parameters::{Chunks, Parameters, Reuse, asks_for_help};

/// A line of text; bodies repeat it.
pub const LINE: &[u8; 50] = b".123456789.123456789.123456789.123456789.12345678\n";

/// A sink for text and numbers.
pub trait Writer {
    /// Appends text.
    fn text(&mut self, text: &[u8]);

    /// Appends a number in decimal.
    #[inline]
    fn number(&mut self, number: u64) {
        let mut digits = [0; 20];
        let mut at = digits.len();
        let mut rest = number;
        loop {
            at -= 1;
            digits[at] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        self.text(&digits[at..]);
    }
}

/// A buffer for the value of X-rsp.
#[derive(Debug)]
pub struct Report {
    room: [u8; 160],
    length: usize,
}

impl Default for Report {
    fn default() -> Self {
        Self { room: [0; 160], length: 0 }
    }
}

impl Report {
    /// The text written so far.
    #[must_use]
    pub fn written(&self) -> &[u8] {
        &self.room[..self.length]
    }
}

impl Writer for Report {
    fn text(&mut self, text: &[u8]) {
        let end = self.length + text.len();
        let place = self.room.get_mut(self.length..end);
        debug_assert!(place.is_some(), "a report is smaller than its room");
        if let Some(place) = place {
            place.copy_from_slice(text);
            self.length = end;
        }
    }
}

/// Writes the value of X-rsp; `waited` is the number of milliseconds before the response.
pub fn write_values(parameters: &Parameters, waited: u64, line: &mut impl Writer) {
    line.text(b"id=dummy, code=");
    line.number(u64::from(parameters.status));
    line.text(if parameters.cacheable { b", cache=1" } else { b", cache=0" });
    line.text(if parameters.chunks == Chunks::None { b" size=" } else { b", chunked, size=" });
    line.number(parameters.size);
    line.text(b", time=");
    line.number(parameters.wait);
    line.text(b" ms (");
    line.number(waited);
    line.text(b" real)");
}

/// The help page, which is returned for an empty list of parameters.
pub const PAGE: &str = concat!(
    "Weir's test origin - version ",
    env!("CARGO_PKG_VERSION"),
    ".\n",
    "\
All integer argument values are in the form [digits]*[kmgr] (r=random(0..1)).
The following arguments are supported to override the default objects :
 - /?s=<size>        return <size> bytes.
                     E.g. /?s=20k
 - /?r=<retcode>     present <retcode> as the HTTP return code.
                     E.g. /?r=404
 - /?c=<cache>       set the return as not cacheable if <1.
                     E.g. /?c=0
 - /?A=<req-after>   drain the request body after sending the response.
                     E.g. /?A=1
 - /?C=<close>       force the response to use close if >0.
                     E.g. /?C=1
 - /?K=<keep-alive>  force the response to use keep-alive if >0.
                     E.g. /?K=1
 - /?t=<time>        wait <time> milliseconds before responding.
                     E.g. /?t=500
 - /?k=<enable>      Enable transfer encoding chunked if >0: with large chunks,
                     with chunks of one byte if it is 2.
 - /?R=<enable>      Enable sending random data if >0.
 - /?g=<enable>      End the answer with the trailers of gRPC if >0, by HTTP/2.
 - /?v=<verbose>     leave out the X-req and X-rsp headers if 0.

Note that those arguments may be cumulated on one line separated by a set of
delimiters among [&?,;/] :
 -  GET /?s=20k&c=1&t=700&K=30r HTTP/1.0
 -  GET /?r=500?s=0?c=0?t=1000 HTTP/1.0
"
);
