//! Tests of the proxy over real sockets, with an origin that records requests.

mod grab_limits;
mod plain;
mod refusals;
mod sockets;
mod tunnel;
mod upstream;

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use grabd_domain::address::Policy;
use grabd_egress::Guard;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Limits, Listener, Options, Proxy};

const ADDRESS: Ipv4Addr = Ipv4Addr::new(127, 99, 0, 1);

/// Upper limit of every wait. Reached only on failure.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A proxy whose pages may reach only 127.0.0.2.
fn proxy(limits: Limits) -> Proxy {
    proxy_allowing("127.0.0.2/32", limits)
}

fn proxy_allowing(net: &str, limits: Limits) -> Proxy {
    let policy = Policy { allow: vec![net.parse().unwrap()], ..Policy::default() };
    // No DNS server listens here, so name lookups time out.
    let dns = vec!["127.0.0.1:9".parse().unwrap()];
    let lookup_timeout = Duration::from_millis(200);
    let guard = Guard::new(grabd_egress::Options { policy, dns, lookup_timeout, ..Default::default() }).unwrap();
    let options = Options { address: ADDRESS, limits };
    Proxy::new(guard, options, TaskTracker::new(), CancellationToken::new())
}

async fn listener() -> Listener {
    proxy(Limits::default()).open().await.unwrap()
}

/// A connection to `listener`, as the browser's.
async fn browser(listener: &Listener) -> TcpStream {
    TcpStream::connect((ADDRESS, listener.port())).await.unwrap()
}

/// Sends `request` on a new connection and reads until the proxy closes it.
async fn exchange(listener: &Listener, request: &str) -> String {
    let mut browser = browser(listener).await;
    browser.write_all(request.as_bytes()).await.unwrap();
    read_to_end(&mut browser).await
}

/// Reads to the end. A reset counts as the end, since the proxy may close with unread data.
async fn read_to_end(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    let _ = timeout(TIMEOUT, stream.read_to_end(&mut bytes)).await.expect("the connection was not closed");
    String::from_utf8(bytes).unwrap()
}

/// Reads one header section with its empty line. `None` at the end of the connection.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(timeout(TIMEOUT, stream.read_u8()).await.expect("no header section arrived").ok()?);
    }
    Some(String::from_utf8(bytes).unwrap())
}

/// Waits until the port is closed, which happens shortly after the accepted connections are closed.
async fn wait_until_closed(port: u16) {
    let refused = async { while TcpStream::connect((ADDRESS, port)).await.is_ok() {} };
    timeout(TIMEOUT, refused).await.expect("the listener was not closed");
}

async fn read_exactly(stream: &mut (impl AsyncRead + Unpin), bytes: usize) -> String {
    let mut read = vec![0; bytes];
    timeout(TIMEOUT, stream.read_exact(&mut read)).await.expect("too few bytes arrived").unwrap();
    String::from_utf8(read).unwrap()
}

/// A server on 127.0.0.2 that answers each request with the function's result, and closes the connection on `None`.
struct Origin {
    address: SocketAddr,
    recorded: Arc<Mutex<Recorded>>,
    _server: JoinSet<()>,
}

#[derive(Clone, Debug, Default)]
struct Recorded {
    connections: usize,
    /// Header sections, with bodies of declared length.
    requests: Vec<String>,
}

impl Origin {
    async fn start(answer: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        let socket = TcpListener::bind("127.0.0.2:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let recorded = Arc::new(Mutex::new(Recorded::default()));
        let answer = Arc::new(answer);
        let log = Arc::clone(&recorded);
        let mut server = JoinSet::new();
        server.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = socket.accept().await.unwrap();
                log.lock().unwrap().connections += 1;
                connections.spawn(serve(stream, Arc::clone(&answer), Arc::clone(&log)));
            }
        });
        Self { address, recorded, _server: server }
    }

    /// An origin that always responds with "hello".
    async fn hello() -> Self {
        Self::start(|_| Some("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_owned())).await
    }

    fn recorded(&self) -> Recorded {
        self.recorded.lock().unwrap().clone()
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

async fn serve<A: Fn(&str) -> Option<String>>(stream: TcpStream, answer: Arc<A>, log: Arc<Mutex<Recorded>>) {
    let mut stream = BufReader::new(stream);
    while let Some(mut request) = head(&mut stream).await {
        let length =
            request.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        request += &read_exactly(&mut stream, length.unwrap_or(0)).await;
        if request.to_ascii_lowercase().contains("transfer-encoding: chunked") {
            while !request.ends_with("0\r\n\r\n") {
                request += &read_exactly(&mut stream, 1).await;
            }
        }
        log.lock().unwrap().requests.push(request.clone());
        let Some(answer) = answer(&request) else { return };
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}
