//! What signs evidence of captures: the keys of the service, and time stamps of another authority.

mod key_error;
pub mod keys;
mod timestamp;

pub use key_error::KeyError;
pub(crate) use timestamp::add_timestamp;
