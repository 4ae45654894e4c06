//! The gRPC services over the use-cases of `grabd-engine`, and the gate in front of them, which REST, MCP and gRPC
//! callers all pass. Also the protocol between core and renderers: [`renderer_service`] is the core's side,
//! [`renderer_client`] the renderer's.
//!
//! To add an RPC, write the use-case, then its service method here. Conversions destructure completely, so a new field is
//! a compile error until it is handled.

mod access;
mod call_log;
mod convert;
pub mod direct_uploads;
mod gate;
mod grabs;
mod links;
mod monitors;
mod numbers;
mod page_info;
mod pricing;
mod proxies;
mod render_metadata;
pub mod renderer_client;
pub mod renderer_pool;
mod renderer_report;
mod renderer_service;
mod scopes;
mod sites;
mod slot_offers;
mod status;
mod usage;
mod webhooks;

use grabd_engine::Core;
use grabd_proto::internal::v1::renderer_service_server::RendererServiceServer;
use grabd_proto::v1::access_service_server::AccessServiceServer;
use grabd_proto::v1::grab_service_server::GrabServiceServer;
use grabd_proto::v1::link_service_server::LinkServiceServer;
use grabd_proto::v1::monitor_service_server::MonitorServiceServer;
use grabd_proto::v1::pricing_service_server::PricingServiceServer;
use grabd_proto::v1::proxy_service_server::ProxyServiceServer;
use grabd_proto::v1::site_service_server::SiteServiceServer;
use grabd_proto::v1::usage_service_server::UsageServiceServer;
use grabd_proto::v1::webhook_service_server::WebhookServiceServer;
use tonic::codec::CompressionEncoding;
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic_health::server::HealthReporter;

pub use gate::{Gate, GateLayer};
pub use renderer_service::RendererSessions;
pub use status::too_many_calls;

/// Maximum size of a message between renderer and core. The largest ones contain an image.
const MAX_RENDERER_MESSAGE_BYTES: usize = 128 << 20;

/// Maximum size of a request to the grab service: a document of 1 MiB, and all other options.
const MAX_GRAB_REQUEST_BYTES: usize = 2 << 20;
/// Maximum size of a request to the link, webhook, monitor, proxy and site services. REST accepts bodies of 64 KB.
const MAX_REQUEST_BYTES: usize = 128 << 10;
/// Maximum size of a request to the other services. Many concurrent calls may each hold half of one.
const MAX_OPEN_REQUEST_BYTES: usize = 4 << 10;

/// A public service. Requests may be compressed with gzip; their size limit applies to the decompressed message.
/// Responses are compressed for clients that accept it.
macro_rules! public {
    ($server:ident, $service:expr, $max_bytes:expr) => {
        $server::new($service)
            .max_decoding_message_size($max_bytes)
            .accept_compressed(CompressionEncoding::Gzip)
            .send_compressed(CompressionEncoding::Gzip)
    };
}

/// The public services and the gate: called by interfaces in this process, and served by the gRPC listener.
#[derive(Clone)]
pub struct PublicServices {
    /// The services, without the gate.
    pub routes: Routes,
    /// The gate: authentication and rate limit.
    pub gate: GateLayer,
    /// Serving state reported to health checks.
    pub health: HealthReporter,
}

