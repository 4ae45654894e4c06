//! The stages of a render for display, while it is in progress.

use std::time::Duration;

use grabd_domain::grabs::{Stage, Stages};

use super::view::seconds;

/// A stage of a list that has all of them, so that its size does not change.
pub(super) struct StageView {
    pub(super) label: &'static str,
    pub(super) is_reached: bool,
    /// When it was reached, if it was.
    pub(super) when: String,
}

/// All stages, with those that were reached.
pub(super) fn all(stages: &Stages) -> Vec<StageView> {
    let current = stages.current().map(|(stage, _)| stage);
    let view = |stage| {
        let reached = stages.iter().find(|(of, _)| *of == stage);
        let when = match reached {
            Some((_, ms)) => format!("after {}", seconds(Duration::from_millis(ms.into()))),
            None if current > Some(stage) => "skipped".to_owned(),
            None => "not yet".to_owned(),
        };
        StageView { label: label(stage), is_reached: reached.is_some(), when }
    };
    Stage::ALL.into_iter().map(view).collect()
}

const fn label(stage: Stage) -> &'static str {
    match stage {
        Stage::Navigating => "Page requested",
        Stage::Loaded => "Page loaded",
        Stage::Settling => "Settling",
        Stage::Captured => "Image taken",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn list_has_all_stages_and_says_which_were_reached() {
        let texts = |stages: &Stages| {
            let all = all(stages).into_iter();
            all.map(|view| (view.is_reached, view.when)).collect::<Vec<_>>()
        };
        let not_yet = (false, "not yet".to_owned());
        assert_eq!(texts(&Stages::default()), vec![not_yet.clone(); 4]);
        let mut stages = Stages::of_attempt(1);
        assert!(stages.reach(Stage::Navigating, 2) && stages.reach(Stage::Settling, 1250));
        let expected = [(true, "after 2 ms"), (false, "skipped"), (true, "after 1.2 s"), (false, "not yet")];
        assert_eq!(texts(&stages), expected.map(|(is_reached, when)| (is_reached, when.to_owned())));
    }
}
