//! The metrics of the core, for the registry of the service.

use std::sync::atomic::Ordering;

use grabd_domain::grabs::Class;
use prometheus_client::registry::{Registry, Unit};

use super::{Metrics, ModeLabel, SlotLabel, WorkLabel, mode};
use crate::admission::{Pressure, QueuePressure};
use crate::service::Core;

impl Core {
    /// Registers the metrics of the core and of the address guard.
    pub fn register_metrics(&self, registry: &mut Registry) {
        let Metrics {
            grabs,
            failures,
            grab_seconds,
            released,
            rate_limited,
            not_admitted,
            webhook_attempts,
            monitor_runs,
            monitors_overdue,
            evidence_timestamps,
            proxy_failures,
            sites,
            sites_overdue,
            payments,
            waiting,
            watched,
            renderers,
            image_memory,
            sweep_errors,
            set_aside,
            images_free,
            images_floor,
            oldest_waiting,
            webhooks_waiting,
            mail_failed,
            backup_at,
            hints,
            images_stored,
            not_recorded,
            queue_wait,
            queue_slots,
        } = &*self.metrics;
        registry.register("grabs", "Grabs that ended, by environment, mode and result", grabs.clone());
        registry.register("grab_failures", "Grabs that failed, by environment and whose fault it is", failures.clone());
        registry.register("grab_seconds", "Time from creation to image, for done grabs", grab_seconds.clone());
        registry.register(
            "renders_given_back",
            "Attempts that a renderer could not finish, and that were requeued",
            released.clone(),
        );
        registry.register("rate_limited", "Requests refused by a team's rate limit", rate_limited.clone());
        registry.register(
            "api_requests_not_recorded",
            "Answered API requests that are missing in the list of their team, by reason",
            not_recorded.clone(),
        );
        registry.register("creates_refused", "Live creates that were not admitted, by reason", not_admitted.clone());
        registry.register("webhook_attempts", "Webhook delivery attempts, by result", webhook_attempts.clone());
        registry.register("payment_events", "Payment events, by result", payments.clone());
        registry.register("grabs_waiting", "Grabs that wait for a slot", waiting.clone());
        registry.register("grabs_watched", "Grabs that callers wait for", watched.clone());
        registry.register("renderers", "Renderers that are attached", renderers.clone());
        let help = "Memory reserved for images that are received, scaled or drawn";
        registry.register_with_unit("image_memory", help, Unit::Bytes, image_memory.clone());
        registry.register("sweep_errors", "Errors of the periodic cleanup, by step", sweep_errors.clone());
        registry.register("rows_set_aside", "Rows that cannot be processed, by kind of work", set_aside.clone());
        let help = "Free space on the disk of the images, measured every 10 seconds";
        registry.register_with_unit("images_free", help, Unit::Bytes, images_free.clone());
        let help = "Free space below which nothing is created; 0 if there is no limit";
        registry.register_with_unit("images_floor", help, Unit::Bytes, images_floor.clone());
        let help = "How long the oldest grab that waits for a slot has waited; 0 if none waits";
        registry.register_with_unit("grabs_oldest_waiting", help, Unit::Seconds, oldest_waiting.clone());
        let help = "Grabs that failed because of the proxy of their team, by reason";
        registry.register("proxy_failures", help, proxy_failures.clone());
        registry.register("monitor_runs", "Runs of monitors that have ended, by outcome", monitor_runs.clone());
        let help = "How long the monitor that is due longest has been due; 0 if none is";
        registry.register_with_unit("monitors_overdue", help, Unit::Seconds, monitors_overdue.clone());
        let help = "Requests for time stamps of evidence, by result";
        registry.register("evidence_timestamps", help, evidence_timestamps.clone());
        registry.register("site_jobs", "Site jobs that have ended, by state", sites.clone());
        let help = "How long the site job that is due longest has been due; 0 if none is";
        registry.register_with_unit("site_jobs_overdue", help, Unit::Seconds, sites_overdue.clone());
        registry.register("webhooks_waiting", "Deliveries before their first attempt", webhooks_waiting.clone());
        registry.register("mail_failed", "E-mail messages that could not be sent", mail_failed.clone());
        let help = "When the last backup by `grabd admin backup` was complete; 0 if there is none";
        registry.register_with_unit("last_backup_timestamp", help, Unit::Seconds, backup_at.clone());
        let help = "Payloads of hints between the processes of a cluster, by what became of them";
        registry.register("hints", help, hints.clone());
        let help = "Images of grabs that are done, by the way from their renderer: through this core, or directly";
        registry.register("images_stored", help, images_stored.clone());
        let help = "How long a new grab is expected to wait for a slot, in a cluster for one of any process";
        registry.register_with_unit("queue_wait", help, Unit::Seconds, queue_wait.clone());
        let help = "Slots that work off the queue, in a cluster those of all processes, by whether they are in use";
        registry.register("queue_slots", help, queue_slots.clone());
        self.guard.register_metrics(registry);
    }

    /// Updates the gauges. Called before metrics are read.
    ///
    /// # Errors
    /// When the database cannot be read.
    pub async fn refresh_metrics(&self) -> Result<(), grabd_store::Error> {
        let metrics = &self.metrics;
        let count = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        metrics.watched.set(count(self.queue.watchers.watched().len()));
        metrics.renderers.set(count(self.queue.dispatcher.session_count()));
        metrics.image_memory.set(i64::try_from(self.grabs.memory.reserved_bytes()).unwrap_or(i64::MAX));
        metrics.images_free.set(i64::try_from(self.grabs.storage.free_bytes()).unwrap_or(i64::MAX));
        metrics.images_floor.set(i64::try_from(self.grabs.storage.floor_bytes()).unwrap_or(i64::MAX));
        let now = self.clock.now();
        let age = self.store.operator().oldest_waiting().await?.map_or(0, |oldest| now.since(oldest).as_secs());
        metrics.oldest_waiting.set(i64::try_from(age).unwrap_or(i64::MAX));
        let overdue = self.store.monitors().oldest_due(now).await?.map_or(0, |due| now.since(due).as_secs());
        metrics.monitors_overdue.set(i64::try_from(overdue).unwrap_or(i64::MAX));
        let overdue = self.store.sites().oldest_due(now).await?.map_or(0, |due| now.since(due).as_secs());
        metrics.sites_overdue.set(i64::try_from(overdue).unwrap_or(i64::MAX));
        let backlog = self.store.operator().delivery_backlog().await?;
        metrics.webhooks_waiting.set(i64::try_from(backlog.waiting).unwrap_or(i64::MAX));
        metrics.backup_at.set(self.store.audit().last_backup().await?.map_or(0, |at| at.as_ms() / 1000));
        for (work, rows) in self.store.rows_set_aside() {
            // The store counts: a concurrent refresh sets the same number.
            metrics.set_aside.get_or_create(&WorkLabel { work }).inner().store(rows, Ordering::Relaxed);
        }
        let Pressure { slots, free, sync, r#async } = self.pressure().await?;
        for (class, QueuePressure { waiting, expected_wait }) in [(Class::Sync, sync), (Class::Async, r#async)] {
            let label = ModeLabel { mode: mode(class) };
            metrics.waiting.get_or_create(&label).set(i64::try_from(waiting).unwrap_or(i64::MAX));
            metrics.queue_wait.get_or_create(&label).set(expected_wait.as_secs_f64());
        }
        for (state, slots) in [("free", free), ("busy", slots.saturating_sub(free))] {
            metrics.queue_slots.get_or_create(&SlotLabel { state }).set(count(slots));
        }
        Ok(())
    }
}
