//! The JSON of the public API.
//!
//! REST and MCP fill these types from gRPC messages, webhooks fill them from the domain, and the command-line client reads them.
//! The order of the members is that of the responses: first those of the contract, then later ones. Members are added as
//! `docs/ADDING-A-RESPONSE-FIELD.md` says, and are never renamed or removed.
//!
//! Texts are borrowed where they are written, and owned where they were read. A member that an earlier version of the service
//! does not send has a default when it is read, if the client can do without.

mod attachment;
mod difference;
pub mod elements;
mod error_body;
mod grab;
mod message;
mod monitor;
mod open_graph;
mod proxy;
mod site;
mod stage;
mod text;
mod usage;
pub mod words;

pub use attachment::{Attachment, Viewport};
pub use difference::{Difference, Region};
pub use error_body::{ErrorBody, ErrorMembers};
pub use grab::{BlockedRequests, Consent, Grab, GrabList, Timings};
pub use message::{LowBalance, MessageData, TestedWebhook, WebhookMessage};
pub use monitor::{
    Monitor, MonitorArea, MonitorBatch, MonitorCompare, MonitorElementChange, MonitorEvent, MonitorFeed,
    MonitorIgnored, MonitorImageCompare, MonitorList, MonitorNotify, MonitorQuiet, MonitorRun, MonitorRunError,
    MonitorRunList, MonitorTextChange, MonitorTextCompare,
};
pub use open_graph::OpenGraph;
pub use proxy::{Proxy, ProxyList};
pub use site::{Site, SiteError, SiteEvent, SiteList, SitePage, SitePageList, SitePages};
pub use stage::StageReached;
pub use text::GrabText;
pub use usage::{Counts, Credits, Plan, Usage};
pub use words::SLICE_KIND;
