//! The gRPC contract as Rust types, generated from `proto/`, and the one reading of what travels beside a message:
//! the credential, the origin of a request, the details of an error.
//!
//! To add an RPC, edit the `.proto` file; the services and faces will not compile until they answer it.
//!
//! *Invariant:* no other crate of ours is imported here, so a client never compiles a server's rules.

pub mod credential;
pub mod origin;
#[cfg(any(test, feature = "fuzzing"))]
pub mod properties;
pub mod reason;

/// Package `grabd.v1`: what callers see.
#[expect(clippy::allow_attributes, reason = "generated")]
pub mod v1 {
    tonic::include_proto!("grabd.v1");
}

/// Package `grabd.internal.v1`: between a core and its renderers.
pub mod internal {
    /// The first version.
    #[expect(clippy::allow_attributes, reason = "generated")]
    pub mod v1 {
        tonic::include_proto!("grabd.internal.v1");
    }
}

/// Every message and service with its comments, for reflection.
pub const DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/grabd.bin"));
