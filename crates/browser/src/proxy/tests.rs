//! The proxy over real sockets: raw bytes in, raw bytes out, and an origin that writes down what it saw.

mod doors;
mod limits;
mod plain;
mod refusals;
mod tunnel;

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

/// The longest anything here may take. Nothing waits for it unless something is wrong.
const PATIENCE: Duration = Duration::from_secs(10);

/// A proxy whose pages may reach 127.0.0.2 alone.
fn proxy(limits: Limits) -> Proxy {
    proxy_allowing("127.0.0.2/32", limits)
}

fn proxy_allowing(net: &str, limits: Limits) -> Proxy {
    let policy = Policy { allow: vec![net.parse().unwrap()], ..Policy::default() };
    // Nobody answers there, so that names end in a time-out.
    let dns = vec!["127.0.0.1:9".parse().unwrap()];
    let lookup_timeout = Duration::from_millis(200);
    let guard = Guard::new(grabd_egress::Options { policy, dns, lookup_timeout, ..Default::default() }).unwrap();
    let options = Options { address: ADDRESS, limits };
    Proxy::new(guard, options, TaskTracker::new(), CancellationToken::new())
}

async fn listener() -> Listener {
    proxy(Limits::default()).open().await.unwrap()
}

/// The browser's end of a connection to `listener`.
async fn browser(listener: &Listener) -> TcpStream {
    TcpStream::connect((ADDRESS, listener.port())).await.unwrap()
}

/// Sends `request` on a connection of its own and reads until the proxy closes it.
async fn exchange(listener: &Listener, request: &str) -> String {
    let mut browser = browser(listener).await;
    browser.write_all(request.as_bytes()).await.unwrap();
    rest(&mut browser).await
}

/// Everything until the end. A reset is an end too: the proxy may close with a body of ours unread.
async fn rest(stream: &mut (impl AsyncRead + Unpin)) -> String {
    let mut bytes = Vec::new();
    let _ = timeout(PATIENCE, stream.read_to_end(&mut bytes)).await.expect("the connection stays open");
    String::from_utf8(bytes).unwrap()
}

/// One message head, with its empty line. None at the end of the connection.
async fn head(stream: &mut (impl AsyncRead + Unpin)) -> Option<String> {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(timeout(PATIENCE, stream.read_u8()).await.expect("no head arrives").ok()?);
    }
    Some(String::from_utf8(bytes).unwrap())
}

/// The socket closes as soon as its task is told, which is a moment after the connections it accepted are.
async fn nobody_listens(port: u16) {
    let refused = async { while TcpStream::connect((ADDRESS, port)).await.is_ok() {} };
    timeout(PATIENCE, refused).await.expect("the listener stays open");
}

async fn exactly(stream: &mut (impl AsyncRead + Unpin), bytes: usize) -> String {
    let mut read = vec![0; bytes];
    timeout(PATIENCE, stream.read_exact(&mut read)).await.expect("too little arrives").unwrap();
    String::from_utf8(read).unwrap()
}

/// A site on 127.0.0.2 that answers each request with the bytes a function gives, and closes when it gives none.
struct Origin {
    address: SocketAddr,
    seen: Arc<Mutex<Seen>>,
    _server: JoinSet<()>,
}

#[derive(Clone, Debug, Default)]
struct Seen {
    connections: usize,
    /// Heads and the bodies with a declared length.
    requests: Vec<String>,
}

impl Origin {
    async fn start(answer: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        let socket = TcpListener::bind("127.0.0.2:0").await.unwrap();
        let address = socket.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Seen::default()));
        let answer = Arc::new(answer);
        let log = Arc::clone(&seen);
        let mut server = JoinSet::new();
        server.spawn(async move {
            let mut connections = JoinSet::new();
            loop {
                let (stream, _) = socket.accept().await.unwrap();
                log.lock().unwrap().connections += 1;
                connections.spawn(serve(stream, Arc::clone(&answer), Arc::clone(&log)));
            }
        });
        Self { address, seen, _server: server }
    }

    /// One that says hello to everybody.
    async fn hello() -> Self {
        Self::start(|_| Some("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello".to_owned())).await
    }

    fn seen(&self) -> Seen {
        self.seen.lock().unwrap().clone()
    }

    fn url(&self) -> String {
        format!("http://{}", self.address)
    }
}

async fn serve<A: Fn(&str) -> Option<String>>(stream: TcpStream, answer: Arc<A>, log: Arc<Mutex<Seen>>) {
    let mut stream = BufReader::new(stream);
    while let Some(mut request) = head(&mut stream).await {
        let length =
            request.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        request += &exactly(&mut stream, length.unwrap_or(0)).await;
        if request.to_ascii_lowercase().contains("transfer-encoding: chunked") {
            while !request.ends_with("0\r\n\r\n") {
                request += &exactly(&mut stream, 1).await;
            }
        }
        log.lock().unwrap().requests.push(request.clone());
        let Some(answer) = answer(&request) else { return };
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}
