//! What the end-to-end tests and the benchmark share.
//!
//! [`harness`] starts a whole service, [`site`] is the fixture site with its known pixels, [`pixels`] judges pictures
//! of it; [`agent`] speaks MCP; [`trial`] captures hostile pages and tells what came of it, [`tree`] what their
//! processes hold; [`remains`] looks at what a service that has ended left behind; [`programs`] runs
//! what others have written to judge us.
//!
//! *Invariant:* nothing that ships is built from this package.

pub mod agent;
pub mod client;
pub mod dns;
pub mod harness;
pub mod hostile;
pub mod mail_server;
pub mod pixels;
pub mod programs;
pub mod receiver;
pub mod remains;
pub mod site;
pub mod stripe;
pub mod tree;
pub mod trial;
