//! MCP end to end: requests and responses in each era of the protocol.

mod access;
mod cancel;
mod clients;
mod eras;
mod hostile;
mod inline_texts;
mod progress;
mod results;
mod tools;
