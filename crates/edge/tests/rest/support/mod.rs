//! Shared test support: the mock core, both transports, and helpers for requests.

mod core;
mod webhooks;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use bytes::Bytes;
use grabd_edge::transport::{self, Transport};
use grabd_edge::{Options, router};
use grabd_memory::MemoryBudget;
use http::request::Builder;
use http::{HeaderMap, Request, StatusCode};
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tonic::transport::server::TcpIncoming;
use tonic::transport::{Endpoint, Server};
use tower::ServiceExt;

pub(crate) use self::core::{
    Core, POLICY, STATE, WatchAllStream, error_status, grab, watch_stream, with_limit_headers,
};

/// Default peer address.
pub(crate) const PEER: &str = "192.0.2.1:4711";
pub(crate) const KEY: &str = "Bearer sk_live_x";

pub(crate) fn options() -> Options {
    Options {
        public_url: "https://grabd.example/".to_owned(),
        auth_url: "https://grabd.example".to_owned(),
        requests_per_minute: 60,
        async_queue_limit: 50,
        trusted_proxies: vec!["10.0.0.0/8".parse().expect("a network")],
        images: Router::new(),
        memory: MemoryBudget::new(16 << 20),
    }
}

/// The REST API with a mock core, and the gRPC server between them if there is one.
pub(crate) struct TestApp {
    pub(crate) core: Arc<Core>,
    pub(crate) router: Router,
    _server: JoinSet<Result<(), tonic::transport::Error>>,
}

impl TestApp {
    pub(crate) fn new() -> Self {
        Self::with(options())
    }

    pub(crate) fn with(options: Options) -> Self {
        let core = Core::new();
        let transport = transport::in_process(Core::routes(&core));
        Self { core, router: router(transport, options), _server: JoinSet::new() }
    }

    pub(crate) async fn over_a_channel() -> Self {
        let core = Core::new();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let address = listener.local_addr().expect("a bound address");
        let mut server = JoinSet::new();
        let routes = Core::routes(&core);
        server.spawn(Server::builder().add_routes(routes).serve_with_incoming(TcpIncoming::from(listener)));
        let transport = transport::channel(connect(address));
        Self { core, router: router(transport, options()), _server: server }
    }

    /// One app with each transport. Both must behave the same.
    pub(crate) async fn both() -> [Self; 2] {
        [Self::new(), Self::over_a_channel().await]
    }

    /// Sends a request, from `PEER` unless it has a peer address. Fails after 60 seconds.
    pub(crate) async fn send(&self, mut request: Request<Body>) -> TestResponse {
        if request.extensions().get::<ConnectInfo<SocketAddr>>().is_none() {
            request.extensions_mut().insert(peer(PEER));
        }
        let whole = async {
            let response = self.router.clone().oneshot(request).await.expect("a router does not fail");
            let (parts, body) = response.into_parts();
            let body = body.collect().await.expect("the body is complete").to_bytes();
            TestResponse { status: parts.status, headers: parts.headers, body }
        };
        let response = timeout(Duration::from_secs(60), whole).await.expect("the response ends in time");
        response.check_error();
        response
    }

    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        self.send(get(path).body(Body::empty()).expect("a request")).await
    }

    pub(crate) async fn create(&self, body: &str) -> TestResponse {
        self.send(post("/v1/grabs").body(Body::from(body.to_owned())).expect("a request")).await
    }
}

/// Connects on first use.
pub(crate) fn connect(address: SocketAddr) -> tonic::transport::Channel {
    Endpoint::from_shared(format!("http://{address}")).expect("an address").connect_lazy()
}

/// A transport to an unreachable core.
pub(crate) fn unreachable() -> Transport {
    transport::channel(connect("127.0.0.1:1".parse().expect("an address")))
}

pub(crate) fn peer(address: &str) -> ConnectInfo<SocketAddr> {
    ConnectInfo(address.parse().expect("an address with a port"))
}

pub(crate) fn get(path: &str) -> Builder {
    Request::get(path).header("authorization", KEY)
}

pub(crate) fn post(path: &str) -> Builder {
    Request::post(path).header("authorization", KEY).header("content-type", "application/json")
}

pub(crate) fn without_body(request: Builder) -> Request<Body> {
    request.body(Body::empty()).expect("a request")
}

#[derive(Debug)]
pub(crate) struct TestResponse {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

impl TestResponse {
    /// The value of a header that may occur once; empty if absent.
    #[track_caller]
    pub(crate) fn header(&self, name: &str) -> &str {
        let values: Vec<_> = self.headers.get_all(name).iter().collect();
        assert!(values.len() <= 1, "{name}: {values:?}");
        values.first().map_or("", |value| value.to_str().expect("header values are visible ASCII"))
    }

    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        assert_eq!(self.header("content-type"), "application/json");
        serde_json::from_slice(&self.body).expect("JSON")
    }

    #[track_caller]
    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("text")
    }

    /// Asserts what the contract says of every error: its body has a code and a message, and its header the cause.
    fn check_error(&self) {
        if !(self.status.is_client_error() || self.status.is_server_error()) {
            assert_eq!(self.header("error-cause"), "", "{}", self.status);
            return;
        }
        assert!(["request", "target", "service"].contains(&self.header("error-cause")), "{:?}", self.headers);
        if self.body.is_empty() || self.header("content-type") == "image/svg+xml" {
            // A response to HEAD, or the picture of an error.
            return;
        }
        let Value::Object(whole) = self.json() else { panic!("{}", self.text()) };
        assert_eq!(whole.keys().collect::<Vec<_>>(), ["error"]);
        let error = whole["error"].as_object().expect("an object");
        assert_eq!(error.keys().collect::<Vec<_>>(), ["code", "message"], "{}", self.text());
    }

    /// Asserts status and error code, and returns the message.
    #[track_caller]
    pub(crate) fn assert_error(&self, status: u16, code: &str) -> String {
        assert_eq!(self.status, status, "{}", self.text());
        let error = &self.json()["error"];
        assert_eq!(error["code"], code);
        assert_eq!(self.header("cache-control"), "no-store");
        error["message"].as_str().expect("a message").to_owned()
    }
}
