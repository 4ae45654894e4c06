//! Pricing packets as they are sent, so that the core is asked once a minute.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use bytes::Bytes;
use grabd_http::etag_of_bytes;
use grabd_proto::v1::GetPricingRequest;
use http::HeaderValue;
use parking_lot::{Mutex, MutexGuard};

/// How long a packet is served. The core changes its prices only when it is started again, and clients may keep them for
/// five minutes.
const LIFE: Duration = Duration::from_secs(60);

/// The packets of the last minute. There are at most twelve: the core refuses unknown providers and details.
#[derive(Default)]
pub(super) struct Packets(Mutex<HashMap<GetPricingRequest, (Packet, Instant)>>);

/// A serialized packet.
#[derive(Clone)]
pub(super) struct Packet {
    /// JSON.
    pub(super) body: Bytes,
    /// Its entity tag.
    pub(super) tag: HeaderValue,
}

impl Packet {
    pub(super) fn of(json: Vec<u8>) -> Self {
        Self { tag: etag_of_bytes(&json), body: json.into() }
    }
}

impl Packets {
    /// The packet for a request, if it is not too old.
    pub(super) fn get(&self, request: &GetPricingRequest) -> Option<Packet> {
        let packets = self.lock();
        let (packet, until) = packets.get(request)?;
        (Instant::now() < *until).then(|| packet.clone())
    }

    /// Stores what the core returned for a request.
    pub(super) fn insert(&self, request: GetPricingRequest, packet: Packet) {
        self.lock().insert(request, (packet, Instant::now() + LIFE));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<GetPricingRequest, (Packet, Instant)>> {
        self.0.lock()
    }
}
