//! Malformed gRPC calls.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use futures::future::{select_all, try_join_all};
use grabd_proto::reason;
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::{CreateGrabRequest, ErrorCode, GetGrabRequest};
use grabd_tests::harness::TestApp;
use http::{HeaderMap, Request};
use tokio_util::task::TaskTracker;
use tonic::transport::Endpoint;
use tonic::{Code, Status};
use tonic_types::StatusExt;

use super::{attack, connect};

const GET: &str = "/grabd.v1.GrabService/GetGrab";
const HEALTH: &str = "/grpc.health.v1.Health/Check";

type Headers<'a> = Vec<(&'a str, &'a str)>;

/// Sends a call. Returns the HTTP status, headers with trailers, and the length of the body.
async fn call(app: &TestApp, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Result<(u16, HeaderMap, usize)> {
    let stream = connect(app.service.grpc()).await?;
    let (sender, connection) = h2::client::handshake(stream).await?;
    // Ends with its sender.
    TaskTracker::new().spawn(connection);
    let mut request = Request::post(format!("http://a{path}"));
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let mut sender = sender.ready().await?;
    let (response, mut stream) = sender.send_request(request.body(())?, false)?;
    // The service may refuse the call by its headers alone.
    let _ = stream.send_data(Bytes::copy_from_slice(body), true);
    let response = tokio::time::timeout(super::WAIT_LIMIT, response).await??;
    let status = response.status().as_u16();
    let mut metadata = response.headers().clone();
    let mut body = response.into_body();
    let mut length = 0;
    while let Some(part) = body.data().await {
        let part = part?;
        length += part.len();
        body.flow_control().release_capacity(part.len())?;
    }
    metadata.extend(body.trailers().await?.unwrap_or_default());
    Ok((status, metadata, length))
}

#[tokio::test(flavor = "multi_thread")]
async fn malformed_calls_have_a_grpc_status() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let key = format!("Bearer {}", app.test());
    let grpc = [("content-type", "application/grpc"), ("te", "trailers"), ("authorization", key.as_str())];
    let with = |further: &[(&'static str, &'static str)]| [&grpc[..], further].concat();
    let cases: [(&str, Headers<'_>, &[u8], &str); 9] = [
        ("another type", vec![("content-type", "text/plain"), ("authorization", &key)], b"", "13"),
        ("an unknown compression", with(&[("grpc-encoding", "zip")]), b"\x01\0\0\0\x01x", "12"),
        ("compression without its name", with(&[]), b"\x01\0\0\0\x01x", "13"),
        ("a promise of four gigabytes", with(&[]), b"\0\xff\xff\xff\xff", "11"),
        ("half a message", with(&[]), b"\0\0\0\0\x09abc", "13"),
        ("garbage", with(&[]), b"\0\0\0\0\x03\xff\xff\xff", "13"),
        ("no message", with(&[]), b"", "13"),
        ("no trailers wanted", vec![grpc[0], grpc[2]], b"\0\0\0\0\0", "5"),
        ("no key", grpc[..2].to_vec(), b"\0\0\0\0\0", "16"),
    ];
    attack(&app, "malformed calls", 24, async {
        for (name, headers, body, expected) in cases {
            let (status, metadata, _) = call(&app, GET, &headers, body).await.with_context(|| name.to_owned())?;
            ensure!(
                status == 200 && metadata.get("grpc-status").is_some_and(|code| code == expected),
                "{name}: {metadata:?}"
            );
        }
        Ok(())
    })
    .await?;

    let channel = Endpoint::try_from(format!("http://{}", app.service.grpc()))?.connect().await?;
    let mut client = GrabServiceClient::new(channel);
    attack(&app, "a message of three megabytes", 24, async {
        let message = CreateGrabRequest { url: Some("a".repeat(3 << 20)), ..CreateGrabRequest::default() };
        let mut request = tonic::Request::new(message);
        request.metadata_mut().insert("authorization", key.parse()?);
        let status = client.create_grab(request).await.err().context("the call was accepted")?;
        ensure!(status.code() == Code::OutOfRange, "{status}");
        Ok(())
    })
    .await?;
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_without_a_key_are_limited_in_size() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let headers = [("content-type", "application/grpc"), ("te", "trailers")];
    // One field, which reflection interprets as a symbol to list and the other services do not know.
    let message = [&[0, 0, 0, 0x20, 0, 0x3a, 0xfd, 0x3f][..], &[b'a'; 0x1ffd]].concat();
    for path in [
        HEALTH,
        "/grabd.v1.PricingService/GetPricing",
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    ] {
        let (_, metadata, length) = call(&app, path, &headers, &message).await?;
        // Reflection ends the stream normally. Other services return an error.
        let code = metadata.get("grpc-status").context("a status")?;
        let expected = if path.contains("reflection") { "0" } else { "11" };
        ensure!(code == expected && length == 0, "{path}: {metadata:?}, {length} bytes");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_calls_per_address_are_limited() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[("grpc.calls_per_address", "3")]).await?;
    let (sender, connection) = h2::client::handshake(connect(app.service.grpc()).await?).await?;
    TaskTracker::new().spawn(connection);
    let (mut answers, mut streams) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        let request = Request::post(format!("http://a{HEALTH}")).header("content-type", "application/grpc");
        let (answer, stream) = sender.clone().ready().await?.send_request(request.body(())?, false)?;
        answers.push(answer);
        streams.push(stream);
    }
    // Three calls wait for their message. Which one is refused depends on the order in which they start.
    let first = tokio::time::timeout(super::WAIT_LIMIT, select_all(answers)).await.context("no call was refused")?;
    let (refused, at, answers) = first;
    let refused = refused?;
    let refused = Status::from_header_map(refused.headers()).context("a status")?;
    ensure!(refused.code() == Code::ResourceExhausted, "{refused:?}");
    ensure!(reason::code(&refused) == ErrorCode::RateLimitExceeded, "{refused:?}");
    let retry = refused.get_details_retry_info().and_then(|info| info.retry_delay);
    ensure!(retry == Some(Duration::from_secs(1)), "{refused:?}");

    // Another address is not affected, and the other calls are served.
    let channel = Endpoint::try_from(format!("http://{}", app.service.grpc()))?.connect().await?;
    let unknown = GrabServiceClient::new(channel).get_grab(GetGrabRequest::default()).await;
    assert_eq!(unknown.err().context("the call succeeded")?.code(), Code::Unauthenticated);
    streams.remove(at);
    for mut stream in streams {
        stream.send_data(Bytes::from_static(b"\0\0\0\0\0"), true)?;
    }
    for answer in tokio::time::timeout(super::WAIT_LIMIT, try_join_all(answers)).await?? {
        ensure!(answer.headers().get("grpc-status").is_none(), "{answer:?}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn call_without_a_message_ends_at_its_deadline() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let (sender, connection) = h2::client::handshake(connect(app.service.grpc()).await?).await?;
    TaskTracker::new().spawn(connection);
    let request = Request::post(format!("http://a{HEALTH}")).header("content-type", "application/grpc");
    let request = request.header("grpc-timeout", "100m").body(())?;
    let (answer, _stream) = sender.clone().ready().await?.send_request(request, false)?;
    let answer = tokio::time::timeout(super::WAIT_LIMIT, answer).await.context("the call did not end")??;
    ensure!(answer.headers().get("grpc-status").is_some_and(|code| code == "4"), "{answer:?}");
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoned_calls_use_little_memory() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    attack(&app, "2,000 calls without a message", 64, async {
        let stream = connect(app.service.grpc()).await?;
        let (sender, connection) = h2::client::Builder::new()
            .initial_max_send_streams(2_000)
            .max_concurrent_reset_streams(10)
            .handshake::<_, Bytes>(stream)
            .await?;
        TaskTracker::new().spawn(connection);
        let mut held = Vec::new();
        for _ in 0..2_000 {
            let request = Request::post(format!("http://a{GET}")).header("content-type", "application/grpc");
            let mut sender = sender.clone().ready().await?;
            held.push(sender.send_request(request.body(())?, false)?);
        }
        super::check_good_client(&app).await
    })
    .await?;
    app.finish().await
}
