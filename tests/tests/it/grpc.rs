//! The gRPC API, called with generated clients.

use anyhow::{Context, Result};
use grabd_proto::reason;
use grabd_proto::v1::grab_service_client::GrabServiceClient;
use grabd_proto::v1::pricing_service_client::PricingServiceClient;
use grabd_proto::v1::usage_service_client::UsageServiceClient;
use grabd_proto::v1::{
    BatchCreateGrabsRequest, BatchCreateGrabsResponse, BatchResult, CreateGrabRequest, CreateMode, ErrorCode,
    GetGrabRequest, GetPricingRequest, GetUsageRequest, GrabStatus, ListGrabsRequest, WatchGrabRequest, batch_result,
};
use grabd_tests::harness::TestApp;
use tokio_stream::StreamExt;
use tonic::codec::CompressionEncoding;
use tonic::transport::Endpoint;
use tonic::{Code, Request, Status};
use tonic_health::pb::HealthCheckRequest;
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_client::HealthClient;
use tonic_reflection::pb::v1::ServerReflectionRequest;
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::server_reflection_request::MessageRequest;
use tonic_reflection::pb::v1::server_reflection_response::MessageResponse;
use tonic_types::StatusExt;

#[tokio::test(flavor = "multi_thread")]
async fn messages_may_be_compressed_with_gzip() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let channel = Endpoint::try_from(format!("http://{}", app.service.grpc()))?.connect().await?;
    let plain = PricingServiceClient::new(channel.clone()).get_pricing(GetPricingRequest::default()).await?;
    assert!(!plain.metadata().contains_key("grpc-encoding"));
    let mut pricing = PricingServiceClient::new(channel.clone())
        .send_compressed(CompressionEncoding::Gzip)
        .accept_compressed(CompressionEncoding::Gzip);
    let compressed = pricing.get_pricing(GetPricingRequest::default()).await?;
    assert_eq!(compressed.metadata().get("grpc-encoding").map(AsRef::as_ref), Some(&b"gzip"[..]));
    assert_eq!(compressed.into_inner(), plain.into_inner());

    // The size limit applies to the decompressed message.
    let mut grabs = GrabServiceClient::new(channel).send_compressed(CompressionEncoding::Gzip);
    let html = "a".repeat(3 << 20);
    let long = CreateGrabRequest { url: Some(html), ..CreateGrabRequest::default() };
    let refused = grabs.create_grab(with_key(long, app.test())?).await.err().context("an error")?;
    assert!(refused.message().contains("size limit"), "{refused:?}");
    app.finish().await
}

fn with_key<T>(message: T, key: &str) -> Result<Request<T>> {
    let mut request = Request::new(message);
    request.metadata_mut().insert("authorization", format!("Bearer {key}").parse()?);
    Ok(request)
}

