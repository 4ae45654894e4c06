//! The gRPC services over the use-cases, and the gate in front of them that no face can go round.

mod access;
mod convert;
mod gate;
mod grabs;
pub(crate) mod limits;
mod pricing;
mod renderer;
mod status;
mod usage;
mod webhooks;

use grabd_proto::internal::v1::renderer_service_server::RendererServiceServer;
use grabd_proto::v1::access_service_server::AccessServiceServer;
use grabd_proto::v1::grab_service_server::GrabServiceServer;
use grabd_proto::v1::pricing_service_server::PricingServiceServer;
use grabd_proto::v1::usage_service_server::UsageServiceServer;
use grabd_proto::v1::webhook_service_server::WebhookServiceServer;
use tonic::server::NamedService;
use tonic::service::Routes;
use tonic_health::server::HealthReporter;

use crate::core::Core;
pub use gate::{Gate, GateLayer};
pub use renderer::Rendering;
pub use status::too_many_calls;

/// The largest picture that travels between renderer and core, with room to spare.
const MAX_PICTURE_BYTES: usize = 128 << 20;

/// The largest message of a caller that the gate has admitted, with room to spare: REST takes bodies of 64 KB.
const MAX_REQUEST_BYTES: usize = 128 << 10;
/// The largest message of anybody, to services that only look something up. Many calls at a time may each hold one half.
const MAX_OPEN_REQUEST_BYTES: usize = 4 << 10;

/// The public services behind the gate: what faces in this process call, and what the gRPC listener serves.
#[derive(Clone)]
pub struct Public {
    /// The services, without the gate.
    pub routes: Routes,
    /// The gate: authentication and rate limit.
    pub gate: GateLayer,
    /// Tells health checks what is serving.
    pub health: HealthReporter,
}

impl Public {
    /// The services over a core. `reflection` lets anybody who can connect read the contract.
    ///
    /// # Errors
    /// When the descriptor set cannot be read, which a build would have to be broken for.
    pub async fn new(core: &Core, reflection: bool) -> Result<Self, tonic_reflection::server::Error> {
        let (health, health_service) = tonic_health::server::health_reporter();
        health.set_serving::<AccessServiceServer<access::Access>>().await;
        health.set_serving::<GrabServiceServer<grabs::Grabs>>().await;
        health.set_serving::<UsageServiceServer<usage::Usage>>().await;
        health.set_serving::<PricingServiceServer<pricing::Pricing>>().await;
        health.set_serving::<WebhookServiceServer<webhooks::Webhooks>>().await;
        let mut routes = Routes::new(
            GrabServiceServer::new(grabs::Grabs(core.clone())).max_decoding_message_size(MAX_REQUEST_BYTES),
        )
        .add_service(AccessServiceServer::new(access::Access).max_decoding_message_size(MAX_OPEN_REQUEST_BYTES))
        .add_service(
            UsageServiceServer::new(usage::Usage(core.clone())).max_decoding_message_size(MAX_OPEN_REQUEST_BYTES),
        )
        .add_service(
            PricingServiceServer::new(pricing::Pricing(core.clone())).max_decoding_message_size(MAX_OPEN_REQUEST_BYTES),
        )
        .add_service(
            WebhookServiceServer::new(webhooks::Webhooks(core.clone())).max_decoding_message_size(MAX_REQUEST_BYTES),
        )
        .add_service(health_service.max_decoding_message_size(MAX_OPEN_REQUEST_BYTES));
        if reflection {
            let (v1, v1alpha) = (described().build_v1()?, described().build_v1alpha()?);
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

    /// Tells health checks that this process is about to go.
    pub async fn not_serving(&self) {
        self.health.set_not_serving::<AccessServiceServer<access::Access>>().await;
        self.health.set_not_serving::<GrabServiceServer<grabs::Grabs>>().await;
        self.health.set_not_serving::<UsageServiceServer<usage::Usage>>().await;
        self.health.set_not_serving::<PricingServiceServer<pricing::Pricing>>().await;
        self.health.set_not_serving::<WebhookServiceServer<webhooks::Webhooks>>().await;
        self.health.set_service_status("", tonic_health::ServingStatus::NotServing).await;
    }
}

/// What reflection tells: the services that are served here, and not the one for renderers.
fn described() -> tonic_reflection::server::Builder<'static> {
    let served = [
        AccessServiceServer::<access::Access>::NAME,
        GrabServiceServer::<grabs::Grabs>::NAME,
        UsageServiceServer::<usage::Usage>::NAME,
        PricingServiceServer::<pricing::Pricing>::NAME,
        WebhookServiceServer::<webhooks::Webhooks>::NAME,
        tonic_health::pb::health_server::SERVICE_NAME,
    ];
    served.into_iter().fold(
        tonic_reflection::server::Builder::configure()
            .register_encoded_file_descriptor_set(grabd_proto::DESCRIPTOR_SET)
            .register_encoded_file_descriptor_set(tonic_health::pb::FILE_DESCRIPTOR_SET),
        tonic_reflection::server::Builder::with_service_name,
    )
}

/// The service that renderers attach to. Not for a public listener: who holds a lease may end a grab.
pub fn internal(core: &Core) -> RendererServiceServer<Rendering> {
    RendererServiceServer::new(Rendering(core.clone()))
        .max_decoding_message_size(MAX_PICTURE_BYTES)
        .max_encoding_message_size(MAX_PICTURE_BYTES)
}
