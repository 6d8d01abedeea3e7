//! The two directions of an exchange between a client and a server or service: the request's body and the answer. Owns
//! what either needs of both ends; must never decide which bytes are sent.

pub mod answer;
pub mod body;
mod line;
pub mod standing;
mod whole;

pub use crate::found::Found;
pub use answer::{Answer, Came, Onward, Plan};
pub use body::{Coding, RequestBody};
pub use line::RequestLine;
pub use standing::Standing;
