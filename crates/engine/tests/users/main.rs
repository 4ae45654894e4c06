//! Accounts, teams and OAuth, on an in-memory store with a manual clock.
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

mod accounts;
mod authenticator;
mod authorize;
mod documents;
mod register;
mod second_factor;
mod teams;
mod test_core;
mod token;
mod verification;
