//! `grabd.v1.PricingService`.

use grabd_engine::Core;
use grabd_proto::v1::pricing_service_server::PricingService;
use grabd_proto::v1::{GetPricingRequest, GetPricingResponse};
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Value};
use tonic::{Request, Response, Status};

use crate::status::to_status;

/// The service over a core.
pub(crate) struct Pricing(pub(crate) Core);

#[tonic::async_trait]
impl PricingService for Pricing {
    async fn get_pricing(&self, request: Request<GetPricingRequest>) -> Result<Response<GetPricingResponse>, Status> {
        let GetPricingRequest { provider, detail } = request.into_inner();
        let packet = self.0.filtered_pricing(provider.as_deref(), detail.as_deref()).map_err(to_status)?;
        let packet = match to_value(packet).kind {
            Some(Kind::StructValue(packet)) => Some(packet),
            _ => None,
        };
        Ok(Response::new(GetPricingResponse { packet }))
    }
}

fn to_value(json: serde_json::Value) -> Value {
    let kind = match json {
        serde_json::Value::Null => Kind::NullValue(0),
        serde_json::Value::Bool(value) => Kind::BoolValue(value),
        serde_json::Value::Number(value) => Kind::NumberValue(value.as_f64().unwrap_or(0.0)),
        serde_json::Value::String(value) => Kind::StringValue(value),
        serde_json::Value::Array(values) => {
            Kind::ListValue(ListValue { values: values.into_iter().map(to_value).collect() })
        }
        serde_json::Value::Object(members) => Kind::StructValue(Struct {
            fields: members.into_iter().map(|(name, value)| (name, to_value(value))).collect(),
        }),
    };
    Value { kind: Some(kind) }
}
