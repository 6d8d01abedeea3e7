//! Tests of `maxconn-store`: the `maxconn` of a server holds over several nodes.

mod fleet;
mod node;
