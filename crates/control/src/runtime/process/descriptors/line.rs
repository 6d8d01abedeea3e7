//! A line of `show fd`, in HAProxy's format. Must never look anything up.

use std::fmt;

use rt::net::{Address, DescriptorInfo, DescriptorKind};

use super::selection::Kind;
use super::{Layers, WorkerView};

/// The contents of a line.
pub(super) struct Line<'a> {
    pub(super) number: i32,
    pub(super) info: &'a DescriptorInfo,
    pub(super) known: &'a WorkerView,
    pub(super) kind: Kind,
    /// The name of the frontend, or of the backend and the server.
    pub(super) owner: Option<&'a str>,
    /// A paused listener.
    pub(super) paused: bool,
    pub(super) layers: Option<Layers>,
}

/// The state in HAProxy's format: a letter for each bit, upper case if set.
const STATES: [(char, u32); 11] = [
    ('c', 0),
    ('l', 0x01_0000),
    ('h', 0x1000),
    ('e', 0x0800),
    ('o', 0x0400),
    ('p', 0x0200),
    ('i', 0x0100),
    // For writing, then for reading: shut, ready, active.
    ('s', 0x40),
    ('R', 0x20),
    ('s', 0x04),
    ('R', 0x02),
];
/// Listening sockets, which a successor can take over.
const EXPORTED: u32 = 0x10_0000;
const WRITE_ACTIVE: u32 = 0x10;
const READ_ACTIVE: u32 = 0x01;

impl Line<'_> {
    fn state(&self) -> u32 {
        let mut state = 0;
        if self.kind == Kind::Listener {
            state |= EXPORTED;
        }
        if self.kind == Kind::Back {
            state |= 0x01_0000;
        }
        let Some(seen) = &self.known.seen else { return state };
        let bits = [
            (seen.hangup || seen.read_closed, 0x1000),
            (seen.error, 0x0800),
            (seen.reported.1, 0x0400),
            (seen.reported.0, 0x0100),
            (seen.hangup, 0x40),
            (seen.ready.1, 0x20),
            (seen.waiting.1, WRITE_ACTIVE),
            (seen.read_closed, 0x04),
            (seen.ready.0, 0x02),
            (seen.waiting.0, READ_ACTIVE),
        ];
        bits.iter().filter(|(is_set, _)| *is_set).fold(state, |state, (_, bit)| state | bit)
    }
}

/// Returns a letter, upper case if the bit is set.
fn letter(state: u32, bit: u32, letter: char) -> char {
    if state & bit != 0 { letter.to_ascii_uppercase() } else { letter.to_ascii_lowercase() }
}

/// Returns the family and the port of an address; UNIX sockets have no port.
fn family(address: &Address) -> (&'static str, Option<u16>) {
    match address {
        Address::Inet(address) if address.is_ipv4() => ("ipv4", Some(address.port())),
        Address::Inet(address) => ("ipv6", Some(address.port())),
        Address::Unix(_) | Address::Unnamed | Address::Carrier(_) => ("unix", None),
        Address::Abstract(_) => ("abns", None),
    }
}

impl fmt::Display for Line<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.state();
        write!(f, "{:7} : st=0x{state:06x}(", self.number)?;
        for (at, (name, bit)) in STATES.iter().enumerate() {
            f.write_str(match at {
                2 => " ",
                7 => " W:",
                9 => " R:",
                _ => "",
            })?;
            // "R" (ready) follows the same rule: upper case if set.
            write!(f, "{}", letter(state, *bit, *name))?;
            if at == 8 {
                write!(f, "{}", letter(state, WRITE_ACTIVE, 'a'))?;
            }
        }
        write!(f, "{}) tmask=0x{:x}", letter(state, READ_ACTIVE, 'a'), self.known.workers)?;
        match self.kind {
            Kind::Listener => self.listener(f)?,
            Kind::Front | Kind::Back => self.connection(f)?,
            Kind::Pipe | Kind::Other => {
                if self.info.kind == DescriptorKind::Datagram {
                    self.addresses(f)?;
                }
            }
        }
        f.write_str("\n")
    }
}

impl Line<'_> {
    fn addresses(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Some((name, port)) = self.info.local.as_ref().map(family) else { return Ok(()) };
        write!(f, " fam={name}")?;
        if let Some(port) = port {
            write!(f, " lport={port}")?;
        }
        if let Some((_, Some(port))) = self.info.peer.as_ref().map(family) {
            write!(f, " rport={port}")?;
        }
        Ok(())
    }

    fn listener(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " l.st={}", if self.paused { "PAU" } else { "RDY" })?;
        if let Some(owner) = self.owner {
            write!(f, " fe={owner}")?;
        }
        self.addresses(f)
    }

    fn connection(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " back={}", u8::from(self.kind == Kind::Back))?;
        self.addresses(f)?;
        if let Some(owner) = self.owner {
            write!(f, " {}={owner}", if self.kind == Kind::Back { "sv" } else { "fe" })?;
        }
        let Some(layers) = self.layers else { return Ok(()) };
        if let Some(mux) = layers.mux {
            write!(f, " mux={mux}")?;
        }
        write!(f, " xprt={}", if layers.secure { "SSL" } else { "RAW" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rt::net::WatchedDescriptor;

    #[test]
    fn a_line_has_haproxys_form() {
        let seen = WatchedDescriptor {
            number: 18,
            place: 0,
            ready: (false, true),
            reported: (true, false),
            waiting: (true, false),
            read_closed: false,
            hangup: false,
            error: false,
        };
        let known = WorkerView { workers: 1, seen: Some(seen), owner: None };
        let address = |text: &str| Some(Address::Inet(text.parse().expect("an address")));
        let info = DescriptorInfo {
            kind: DescriptorKind::Stream,
            local: address("127.0.0.1:18080"),
            peer: address("127.0.0.1:33130"),
        };
        let layers = Some(Layers { mux: Some("H1"), secure: false });
        let line = Line {
            number: 18,
            info: &info,
            known: &known,
            kind: Kind::Front,
            owner: Some("web"),
            paused: false,
            layers,
        };
        assert_eq!(
            line.to_string(),
            "     18 : st=0x000121(cl heopI W:sRa R:srA) tmask=0x1 back=0 fam=ipv4 lport=18080 rport=33130 fe=web mux=H1 \
             xprt=RAW\n"
        );
        let line = Line { kind: Kind::Back, owner: Some("app/s1"), ..line };
        assert!(
            line.to_string().starts_with("     18 : st=0x010121(cL heopI W:sRa R:srA) tmask=0x1 back=1 "),
            "{line}"
        );
        assert!(line.to_string().contains(" sv=app/s1 "), "{line}");
        let listening = DescriptorInfo { kind: DescriptorKind::Listener, peer: None, ..info.clone() };
        let known = WorkerView { seen: None, ..known };
        let line =
            Line { info: &listening, known: &known, kind: Kind::Listener, owner: Some("web"), layers: None, ..line };
        assert_eq!(
            line.to_string(),
            "     18 : st=0x100000(cl heopi W:sra R:sra) tmask=0x1 l.st=RDY fe=web fam=ipv4 lport=18080\n"
        );
    }
}
