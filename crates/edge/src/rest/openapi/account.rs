//! Operations for usage, pricing and the OpenAPI document.

use grabd_proto::v1::ErrorCode;
use serde_json::json;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, ParameterIn, PathItem};
use utoipa::openapi::{ContentBuilder, ObjectBuilder, Type};

use super::parts::{
    authenticated, if_none_match, json_content, not_modified, parameter, path, public, success_response, text,
};
use super::pricing;

const TAG: &str = "Account";

/// All account paths.
pub(super) fn operations() -> Vec<(&'static str, PathItem)> {
    vec![
        path("/usage", [(HttpMethod::Get, usage())]),
        path("/pricing", [(HttpMethod::Get, prices())]),
        path("/openapi.json", [(HttpMethod::Get, description())]),
    ]
}

fn usage() -> OperationBuilder {
    let about = "Remaining credits, the plan, and how many grabs the team made in the last 30 days.";
    let example = json!({
        "credits": { "subscription": 24_100, "prepaid": 5_000, "total": 29_100, "held": 1 },
        "plan": { "name": "annual", "status": "active", "expires_at": "2027-03-01T00:00:00.000Z" },
        "usage": { "grabs_last_30d": 960, "live_grabs_last_30d": 900 },
        "environment": "live",
        "top_up": "https://grabd.example"
    });
    authenticated(TAG, "getUsage", "Read balance and usage", about, &[]).response(
        "200",
        success_response("Balance and usage.", &[]).content("application/json", json_content("Usage", example).build()),
    )
}

fn prices() -> OperationBuilder {
    let about = "Price of a grab, and a comparison with other services. Needs no key; pages of any origin may read it.";
    let providers = text().enum_values(Some(pricing::PROVIDERS));
    let details = text().enum_values(Some(["summary", "full"])).default(Some(json!("full")));
    public(TAG, "getPricing", "Read the prices", about, &[ErrorCode::BadRequest])
        .parameter(parameter(
            ParameterIn::Query,
            "provider",
            "Compare with this provider only, for a smaller response.",
            providers,
            None,
        ))
        .parameter(parameter(ParameterIn::Query, "detail", "Level of detail.", details, None))
        .parameter(if_none_match())
        .response(
            "200",
            success_response("The prices.", &["ETag"])
                .content("application/json", json_content("Pricing", pricing::example()).build()),
        )
        .response("304", not_modified(&[]))
}

fn description() -> OperationBuilder {
    let about = "This API reference as an OpenAPI 3.1 document. Needs no key.";
    let document = ContentBuilder::new().schema(Some(ObjectBuilder::new().schema_type(Type::Object)));
    public(TAG, "getDescription", "Read this description", about, &[])
        .parameter(if_none_match())
        .response("200", success_response("The document.", &["ETag"]).content("application/json", document.build()))
        .response("304", not_modified(&[]))
}
