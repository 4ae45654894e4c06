//! The isolated world of our scripts.

use chromiumoxide::cdp::js_protocol::runtime::ExecutionContextId;

use super::Watch;

/// An isolated world: the page's own scripts cannot see or change what runs in it.
pub(crate) type World = ExecutionContextId;

/// The isolated world of our scripts in a document.
#[derive(Debug)]
pub(super) struct DocumentWorld {
    /// The document's loader.
    loader: String,
    world: World,
    /// Whether it has all scripts, not only those that every capture calls.
    has_all_scripts: bool,
}

impl Watch {
    /// The world of our scripts in the current document, if it exists.
    pub(crate) fn world(&self) -> Option<World> {
        self.read(|seen| {
            let known = seen.world.as_ref()?;
            seen.document.as_ref().filter(|document| document.loader == known.loader).map(|_| known.world)
        })
    }

    /// Stores the world of our scripts in a document.
    pub(crate) fn set_world(&self, loader: String, world: World) {
        self.lock().world = Some(DocumentWorld { loader, world, has_all_scripts: false });
    }

    /// Whether a world still lacks the scripts that not every capture calls. The caller sends them.
    pub(crate) fn lacks_scripts(&self, world: World) -> bool {
        let mut seen = self.lock();
        let known = seen.world.as_mut().filter(|known| known.world == world);
        // Another world is used for one call.
        known.is_none_or(|known| !std::mem::replace(&mut known.has_all_scripts, true))
    }
}
