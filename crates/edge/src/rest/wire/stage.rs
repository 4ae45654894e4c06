//! JSON representation of the stages of a render.

use grabd_proto::v1;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::{Object, ObjectBuilder, Type};

/// A stage that the render of a grab has reached.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StageReached {
    /// The page is requested (`navigating`), its load event has fired (`loaded`), it is waited for until nothing would
    /// change its image (`settling`), or the image was taken (`captured`). Later versions may add stages.
    #[schema(schema_with = stage_schema)]
    stage: &'static str,
    /// Milliseconds since the start of the attempt.
    #[schema(minimum = 0)]
    ms: u32,
}

impl StageReached {
    /// `None` if the stage is not known here.
    pub(super) fn of(reached: &v1::StageReached) -> Option<Self> {
        Some(Self { stage: stage_name(reached.stage())?, ms: reached.ms })
    }
}

/// The name of a stage in JSON.
const fn stage_name(stage: v1::RenderStage) -> Option<&'static str> {
    match stage {
        v1::RenderStage::Unspecified => None,
        v1::RenderStage::Navigating => Some("navigating"),
        v1::RenderStage::Loaded => Some("loaded"),
        v1::RenderStage::Settling => Some("settling"),
        v1::RenderStage::Captured => Some("captured"),
    }
}

fn stage_schema() -> Object {
    let known =
        [v1::RenderStage::Navigating, v1::RenderStage::Loaded, v1::RenderStage::Settling, v1::RenderStage::Captured];
    let names = known.into_iter().filter_map(stage_name);
    ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).build()
}
