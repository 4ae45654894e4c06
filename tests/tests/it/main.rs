//! Everything end to end: the service as an operator starts it, called as its users call it.

mod architecture;
mod billing;
mod contract;
mod delete;
mod description;
mod egress;
mod fairness;
mod grpc;
mod hostile_clients;
mod hostile_pages;
mod idempotency;
mod isolation;
mod limits;
mod mcp;
mod metrics;
mod money;
mod nothing_is_lost;
mod pages;
mod pictures;
mod renderer_lost;
mod watching;
mod webhooks;
