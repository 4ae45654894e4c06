//! Waits for another thread by spinning for a short time before the task sleeps.

use std::future::{Future, poll_fn};
use std::hint::spin_loop;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::time::{Duration, Instant};

use futures::task::AtomicWaker;

/// Runs `work`. Whenever it waits, this thread spins until `work` is woken, for up to `limit`. Then the task sleeps until
/// it is woken.
pub(super) async fn spin_before_sleep<T>(limit: Duration, work: impl Future<Output = T>) -> T {
    let signal = Arc::new(Signal::default());
    let waker = Waker::from(signal.clone());
    let mut work = pin!(work);
    poll_fn(move |task| {
        signal.task.register(task.waker());
        loop {
            signal.is_woken.store(false, Ordering::Release);
            if let Poll::Ready(result) = work.as_mut().poll(&mut Context::from_waker(&waker)) {
                return Poll::Ready(result);
            }
            let began = Instant::now();
            while !signal.is_woken.load(Ordering::Acquire) {
                if began.elapsed() >= limit {
                    // If `work` is woken from now on, so is the task.
                    return Poll::Pending;
                }
                spin_loop();
            }
        }
    })
    .await
}

/// The waker of the work.
#[derive(Default)]
struct Signal {
    is_woken: AtomicBool,
    /// The task that contains the work.
    task: AtomicWaker,
}

impl Wake for Signal {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.is_woken.store(true, Ordering::Release);
        self.task.wake();
    }
}

#[cfg(test)]
mod tests {
    use tokio::sync::oneshot;

    use super::*;

    /// Waits for this many answers of another thread in turn.
    async fn ask(times: u32) -> u32 {
        let mut sum = 0;
        for number in 0..times {
            let (answer, answered) = oneshot::channel();
            let thread = std::thread::spawn(move || answer.send(number));
            sum += answered.await.unwrap();
            thread.join().unwrap().unwrap();
        }
        sum
    }

    #[tokio::test]
    async fn work_ends_whether_it_is_woken_within_the_limit_or_later() {
        for limit in [Duration::ZERO, Duration::from_micros(20), Duration::from_secs(60)] {
            assert_eq!(spin_before_sleep(limit, ask(100)).await, 4950);
        }
    }

    #[tokio::test]
    async fn sleeping_task_is_woken() {
        let (answer, answered) = oneshot::channel();
        let (result, ()) = tokio::join!(spin_before_sleep(Duration::ZERO, answered), async { answer.send(7).unwrap() });
        assert_eq!(result, Ok(7));
    }
}