#[tokio::test(flavor = "multi_thread")]
async fn generated_clients_can_call_every_service() -> Result<()> {
    let app = TestApp::start(3, &[]).await?;
    let channel = Endpoint::try_from(format!("http://{}", app.service.grpc()))?.connect().await?;
    let mut grabs = GrabServiceClient::new(channel.clone());
    let key = app.live();
    let url = app.site.url("/tiny");

    let create = CreateGrabRequest { url: Some(url.clone()), ..CreateGrabRequest::default() };
    let response = grabs.create_grab(with_key(create.clone(), key)?).await?;
    assert!(response.metadata().contains_key(reason::RATE_LIMIT), "{:?}", response.metadata());
    let grab = response.into_inner().grab.context("a grab")?;
    assert_eq!(grab.status(), GrabStatus::Done);

    let get = GetGrabRequest { id: grab.id.clone() };
    assert_eq!(grabs.get_grab(with_key(get, key)?).await?.into_inner().grab, Some(grab.clone()));
    let list = grabs.list_grabs(with_key(ListGrabsRequest::default(), key)?).await?.into_inner();
    assert_eq!((list.grabs, list.has_more), (vec![grab.clone()], false));

    // A failed capture is a response, not an error status.
    let broken = CreateGrabRequest { url: Some(app.site.url("/nocontent")), ..CreateGrabRequest::default() };
    let failed = grabs.create_grab(with_key(broken, key)?).await?.into_inner().grab.context("a grab")?;
    assert_eq!((failed.status(), failed.failure_reason()), (GrabStatus::Failed, ErrorCode::RenderFailed));

    // Watching returns each later revision up to the end.
    let create = CreateGrabRequest { mode: CreateMode::Async.into(), ..create };
    let pending = grabs.create_grab(with_key(create.clone(), key)?).await?.into_inner().grab.context("a grab")?;
    assert_eq!(pending.status(), GrabStatus::Pending);
    let watch = WatchGrabRequest { id: pending.id.clone(), after_revision: 0, with_stages: false };
    let states: Vec<_> = grabs.watch_grab(with_key(watch.clone(), key)?).await?.into_inner().collect().await;
    let states: Vec<_> =
        states.into_iter().collect::<Result<Vec<_>, _>>()?.into_iter().filter_map(|s| s.grab).collect();
    assert!(states.is_sorted_by(|a, b| a.revision < b.revision));
    let last = states.last().context("a last state")?;
    assert_eq!(last.status(), GrabStatus::Done);
    let seen = WatchGrabRequest { after_revision: last.revision, ..watch };
    assert_eq!(grabs.watch_grab(with_key(seen, key)?).await?.into_inner().collect::<Vec<_>>().await.len(), 0);

    // Errors carry the contract's error code as reason.
    let status = grabs.get_grab(GetGrabRequest::default()).await.unwrap_err();
    assert_eq!((status.code(), reason::code(&status)), (Code::Unauthenticated, ErrorCode::Unauthorized));
    let unknown =
        WatchGrabRequest { id: "01993e1c-7b1a-7000-8000-0123456789ab".into(), after_revision: 0, with_stages: false };
    let status = grabs.watch_grab(with_key(unknown, key)?).await.unwrap_err();
    assert_eq!((status.code(), reason::code(&status)), (Code::NotFound, ErrorCode::NotFound));
    let narrow = CreateGrabRequest { width: Some(1), url: Some(url), ..CreateGrabRequest::default() };
    let status = grabs.create_grab(with_key(narrow, key)?).await.unwrap_err();
    assert_eq!((status.code(), reason::code(&status)), (Code::InvalidArgument, ErrorCode::InvalidViewport));
    assert_eq!(status.get_details_bad_request().context("details")?.field_violations[0].field, "width");

    let usage = UsageServiceClient::new(channel.clone()).get_usage(with_key(GetUsageRequest {}, key)?).await?;
    assert_eq!(usage.into_inner().credits.context("credits")?.total, 1);
    let status = grabs.create_grab(with_key(create.clone(), key)?).await?.into_inner().grab.context("a grab")?;
    let last = grabs
        .watch_grab(with_key(WatchGrabRequest { id: status.id, after_revision: 0, with_stages: false }, key)?)
        .await?;
    assert!(last.into_inner().collect::<Vec<_>>().await.into_iter().all(|state| state.is_ok()));
    let status = grabs.create_grab(with_key(create, key)?).await.unwrap_err();
    assert_eq!((status.code(), reason::code(&status)), (Code::FailedPrecondition, ErrorCode::CreditsExhausted));

    let pricing = PricingServiceClient::new(channel).get_pricing(GetPricingRequest::default()).await?;
    assert!(pricing.into_inner().packet.context("a packet")?.fields.contains_key("comparison"));
    app.finish().await
}

