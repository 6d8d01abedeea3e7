//! Malformed, ambiguous or unusual requests, combined from tables, and valid ones with a few bytes changed. Must never
//! judge one.

/// A request in a body, which must not be taken for a request.
const HIDDEN: &str = "GET /hidden HTTP/1.1\r\nHost: h\r\n\r\n";

/// The request that follows most others.
const AFTER: &str = "GET /after HTTP/1.1\r\nHost: a\r\n\r\n";

/// Fields that may be taken for a length of 5.
const LENGTHS: &[&str] = &[
    "Content-Length: 5",
    "content-length:5",
    "Content-Length: 05",
    "Content-Length: 00000000000000000000000000000005",
    "Content-Length:\t5\t",
    "Content-Length: 5 ",
    "Content-Length : 5",
    "Content-Length\t: 5",
    "Content-Length: +5",
    "Content-Length: -5",
    "Content-Length: 0x5",
    "Content-Length: 5e0",
    "Content-Length: 5.0",
    "Content-Length: 5,",
    "Content-Length: 5,5",
    "Content-Length: 5, 6",
    "Content-Length: 6, 5",
    "Content-Length: 5;a",
    "Content-Length: \"5\"",
    "Content-Length: 5 5",
    "Content-Length: ",
    "Content-Length: five",
    "Content-Length: \x0b5",
    "Content-Length: 5\0",
    "Content-Length: \u{665}",
    "Content-Length: 18446744073709551621",
    "Content-Length: 4294967301",
    "Content-Length: 5\r\nContent-Length: 5",
    "Content-Length: 5\r\nContent-Length: 0",
    "Content-Length: 0\r\nContent-Length: 5",
    "Content-Length: 5\r\n 6",
    "Content-Length:\r\n 5",
    "X: y\r\n Content-Length: 5",
    "X: y\nContent-Length: 5",
    "X: y\rContent-Length: 5",
    "X: y\r\r\nContent-Length: 5",
    "X: y\0\r\nContent-Length: 5",
    "Content_Length: 5",
    "Content-Length\0: 5",
    "\x01Content-Length: 5",
    "Content-Length: 5\r\nConnection: content-length",
    "Content-Length: 5\r\nExpect: 100-continue",
    "Content-Length: 5\r\nUpgrade: h2c\r\nConnection: upgrade",
];

/// Fields that may be taken for the chunked coding.
const CODINGS: &[&str] = &[
    "Transfer-Encoding: chunked",
    "transfer-encoding:chunked",
    "Transfer-Encoding: Chunked",
    "Transfer-Encoding: \tchunked\t",
    "Transfer-Encoding : chunked",
    "Transfer-Encoding\t: chunked",
    "Transfer-Encoding: \x0bchunked",
    "Transfer-Encoding: chunked\x0c",
    "Transfer-Encoding: xchunked",
    "Transfer-Encoding: chunkedx",
    "Transfer-Encoding: x chunked",
    "Transfer-Encoding: chunked, identity",
    "Transfer-Encoding: identity, chunked",
    "Transfer-Encoding: gzip, chunked",
    "Transfer-Encoding: chunked, chunked",
    "Transfer-Encoding: chunked;q=1",
    "Transfer-Encoding: chunked,",
    "Transfer-Encoding: ,chunked",
    "Transfer-Encoding: \"chunked\"",
    "Transfer-Encoding: ",
    "Transfer-Encoding: identity",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity",
    "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
    "Transfer-Encoding: chun\r\n ked",
    "Transfer-Encoding:\r\n chunked",
    "Transfer-Encoding: chunked\0",
    "Transfer-Encoding: \0chunked",
    "Transfer-Encoding: ch\u{fb}nked",
    "Transfer_Encoding: chunked",
    "Transfer-Encoding\0: chunked",
    "X: y\nTransfer-Encoding: chunked",
    "X: y\rTransfer-Encoding: chunked",
    "X: y\r\n Transfer-Encoding: chunked",
    "TE: chunked",
    "Transfer-Encoding: chunked\r\nConnection: transfer-encoding",
    "Transfer-Encoding: chunked\r\nConnection: close, transfer-encoding, content-length",
];

