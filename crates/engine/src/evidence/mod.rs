//! What signs evidence of captures: the keys of the service, and time stamps of another authority.

pub mod keys;
mod timestamp;

pub(crate) use timestamp::add_timestamp;
