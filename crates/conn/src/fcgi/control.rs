//! State that the task of a connection shares with its requests. Must never move a record.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use super::state::State;
use crate::server_info::About;

/// State shared by the connection's task and its requests.
pub(super) struct Control {
    pub(super) state: RefCell<State>,
    pub(super) about: About,
    /// Whether the handshake is not complete, so that what is sent is early data.
    pub(super) early: Cell<bool>,
}

/// Handle of a connection for tasks that begin requests on it.
#[derive(Clone)]
pub struct Requests(pub(super) Rc<Control>);
