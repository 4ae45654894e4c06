//! Checks that a page cannot bypass the egress guard, before the first untrusted page is rendered. A tab like that of
//! any grab requests a canary on this machine's loopback through every channel that a protection exists for.
//!
//! The test passes if no canary received anything, and the proxy recorded refusals for the canaries that speak TCP. The
//! second condition detects a test that made no requests.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::page::NavigateParams;
use chromiumoxide::cdp::js_protocol::runtime::EvaluateParams;
use grabd_domain::address::{Policy, check_addr};
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use crate::cdp::CallError;
use crate::jail::Jail;
use crate::page::Tab;
use crate::supervisor::Shared;

/// The self-test takes 0.1 s. A loaded machine may take longer for the first tab.
const LIMIT: Duration = Duration::from_secs(15);

/// A refused navigation fails at once.
const NAVIGATION_LIMIT: Duration = Duration::from_secs(3);

/// Canary addresses, in order of preference. The first one that the policy refuses is used.
const CANARY_ADDRESSES: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, 77)),
    IpAddr::V4(Ipv4Addr::new(127, 255, 255, 254)),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

/// Time limit for ICE candidate gathering. In a jail there is no interface, so gathering never ends by itself, and
/// anything sent is sent immediately. Without a jail, a refusal ends gathering immediately, unless the machine is busy.
const GATHERING_LIMIT_MS: u32 = 5_000;
const JAILED_GATHERING_LIMIT_MS: u32 = 200;

/// Makes all requests concurrently. Returns when all have failed, or after a time limit: canaries never answer, so a
/// request that gets through hangs.
const SCRIPT: &str = "async ({ host, fetched, socket, turn, udp, gathering }) => {
    const later = (ms) => new Promise((resolve) => setTimeout(resolve, ms));
    const outcome = (start) => new Promise((ended) => { try { start(ended) } catch { ended() } });
    const relay = { username: 'canary', credential: 'canary' };
    const tries = [
        outcome((ended) => fetch(`http://${host}:${fetched}/`, { mode: 'no-cors' }).then(ended, ended)),
        outcome((ended) => { new WebSocket(`ws://${host}:${socket}/`).onclose = ended }),
        Promise.race([later(gathering), outcome((ended) => {
            const peer = new RTCPeerConnection({ iceServers: [
                { urls: `stun:${host}:${udp}` },
                { urls: `turn:${host}:${udp}?transport=udp`, ...relay },
                { urls: `turn:${host}:${turn}?transport=tcp`, ...relay },
            ] });
            peer.onicegatheringstatechange = () => peer.iceGatheringState === 'complete' && ended();
            peer.createDataChannel('canary');
            peer.setLocalDescription().catch(ended);
        })]),
    ];
    await Promise.race([Promise.all(tries), later(6_000)]);
}";

/// The result of a passed self-test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SelfTestReport {
    /// The canary's address. `None` if configuration allows all of loopback, so that nothing could be tested.
    pub canary: Option<IpAddr>,
}

/// Why nothing must be rendered. The texts are for operators.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelfTestError {
    /// A page reached this machine.
    #[error("the egress guard leaks: {channel} of a page reached {canary} on this machine")]
    Leak {
        /// The channel.
        channel: &'static str,
        /// The address that was reached.
        canary: SocketAddr,
    },
    /// Nothing was reached, but the proxy saw no request either.
    #[error("the egress guard cannot vouch for this browser: {channel} of a page did not come by its proxy")]
    Bypassed {
        /// The channel.
        channel: &'static str,
    },
    /// The browser or this machine failed before the test was complete.
    #[error("the egress guard could not be tried: {0}")]
    Inconclusive(String),
}

/// A listener for one channel. Nothing serves it: the kernel queues what arrives until it is checked.
struct Canary {
    channel: &'static str,
    address: SocketAddr,
    socket: Socket,
}

