//! The paths whose responses pages of any origin may read, because they need no credential.

use super::paths;

/// REST paths that pages of any origin may read.
pub(super) const PUBLIC_PATHS: [&str; 2] = [paths::PRICING, paths::OPENAPI];