/// The results of a batch: `created`, `replayed`, or the error code of a capture.
async fn batch(
    app: &TestApp,
    key: &str,
    requests: Vec<CreateGrabRequest>,
) -> Result<Result<(Vec<String>, BatchCreateGrabsResponse, String), Status>> {
    let channel = Endpoint::try_from(format!("http://{}", app.service.grpc()))?.connect().await?;
    let sent = with_key(BatchCreateGrabsRequest { requests }, key)?;
    let response = match GrabServiceClient::new(channel).batch_create_grabs(sent).await {
        Ok(response) => response,
        Err(status) => return Ok(Err(status)),
    };
    let limit = response.metadata().get(reason::RATE_LIMIT).context("a rate limit")?.to_str()?.to_owned();
    let response = response.into_inner();
    let shown = response.results.iter().map(|BatchResult { result, replayed }| match (result, replayed) {
        (Some(batch_result::Result::Grab(_)), false) => "created".to_owned(),
        (Some(batch_result::Result::Grab(_)), true) => "replayed".to_owned(),
        (Some(batch_result::Result::Error(error)), _) => reason::of(error.code()).to_ascii_lowercase(),
        (None, _) => "nothing".to_owned(),
    });
    Ok(Ok((shown.collect(), response.clone(), limit)))
}

#[tokio::test(flavor = "multi_thread")]
async fn batch_is_queued_in_order_until_a_limit_is_exceeded() -> Result<()> {
    let app = TestApp::start_without_browser(2, &[]).await?;
    let create = |url: &str, key: &str| CreateGrabRequest {
        url: Some(url.to_owned()),
        // Batches are asynchronous whatever their requests say: nothing renders here.
        mode: CreateMode::Sync.into(),
        idempotency_key: Some(key.to_owned()),
        ..CreateGrabRequest::default()
    };
    let page = app.site.url("/tiny");
    let requests = vec![create(&page, "a"), create("ftp://example.com/", "b"), create(&page, "c"), create(&page, "d")];
    let (first, response, _) = batch(&app, app.live(), requests.clone()).await??;
    assert_eq!(first, ["created", "bad_request", "created", "credits_exhausted"]);
    assert!(response.stopped);
    let Some(batch_result::Result::Grab(grab)) = &response.results[0].result else { anyhow::bail!("no grab") };
    assert_eq!((grab.status(), grab.target_url.as_str()), (GrabStatus::Pending, page.as_str()));
    // Sent again, it creates only what is missing: nothing, without credits.
    let (again, repeated, _) = batch(&app, app.live(), requests).await??;
    assert_eq!(again, ["replayed", "bad_request", "replayed", "credits_exhausted"]);
    assert_eq!(repeated.results[0].result, response.results[0].result);
    assert_eq!(app.get("/usage", app.live()).await?.1["credits"]["held"], 2);

    // A refusal that meets all captures is that of the call, as is a batch of the wrong size.
    let status =
        batch(&app, app.live(), vec![create(&page, "e"), create(&page, "f")]).await?.err().context("refused")?;
    assert_eq!(reason::code(&status), ErrorCode::CreditsExhausted);
    for count in [0, 51] {
        let status = batch(&app, app.live(), vec![create(&page, "g"); count]).await?.err().context("refused")?;
        assert_eq!((status.code(), reason::code(&status)), (Code::InvalidArgument, ErrorCode::BadRequest));
        assert!(status.message().contains("1 to 50"), "{status}");
    }
    app.finish().await
}

#[tokio::test(flavor = "multi_thread")]
async fn each_capture_of_a_batch_counts_as_a_request() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[("limits.requests_per_minute", "3")]).await?;
    let create = CreateGrabRequest { url: Some("https://example.com/".to_owned()), ..CreateGrabRequest::default() };
    let (results, response, limit) = batch(&app, app.test(), vec![create; 5]).await??;
    let limited = "rate_limit_exceeded";
    assert_eq!(results, ["created", "created", "created", limited, limited]);
    assert!(limit.starts_with("\"default\";r=0;"), "{limit}");
    let Some(batch_result::Result::Error(error)) = &response.results[4].result else { anyhow::bail!("no error") };
    assert!(error.retry_after.is_some_and(|delay| delay.seconds > 0), "{error:?}");
    app.finish().await
}

