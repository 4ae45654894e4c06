//! The gRPC contract as Rust types, generated from `proto/`, and the parsing of message metadata: the credential, the
//! request id and trace, how the call was made, the error details.
//!
//! To add an RPC, edit the `.proto` file. The servers do not compile until they implement it.
//!
//! *Invariant:* of the workspace, this crate depends only on the table of options, so clients do not compile server code.

pub mod called_as;
pub mod correlation;
pub mod credential;
pub mod options;
#[cfg(any(test, feature = "fuzzing"))]
pub mod properties;
pub mod reason;

/// Package `grabd.v1`: the public API.
#[expect(clippy::allow_attributes, reason = "generated")]
pub mod v1 {
    tonic::include_proto!("grabd.v1");
}

/// Package `grabd.internal.v1`: the protocol between a core and its renderers.
pub mod internal {
    /// Version 1.
    #[expect(clippy::allow_attributes, reason = "generated")]
    pub mod v1 {
        tonic::include_proto!("grabd.internal.v1");
    }
}

/// The size of a create in a message, in bytes.
pub fn encoded_len(create: &v1::CreateGrabRequest) -> usize {
    prost::Message::encoded_len(create)
}

/// The encoded file descriptor set with comments, for reflection.
pub const DESCRIPTOR_SET: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/grabd.bin"));
