//! The runtime API: connections that send commands and receive answers (management manual, section 9.3). Owns the
//! syntax of lines, the type of command tables and the commands themselves. Must never block a worker: an answer is
//! written in pieces, and each piece waits until the peer has read the previous one.
//!
//! The protocol is independent of its commands: a [`CommandSet`] joins tables with the state that their commands work
//! on. So a process other than a worker, such as the master, can have its own commands.

mod answer;
pub mod call;
pub mod command;
mod command_target;
mod connection;
mod conversation;
mod help;
pub mod line;
mod listener;
pub mod process;
mod scripted;

pub use answer::{Answer, Disconnected};
pub use call::{Call, Conversation, Prompt};
pub use command::{Command, CommandSet, CommandTarget, Mode, Pending, ReceivedCommand, RemainingInput, Run};
pub use connection::serve;
pub use listener::{OpenConnections, accept};
pub use process::Opened;
