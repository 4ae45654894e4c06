//! Devices and networks from which somebody has signed in, which are exempt from the account's shared limit of wrong
//! passwords. Their tokens sign nobody in.

use std::net::IpAddr;

use grabd_domain::accounts::DEVICE_LIFE;
use grabd_domain::credentials::{DeviceToken, SessionToken};
use grabd_domain::ids::UserId;
use grabd_store::accounts::NewDevice;

use super::sessions::find_session;
use super::tries::Source;
use crate::digest;
use crate::error::Error;
use crate::random;
use crate::service::Core;

/// Where a sign-in comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignInSource {
    /// Address of the client, reduced to its /64 in IPv6.
    pub address: IpAddr,
    /// The token of the browser, if it has one.
    pub device: Option<DeviceToken>,
}

/// How tries from here are counted. For an unknown e-mail address as from an unknown network, after the same query, so
/// that the time does not tell the difference.
pub(super) async fn classify(core: &Core, user: Option<UserId>, source: &SignInSource) -> Result<Source, Error> {
    let unknown = Source::Network(source.address);
    let now = core.clock.now();
    let (user, since) = (user.unwrap_or_else(|| random::user_id(now)), now - DEVICE_LIFE);
    let devices = core.store.accounts().list_devices(user, since).await?;
    let device = source.device.as_ref().map(|token| digest::of(token.expose()));
    let network = network_hash(user, source.address);
    Ok(match device {
        Some(hash) if devices.iter().any(|known| known.hash == hash) => Source::Device(hash),
        _ if devices.iter().any(|known| known.network == network) => Source::KnownNetwork(source.address),
        _ => unknown,
    })
}

/// Whether somebody has signed in with this device.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "accounts.is_known_device", skip_all)]
pub async fn is_known_device(core: &Core, device: &DeviceToken) -> Result<bool, Error> {
    let since = core.clock.now() - DEVICE_LIFE;
    let known = core.store.accounts().is_known_device(&digest::of(device.expose()), since).await;
    Ok(known?)
}

/// Remembers the device and network of a new session, and returns the token for the browser's cookie.
///
/// # Errors
/// When the database fails.
#[tracing::instrument(name = "accounts.remember_device", skip_all)]
pub async fn remember_device(core: &Core, session: &SessionToken, source: &SignInSource) -> Result<DeviceToken, Error> {
    let now = core.clock.now();
    let fresh = || DeviceToken::new(&random::secret_text()).expect("32 bytes are 43 base64url characters");
    // A token of our own is kept, since several users may share a browser. Others could have been planted there.
    let token = match &source.device {
        Some(token) if is_known_device(core, token).await? => token.clone(),
        Some(_) | None => fresh(),
    };
    if let Some(session) = find_session(core, session).await? {
        let user = session.user.id;
        let network = network_hash(user, source.address);
        let device = NewDevice { user, hash: digest::of(token.expose()), network, now };
        core.store.accounts().remember_device(device).await?;
    }
    Ok(token)
}

/// Different for each user, so that the database does not tell who shares a network.
fn network_hash(user: UserId, address: IpAddr) -> [u8; 32] {
    digest::of(&format!("grabd network\n{user}\n{address}"))
}
