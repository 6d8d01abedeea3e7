//! Which server gets the next request.
