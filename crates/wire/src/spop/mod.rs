//! The stream processing offload protocol, version 2.0, between a proxy and an agent (SPOE.txt, section 3): frames,
//! typed values, hello and disconnect, messages and actions. Must never know a connection, a stream or a variable.

mod decode;
mod encode;
mod greeting;
#[cfg(test)]
mod property_tests;
mod value;

pub use decode::{Action, Actions, Frame, Scope, next_frame};
pub use encode::{Hello, Notify, disconnect};
pub use greeting::{AgentDisconnect, AgentHello, agent_disconnect, agent_hello};
pub use value::{Data, Malformed, take_string};

/// Length of the length field before a frame, in bytes.
pub const LENGTH: usize = 4;

/// The smallest permitted value of the maximum frame length, in bytes (section 3.2).
pub const SMALLEST_FRAME: u32 = 256;

/// Length in bytes of the shortest start of a frame: type, flags, and one byte each for both IDs.
pub const SHORTEST_START: usize = 7;

/// The flag of a frame that is not a fragment; since fragmentation was removed, every frame has it.
pub const FIN: u32 = 1;

/// The flag of a frame whose processing is cancelled.
pub const ABORT: u32 = 2;

/// Frame types (section 3.2.2).
pub mod kind {
    /// `HAPROXY-HELLO`.
    pub const HAPROXY_HELLO: u8 = 1;
    /// `HAPROXY-DISCONNECT`.
    pub const HAPROXY_DISCONNECT: u8 = 2;
    /// `NOTIFY`.
    pub const NOTIFY: u8 = 3;
    /// `AGENT-HELLO`.
    pub const AGENT_HELLO: u8 = 101;
    /// `AGENT-DISCONNECT`.
    pub const AGENT_DISCONNECT: u8 = 102;
    /// `ACK`.
    pub const ACK: u8 = 103;
}

/// Status codes (section 3.5). Agents may use other ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Status(pub u32);

impl Status {
    pub const NORMAL: Self = Self(0);
    pub const IO: Self = Self(1);
    pub const TIMEOUT: Self = Self(2);
    pub const TOO_BIG: Self = Self(3);
    pub const INVALID: Self = Self(4);
    pub const NO_VERSION: Self = Self(5);
    pub const NO_FRAME_SIZE: Self = Self(6);
    pub const NO_CAPABILITIES: Self = Self(7);
    pub const BAD_VERSION: Self = Self(8);
    pub const BAD_FRAME_SIZE: Self = Self(9);
    pub const FRAGMENT: Self = Self(10);
    pub const INTERLACED: Self = Self(11);
    pub const NO_FRAME_ID: Self = Self(12);
    pub const RESOURCE: Self = Self(13);
    pub const UNKNOWN: Self = Self(99);

    /// HAProxy's description of the code.
    pub const fn text(self) -> &'static str {
        match self {
            Self::NORMAL => "normal",
            Self::IO => "I/O error",
            Self::TIMEOUT => "a timeout occurred",
            Self::TOO_BIG => "frame is too big",
            Self::INVALID => "invalid frame received",
            Self::NO_VERSION => "version value not found",
            Self::NO_FRAME_SIZE => "max-frame-size value not found",
            Self::NO_CAPABILITIES => "capabilities value not found",
            Self::BAD_VERSION => "unsupported version",
            Self::BAD_FRAME_SIZE => "max-frame-size too big or too small",
            Self::FRAGMENT => "payload fragmentation is not supported",
            Self::INTERLACED => "invalid interlaced frames",
            Self::NO_FRAME_ID => "frame-id not found",
            Self::RESOURCE => "resource allocation error",
            _ => "an unknown error occurred",
        }
    }
}
