//! The stages of a render.

use grabd_api::StageReached;
use grabd_proto::v1;

/// Converts a stage. `None` if it is not known here.
pub(super) fn stage_reached(reached: &v1::StageReached) -> Option<StageReached<'static>> {
    Some(StageReached { stage: stage_name(reached.stage())?.into(), ms: reached.ms })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_the_schema() {
        let known = [
            v1::RenderStage::Navigating,
            v1::RenderStage::Loaded,
            v1::RenderStage::Settling,
            v1::RenderStage::Captured,
        ];
        assert_eq!(known.map(stage_name), grabd_api::words::STAGES.map(Some));
    }
}
