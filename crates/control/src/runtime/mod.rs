//! The runtime API: connections on which commands are typed and answered (management manual, section 9.3). Owns the
//! protocol of lines, the form of a table of commands and the commands themselves. Must never hold a worker up: an
//! answer is made in pieces, and a piece waits until the reader has taken the one before.
//!
//! The protocol knows nothing of what the commands are about: a [`CommandSet`] joins a table with the state that its commands
//! work on. So another process than a worker, such as a master, can have commands of its own.

mod answer;
pub mod call;
pub mod command;
mod connection;
mod help;
pub mod line;
mod listener;
pub mod process;
mod scripted;

pub use answer::{Answer, Gone};
pub use call::{Call, Conversation, Prompt};
pub use command::{Command, CommandSet, Mode, Pending, Rest, Run, Served, Typed};
pub use connection::serve;
pub use listener::{Crowd, accept};
pub use process::Opened;
