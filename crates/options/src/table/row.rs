//! What a row of the table has if it does not say otherwise.

use crate::{CaptureOption, FormDetails, Group, Kind};

/// What a row has if it does not say otherwise.
pub(super) const OPTION: CaptureOption = CaptureOption {
    name: "",
    kind: Kind::Flag,
    default: "",
    default_of: "",
    group: Group::Page,
    label: "",
    help: "",
    brief: "",
    description: "",
    example: "",
    excludes: &[],
    requires: "",
    is_secret: false,
    link_bar: None,
    form: FORM,
    since: "0.1",
};

/// How an option is shown if its row does not say otherwise.
pub(super) const FORM: FormDetails = FormDetails::NONE;