enum Socket {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

/// Tests every channel in a tab of the current browser.
///
/// # Errors
/// When the guard does not hold, or the test is inconclusive.
pub(crate) async fn run(shared: &Shared, policy: &Policy) -> Result<SelfTestReport, SelfTestError> {
    // The last address does not exist on machines without IPv6.
    let exists = |address: &IpAddr| TcpListener::bind((*address, 0)).is_ok();
    let is_refused = |address: &IpAddr| check_addr(*address, policy).is_err();
    let Some(address) = CANARY_ADDRESSES.into_iter().find(|address| is_refused(address) && exists(address)) else {
        return Ok(SelfTestReport { canary: None });
    };
    let no_socket = |error: io::Error| SelfTestError::Inconclusive(format!("no canary on {address}: {error}"));
    let tcp = |channel| Canary::tcp(channel, address).map_err(no_socket);
    let [navigation, fetched, socket, turn] =
        [tcp("navigation")?, tcp("fetch")?, tcp("WebSocket")?, tcp("WebRTC over TCP")?];
    let udp = Canary::udp("WebRTC over UDP", address).map_err(no_socket)?;

    let deadline = Instant::now() + LIMIT;
    let timed_out = |_| SelfTestError::Inconclusive(format!("the browser was not done within {} s", LIMIT.as_secs()));
    let failed = |error: &dyn fmt::Display| SelfTestError::Inconclusive(error.to_string());
    let lease = timeout_at(deadline, shared.lease(0)).await.map_err(timed_out)?.map_err(|error| failed(&error))?;
    let tab = lease.tab();
    // Without an interface, WebRTC contacts no TURN server, not even through the proxy.
    let (gathering, expected) = match &shared.jail {
        Jail::Jailed => (JAILED_GATHERING_LIMIT_MS, &[&navigation, &fetched, &socket][..]),
        Jail::Disabled | Jail::Unavailable { .. } => (GATHERING_LIMIT_MS, &[&navigation, &fetched, &socket, &turn][..]),
    };
    let arguments = json!({ "host": url_host(address), "fetched": fetched.port(), "socket": socket.port(),
                            "turn": turn.port(), "udp": udp.port(), "gathering": gathering });
    let attempts = EvaluateParams {
        await_promise: Some(true),
        silent: Some(true),
        ..EvaluateParams::new(format!("({SCRIPT})({arguments})"))
    };
    let navigate = NavigateParams::new(format!("http://{}/", navigation.address));
    let tries = async {
        tab.client.call_raw(LIMIT, Some(&tab.session), &attempts).await?;
        // A canary never answers, so a timeout is not an error here. The checks below decide.
        let navigated = tab.client.call_raw(NAVIGATION_LIMIT, Some(&tab.session), &navigate).await;
        match navigated {
            Ok(_) | Err(CallError::Timeout(_)) => Ok(()),
            Err(error) => Err(error),
        }
    };
    timeout_at(deadline, tries).await.map_err(timed_out)?.map_err(|error| failed(&error))?;

    for canary in [&navigation, &fetched, &socket, &turn, &udp] {
        canary.check_untouched()?;
    }
    for canary in expected {
        canary.check_refused(tab)?;
    }
    Ok(SelfTestReport { canary: Some(address) })
}

impl Canary {
    fn tcp(channel: &'static str, address: IpAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((address, 0))?;
        listener.set_nonblocking(true)?;
        Ok(Self { channel, address: listener.local_addr()?, socket: Socket::Tcp(listener) })
    }

    fn udp(channel: &'static str, address: IpAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind((address, 0))?;
        socket.set_nonblocking(true)?;
        Ok(Self { channel, address: socket.local_addr()?, socket: Socket::Udp(socket) })
    }

    fn port(&self) -> u16 {
        self.address.port()
    }

    /// Loopback delivers immediately: anything sent before the script ended has arrived.
    fn check_untouched(&self) -> Result<(), SelfTestError> {
        let seen = match &self.socket {
            Socket::Tcp(listener) => listener.accept().map(|_| ()),
            Socket::Udp(socket) => socket.recv(&mut [0; 1]).map(|_| ()),
        };
        match seen {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(SelfTestError::Inconclusive(format!("the canary on {}: {error}", self.address))),
            Ok(()) => Err(SelfTestError::Leak { channel: self.channel, canary: self.address }),
        }
    }

    fn check_refused(&self, tab: &Tab) -> Result<(), SelfTestError> {
        match tab.listener.was_refused(&self.address.ip().to_string(), self.port()) {
            true => Ok(()),
            false => Err(SelfTestError::Bypassed { channel: self.channel }),
        }
    }
}

impl fmt::Display for SelfTestReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.canary {
            Some(address) => write!(f, "a page reaches {address} by no navigation, fetch, WebSocket or WebRTC"),
            None => f.write_str("ATTENTION: all of loopback is allowed by configuration, so nothing could be tried"),
        }
    }
}

/// Formats an address as a URL host.
fn url_host(address: IpAddr) -> String {
    match address {
        IpAddr::V4(address) => address.to_string(),
        IpAddr::V6(address) => format!("[{address}]"),
    }
}

#[cfg(test)]
mod tests;
