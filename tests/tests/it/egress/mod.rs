//! No page reaches an address that the guard has not checked.

mod channels;
mod control;
mod failures;
mod names;
