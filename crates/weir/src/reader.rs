//! The reader: a process that a master starts for a worker which has dropped its privileges. It loads the configuration
//! as the worker will, sends the answers of the machine, opens added addresses, and exits. Must never open anything
//! that the configuration does not name, whatever the worker requests.

use crate::arguments::Settings;
use crate::listeners::{self, AddressName};
use crate::load::{self, TestedConfiguration};
use crate::material::{LARGEST, Record, Unsent, encoding, recording};
use crate::messages::Messages;
use crate::takeover::InheritedSockets;
use crate::version;
use rt::net::{receive_descriptors, send_descriptors};
use std::io::{self, BufWriter, Write};
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

/// Maximum length of a worker's request in bytes.
const LARGEST_WISH: u64 = 1 << 20;

/// Runs the reader until it ends. Errors in the configuration are reported by the worker.
pub fn run(settings: &Settings, channel: i32) -> ExitCode {
    match rt::process::take_inherited(channel).and_then(|end| serve(settings, UnixStream::from(end))) {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

fn serve(settings: &Settings, mut stream: UnixStream) -> io::Result<()> {
    stream.set_nonblocking(false)?;
    let mut messages = Messages::new(true, false);
    let (rehearsed, record) = recording(|| {
        load::enter_directory(settings, &mut messages).ok()?;
        load::rehearse(settings, &mut messages)
    });
    if record.length() > LARGEST {
        let why = format!("the configuration and the files that it names take more than {} megabytes", LARGEST >> 20);
        return encoding::send(&mut stream, b'N', why.as_bytes());
    }
    let mut out = BufWriter::new(&stream);
    record.send(&mut out, version::VERSION)?;
    out.flush()?;
    drop(out);
    drop(record);
    let wanted = match wishes(&mut stream)? {
        wanted if wanted.is_empty() => return Ok(()),
        wanted => wanted,
    };
    let opened = match &rehearsed {
        Some(TestedConfiguration { program, reuse_port }) => listeners::open_named(program, &wanted, *reuse_port),
        None => Err("the configuration cannot be served".to_owned()),
    };
    let opened = match opened {
        Ok(opened) => opened,
        Err(why) => return encoding::send(&mut stream, b'N', why.as_bytes()),
    };
    for sockets in opened {
        let descriptors = sockets.descriptors();
        encoding::send(&mut stream, b'S', descriptors.len().to_string().as_bytes())?;
        descriptors.iter().try_for_each(|fd| send_descriptors(&stream, b"s", &[*fd]).map(drop))?;
    }
    Ok(())
}

/// Reads the addresses that the worker requests; none if it has closed.
fn wishes(stream: &mut UnixStream) -> io::Result<Vec<AddressName>> {
    let (mut wanted, mut left) = (Vec::new(), LARGEST_WISH);
    loop {
        match encoding::next(stream, &mut left) {
            Ok((b'B', name)) => wanted.push(AddressName::decode(&name).ok_or(io::ErrorKind::InvalidData)?),
            Ok((b'X', _)) => return Ok(wanted),
            Ok(_) => return Err(io::ErrorKind::InvalidData.into()),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(Vec::new()),
            Err(error) => return Err(error),
        }
    }
}

/// A worker's end of the stream to its reader.
pub struct Reader(UnixStream);

impl Reader {
    /// Adopts the descriptor that the master sent.
    ///
    /// # Errors
    /// The reason why the reader cannot be used.
    pub fn adopt(end: OwnedFd) -> Result<Self, String> {
        let stream = UnixStream::from(end);
        stream.set_nonblocking(false).map_err(|error| crate::files::reason(&error))?;
        Ok(Self(stream))
    }

    /// Receives the record of the queries, waiting for it.
    ///
    /// # Errors
    /// The reason why there is none.
    pub fn record(&mut self) -> Result<Record, String> {
        encoding::receive(&mut self.0, version::VERSION).map_err(|error| match error {
            Unsent::Refused(why) => why,
            Unsent::Broken => "the process that reads the files has ended".to_owned(),
        })
    }

    /// Requests the sockets of addresses.
    ///
    /// # Errors
    /// Names the address that cannot be opened, and the reason.
    pub fn open(mut self, wanted: &[AddressName]) -> Result<InheritedSockets, String> {
        let mut inherited = InheritedSockets::default();
        if !wanted.is_empty() {
            self.fetch(wanted, &mut inherited).map_err(|error| crate::files::reason(&error))?;
        }
        let _ = self.0.shutdown(Shutdown::Both);
        Ok(inherited)
    }

    fn fetch(&mut self, wanted: &[AddressName], into: &mut InheritedSockets) -> io::Result<()> {
        let mut out = BufWriter::new(&self.0);
        wanted.iter().try_for_each(|name| encoding::send(&mut out, b'B', &name.encode()))?;
        encoding::send(&mut out, b'X', b"")?;
        out.flush()?;
        drop(out);
        let mut left = LARGEST_WISH;
        for name in wanted {
            let number: usize = match encoding::next(&mut self.0, &mut left)? {
                (b'S', number) => std::str::from_utf8(&number).ok().and_then(|number| number.parse().ok()),
                (b'N', why) => return Err(io::Error::other(String::from_utf8_lossy(&why).into_owned())),
                _ => None,
            }
            .ok_or(io::ErrorKind::InvalidData)?;
            let mut descriptors = Vec::new();
            for _ in 0..number {
                receive_descriptors(&self.0, &mut [0], &mut descriptors)?;
            }
            descriptors.into_iter().for_each(|fd| into.add(&name.namespace, fd));
        }
        Ok(())
    }
}
