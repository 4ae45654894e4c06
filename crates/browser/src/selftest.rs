//! Can a page get past the guard, here and now? Tried for real before the first page of a stranger is rendered: a tab
//! like any grab's asks for a canary on this machine's loopback, in every way that once needed a measure of its own.
//!
//! Two things must be seen: no canary was touched, and the proxy was asked for those that speak TCP and said no. The
//! second is what a test that passes by doing nothing would lack.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

use chromiumoxide::cdp::browser_protocol::page::NavigateParams;
use chromiumoxide::cdp::js_protocol::runtime::EvaluateParams;
use grabd_domain::address::{self, Policy};
use serde_json::json;
use tokio::time::{Instant, timeout_at};

use crate::cdp::CallError;
use crate::jail::Jail;
use crate::page::Tab;
use crate::supervisor::Shared;

/// The whole self-test takes a tenth of a second; a loaded machine may need its time for the first tab.
const LIMIT: Duration = Duration::from_secs(15);

/// A refused navigation fails at once.
const NAVIGATION_LIMIT: Duration = Duration::from_secs(3);

/// Where a canary may sit: the first of these that the policy refuses.
const PLACES: [IpAddr; 4] = [
    IpAddr::V4(Ipv4Addr::LOCALHOST),
    IpAddr::V4(Ipv4Addr::new(127, 0, 0, 77)),
    IpAddr::V4(Ipv4Addr::new(127, 255, 255, 254)),
    IpAddr::V6(Ipv6Addr::LOCALHOST),
];

/// How long WebRTC may gather what it could be reached by. A browser in a jail has no interface to ask about, and would
/// wait for one for ever; what it sends where there is one, it sends at once. Outside of a jail a refusal ends it at
/// once, unless the machine is busy.
const GATHERING_LIMIT_MS: u32 = 5_000;
const JAILED_GATHERING_LIMIT_MS: u32 = 200;

/// What a page tries, all at once. It returns when everything has failed, or when what does not fail has had its time:
/// nobody answers on a canary, so what gets through hangs.
const TRY: &str = "async ({ host, fetched, socket, turn, udp, gathering }) => {
    const later = (ms) => new Promise((late) => setTimeout(late, ms));
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

/// A guard that held.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// Where the canary sat. None when configuration allows all of loopback, so that nothing could be tried.
    pub canary: Option<IpAddr>,
}

/// Why no page must be rendered here. The texts are for operators.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SelfTestError {
    /// A page reached this machine.
    #[error("the egress guard leaks: {channel} of a page reached {canary} on this machine")]
    Leak {
        /// By which way.
        channel: &'static str,
        /// What was reached.
        canary: SocketAddr,
    },
    /// Nothing was reached, but the proxy knows nothing of it either: the request went another way, or nowhere.
    #[error("the egress guard cannot vouch for this browser: {channel} of a page did not come by its proxy")]
    Astray {
        /// By which way.
        channel: &'static str,
    },
    /// The browser, or this machine, did not let it be tried.
    #[error("the egress guard could not be tried: {0}")]
    Untried(String),
}

/// What listens for one way out. Nobody serves it: the kernel keeps whatever arrives until it is looked at.
struct Canary {
    channel: &'static str,
    address: SocketAddr,
    socket: Socket,
}

enum Socket {
    Tcp(TcpListener),
    Udp(UdpSocket),
}