/// Size lines of a chunk with five bytes.
const SIZES: &[&str] = &[
    "5\r\n",
    "05\r\n",
    "00000000000000000005\r\n",
    "5 \r\n",
    "5\t\r\n",
    " 5\r\n",
    "5;\r\n",
    "5;a\r\n",
    "5;a=b\r\n",
    "5 ; a = \"b;\\\"c\"\r\n",
    "5;a=\"\r\n\"\r\n",
    "5;a\n\r\n",
    "5;a\r\r\n",
    "5;a=b\0\r\n",
    "5\n",
    "5\r",
    "5\r\r\n",
    "0x5\r\n",
    "+5\r\n",
    "-5\r\n",
    "5_0\r\n",
    "5 5\r\n",
    "5,\r\n",
    "\r\n5\r\n",
    "\r\n",
    "five\r\n",
    "10000000000000005\r\n",
    "100000005\r\n",
    "fffffffffffffffb\r\n",
];

/// Bytes after a chunk's data.
const DATA_ENDS: &[&str] = &["\r\n", "\n", "\r", "", "xx", "\r\n\r\n", " \r\n"];

/// Ends of a chunked body.
const CHUNK_ENDS: &[&str] = &[
    "0\r\n\r\n",
    "00\r\n\r\n",
    "0;a\r\n\r\n",
    "0 \r\n\r\n",
    "0\n\n",
    "0\r\n\n",
    "0\n\r\n",
    "0\r\r",
    "0\r\nX: y\r\n\r\n",
    "0\r\nContent-Length: 40\r\n\r\n",
    "0\r\nTransfer-Encoding: chunked\r\n\r\n",
    "0\r\n X: y\r\n\r\n",
    "0\r\nX: y\n\r\n",
    "0\r\nX : y\r\n\r\n",
    "0\r\nno field\r\n\r\n",
    "0\r\nX: y\0\r\n\r\n",
    "-0\r\n\r\n",
    "\r\n\r\n",
];

/// Requests that are unusual as a whole.
const HEADS: &[&str] = &[
    "GET / HTTP/1.1\nHost: a\n\n",
    "GET / HTTP/1.1\r\nHost: a\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n\n",
    "GET / HTTP/1.1\rHost: a\r\r",
    "GET / HTTP/1.1\r\nHost: a\r\n\r\r\n\r\n",
    "\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    " GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n b\r\n\r\n",
    "GET / HTTP/1.1\r\n: a\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a, b\r\n\r\n",
    "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
    "GET / HTTP/1.1\r\n\r\n",
    "GET http://b/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET http://a/ HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET http://a HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET http://a:80/ HTTP/1.1\r\nHost: a:80\r\n\r\n",
    "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
    "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n",
    "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\nContent-Length: 5\r\n\r\nhello",
    "GET /a b HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET  /  HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET\t/\tHTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
    "GET /\0 HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /\r HTTP/1.1\r\nHost: a\r\n\r\n",
    "G ET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "get / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.2\r\nHost: a\r\n\r\n",
    "GET / HTTP/0.9\r\nHost: a\r\n\r\n",
    "GET / HTTP/2.0\r\nHost: a\r\n\r\n",
    "GET / HTTP/1.10\r\nHost: a\r\n\r\n",
    "GET / http/1.1\r\nHost: a\r\n\r\n",
    "GET /\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: close, host\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive, x\r\nx: y\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX: a\0b\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX: a\r\n\tb\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX\u{e9}: b\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX y: b\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\nX: GET /hidden HTTP/1.1\r\n\r\n",
    "HEAD / HTTP/1.1\r\nHost: a\r\n\r\n",
    "HEAD / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    "GET / HTTP/1.0\r\n\r\n",
    "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
    "POST / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
    "POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n",
    "GET / HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\n\r\nhello",
    "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhel",
    "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel",
];

