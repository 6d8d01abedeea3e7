//! The state of the commands of the master CLI. Must never run one.

use super::life::Master;
use std::rc::Rc;

/// The state of the commands: the master, and its environment.
pub struct Counter(pub(super) Rc<Master>, pub(super) Vec<String>);
