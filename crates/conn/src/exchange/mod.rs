//! The two directions of an exchange between a client and whoever answers it: the request's body and the answer. Owns what
//! either needs of both ends; must never decide what goes out.

pub mod answer;
pub mod body;

pub use answer::{Answer, Came, Found, Onward, Plan};
pub use body::{Coding, RequestBody};
