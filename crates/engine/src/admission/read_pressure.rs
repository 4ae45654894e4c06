//! Reads how busy the slots are.

use grabd_domain::grabs::Class;

use super::admit::load;
use super::pressure::Pressure;
use crate::service::Core;

impl Core {
    /// How busy the slots are. At most a second old, and what is known of other processes a few seconds.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn pressure(&self) -> Result<Pressure, grabd_store::Error> {
        let read = async || {
            let waiting = [
                self.store.grabs().count_waiting(Class::Sync).await?,
                self.store.grabs().count_waiting(Class::Async).await?,
            ];
            Ok((load(self), waiting))
        };
        self.queue.pressure.get(read).await
    }
}
