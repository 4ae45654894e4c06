//! The webhook service of the mock core.

use grabd_proto::v1::webhook_service_server::WebhookService;
use grabd_proto::v1::{
    CreateWebhookRequest, CreateWebhookResponse, DeleteWebhookRequest, DeleteWebhookResponse, GetWebhookRequest,
    GetWebhookResponse, ListDeliveriesRequest, ListDeliveriesResponse, ListWebhooksRequest, ListWebhooksResponse,
    RedeliverWebhookRequest, RedeliverWebhookResponse, RotateWebhookSecretRequest, RotateWebhookSecretResponse,
    TestWebhookRequest, TestWebhookResponse, UpdateWebhookRequest, UpdateWebhookResponse,
};
use tonic::{Request, Response, Status};

use super::core::{Core, Rpc};

pub(crate) struct Webhooks {
    pub(crate) create: Rpc<CreateWebhookRequest, CreateWebhookResponse>,
    pub(crate) get: Rpc<GetWebhookRequest, GetWebhookResponse>,
    pub(crate) list: Rpc<ListWebhooksRequest, ListWebhooksResponse>,
    pub(crate) update: Rpc<UpdateWebhookRequest, UpdateWebhookResponse>,
    pub(crate) delete: Rpc<DeleteWebhookRequest, DeleteWebhookResponse>,
    pub(crate) rotate: Rpc<RotateWebhookSecretRequest, RotateWebhookSecretResponse>,
    pub(crate) test: Rpc<TestWebhookRequest, TestWebhookResponse>,
    pub(crate) deliveries: Rpc<ListDeliveriesRequest, ListDeliveriesResponse>,
    pub(crate) redeliver: Rpc<RedeliverWebhookRequest, RedeliverWebhookResponse>,
}

impl Webhooks {
    pub(super) fn new() -> Self {
        Self {
            create: Rpc::new(),
            get: Rpc::new(),
            list: Rpc::new(),
            update: Rpc::new(),
            delete: Rpc::new(),
            rotate: Rpc::new(),
            test: Rpc::new(),
            deliveries: Rpc::new(),
            redeliver: Rpc::new(),
        }
    }
}

type RpcResult<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl WebhookService for Core {
    async fn create_webhook(&self, request: Request<CreateWebhookRequest>) -> RpcResult<CreateWebhookResponse> {
        self.webhooks.create.call(request).await
    }

    async fn get_webhook(&self, request: Request<GetWebhookRequest>) -> RpcResult<GetWebhookResponse> {
        self.webhooks.get.call(request).await
    }

    async fn list_webhooks(&self, request: Request<ListWebhooksRequest>) -> RpcResult<ListWebhooksResponse> {
        self.webhooks.list.call(request).await
    }

    async fn update_webhook(&self, request: Request<UpdateWebhookRequest>) -> RpcResult<UpdateWebhookResponse> {
        self.webhooks.update.call(request).await
    }

    async fn delete_webhook(&self, request: Request<DeleteWebhookRequest>) -> RpcResult<DeleteWebhookResponse> {
        self.webhooks.delete.call(request).await
    }

    async fn rotate_webhook_secret(
        &self,
        request: Request<RotateWebhookSecretRequest>,
    ) -> RpcResult<RotateWebhookSecretResponse> {
        self.webhooks.rotate.call(request).await
    }

    async fn test_webhook(&self, request: Request<TestWebhookRequest>) -> RpcResult<TestWebhookResponse> {
        self.webhooks.test.call(request).await
    }

    async fn list_deliveries(&self, request: Request<ListDeliveriesRequest>) -> RpcResult<ListDeliveriesResponse> {
        self.webhooks.deliveries.call(request).await
    }

    async fn redeliver_webhook(
        &self,
        request: Request<RedeliverWebhookRequest>,
    ) -> RpcResult<RedeliverWebhookResponse> {
        self.webhooks.redeliver.call(request).await
    }
}
