//! Shared code of the end-to-end tests and the benchmarks.
//!
//! [`client`] is the HTTP client, which checks every error response with the schemas of [`contract`]. [`harness`] starts the
//! whole service, [`site`] is the fixture site with known pixels, [`pixels`] checks images of
//! it, [`agent`] is an MCP client, [`authenticator`] an authenticator app, [`passkey`] a device with a passkey, [`forward`]
//! gives a service a host name, or interrupts its connections, [`scenario`] captures hostile pages and reports the results,
//! [`process_tree`] measures processes, [`cpu_share`] limits them, [`leftovers`] checks what a stopped service left behind,
//! and [`programs`] runs third-party programs. [`visitor`] uses the web pages without a browser. [`s3_server`] is an object
//! store, [`proxy_server`] a proxy, [`postgres_server`] a database server with a standby, and [`scripted_renderer`] a
//! renderer without a browser.
//!
//! *Invariant:* nothing that ships depends on this package.

pub mod agent;
pub mod authenticator;
pub mod client;
pub mod contract;
pub mod cpu_share;
pub mod dns;
pub mod forward;
pub mod hard;
pub mod harness;
pub mod hostile;
pub mod leftovers;
pub mod links;
pub mod mail_server;
pub mod passkey;
pub mod pixels;
pub mod postgres_server;
pub mod process_tree;
pub mod programs;
pub mod proxy_server;
pub mod receiver;
pub mod s3_server;
pub mod scenario;
pub mod scripted_renderer;
pub mod site;
pub mod stripe;
pub mod tls_front;
pub mod visitor;
