//! Consents, and what is exchanged for them.

mod ends;
mod exchange;
mod house;
mod purge;
mod races;
mod refresh;
