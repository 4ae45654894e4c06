//! Shared code of the end-to-end tests and the benchmarks.
//!
//! [`harness`] starts the whole service, [`site`] is the fixture site with known pixels, [`pixels`] checks images of
//! it, [`agent`] is an MCP client, [`authenticator`] an authenticator app, [`scenario`] captures hostile pages and
//! reports the results, [`process_tree`] measures processes, [`leftovers`] checks what a stopped service left behind, and
//! [`programs`] runs third-party programs. [`s3_server`] is an object store, and [`scripted_renderer`] a renderer
//! without a browser.
//!
//! *Invariant:* nothing that ships depends on this package.

pub mod agent;
pub mod authenticator;
pub mod client;
pub mod dns;
pub mod hard;
pub mod harness;
pub mod hostile;
pub mod leftovers;
pub mod mail_server;
pub mod pixels;
pub mod process_tree;
pub mod programs;
pub mod receiver;
pub mod s3_server;
pub mod scenario;
pub mod scripted_renderer;
pub mod site;
pub mod stripe;
