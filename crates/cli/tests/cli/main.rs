//! End-to-end tests: run the `grab` binary against a real service with a real browser.
#![expect(clippy::unwrap_used, reason = "a panic fails the test")]

mod diff;
mod limits;
mod login;
mod many;
mod monitor;
mod one;
mod proxy;
mod rig;
mod settings;
mod site;
mod verify;
mod webhooks;
