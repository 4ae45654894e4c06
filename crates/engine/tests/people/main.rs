//! People and their apps, on a real store in memory and with a clock that is moved by hand.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking, its house too")]

mod house;

mod accounts;
mod authorize;
mod documents;
mod gate;
mod register;
mod secrets;
mod teams;
mod token;