/// Valid requests.
const VALID: &[&str] = &[
    "GET /1 HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /2 HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nCookie: a=b; c=d\r\n\r\n",
    "HEAD /3 HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /4 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello",
    "PUT /5 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n",
    "POST /6 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6;a=b\r\n world\r\n0\r\n\r\n",
    "POST /7 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nX: y\r\n\r\n",
    "POST /8 HTTP/1.1\r\nHost: a\r\nContent-Length: 33\r\n\r\nGET /hidden HTTP/1.1\r\nHost: h\r\n\r\n",
    "DELETE http://a/9 HTTP/1.1\r\nHost: a\r\n\r\n",
];

/// Replacements of a byte.
const ODD: &[u8] = b"\r\n\0 \t:,;0159afx\x0b\x7f\xff\"-_+";

/// A pseudorandom sequence that is the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }

    fn of<'a, T: ?Sized>(&mut self, all: &[&'a T]) -> &'a T {
        all[self.below(all.len())]
    }
}

/// All inputs, in a fixed order.
pub fn all() -> Vec<Vec<u8>> {
    let mut inputs: Vec<String> = Vec::new();
    for length in LENGTHS {
        for (method, body) in [("POST", "hello"), ("GET", "hello"), ("POST", HIDDEN)] {
            inputs.push(format!("{method} / HTTP/1.1\r\nHost: a\r\n{length}\r\n\r\n{body}"));
        }
    }
    let chunks = format!("{:x}\r\n{HIDDEN}\r\n0\r\n\r\n", HIDDEN.len());
    for coding in CODINGS {
        inputs.push(format!("POST / HTTP/1.1\r\nHost: a\r\n{coding}\r\n\r\n{chunks}"));
        for length in ["Content-Length: 4", "Content-Length: 0", "Content-Length: 100"] {
            inputs.push(format!("POST / HTTP/1.1\r\nHost: a\r\n{coding}\r\n{length}\r\n\r\n{chunks}"));
            inputs.push(format!("POST / HTTP/1.1\r\n{length}\r\n{coding}\r\nHost: a\r\n\r\n0\r\n\r\n"));
        }
        inputs.push(format!("GET / HTTP/1.0\r\n{coding}\r\nConnection: keep-alive\r\n\r\n{chunks}"));
    }
    let head = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
    for size in SIZES {
        inputs.push(format!("{head}{size}hello\r\n0\r\n\r\n"));
        inputs.push(format!("{head}3\r\nabc\r\n{size}hello\r\n0\r\n\r\n"));
    }
    for end in DATA_ENDS {
        inputs.push(format!("{head}5\r\nhello{end}0\r\n\r\n"));
    }
    for end in CHUNK_ENDS {
        inputs.push(format!("{head}5\r\nhello\r\n{end}"));
    }
    inputs.extend(HEADS.iter().map(|head| (*head).to_owned()));
    let mut inputs: Vec<Vec<u8>> = inputs.into_iter().map(|input| (input + AFTER).into_bytes()).collect();
    let mut dice = Dice(0x5eed_0fa1);
    for _ in 0..60 {
        let count = 2 + dice.below(5);
        inputs.push((0..count).flat_map(|_| dice.of(VALID).bytes()).collect());
    }
    for _ in 0..400 {
        let mut input = (dice.of(VALID).to_owned() + dice.of(VALID) + AFTER).into_bytes();
        for _ in 0..=dice.below(3) {
            let (at, byte) = (dice.below(input.len()), ODD[dice.below(ODD.len())]);
            match dice.below(3) {
                0 => input[at] = byte,
                1 => input.insert(at, byte),
                _ => drop(input.remove(at)),
            }
        }
        inputs.push(input);
    }
    inputs
}