impl PublicServices {
    /// Creates the services over a core. `reflection` exposes the API description to everyone who can connect.
    ///
    /// # Errors
    /// When the embedded descriptor set is invalid.
    pub async fn new(core: &Core, reflection: bool) -> Result<Self, tonic_reflection::server::Error> {
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_serving::<AccessServiceServer<access::Access>>().await;
        health.set_serving::<GrabServiceServer<grabs::Grabs>>().await;
        health.set_serving::<LinkServiceServer<links::Links>>().await;
        health.set_serving::<UsageServiceServer<usage::Usage>>().await;
        health.set_serving::<PricingServiceServer<pricing::Pricing>>().await;
        health.set_serving::<WebhookServiceServer<webhooks::Webhooks>>().await;
        health.set_serving::<MonitorServiceServer<monitors::Monitors>>().await;
        health.set_serving::<ProxyServiceServer<proxies::Proxies>>().await;
        health.set_serving::<SiteServiceServer<sites::Sites>>().await;
        let mut routes = Routes::new(public!(GrabServiceServer, grabs::Grabs(core.clone()), MAX_GRAB_REQUEST_BYTES))
            .add_service(public!(LinkServiceServer, links::Links(core.clone()), MAX_REQUEST_BYTES))
            .add_service(public!(AccessServiceServer, access::Access(core.clone()), MAX_OPEN_REQUEST_BYTES))
            .add_service(public!(UsageServiceServer, usage::Usage(core.clone()), MAX_OPEN_REQUEST_BYTES))
            .add_service(public!(PricingServiceServer, pricing::Pricing(core.clone()), MAX_OPEN_REQUEST_BYTES))
            .add_service(public!(WebhookServiceServer, webhooks::Webhooks(core.clone()), MAX_REQUEST_BYTES))
            .add_service(public!(MonitorServiceServer, monitors::Monitors(core.clone()), MAX_REQUEST_BYTES))
            .add_service(public!(ProxyServiceServer, proxies::Proxies(core.clone()), MAX_REQUEST_BYTES))
            .add_service(public!(SiteServiceServer, sites::Sites(core.clone()), MAX_REQUEST_BYTES))
            .add_service(health_service.max_decoding_message_size(MAX_OPEN_REQUEST_BYTES));
        if reflection {
            let (v1, v1alpha) = (reflection_builder().build_v1()?, reflection_builder().build_v1alpha()?);
            routes = routes
                .add_service(v1.max_decoding_message_size(MAX_OPEN_REQUEST_BYTES))
                .add_service(v1alpha.max_decoding_message_size(MAX_OPEN_REQUEST_BYTES));
        }
        Ok(Self { routes: routes.prepare(), gate: GateLayer::new(core.clone()), health })
    }

    /// The services with the gate in front.
    pub fn gated(&self) -> Gate<Routes> {
        tower::Layer::layer(&self.gate, self.routes.clone())
    }

    /// Reports to health checks that this process is shutting down.
    pub async fn set_not_serving(&self) {
        self.health.set_not_serving::<AccessServiceServer<access::Access>>().await;
        self.health.set_not_serving::<GrabServiceServer<grabs::Grabs>>().await;
        self.health.set_not_serving::<LinkServiceServer<links::Links>>().await;
        self.health.set_not_serving::<UsageServiceServer<usage::Usage>>().await;
        self.health.set_not_serving::<PricingServiceServer<pricing::Pricing>>().await;
        self.health.set_not_serving::<WebhookServiceServer<webhooks::Webhooks>>().await;
        self.health.set_not_serving::<MonitorServiceServer<monitors::Monitors>>().await;
        self.health.set_not_serving::<ProxyServiceServer<proxies::Proxies>>().await;
        self.health.set_not_serving::<SiteServiceServer<sites::Sites>>().await;
        self.health.set_service_status("", tonic_health::ServingStatus::NotServing).await;
    }
}

/// Reflection of the public services. The renderer service is not included.
fn reflection_builder() -> tonic_reflection::server::Builder<'static> {
    let served = [
        AccessServiceServer::<access::Access>::NAME,
        GrabServiceServer::<grabs::Grabs>::NAME,
        LinkServiceServer::<links::Links>::NAME,
        UsageServiceServer::<usage::Usage>::NAME,
        PricingServiceServer::<pricing::Pricing>::NAME,
        WebhookServiceServer::<webhooks::Webhooks>::NAME,
        MonitorServiceServer::<monitors::Monitors>::NAME,
        ProxyServiceServer::<proxies::Proxies>::NAME,
        SiteServiceServer::<sites::Sites>::NAME,
        tonic_health::pb::health_server::SERVICE_NAME,
    ];
    served.into_iter().fold(
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(grabd_proto::DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET),
        tonic_reflection::server::Builder::with_service_name,
    )
}

/// The service that renderers attach to. Must not be public: the holder of a lease can end a grab.
pub fn renderer_service(core: &Core) -> RendererServiceServer<RendererSessions> {
    RendererServiceServer::new(RendererSessions(core.clone()))
        .max_decoding_message_size(MAX_RENDERER_MESSAGE_BYTES)
        .max_encoding_message_size(MAX_RENDERER_MESSAGE_BYTES)
}
