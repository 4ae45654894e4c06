//! MCP end to end: what agents send and what they are answered, in each era of the protocol.

mod cancel;
mod clients;
mod door;
mod eras;
mod hostile;
mod results;
mod tools;
mod waiting;