/// Captures that exist already must leave their requests to those that follow, so that a client that repeats its batch after each
/// delay gets further.
#[tokio::test(flavor = "multi_thread")]
async fn batch_that_is_repeated_gets_further_with_each_request() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[("limits.requests_per_minute", "3")]).await?;
    let create = |key: &str| CreateGrabRequest {
        url: Some("https://example.com/".to_owned()),
        idempotency_key: Some(key.to_owned()),
        ..CreateGrabRequest::default()
    };
    let requests = ["a", "b", "c", "d"].map(create).to_vec();
    let (first, _, _) = batch(&app, app.test(), requests[..2].to_vec()).await??;
    assert_eq!(first, ["created", "created"]);
    // One request is left.
    let (again, _, _) = batch(&app, app.test(), requests).await??;
    assert_eq!(again, ["replayed", "replayed", "created", "rate_limit_exceeded"]);
    app.finish().await
}

/// Listed services can be called, and services for renderers are not listed.
#[tokio::test(flavor = "multi_thread")]
async fn reflection_lists_public_services_and_each_has_a_health_status() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let channel = Endpoint::try_from(format!("http://{}", app.service.grpc()))?.connect().await?;
    let question = ServerReflectionRequest {
        message_request: Some(MessageRequest::ListServices(String::new())),
        ..ServerReflectionRequest::default()
    };
    let mut answers = ServerReflectionClient::new(channel.clone())
        .server_reflection_info(tokio_stream::once(question))
        .await?
        .into_inner();
    let Some(MessageResponse::ListServicesResponse(list)) =
        answers.message().await?.and_then(|answer| answer.message_response)
    else {
        anyhow::bail!("no list of services");
    };
    let mut listed: Vec<_> = list.service.into_iter().map(|service| service.name).collect();
    listed.sort_unstable();
    let public = [
        "AccessService",
        "GrabService",
        "LinkService",
        "MonitorService",
        "PricingService",
        "ProxyService",
        "SiteService",
        "UsageService",
        "WebhookService",
    ]
    .map(|name| format!("grabd.v1.{name}"));
    assert_eq!(listed[..9], public);
    assert_eq!(listed[9..], ["grpc.health.v1.Health"]);

    let mut health = HealthClient::new(channel);
    for service in public.into_iter().chain([String::new()]) {
        let answer = health.check(HealthCheckRequest { service: service.clone() }).await?.into_inner();
        assert_eq!(answer.status(), ServingStatus::Serving, "{service:?}");
    }
    app.finish().await
}

/// A client of gRPC has no origin with which it could resolve a path.
#[tokio::test(flavor = "multi_thread")]
async fn urls_of_placeholders_are_absolute() -> Result<()> {
    let app = TestApp::start_without_browser(0, &[]).await?;
    let channel = Endpoint::try_from(format!("http://{}", app.service.grpc()))?.connect().await?;
    let mut grabs = GrabServiceClient::new(channel);
    let create = CreateGrabRequest { url: Some("https://example.com/".to_owned()), ..CreateGrabRequest::default() };
    let grab = grabs.create_grab(with_key(create, app.test())?).await?.into_inner().grab.context("a grab")?;
    let url = grab.image_url.context("a URL")?;
    assert!(url.starts_with(&format!("{}/i/", app.service.public_url())), "{url}");
    assert_eq!(app.client.get(&url).send().await?.status(), 200);
    // Over REST, the contract has a path.
    let (_, rest) = app.get(&format!("/grabs/{}", grab.id), app.test()).await?;
    assert_eq!(rest["image_url"], url[app.service.public_url().len()..]);
    app.finish().await
}
