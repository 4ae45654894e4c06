//! Everything end to end: the service as an operator starts it, called as its users call it.

mod architecture;
mod contract;
mod delete;
mod description;
mod grpc;
mod idempotency;
mod limits;
mod money;
mod pictures;
mod renderer_lost;
