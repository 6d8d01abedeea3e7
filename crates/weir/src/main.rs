//! The Weir load balancer.
fn main() {}