/// Tries every way out in a tab of the current browser.
///
/// # Errors
/// When the guard does not hold, or nobody can say that it does.
pub(crate) async fn run(shared: &Shared, policy: &Policy) -> Result<Held, SelfTestError> {
    // A machine without IPv6 lacks the last one.
    let is_here = |place: &IpAddr| TcpListener::bind((*place, 0)).is_ok();
    let is_refused = |place: &IpAddr| address::check_addr(*place, policy).is_err();
    let Some(place) = PLACES.into_iter().find(|place| is_refused(place) && is_here(place)) else {
        return Ok(Held { canary: None });
    };
    let no_socket = |error: io::Error| SelfTestError::Untried(format!("no canary on {place}: {error}"));
    let tcp = |channel| Canary::tcp(channel, place).map_err(no_socket);
    let [navigation, fetched, socket, turn] =
        [tcp("navigation")?, tcp("fetch")?, tcp("WebSocket")?, tcp("WebRTC over TCP")?];
    let udp = Canary::udp("WebRTC over UDP", place).map_err(no_socket)?;

    let deadline = Instant::now() + LIMIT;
    let late = |_| SelfTestError::Untried(format!("the browser was not done within {} s", LIMIT.as_secs()));
    let broken = |error: &dyn fmt::Display| SelfTestError::Untried(error.to_string());
    let lease = timeout_at(deadline, shared.lease()).await.map_err(late)?.map_err(|error| broken(&error))?;
    let tab = lease.tab();
    // Without an interface WebRTC asks nobody for a relay, not even through the proxy.
    let (gathering, asked) = match &shared.jail {
        Jail::Jailed => (JAILED_GATHERING_LIMIT_MS, &[&navigation, &fetched, &socket][..]),
        Jail::Unwanted | Jail::Impossible { .. } => (GATHERING_LIMIT_MS, &[&navigation, &fetched, &socket, &turn][..]),
    };
    let arguments = json!({ "host": written(place), "fetched": fetched.port(), "socket": socket.port(),
                            "turn": turn.port(), "udp": udp.port(), "gathering": gathering });
    let attempts = EvaluateParams {
        await_promise: Some(true),
        silent: Some(true),
        ..EvaluateParams::new(format!("({TRY})({arguments})"))
    };
    let navigate = NavigateParams::new(format!("http://{}/", navigation.address));
    let tries = async {
        tab.client.call_raw(LIMIT, Some(&tab.session), &attempts).await?;
        // A canary that is reached does not answer, so an answer that does not come is judged like any other.
        let navigated = tab.client.call_raw(NAVIGATION_LIMIT, Some(&tab.session), &navigate).await;
        match navigated {
            Ok(_) | Err(CallError::Timeout(_)) => Ok(()),
            Err(error) => Err(error),
        }
    };
    timeout_at(deadline, tries).await.map_err(late)?.map_err(|error| broken(&error))?;

    for canary in [&navigation, &fetched, &socket, &turn, &udp] {
        canary.must_be_untouched()?;
    }
    for canary in asked {
        canary.must_have_been_refused_to(tab)?;
    }
    Ok(Held { canary: Some(place) })
}

impl Canary {
    fn tcp(channel: &'static str, place: IpAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((place, 0))?;
        listener.set_nonblocking(true)?;
        Ok(Self { channel, address: listener.local_addr()?, socket: Socket::Tcp(listener) })
    }

    fn udp(channel: &'static str, place: IpAddr) -> io::Result<Self> {
        let socket = UdpSocket::bind((place, 0))?;
        socket.set_nonblocking(true)?;
        Ok(Self { channel, address: socket.local_addr()?, socket: Socket::Udp(socket) })
    }

    fn port(&self) -> u16 {
        self.address.port()
    }

    /// On loopback, what was sent before the script ended has arrived by now.
    fn must_be_untouched(&self) -> Result<(), SelfTestError> {
        let seen = match &self.socket {
            Socket::Tcp(listener) => listener.accept().map(|_| ()),
            Socket::Udp(socket) => socket.recv(&mut [0; 1]).map(|_| ()),
        };
        match seen {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(SelfTestError::Untried(format!("the canary on {}: {error}", self.address))),
            Ok(()) => Err(SelfTestError::Leak { channel: self.channel, canary: self.address }),
        }
    }

    fn must_have_been_refused_to(&self, tab: &Tab) -> Result<(), SelfTestError> {
        match tab.listener.was_refused(&self.address.ip().to_string(), self.port()) {
            true => Ok(()),
            false => Err(SelfTestError::Astray { channel: self.channel }),
        }
    }
}

impl fmt::Display for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.canary {
            Some(place) => write!(f, "a page reaches {place} by no navigation, fetch, WebSocket or WebRTC"),
            None => f.write_str("ATTENTION: all of loopback is allowed by configuration, so nothing could be tried"),
        }
    }
}

/// An address as a URL has it.
fn written(place: IpAddr) -> String {
    match place {
        IpAddr::V4(place) => place.to_string(),
        IpAddr::V6(place) => format!("[{place}]"),
    }
}

#[cfg(test)]
mod tests;
