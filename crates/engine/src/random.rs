//! The only source of ids and secrets.

use std::sync::atomic::{AtomicU64, Ordering};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use grabd_domain::Timestamp;
use grabd_domain::ids::{
    ApiRequestId, DeliveryId, EndpointId, GrabId, GrantId, InvitationId, KeyId, LeaseToken, MonitorId, NodeId,
    PasskeyId, ProxyId, SessionId, SiteId, TeamId, UserId,
};
use rand::TryRng;
use rand::rngs::SysRng;
use uuid::Uuid;

/// 256 bits from the operating system.
///
/// # Panics
/// When the operating system cannot provide random bytes. Secrets cannot be generated then.
pub fn secret() -> [u8; 32] {
    let mut bytes = [0; 32];
    SysRng.try_fill_bytes(&mut bytes).expect("the operating system provides random bytes");
    bytes
}

/// 256 bits from the operating system as 43 base64url characters.
pub fn secret_text() -> String {
    URL_SAFE_NO_PAD.encode(secret())
}

/// 128 bits from the operating system.
pub fn random() -> u128 {
    let bytes = secret();
    u128::from_le_bytes(bytes[..16].try_into().expect("16 of 32 bytes"))
}

/// 256 bits from the operating system as numbers.
pub(crate) fn numbers() -> [u32; 8] {
    let bytes = secret();
    std::array::from_fn(|at| u32::from_le_bytes(bytes[4 * at..][..4].try_into().expect("4 of 32 bytes")))
}

/// New grab id: a UUIDv7 of `now`, so that ids sort by creation time. Ids of the same millisecond sort in the order in
/// which this process made them.
pub fn grab_id(now: Timestamp) -> GrabId {
    GrabId(v7(now))
}

/// New node id.
pub fn node_id(now: Timestamp) -> NodeId {
    NodeId(v7(now))
}

/// New team id.
pub fn team_id(now: Timestamp) -> TeamId {
    TeamId(v7(now))
}

/// New API key id.
pub fn key_id(now: Timestamp) -> KeyId {
    KeyId(v7(now))
}

/// New id of a recorded API request.
pub fn api_request_id(now: Timestamp) -> ApiRequestId {
    ApiRequestId(v7(now))
}

/// New user id.
pub fn user_id(now: Timestamp) -> UserId {
    UserId(v7(now))
}

/// New grant id.
pub fn grant_id(now: Timestamp) -> GrantId {
    GrantId(v7(now))
}

/// New invitation id.
pub fn invitation_id(now: Timestamp) -> InvitationId {
    InvitationId(v7(now))
}

/// New passkey id.
pub fn passkey_id(now: Timestamp) -> PasskeyId {
    PasskeyId(v7(now))
}

/// New endpoint id.
pub fn endpoint_id(now: Timestamp) -> EndpointId {
    EndpointId(v7(now))
}

/// New proxy id.
pub fn proxy_id(now: Timestamp) -> ProxyId {
    ProxyId(v7(now))
}

/// New monitor id.
pub fn monitor_id(now: Timestamp) -> MonitorId {
    MonitorId(v7(now))
}

/// New id of a site job.
pub fn site_id(now: Timestamp) -> SiteId {
    SiteId(v7(now))
}

/// New delivery id, for deliveries whose id is not derived from something else.
pub fn delivery_id(now: Timestamp) -> DeliveryId {
    DeliveryId(v7(now))
}

/// A number from 0 to 1, for jitter.
pub fn fraction() -> f64 {
    let bits = u32::from_le_bytes(random().to_le_bytes()[..4].try_into().expect("4 of 16 bytes"));
    f64::from(bits) / f64::from(u32::MAX)
}

/// New lease token. It authorizes finishing an attempt, so it must not be guessable.
pub fn lease_token() -> LeaseToken {
    LeaseToken(Uuid::from_u128(random()))
}

/// New id of a renderer session.
pub fn session_id() -> SessionId {
    SessionId(Uuid::from_u128(random()))
}

/// A UUIDv7 with a counter in its `rand_a` field, and 62 random bits. The counter starts at a random value below 2048 in
/// each millisecond (RFC 9562, section 6.2, method 1).
fn v7(now: Timestamp) -> Uuid {
    /// The milliseconds of the last id, and its counter in the lowest 12 bits.
    static LAST: AtomicU64 = AtomicU64::new(0);
    const COUNTER: u64 = 0xfff;

    let bits = random().to_le_bytes();
    let mut bytes: [u8; 10] = bits[..10].try_into().expect("10 of 16 bytes");
    let seed = u64::from(u16::from_le_bytes([bits[10], bits[11]]) & 0x7ff);
    let ms = u64::try_from(now.as_ms()).unwrap_or(0);
    let next = |last: u64| if last >> 12 == ms { (last + 1).min(ms << 12 | COUNTER) } else { ms << 12 | seed };
    let last = LAST.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |last| Some(next(last))).unwrap_or_default();
    let counter = next(last) & COUNTER;
    bytes[..2].copy_from_slice(&u16::try_from(counter).unwrap_or_default().to_be_bytes());
    uuid::Builder::from_unix_timestamp_millis(ms, &bytes).into_uuid()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grab_ids_are_unique_and_sort_by_time() {
        let now = Timestamp::from_ms(1_795_206_774_120);
        let (a, b) = (grab_id(now), grab_id(now));
        assert_ne!(a, b);
        assert_eq!(a.0.get_version_num(), 7);
        assert!(grab_id(Timestamp::from_ms(now.as_ms() + 1)) > a);
    }

    #[test]
    fn grab_ids_of_a_millisecond_sort_in_the_order_of_their_creation() {
        // Ids that tests beside this one make in this process have other times, and start the counter again.
        let now = Timestamp::from_ms(1_795_206_774_121);
        let is_sorted = |ids: &[GrabId]| ids.is_sorted_by(|one, next| one < next);
        let made = || (0..500).map(|_| grab_id(now)).collect::<Vec<_>>();
        assert!((0..100).any(|_| is_sorted(&made())));
    }
}
